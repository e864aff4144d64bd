package definition

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

func jsonFields(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return slices.Sorted(slices.Values(names))
}

// TestPayloads compares what is known here of the built-in actions with what
// they say of themselves: the wire types, and the field lists in their source.
func TestPayloads(t *testing.T) {
	t.Parallel()
	sorted := func(s []string) []string { return slices.Sorted(slices.Values(s)) }
	if got, want := sorted(payloads["code"].fields), jsonFields(reflect.TypeFor[api.Code]()); !slices.Equal(got, want) {
		t.Errorf("code has %v, here %v", want, got)
	}
	if got, want := sorted(payloads["container"].fields), jsonFields(reflect.TypeFor[api.Container]()); !slices.Equal(got, want) {
		t.Errorf("container has %v, here %v", want, got)
	}
	want := sorted(append(jsonFields(reflect.TypeFor[api.CodeLimits]()), "timeout"))
	if got := sortedKeys(codeLimits); !slices.Equal(got, want) {
		t.Errorf("limits are %v, here %v", want, got)
	}
	for name, max := range map[string]float64{"wall": time.Duration(api.MaxWall).Seconds(), "memory": float64(api.MaxMemory), "output": float64(api.MaxOutput),
		"disk": float64(api.MaxDisk), "pids": api.MaxPids} {
		if codeLimits[name].most != max {
			t.Errorf("%s may be %v, here %v", name, max, codeLimits[name].most)
		}
	}
	for action, list := range map[string]string{"http": "../task/http.go:requestFields", "llm": "../task/llm.go:chatFields"} {
		file, name, _ := strings.Cut(list, ":")
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(name + ` = "([^"]+)"`).FindSubmatch(src)
		if m == nil {
			t.Errorf("%s does not list the fields of %s", list, action)
			continue
		}
		if got, want := sorted(payloads[action].fields), sorted(strings.Split(string(m[1]), ", ")); !slices.Equal(got, want) {
			t.Errorf("%s has %v, here %v", action, want, got)
		}
	}
}

func TestSizeOf(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"64MB", "1.5GiB", "1048576", "7k", "2 KiB", "1b", "64Q", "MB", "", "1e3", "1KBB", "-1", "3kb ib", "12ib"} {
		want, wantErr := api.ParseSize(s)
		got, err := sizeOf(s)
		if got < 0 && err == nil {
			continue // out of every range: the caller refuses it
		}
		if (err == nil) != (wantErr == nil) || err == nil && int64(got) != int64(want) {
			t.Errorf("%q is %v (%v), the API says %d (%v)", s, got, err, want, wantErr)
		}
	}
}
