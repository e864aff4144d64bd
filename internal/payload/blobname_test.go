package payload

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
)

// A submission with the name of a blob that cannot exist, or a file with the name of the program's own source, is refused before it is
// stored, at every place where code and containers have contents.
func TestContentsAreCheckedAtSubmission(t *testing.T) {
	t.Parallel()
	sum := "sha256:" + strings.Repeat("0a", 32)
	validate := Operator{Taken: func(*api.Code) []string { return []string{"main.py", ".pawl-output.json"} }}.Validate
	const head = `{"language": "python", "source": "x", `
	for _, c := range []struct {
		kind flow.Kind
		body string
		at   string // path in which BLOB stands for the name
	}{
		{flow.KindCode, head + `"stdin": {"blob": "BLOB"}}`, "stdin.blob"},
		{flow.KindCode, head + `"files": {"lib/u.h": {"blob": "BLOB"}}}`, `files["lib/u.h"].blob`},
		{flow.KindCode, head + `"cases": [{}, {"stdin": {"blob": "BLOB"}}]}`, "cases[1].stdin.blob"},
		{flow.KindCode, head + `"cases": [{"expect": {"blob": "BLOB"}}]}`, "cases[0].expect.blob"},
		{flow.KindCode, head + `"cases": [{}], "compare": {"interactor": {"language": "python", "source": "x", "files": {"a": {"blob": "BLOB"}}}}}`, "compare.interactor.files.a.blob"},
		{flow.KindCode, head + `"cases": [{"expect": "1"}], "compare": {"mode": "checker", "checker": {"language": "python", "source": "x", "files": {"a": {"blob": "BLOB"}}}}}`, "compare.checker.files.a.blob"},
		{flow.KindContainer, `{"image": "a", "stdin": {"blob": "BLOB"}}`, "stdin.blob"},
		{flow.KindContainer, `{"image": "a", "files": {"f": {"blob": "BLOB"}}}`, "files.f.blob"},
	} {
		for _, bad := range []string{"foo", "sha256:", "sha256:zz", strings.ToUpper(sum), sum + "0", "md5:" + sum[7:], "files/x", "../" + sum, "files/ex_00000000000000000000000010/", " " + sum} {
			err := validate(c.kind, []byte(strings.Replace(c.body, "BLOB", bad, 1)))
			if err == nil || !strings.HasPrefix(err.Error(), c.at+": it is not the name of a blob") {
				t.Errorf("%s of %q: %v", c.at, bad, err)
			}
		}
		for _, good := range []string{sum, "files/ex_00000000000000000000000010/1/3"} {
			if err := validate(c.kind, []byte(strings.Replace(c.body, "BLOB", good, 1))); err != nil {
				t.Errorf("%s of %q: %v", c.at, good, err)
			}
		}
	}
	// Data that only looks like a name is accepted.
	if err := validate(flow.KindCode, []byte(head+`"env": {"blob": "foo"}, "files": {"blob": "foo", "stdin": "blob"}}`)); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"main.py", ".pawl-output.json"} {
		if err := validate(flow.KindCode, []byte(head+`"files": {"`+name+`": "y"}}`)); err == nil || !strings.Contains(err.Error(), "Pawl places the file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	unknown := Operator{Knows: func(name string) bool { return name == "pascal" }, Meant: func(string) string { return "one of python, pascal" }}.Validate
	if err := unknown(flow.KindCode, []byte(`{"language": "cobol", "source": "x"}`)); err == nil || !strings.Contains(err.Error(), "one of python, pascal") {
		t.Error(err)
	}
}
