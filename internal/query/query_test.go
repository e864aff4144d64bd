package query

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func parse(t testing.TB, text string) *Query {
	t.Helper()
	q, err := Parse(text, now)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return q
}

// failed returns an execution that failed two days ago.
func failed() *Record {
	x := &flow.Execution{}
	x.Action, x.Version, x.Kind, x.Queue = "grade", 3, flow.KindCode, flow.RoutingKey("gpu", "docker")
	x.Key = "deploy/web"
	x.Labels = map[string]string{"team": "docs", "a b": "c.d", "app.example/name": "x"}
	x.Stage, x.CreatedAt, x.FinishedAt = flow.Failed, now.Add(-48*time.Hour), now.Add(-47*time.Hour)
	x.Outcome = &flow.Outcome{Error: &flow.Error{Code: "oom"}}
	return &Record{
		Execution: x, Loaded: true, Searchable: []string{"input.customer", "input.items[1].id", "input.tags", "output.score", "output.ok", "input.nothing", "input.text"},
		Input:  []byte(`{"customer": "a", "items": [{"id": 1}, {"id": 7}], "tags": ["x", 2, true], "nothing": null, "text": "7"}`),
		Output: []byte(`{"score": 0.75, "ok": true, "secret": 1}`),
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"status = failed":                                        true,
		"STATUS = failed AND Action = grade":                     true,
		"status != failed":                                       false,
		"status in (failed, timed_out)":                          true,
		"status not in (failed)":                                 false,
		"not status = failed":                                    false,
		"not not status = failed":                                true,
		"action = grade and version = 3":                         true,
		"version > 2 and version <= 3":                           true,
		"version in (1, 2)":                                      false,
		"kind = code":                                            true,
		"queue = gpu":                                            true,
		"key = deploy/web and key exists":                        true,
		"key != deploy/web or key in (a, b)":                     false,
		"worker exists":                                          false,
		"worker != w1":                                           true,
		"error = oom":                                            true,
		"error exists":                                           true,
		"error != oom":                                           false,
		"label.team = docs":                                      true,
		"label.team != docs":                                     false,
		"label.team in (web, docs)":                              true,
		"label.team exists":                                      true,
		"label.team not exists":                                  false,
		"label.other not exists":                                 true,
		"label.other != docs":                                    true,
		"label.other = docs":                                     false,
		`label."a b" = c.d`:                                      true,
		`label.app.example/name = x`:                             true,
		`label.'app.example/name' = "x"`:                         true,
		"created > -7d":                                          true,
		"created > -1d":                                          false,
		"created < 2026-11-19":                                   true,
		"created >= 2026-11-18T12:00:00Z":                        true,
		"created > 2026-11-18T12:00:00Z":                         false,
		"created <= 2026-11-18T13:00:00+01:00":                   true,
		"finished < now and finished > -2d":                      true,
		"finished not exists":                                    false,
		"status = running or error = oom":                        true,
		"status = running or status = completed":                 false,
		"(status = running or error = oom) and label.team = web": false,
		"status = running or error = oom and label.team = docs":  true,
		"not (status = running or label.team = docs)":            false,
		"not (status = running and label.team = docs)":           true,
		"input.customer = a":                                     true,
		"input.customer in (a, b)":                               true,
		"input.customer != a":                                    false,
		"input.customer exists":                                  true,
		"input.items[1].id = 7":                                  true,
		`input.items[1].id = "7"`:                                false, // a quoted value is a text
		`input.items[1].id != '7'`:                               true,
		`input.items[1].id in ("7", 7.0)`:                        true,
		`input.items[1].id in (6, 0.7e1)`:                        true,
		`input.items[1].id = 007`:                                false,
		`input.items[1].id in ("7", "7.0")`:                      false,
		`input.items[1].id = "seven"`:                            false,
		`input.items[1].id > "6.5"`:                              true,
		"input.text > 6 and input.text <= 7":                     true,
		"input.text > 7":                                         false,
		"input.text = 7.0":                                       false, // a text equals only the same text
		`input.text in ("7")`:                                    true,
		"input.customer > 0":                                     false, // it is not a number
		"input.customer = inf":                                   false,
		`version = "3"`:                                          true,
		`output.ok = "true"`:                                     false,
		"input.text = 7":                                         true,
		"input.tags = x and input.tags = 2":                      true,
		"input.tags = y":                                         false,
		"input.nothing exists":                                   false,
		"output.score >= 0.75 and output.score < 1":              true,
		"output.score = 0.750":                                   true,
		"output.ok = true":                                       true,
		"output.secret = 1":                                      false, // not declared
		"output.secret exists":                                   false,
		"output.secret != 1":                                     true,
	} {
		if got := parse(t, text).Matches(failed()); (got == Yes) != want || got == Unknown {
			t.Errorf("%s: %d, want %v", text, got, want)
		}
	}
}

// The empty text is a value of a label and of a member, different from null and from a missing one.
func TestEmptyTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ input, label, text string }{
		{`{"customer": ""}`, "", `input.customer = '' and label.team = ""`},
		{`{"customer": ""}`, "", `input.customer exists and label.team exists`},
		{`{"customer": ""}`, "", `input.customer in (a, '') and label.team in ("", docs)`},
		{`{"customer": ["a", ""]}`, "docs", `input.customer = ""`},
		{`{"customer": null}`, "docs", `input.customer != '' and label.team != ''`},
		{`{}`, "docs", `input.customer != '' and input.customer not exists`},
		{`{"customer": "a"}`, "docs", `input.customer != ''`},
		{`{"customer": 0}`, "docs", `input.customer != ''`},
		{`{"customer": "a"}`, "docs", `label.other != ''`},
	} {
		r := failed()
		r.Input, r.Labels = []byte(c.input), map[string]string{"team": c.label}
		if got := parse(t, c.text).Matches(r); got != Yes {
			t.Errorf("%s with %s and the label %q: %d", c.text, c.input, c.label, got)
		}
	}
	if b := parse(t, `label.team = ''`).Bounds(); len(b.Labels) != 1 || !b.Exact {
		t.Errorf("bounds: %+v", b)
	}
}

func TestWorkers(t *testing.T) {
	t.Parallel()
	r := failed()
	r.Stage, r.Outcome, r.Owner, r.Worker = flow.Running, nil, flow.ID{1}, "w1"
	for text, want := range map[string]Verdict{
		"worker = w1": Yes, "worker = w2": No, "worker exists": Yes, "worker = " + r.Owner.Text(flow.SessionPrefix): Yes, "error not exists": Yes, "finished < now": No,
	} {
		if got := parse(t, text).Matches(r); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// Only terms about data that is not loaded are undecided.
func TestUnknown(t *testing.T) {
	t.Parallel()
	r := failed()
	r.Loaded = false
	for text, want := range map[string]Verdict{
		"input.customer = a": Unknown, "not input.customer = a": Unknown, "status = completed and input.customer = a": No,
		"status = failed or input.customer = a": Yes, "status = failed and output.score > 1": Unknown,
	} {
		if got := parse(t, text).Matches(r); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	if q := parse(t, "input.a = 1 and worker = w"); !q.Input() || q.Output() || !q.Worker() {
		t.Error("what is looked at is not known")
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	bad := []flow.Stage{flow.Failed, flow.Cancelled, flow.TimedOut}
	held := []flow.Stage{flow.Provisioning, flow.Running}
	for text, want := range map[string]Bounds{
		"label.team = docs and status = failed":           {Labels: map[string]string{"team": "docs"}, Stages: []flow.Stage{flow.Failed}, Exact: true},
		"label.team != docs":                              {},
		"label.a = 1 and label.a = 2":                     {Labels: map[string]string{"a": "2"}, Never: true, Exact: true},
		"action = a and action = b":                       {Action: "b", Never: true, Exact: true},
		"action in (a, b)":                                {},
		"action = a or action = b":                        {},
		"error in (b, a, b)":                              {Codes: []string{"a", "b"}, Stages: bad, Exact: true},
		"error = ok":                                      {Stages: bad},
		"status = failed or error exists":                 {Stages: bad},
		"status = failed or queue = q":                    {},
		"status = failed and status = running":            {Stages: []flow.Stage{}, Never: true, Exact: true},
		"worker = w":                                      {Stages: held},
		"not (worker not exists)":                         {Stages: held},
		"created > 2026-11-01 and created <= 2026-11-02":  {Since: at("2026-11-01T00:00:00.000001Z"), Until: at("2026-11-02T00:00:00.000001Z"), Exact: true},
		"created >= 2026-11-02 and created < 2026-11-02":  {Since: at("2026-11-02T00:00:00Z"), Until: at("2026-11-02T00:00:00Z"), Never: true, Exact: true},
		"created > 2026-11-01 or created > 2026-11-03":    {Since: at("2026-11-01T00:00:00.000001Z")},
		"created < 2026-11-01 or queue = q":               {},
		"not created < 2026-11-01 and input.customer = a": {Since: at("2026-11-01T00:00:00Z")},
	} {
		got := parse(t, text).Bounds()
		if len(got.Stages) == 0 && len(want.Stages) == 0 {
			got.Stages = want.Stages
		}
		if !sameStages(got.Stages, want.Stages) {
			t.Errorf("%s: stages %v, want %v", text, got.Stages, want.Stages)
		}
		if got.Stages, want.Stages = nil, nil; !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, want\n%+v", text, got, want)
		}
	}
}

func sameStages(a, b []flow.Stage) bool { return stagesOf(a...) == stagesOf(b...) }

func TestFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                               "1:1: a condition is missing here",
		"status = faild":                 `1:10: there is no status "faild" (did you mean "failed"?)`,
		"stats = failed":                 `1:1: executions have no "stats" to search by (did you mean "status"?)`,
		"team = docs":                    "a label is label.team",
		"label = docs":                   "1:1: the name of the label is missing",
		"labels.team = docs":             "write label.team",
		"status == failed":               "1:8: == is not part of the language (write =)",
		"status = failed && kind = code": `1:17: "&&" does not join conditions (write and)`,
		"status = failed || kind = code": "(write or)",
		"!status = failed":               "1:1: ! is not part of the language (write not)",
		"status = failed status = x":     `1:17: "status" follows a condition that is complete`,
		"label.team = two words":         "put a text with blanks in quotes",
		"(status = failed":               "1:1: this parenthesis is not closed",
		"status = failed)":               "1:16: this parenthesis closes none",
		"status in failed":               "1:11: the values behind in stand in parentheses",
		"status in (failed":              "1:11: this list is not closed",
		"status in (failed timed_out)":   "1:19: values are separated by commas",
		"status in ()":                   "1:12: a value is missing here",
		"status":                         "1:7: the condition is not complete",
		"status =":                       "1:9: a value is missing here",
		"status ~ failed":                `1:8: "~" does not compare`,
		"status > failed":                "1:8: > compares times, versions and members",
		"exists label.team":              "1:1: exists stands behind a field",
		"label.team not = docs":          "behind a field, not stands before in or exists",
		"created = 2026-11-01":           "1:9: a time is compared by",
		"created in (now)":               "a time is compared by",
		"created > yesterday":            `1:11: "yesterday" is not a time (write -7d`,
		"created > -7x":                  "is not a time",
		"version = three":                `"three" is not the number of a version`,
		"input.a > b":                    "only numbers are less or more",
		`input."a b" = 1`:                "is not a member of the input",
		"input = 1":                      "is not a member of the input",
		"input.a[x] = 1":                 "is not a member of the input",
		"label.team = 'docs":             "1:14: a text begins here with ' and does not end",
		`action = ""`:                    "the value is empty",
		"status = failed,":               "a comma does not join conditions",
		"status = failed and\nlabel.é = ü or x = 1": "2:16: ",
		"\xff":                   "is not UTF-8",
		strings.Repeat("(", 100): "more than 50 parentheses",
		strings.Repeat("not ", 100) + "status = failed":   "more than 50",
		strings.Repeat("status = failed or ", 300):        "4096 are allowed",
		"label.a in (" + strings.Repeat("a,", 600) + "a)": "more than 500 values",
	} {
		_, err := Parse(text, now)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v; want %s", text, err, want)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	q := parse(t, "status = failed and input.custmer = a and output.b.c > 1")
	err := q.CheckMembers([]string{"input.customer"}, "no definition")
	if err == nil || err.Error() != "1:21: no definition declares input.custmer searchable (did you mean \"input.customer\"?)\n"+
		"1:43: no definition declares output.b.c searchable (add searchable: [output.b.c] to the definition, and apply it)" {
		t.Errorf("%v", err)
	}
	if err := q.CheckMembers([]string{"input.custmer", "output.b.c"}, ""); err != nil {
		t.Error(err)
	}
	if got := parse(t, "action in (a, b) and status = failed").Actions(); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("actions %v", got)
	}
	if got := parse(t, "action = a or status = failed").Actions(); got != nil {
		t.Errorf("actions %v", got)
	}
	for text, want := range map[string]bool{
		"input.a": true, "output.a-b_c[0][12].d": true, "input": false, "input.": false, "tasks.a": false, "input.a[01]": false, "input.a[": false, "input.a]": false,
		"input.a[-1]": false, "input.a b": false, "input.a..b": false, "input.a[]": false, "input." + strings.Repeat("a.", 30) + "a": false,
	} {
		if Member(text) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}

// FuzzParse checks that every text gives a condition or an error with a position, and that the bounds of every condition include all
// executions that meet it.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"label.team = docs and status = failed and created > -7d and input.customer in (a, b)", "not (a = b", `label."a\"b" != 'x' or worker exists`,
		"error = oom and not finished < now or version >= 3", "((((status not in (failed,running)))))", "input.a[0].b > -1e3", "created<2026-11-01or kind=code", "\"", "label.", ".", "not", "a.'",
	} {
		f.Add(s)
	}
	records := []*Record{failed(), {Execution: &flow.Execution{State: flow.State{Stage: flow.Requested}}}}
	running := failed()
	running.Stage, running.Outcome, running.Owner, running.Worker = flow.Running, nil, flow.ID{1}, "w"
	records = append(records, running)
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text, now)
		if err != nil {
			list, ok := err.(problem.List)
			if !ok || len(list) != 1 || list[0].Message == "" || len(text) <= MaxLength && strings.ToValidUTF8(text, "") == text && (list[0].Line == 0 || list[0].Column == 0) {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		b := q.Bounds()
		for _, r := range records {
			if q.Matches(r) != Yes {
				continue
			}
			within := !b.Never && (b.Stages == nil || stagesOf(b.Stages...)&stagesOf(r.Stage) != 0) && (b.Action == "" || b.Action == r.Action) &&
				!r.CreatedAt.Before(b.Since) && (b.Until.IsZero() || r.CreatedAt.Before(b.Until))
			for name, value := range b.Labels {
				within = within && r.Labels[name] == value
			}
			if !within {
				t.Fatalf("%q lets through what is beyond its bounds %+v", text, b)
			}
		}
		if b.Exact && !b.Never && b.Codes == nil && b.Labels == nil && b.Action == "" {
			for _, r := range records[:1] {
				inside := (b.Stages == nil || stagesOf(b.Stages...)&stagesOf(r.Stage) != 0) && !r.CreatedAt.Before(b.Since) && (b.Until.IsZero() || r.CreatedAt.Before(b.Until))
				if inside && q.Matches(r) != Yes {
					t.Fatalf("%q says that its bounds %+v are exact", text, b)
				}
			}
		}
	})
}

// Numbers are compared by all their digits; a float64 has only 17.
func TestNumbersKeepTheirDigits(t *testing.T) {
	numbers := []string{
		"-18446744073709551616", "-9223372036854775809", "-9007199254740993", "-1", "-0.1", "0", "5e-324", "0.1", "0.10000000000000000001", "1", "9007199254740992", "9007199254740993",
		"9223372036854775807", "9223372036854775808", "18446744073709551614", "18446744073709551615", "18446744073709551616", "123456789012345678901234567890.5", "1e308", "1e400",
	}
	for i, a := range numbers {
		r := failed()
		r.Input = json.RawMessage(`{"customer":` + a + `,"tags":["` + a + `"]}`)
		for j, b := range numbers {
			for op, want := range map[string]bool{"=": i == j, "!=": i != j, "<": i < j, "<=": i <= j, ">": i > j, ">=": i >= j} {
				for _, field := range []string{"input.customer", "input.tags"} {
					if got := parse(t, field+" "+op+" "+b).Matches(r); (got == Yes) != want {
						t.Errorf("%s %s %s of %s: %d, want %v", a, op, b, field, got, want)
					}
				}
			}
		}
	}
}
