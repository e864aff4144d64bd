package definition

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// misread are plain scalars that YAML readers interpret differently.
var misread = []string{
	"0012345670", "-012", "00", "08", "09.5", "1_000", "1__0", "1_0.5", "0.1_0", "0b101", "0B1", "-0b1", "0x_1", "0X1F", "0O17", "+0x1", "-0o7", "1e400", "-1e309", "1e-400", ".inf", "-.Inf", ".NaN", "2026_11_28", "0x1_F",
}

func TestPlainScalarsAreThoseOfTheCoreSchema(t *testing.T) {
	for text, want := range map[string]string{
		"5": "5", "+5": "5", "-5": "-5", "0x1F": "31", "0xFFFFFFFFFFFFFFFF": "18446744073709551615", "0o17": "15", ".5": "0.5", "-.5e3": "-0.5e3", "5.": "5", "5.e3": "5e3", "1e3": "1e3", "0": "0", "0.50": "0.50",
		"9007199254740993": "9007199254740993", "123456789012345678901234567890": "123456789012345678901234567890", "True": "true", "FALSE": "false", "~": "null", "NULL": "null", "''": `""`, "'0012'": `"0012"`,
		"yes": `"yes"`, "on": `"on"`, "1:30": `"1:30"`, "190:20:30": `"190:20:30"`, "2026-01-02": `"2026-01-02"`, "0o8": `"0o8"`, "1e": `"1e"`, "=": `"="`, "!!str 0012": `"0012"`, "!!int '12'": "12", "!!float 1": "1", "1.2.3": `"1.2.3"`,
		"09:30": `"09:30"`, "v1_0": `"v1_0"`, "deadbeef": `"deadbeef"`, "|\n        0012": `"0012\n"`, "123-456": `"123-456"`,
	} {
		d, err := Parse("w.yaml", fmt.Appendf(nil, "%%YAML 1.2\n---\nname: w\ntasks:\n  t:\n    action: noop\n    with:\n      v: %s\n", text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := d[0].Workflow.Tasks[0].With.Eval(&Vars{}); err != nil || string(got) != `{"v":`+want+`}` {
			t.Errorf("%s: %s %v, want %s", text, got, err, want)
		}
	}
}

// Where a text is expected, a scalar is kept as it is written; elsewhere an ambiguous one is refused, with its position and fix.
func TestWhatIsMisreadIsRefusedOrKept(t *testing.T) {
	for _, text := range misread {
		for _, place := range []string{
			"name: w\naction: noop\nwith: {a: [1, {v: %s}]}\n", "name: w\ninput: {type: object, properties: {v: {default: %s}}}\ntasks: {t: {action: noop}}\n", "name: w\ntasks: {t: {action: noop, with: {v: %s}}}\n",
			"name: w\ntasks: {t: {action: noop, timeout: %s}}\n", "name: w\ntasks: {t: {action: noop, foreach: [%s]}}\n", "name: w\ntasks: {t: {action: noop}}\noutputs: {v: %s}\n", "name: w\naction: noop\npriority: %s\n",
			"name: w\naction: code\nwith: {language: bash, source: %s}\n", "kind: schedule\nname: s\ncron: 0 7 * * *\nrun: {action: noop, input: {v: %s}}\n", "name: w\naction: &a {x: %s}\nwith: *a\n",
		} {
			_, err := Parse("w.yaml", fmt.Appendf(nil, place, text))
			if err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "quote it") {
				t.Errorf("%s in %q: %v", text, place, err)
			}
		}
		d, err := Parse("w.yaml", fmt.Appendf(nil, "name: w\nlabels: {a: %s}\nenv: {A: %[1]s}\ntasks:\n  t: {action: code, env: {B: %[1]s}, with: {language: bash, source: x, env: {C: %[1]s}}}\n", text))
		if err != nil {
			t.Errorf("%s as text: %v", text, err)
			continue
		}
		env, err := d[0].Workflow.Env.Eval(&Vars{})
		own, err2 := d[0].Workflow.Tasks[0].Settings.Env.Eval(&Vars{})
		with, err3 := d[0].Workflow.Tasks[0].With.Eval(&Vars{})
		quoted, _ := json.Marshal(text)
		if err != nil || err2 != nil || err3 != nil || d[0].Settings.Labels["a"] != text || string(env) != `{"A":`+string(quoted)+`}` || string(own) != `{"B":`+string(quoted)+`}` ||
			!strings.Contains(string(with), `"C":`+string(quoted)) {
			t.Errorf("%s: %v %s %s %s %v %v %v", text, d[0].Settings.Labels, env, own, with, err, err2, err3)
		}
	}
	for _, tagged := range []string{"!!binary aGk=", "!!timestamp 2026-01-01", "!foo x", "!!set {a}", "!!omap [a: 1]", "!!int 0012", "!!bool yes", "!!float .inf", "!!null x", "!!null 0",
		"{!!binary aGk=: 1}", "{!!int 5: 1}", "{!!null : 1}"} {
		if _, err := Parse("w.yaml", fmt.Appendf(nil, "name: w\naction: noop\nwith: {v: %s}\n", tagged)); err == nil {
			t.Errorf("%s is accepted", tagged)
		}
	}
}

// A character that YAML 1.1 takes for a line break would become another character, or split source code, so it must be escaped. JSON can
// have it unescaped.
func TestOldLineBreaksAreRefused(t *testing.T) {
	for _, c := range []string{"\u0085", "\u2028", "\u2029"} {
		for _, v := range []string{`"a` + c + `b"`, "'a " + c + " b'", "|\n      a" + c + "b\n      c", "a" + c + "b", "1 # " + c} {
			_, err := Parse("w.yaml", []byte("name: w\naction: noop\nwith:\n  v: "+v+"\n"))
			if err == nil || !strings.Contains(err.Error(), "is a line break in YAML 1.1") || !strings.Contains(err.Error(), "in double quotes") {
				t.Errorf("%q: %v", v, err)
			}
		}
		raw, _ := json.Marshal("a" + c + "b")
		for name, doc := range map[string]string{
			"w.yaml": "name: w\naction: noop\nwith: {v: " + fmt.Sprintf(`"a\u%04xb"`, []rune(c)[0]) + "}\n", "w.json": `{"name":"w","action":"noop","with":{"v":"a` + c + `b"}}`,
		} {
			d, err := Parse(name, []byte(doc))
			if err != nil {
				t.Errorf("%s: %v", doc, err)
				continue
			}
			var got struct {
				With struct{ V string }
			}
			if err := json.Unmarshal(d[0].Canonical(), &got); err != nil || got.With.V != "a"+c+"b" {
				t.Errorf("%s: %s %v, want %s", doc, d[0].Canonical(), err, raw)
			}
		}
	}
	if _, err := Parse("w.yaml", []byte("name: w\n\naction: é\u2028\n")); err == nil || !strings.Contains(err.Error(), "w.yaml:3:10:") {
		t.Errorf("its place: %v", err)
	}
}

// A text with a NUL could be applied, and then each use of it would fail. It is refused in each place, in YAML and in JSON, with its
// position.
func TestNUL(t *testing.T) {
	for _, place := range []string{
		`{"name": "w", "action": "noop", "description": %s}`, `{"name": "w", "action": "noop", "labels": {"a": %s}}`, `{"name": "w", "action": "noop", "labels": {%s: "a"}}`,
		`{"name": "w", "action": "noop", "env": {"A": %s}}`, `{"name": "w", "action": "noop", "concurrency": {"key": %s, "limit": 1}}`,
		`{"name": "w", "action": "code", "with": {"language": "python", "source": %s}}`, `{"name": "w", "input": {"properties": {"v": {"default": [%s]}}}, "action": "noop"}`,
		`{"name": "w", "input": {"properties": {"v": {"enum": [%s]}}}, "action": "noop"}`, `{"name": "w", "tasks": {"t": {"action": "noop", "with": {"v": [{"a": %s}]}}}}`,
		`{"name": "w", "tasks": {"t": {"action": "noop"}}, "outputs": {"v": %s}}`, `{"kind": "schedule", "name": "s", "every": "1h", "run": {"action": "noop", "input": {"v": %s}}}`,
		`{"kind": "rule", "name": "r", "on": "t", "run": {"action": "noop", "input": {%s: 1}}}`,
	} {
		for _, text := range []string{`"a\u0000b"`, `"a\0b"`} { // in JSON, and in YAML
			_, err := Parse("w.yaml", fmt.Appendf(nil, place, text))
			if err == nil || !strings.Contains(err.Error(), "NUL") || !strings.Contains(err.Error(), "w.yaml:1:") {
				t.Errorf("%s in %s: %v", text, place, err)
			}
		}
		if _, err := Parse("w.yaml", fmt.Appendf(nil, place, `"ab"`)); err != nil && strings.Contains(err.Error(), "NUL") {
			t.Errorf("%s: %v", place, err)
		}
	}
}
