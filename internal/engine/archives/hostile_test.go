package archives_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
)

// extremes are JSON values that a forged archive may have in any field.
var extremes = []string{
	`0`, `1`, `-1`, `2147483648`, `9223372036854775807`, `-9223372036854775808`, `1e300`, `true`, `null`, `{}`, `[]`, `""`,
	`"\u0000"`, `"process,sandbox"`, `"../../etc/passwd"`, `"` + strings.Repeat("x", 5000) + `"`,
	`"0001-01-01T00:00:00Z"`, `"1969-12-31T23:59:59Z"`, `"9999-12-31T23:59:59Z"`, `"ex_00000000000000000000000000"`, `"ex_7zzzzzzzzzzzzzzzzzzzzzzzzz"`,
}

// leaf is a field of a row: the line of the archive, and the path in it.
type leaf struct {
	line int
	path string
}

// forgery is a genuine archive whose single fields can be replaced.
type forgery struct {
	whole  []byte
	lines  [][]byte
	leaves []leaf
	ids    []flow.ID
}

// newForgery takes one leaf for each field of each kind of row.
func newForgery(t testing.TB, whole []byte, ids ...flow.ID) *forgery {
	t.Helper()
	f := &forgery{whole: whole, ids: ids}
	seen := map[string]bool{}
	err := archive.Read(bytes.NewReader(whole), archive.Contents{Row: func(_ *archive.Row, line []byte) error {
		var value any
		if err := json.Unmarshal(line, &value); err != nil {
			return err
		}
		for _, path := range leavesOf(value, "") {
			if !seen[path] {
				seen[path] = true
				f.leaves = append(f.leaves, leaf{len(f.lines), path})
			}
		}
		f.lines = append(f.lines, bytes.Clone(line))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// leavesOf are the paths of all values in a value; of lists, only of the first element.
func leavesOf(value any, path string) (all []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, path+"/"+name)
			all = append(all, leavesOf(v[name], path+"/"+name)...)
		}
	case []any:
		if len(v) > 0 {
			all = append(all, leavesOf(v[0], path+"/0")...)
		}
	}
	return all
}

// replaced is a copy of a value with another one at a path.
func replaced(value any, path []string, by any) any {
	if len(path) == 0 {
		return by
	}
	switch v := value.(type) {
	case map[string]any:
		v[path[0]] = replaced(v[path[0]], path[1:], by)
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(v) {
			v[i] = replaced(v[i], path[1:], by)
		}
	}
	return value
}

// with is the archive with another value in a field, sealed as a genuine one; false: no row can have that value.
func (f *forgery) with(t testing.TB, at leaf, text string) ([]byte, bool) {
	t.Helper()
	var line, by any
	d := json.NewDecoder(bytes.NewReader(f.lines[at.line]))
	d.UseNumber()
	if err := d.Decode(&line); err != nil {
		t.Fatal(err)
	}
	d = json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&by); err != nil {
		return nil, false
	}
	changed, err := json.Marshal(replaced(line, strings.Split(at.path, "/")[1:], by))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := archive.ParseRow(append(changed, '\n'))
	if err != nil {
		return nil, false
	}
	n := -1
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, archive.Manifest{From: "there"})
	if err != nil {
		t.Fatal(err)
	}
	err = archive.Read(bytes.NewReader(f.whole), archive.Contents{
		Definition: w.Definition,
		Blob: func(name string, size int64, content io.Reader) error {
			_, err := w.Blob(name, size, content)
			return err
		},
		Row: func(r *archive.Row, _ []byte) error {
			if n++; n == at.line {
				r = forged
			}
			return w.Row(r)
		},
	})
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, false
	}
	return b.Bytes(), true
}

// opened opens an archive as pawl open does. It returns the error if the archive is refused; the error must name the mistake.
func opened(t testing.TB, whole []byte, look func(url string)) error {
	t.Helper()
	panics := &bytes.Buffer{}
	a, err := instance.OpenArchive(t.Context(), bytes.NewReader(whole), instance.ArchiveOptions{
		Log: slog.New(slog.NewTextHandler(panics, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		var refused *fault.Invalid
		if !errors.Is(err, archive.ErrBroken) && !errors.As(err, &refused) {
			t.Errorf("an error that is not a refusal: %v", err)
		}
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.Serve(l)
	look("http://" + l.Addr().String())
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if panics.Len() > 0 {
		t.Errorf("the server logged\n%s", panics)
	}
	return nil
}

// readers are the paths that a client of an opened archive may request, for an execution and beside it.
var readers = []string{"", "/tasks", "/logs", "/logs/summary", "/logs/search?q=e", "/events", "/timeline", "/replay", "/why", "/result", "/stdin",
	"/stdin/bytes", "/attempts/1", "/files/out"}

var lists = []string{"executions", "executions:count?label=k%3Dv", "evaluations", "definitions", "definitions/outer", "definitions/outer/graph", "definitions/outer/versions",
	"queues", "keys", "workers", "stats", "pauses", "activity", "signals", "schedules", "rules", "enforcements"}

// lookAt requests everything, and fails if an answer is a failure of the server.
func (f *forgery) lookAt(t testing.TB, url string) {
	t.Helper()
	client := &http.Client{Timeout: time.Minute}
	paths := slices.Clone(lists)
	for _, id := range f.ids {
		for _, path := range readers {
			paths = append(paths, "executions/"+id.String()+path)
		}
	}
	for _, path := range paths {
		res, err := client.Get(url + "/api/v1/" + path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		body, err := io.ReadAll(res.Body)
		if _ = res.Body.Close(); err != nil || res.StatusCode >= 500 {
			t.Errorf("%s: %s, %v\n%.500s", path, res.Status, err, body)
		}
	}
}

// A forged archive is refused with its mistake, or shown: no value of any field makes a request fail, hang or panic.
func TestExtremesOfEveryField(t *testing.T) {
	from := onSQLite(t)
	workflow, code := from.archived()
	f := newForgery(t, from.export(workflow, code), workflow, code, from.Children(workflow)["each[1]"].ID)
	if err := opened(t, f.whole, func(url string) { f.lookAt(t, url) }); err != nil {
		t.Fatalf("the genuine archive: %v", err)
	}
	tried, shown := 0, 0
	for _, at := range f.leaves {
		for _, value := range extremes {
			whole, ok := f.with(t, at, value)
			if !ok {
				continue
			}
			tried++
			t.Run(fmt.Sprintf("%s %.30s", at.path, value), func(t *testing.T) {
				err := opened(t, whole, func(url string) {
					shown++
					f.lookAt(t, url)
				})
				if err != nil && cmp.Compare(len(err.Error()), 2000) > 0 {
					t.Errorf("the refusal has %d bytes: %.200s", len(err.Error()), err)
				}
			})
		}
	}
	t.Logf("%d fields, %d forgeries, %d shown", len(f.leaves), tried, shown)
	if len(f.leaves) < 60 || tried < 200 || shown == 0 || shown == tried {
		t.Errorf("%d fields, %d forgeries, %d shown", len(f.leaves), tried, shown)
	}
}

func FuzzOpenedArchive(fz *testing.F) {
	from := &rig{onSQLite(fz).Rig}
	workflow, code := from.archived()
	f := newForgery(fz, from.export(workflow, code), workflow, code)
	for i, value := range extremes {
		fz.Add(uint16(i), value)
	}
	fz.Fuzz(func(t *testing.T, field uint16, value string) {
		whole, ok := f.with(t, f.leaves[int(field)%len(f.leaves)], value)
		if !ok {
			return
		}
		_ = opened(t, whole, func(url string) { f.lookAt(t, url) })
	})
}
