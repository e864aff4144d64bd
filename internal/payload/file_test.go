package payload

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/pawl-run/pawl/api"
)

// A file from a result is accepted wherever a file is expected, with its bytes or the name of its blob.
func TestAFileOfAResultIsAFile(t *testing.T) {
	t.Parallel()
	text, empty := "a,b\n", ""
	for name, file := range map[string]api.ResultFile{
		"text": {Path: "out/a.csv", Size: 4, Mode: "0755", Content: &text}, "empty": {Path: "out/a.csv", Mode: "0755", Content: &empty}, "bytes": {Path: "stdin", Size: 2, Mode: "0755", Base64: []byte{0xff, 0}},
		"blob": {Path: "out/big", Size: 1 << 20, Mode: "0755", Blob: "files/ex_1/1/0"},
	} {
		raw, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		want := api.Content{Bytes: file.Base64, Blob: file.Blob}
		if file.Content != nil {
			want.Bytes = []byte(*file.Content)
		}
		asFile := want
		asFile.Mode = 0o755
		c, err := Code(fmt.Appendf(nil, `{"language":"bash","source":"x","files":{"a":%s,"stdin":%[1]s},"stdin":%[1]s}`, raw))
		if err != nil || !reflect.DeepEqual(c.Files["a"], asFile) || !reflect.DeepEqual(c.Files["stdin"], asFile) || !reflect.DeepEqual(c.Stdin, want) {
			t.Errorf("%s: %+v %v", name, c, err)
		}
		c, err = Code(fmt.Appendf(nil, `{"language":"bash","source":"x","cases":[{"name":"a","stdin":%s,"expect":%[1]s}]}`, raw))
		if err != nil || !reflect.DeepEqual(c.Cases[0].Stdin, want) || !reflect.DeepEqual(*c.Cases[0].Expect, want) {
			t.Errorf("%s of a case: %+v %v", name, c, err)
		}
	}
	for _, bad := range []string{`{"path":"a","size":1,"mode":"0644"}`, `{"content":"a","text":"b"}`, `{"path":"a","content":"a","blob":"b"}`} {
		if c, err := Code(fmt.Appendf(nil, `{"language":"bash","source":"x","files":{"a":%s}}`, bad)); err == nil {
			t.Errorf("%s: %+v", bad, c)
		}
	}
}
