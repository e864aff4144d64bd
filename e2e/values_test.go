package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/programtest"
)

// values are texts that readers of JSON, YAML, SQL and numbers often change. No two of them are equal.
var values = []string{
	`9007199254740993`, `9007199254740992`, `-9007199254740993`, `18446744073709551615`, `18446744073709551616`, `123456789012345678901234567890`,
	`1e400`, `1e-400`, `5e-324`, `1.7976931348623157e308`, `0`, `0.1`, `0.30000000000000004`, `0.1234567890123456789`, `1.0`, `1E+2`,
	`""`, `null`, `true`, `"true"`, `"null"`, `"1"`, `"007"`, `"1e3"`, `"0x10"`, `"1_000"`, `"no"`, `"~"`, `"2026-01-01"`, `"- a"`, `"# c"`, `"a: b"`, `" lead"`, `"trail "`,
	`"\n"`, `"a\r\nb"`, `"\t"`, `"\u0085"`, `"\u2028\u2029"`, `"\ufeff"`, `"\uffff"`, `"\u202eabc"`, `"\ud83d\ude00"`, `"\u00e9"`, `"e\u0301"`, `"${{ x }}"`, `"'\"\\"`,
	`[]`, `{}`, `[null]`, `{"":1}`, `{"a":null}`, `{"\u00e9":1,"e\u0301":2}`, `[[[1.10]]]`, `{"$bytes":"eA=="}`,
}

const passed = `
name: passed
input: {type: object}
searchable: [input.v]
tasks:
  a: {action: noop, with: {v: "${{ input.v }}"}}
  b: {needs: a, foreach: "${{ [tasks.a.output.v] }}", action: noop, with: {v: "${{ item }}"}}
  c: {action: noop, with: {text: "${{ json(input.v) }}", v: "${{ parse_json(json(input.v)) }}"}}
outputs: {v: "${{ tasks.a.output.v }}", item: "${{ tasks.b.output[0].v }}", parsed: "${{ tasks.c.output.v }}", text: "${{ tasks.c.output.text }}"}
`

func member(t testing.TB, raw json.RawMessage, name string) json.RawMessage {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatalf("%.200s: %v", raw, err)
	}
	return all[name]
}

// Values keep their text through inputs, expressions, defaults of schemas, labels, conditions, the command line and archives.
func TestValuesKeepTheirText(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, filepath.Join(dir, "state"))
	var defaults []string
	for i, v := range values {
		defaults = append(defaults, fmt.Sprintf(`"v%d": {"default": %s}`, i, v))
	}
	for _, doc := range []string{
		passed, `{"kind": "action", "name": "defaults", "action": "noop", "input": {"type": "object", "properties": {` + strings.Join(defaults, ", ") + `}}}`,
	} {
		if _, err := p.client.Define(t.Context(), []byte(doc), ""); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]string{} // of values
	for _, v := range values {
		s := api.Submission{Action: "passed", Input: json.RawMessage(`{"v":` + v + `}`), Labels: map[string]string{"run": "values"}}
		if text, ok := labelOf(v); ok {
			s.Labels["v"] = text
		}
		x, err := p.client.Submit(t.Context(), s)
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		ids[v] = x.ID
	}
	check := func(where, v string, x *api.Execution) {
		t.Helper()
		if x.Status != api.Completed {
			t.Errorf("%s: %s: %s %+v", where, v, x.Status, x.Error)
			return
		}
		if got := member(t, x.Input, "v"); string(got) != v {
			t.Errorf("%s: the input %s is %s", where, v, got)
		}
		for _, name := range []string{"v", "item", "parsed"} {
			if got := member(t, x.Output, name); !jsonvalue.Same(got, json.RawMessage(v)) {
				t.Errorf("%s: the output %s of %s is %s", where, name, v, got)
			}
		}
		var text string
		if err := json.Unmarshal(member(t, x.Output, "text"), &text); err != nil || !jsonvalue.Same(json.RawMessage(text), json.RawMessage(v)) {
			t.Errorf("%s: json() of %s is %s (%v)", where, v, text, err)
		}
		if want, ok := labelOf(v); ok && x.Labels["v"] != want {
			t.Errorf("%s: the label %q is %q", where, want, x.Labels["v"])
		}
	}
	for _, v := range values {
		check("API", v, p.wait(t, ids[v]))
	}

	of, err := p.client.Submit(t.Context(), api.Submission{Action: "defaults", Input: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	given := p.wait(t, of.ID)
	for i, v := range values {
		if got := member(t, given.Output, fmt.Sprintf("v%d", i)); !jsonvalue.Same(got, json.RawMessage(v)) {
			t.Errorf("the default %s is %s", v, got)
		}
	}

	// A search for a value finds that value and no other one.
	for _, v := range values {
		var text string
		written := v
		if v[0] == '"' && json.Unmarshal([]byte(v), &text) == nil {
			if strings.ContainsAny(text, "\n\r\t\u0085\u2028\u2029\ufeff\uffff\u202e") {
				continue // not typed on a command line
			}
			written = "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
		}
		if strings.ContainsAny(v[:1], "[{n") {
			continue // lists are searched by their elements
		}
		conditions := []string{"label.run = values and input.v = " + written}
		if label, ok := labelOf(v); ok {
			conditions = append(conditions, "label.v = '"+strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(label)+"'")
		}
		for _, where := range conditions {
			page, err := p.client.List(t.Context(), client.Filter{Where: where, Limit: 100, Action: "passed"})
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			var found []string
			for i := range page.Executions {
				found = append(found, page.Executions[i].ID)
			}
			want := []string{ids[v]}
			if v == `true` { // a word without quotes is also a text
				want = append(want, ids[`"true"`])
			}
			slices.Sort(found)
			slices.Sort(want)
			if !slices.Equal(found, want) {
				t.Errorf("%s finds %v, want %v", where, found, want)
			}
		}
	}

	// The command line.
	path, err := programtest.Pawl()
	if err != nil {
		t.Fatal(err)
	}
	all := "[" + strings.Join(values, ",") + "]"
	run := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Env = append(os.Environ(), "PAWL_SERVER="+p.address, "HOME="+dir)
		cmd.Stdin = strings.NewReader(`{"v":` + all + `}`)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("pawl %v: %v", args, err)
		}
		return bytes.TrimSpace(out)
	}
	id := string(run("run", "passed", "--input", "@-", "--detach"))
	check("command line", all, p.wait(t, id))
	if got := member(t, member(t, run("describe", id, "-o", "json"), "input"), "v"); !jsonvalue.Same(got, json.RawMessage(all)) {
		t.Errorf("pawl describe -o json: %s", got)
	}
	// The document reader reads the output of -o yaml, apart from numbers that it refuses and from expressions.
	all = "[" + strings.Join(slices.DeleteFunc(slices.Clone(values), func(v string) bool {
		return strings.Contains(v, "e400") || strings.Contains(v, "e-400") || strings.Contains(v, "${{")
	}), ",") + "]"
	id = string(run("run", "passed", "--input", "@-", "--detach"))
	check("command line", all, p.wait(t, id))
	var shown strings.Builder
	shown.WriteString("kind: action\nname: shown\naction: noop\nwith:\n")
	for l := range strings.Lines(string(run("describe", id, "-o", "yaml"))) {
		shown.WriteString("  " + l)
	}
	if _, err := p.client.Define(t.Context(), []byte(shown.String()), ""); err != nil {
		t.Fatalf("pawl describe -o yaml: %v\n%s", err, shown.String())
	}
	x, err := p.client.Submit(t.Context(), api.Submission{Action: "shown", Input: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := member(t, member(t, p.wait(t, x.ID).Output, "input"), "v"); !jsonvalue.Same(got, json.RawMessage(all)) {
		t.Errorf("pawl describe -o yaml: %s", got)
	}

	// An archive.
	whole, err := p.client.Export(t.Context(), nil, client.Filter{Labels: map[string]string{"run": "values"}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := instance.OpenArchive(t.Context(), whole, instance.ArchiveOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.Serve(l)
	there, err := client.New("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		x, err := there.Get(t.Context(), ids[v])
		if err != nil {
			t.Fatal(err)
		}
		check("archive", v, x)
	}
}

// labelOf returns the text of a value as a label, if the value is a string.
func labelOf(v string) (text string, is bool) {
	return text, json.Unmarshal([]byte(v), &text) == nil && v[0] == '"'
}
