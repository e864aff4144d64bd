package definition

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Errors in questions and waits are reported when the document is parsed, with the position of the field.
func TestAskAndWaitInDocuments(t *testing.T) {
	t.Parallel()
	for with, want := range map[string]string{
		"ask {title: '?', form: {type: objekt}}": "with.form.type",
		"ask {title: '?', accept: answer.x +}":   "with.accept",
		"ask {title: '?', accept: input.x}":      "with.accept",
		"ask {title: '?', assignees: ['a b']}":   "with.assignees[0]",
		"ask {form: {type: object}}":             "with",
		"ask {title: '?', tilte: x}":             "with",
		"ask {title: '?', expires: 1h, on_expiry: default, default: {}, form: {type: string}}":                             "with.default",
		"ask {title: '?', expires: 1h, remind: [2h]}":                                                                      "with.remind[0]",
		"ask {title: '${{ input.t }}', form: '${{ input.f }}', expires: '${{ input.e }}', on_expiry: default, default: 1}": "",
		"ask {title: '?', form: {properties: {a: {enum: ['${{ input.x }}']}}}, accept: answer.a == 1}":                     "",
		"wait {signal: Paid}":                                                          "with.signal",
		"wait {signal: paid, since: soon}":                                             "with.since",
		"wait {signal: paid, if: answer.x}":                                            "with.if",
		"wait {signal: paid, if: 'signal.data.x == vars.y'}":                           "",
		"wait {signal: paid, on_timeout: null}":                                        "with.on_timeout",
		"wait {signal: '${{ input.s }}', timeout: '${{ input.t }}', on_timeout: null}": "",
	} {
		action, fields, _ := strings.Cut(with, " ")
		_, err := Parse("w.yaml", []byte("name: w\ntasks:\n  t:\n    action: "+action+"\n    with: "+fields+"\n"))
		var ps Problems
		switch {
		case err == nil && want == "":
		case !errors.As(err, &ps) || want == "":
			t.Errorf("%s: %v, want a problem at %q", with, err, want)
		case ps[0].Line != 5 || ps[0].Path != "tasks.t."+want:
			t.Errorf("%s: %v, want one in line 5 at tasks.t.%s", with, ps, want)
		}
	}
}

func TestAwaited(t *testing.T) {
	t.Parallel()
	defs, err := Parse("w.yaml", []byte("name: w\ntasks:\n  a: {action: wait, with: {signal: paid, subject: '${{ input.s }}'}}\n  b: {action: wait, with: {signal: '${{ input.s }}'}}\n---\nname: x\naction: wait\nwith: {signal: sent}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if refs := defs[0].Awaited(); len(refs) != 1 || refs[0].Trigger != "paid" || refs[0].Path != "tasks.a.with.signal" || refs[0].Position.Line != 3 || refs[0].Position.Column < 10 {
		t.Errorf("%+v", refs)
	}
	if refs := defs[1].Awaited(); len(refs) != 1 || refs[0].Trigger != "sent" || refs[0].Path != "with.signal" {
		t.Errorf("%+v", refs)
	}
}

func TestFits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var k Waits
	signal := func(change func(*flow.Signal)) *flow.Signal {
		s := &flow.Signal{ID: flow.ID{1}, Trigger: "paid", Subject: "a", Source: "api", At: now, Data: json.RawMessage(`{"n":3,"s":"<"}`)}
		if change != nil {
			change(s)
		}
		return s
	}
	for _, c := range []struct {
		name string
		w    flow.Wait
		s    *flow.Signal
		fits bool
		says string // part of the result of Differs
	}{
		{"all of it", flow.Wait{WaitDetail: flow.WaitDetail{If: "signal.data.n == vars.n && signal.data.s == '<'", Vars: json.RawMessage(`{"n":3}`)}}, signal(nil), true, "taken by another"},
		{"no condition", flow.Wait{}, signal(nil), true, "taken by another"},
		{"another number", flow.Wait{WaitDetail: flow.WaitDetail{If: "signal.data.n > vars.n", Vars: json.RawMessage(`{"n":3}`)}}, signal(nil), false, "differs in signal.data.n > vars.n, signal.data.n is 3, vars.n is 3"},
		{"a field that is not there", flow.Wait{WaitDetail: flow.WaitDetail{If: "signal.data.x > 1"}}, signal(nil), false, "differs in signal.data.x > 1"},
		{"before its time", flow.Wait{Since: now.Add(time.Second)}, signal(nil), false, ""},
		{"another subject", flow.Wait{}, signal(func(s *flow.Signal) { s.Subject = "b" }), false, ""},
		{"another trigger", flow.Wait{}, signal(func(s *flow.Signal) { s.Trigger = "sent" }), false, ""},
		{"a replay", flow.Wait{}, signal(func(s *flow.Signal) { s.Replayed = true }), false, "was a replay"},
	} {
		c.w.Trigger, c.w.Subject = "paid", "a"
		if fits, _ := k.Fits(&c.w, c.s, nil); fits != c.fits {
			t.Errorf("%s: fits is %t", c.name, fits)
		}
		if got := k.Differs(&c.w, c.s); c.says != "" && !strings.Contains(got, c.says) {
			t.Errorf("%s: it %s, want %q", c.name, got, c.says)
		}
	}
}

func TestQuestionsRememberLittle(t *testing.T) {
	t.Parallel()
	var k Questions
	long := strings.Repeat("x", 60_000)
	for n := range 40 {
		raw, _ := json.Marshal(map[string]any{"title": "?", "form": map[string]any{"const": long + string(rune('a'+n))}})
		if _, _, err := k.Read(raw); err != nil {
			t.Fatal(err)
		}
	}
	if k.forms.bytes > remembered || len(k.forms.all) > 40 {
		t.Errorf("%d bytes of %d forms are remembered", k.forms.bytes, len(k.forms.all))
	}
}
