package payload

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

func TestContainer(t *testing.T) {
	t.Parallel()
	got, err := Container([]byte(`{"image":"alpine:3.20","entrypoint":[],"command":["sh","-c","env"],"env":{"A":"b"},
		"files":{"in/x":"y"},"workdir":"/app","user":"1000:1000","pull":"never","limits":{"wall":"5s"},"collect":["out"],"runtime":"docker"}`))
	want := api.Container{Image: "alpine:3.20", Entrypoint: []string{}, Command: []string{"sh", "-c", "env"}, Env: map[string]string{"A": "b"},
		Files: map[string]api.Content{"in/x": api.Text("y")}, WorkDir: "/app", User: "1000:1000", Pull: "never",
		Limits: api.CodeLimits{Wall: api.Duration(5 * time.Second)}, Collect: []string{"out"}, Runtime: "docker"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for in, say := range map[string]string{
		`{}`:                              "image: it is missing",
		`{"image":" x"}`:                  "not the name of an image",
		`{"image":"x","workdir":"app"}`:   "workdir: it is not a directory",
		`{"image":"x","workdir":"/a/.."}`: "workdir: it is not a directory",
		`{"image":"x","pull":"often"}`:    "one of missing, always, never",
		`{"image":"x","command":"ls -l"}`: "command: it is a string and should be a list of strings",
		`{"image":"x","imge":1}`:          `imge: there is no such field: "imge" (did you mean "image"?)`,
		`{"image":"x","privileged":true}`: "privileged: there is no such field",
		`{"image":"x","files":{"/a":""}}`: "not a path beneath",
	} {
		if _, err := Container([]byte(in)); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want %q", in, err, say)
		}
	}
}
