package flow

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestReadWho(t *testing.T) {
	for text, want := range map[string]string{
		"ada": "ada", "user:ada": "ada", "group:release": "group:release", "ada@example.com": "ada@example.com", "Ünal": "Ünal",
		"": "", "user:": "", "group:": "", "a b": "", "a,b": "", "team:x": "", "group:a:b": "", "a\x00": "", "a\u202eb": "", strings.Repeat("x", 101): "",
	} {
		got, err := ReadWho(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestAskAndReply(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	key := InquiryKey{Asker: ID{1}, Purpose: "p"}
	q := Question{Title: "?", Assignees: []string{"ada", "group:ops"}, Exclude: []string{"bob"}, Remind: []time.Duration{time.Hour, 3 * time.Hour}, Expires: 2 * time.Hour}
	i, err := Ask(nil, ID{9}, ID{2}, key, q, now)
	if err != nil || i.State != InquiryOpen || !i.Due.Equal(now.Add(2*time.Hour)) {
		t.Fatalf("%+v, %v", i, err)
	}
	for at, want := range map[time.Duration]time.Duration{0: time.Hour, time.Hour - 1: time.Hour, time.Hour: 2 * time.Hour, 2 * time.Hour: 2 * time.Hour} {
		if got := i.Wake(now.Add(at)).Sub(now); got != want {
			t.Errorf("after %s it wakes at %s, want %s", at, got, want)
		}
	}
	if _, err := Ask(i, ID{8}, ID{3}, key, q, now); err == nil || !strings.Contains(err.Error(), "is being asked already") {
		t.Errorf("asked twice at once: %v", err)
	}
	answer := func(by string) Answer {
		return Answer{AnswerOutput: AnswerOutput{Value: json.RawMessage(`1`), By: by, At: now.Add(time.Minute)}}
	}
	for _, c := range []struct {
		p    Person
		want error
	}{{Person{Name: "eve"}, ErrNotAsked}, {Person{Name: "bob", Groups: []string{"group:ops"}}, ErrExcluded}, {Person{Name: "carl", Groups: []string{"group:ops"}}, nil}} {
		again := *i
		if _, err := again.Reply(answer(c.p.Name), c.p, false); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.p, err, c.want)
		}
	}
	late := *i
	if _, err := late.Reply(Answer{AnswerOutput: AnswerOutput{By: "ada", At: i.Due}}, Person{Name: "ada"}, false); !errors.Is(err, ErrClosed) || late.State != InquiryOpen {
		t.Errorf("at its end: %v", err)
	}
	expired := *i
	expired.Expire(i.Due)
	if again, err := Ask(&expired, ID{8}, ID{3}, key, q, i.Due); err != nil || again.ID != i.ID || again.State != InquiryOpen || again.Execution != (ID{3}) || !again.Due.After(i.Due) || !again.ClosedAt.IsZero() {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	if changed, err := i.Reply(answer("ada"), Person{Name: "ada"}, false); err != nil || !changed || i.State != InquiryAnswered || !i.ClosedAt.Equal(now.Add(time.Minute)) {
		t.Errorf("%+v, %v", i, err)
	}
	if changed, err := i.Reply(answer("ada"), Person{Name: "ada"}, true); err != nil || changed {
		t.Errorf("the same again: %t, %v", changed, err)
	}
	if again, err := Ask(i, ID{8}, ID{3}, key, q, now.Add(time.Hour)); err != nil || again.Answer == nil || again.State != InquiryAnswered || again.Execution != (ID{3}) {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	q.Title = "!"
	if _, err := Ask(i, ID{8}, ID{3}, key, q, now); err == nil || !strings.Contains(err.Error(), "another question") {
		t.Errorf("another question: %v", err)
	}
}

func TestAnswerOutcome(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		a       Answer
		stage   Stage
		message string
	}{
		{Answer{AnswerOutput: AnswerOutput{Value: json.RawMessage(`"<b>"`), By: "ada", At: at}}, Completed, ""},
		{Answer{AnswerOutput: AnswerOutput{Value: json.RawMessage(`1`), By: "ada", At: at, Note: "no"}, Declined: true}, Failed, "declined by ada: no"},
		{Answer{AnswerOutput: AnswerOutput{Value: json.RawMessage(`1`), At: at, Defaulted: true}, Declined: true}, Failed, "nobody answered in time, and the default is not accepted"},
	} {
		stage, o, err := c.a.Outcome()
		if err != nil || stage != c.stage || (o.Error == nil) != (c.message == "") || o.Error != nil && (o.Error.Message != c.message || o.Error.Code != CodeDeclined) {
			t.Errorf("%+v: %s %+v, %v", c.a, stage, o, err)
		}
		if !strings.HasPrefix(string(o.Output), `{"answer":`+string(c.a.Value)+`,"by":`) || !strings.Contains(string(o.Output), `"at":"2026-03-01T12:00:00.000000Z"`) {
			t.Errorf("output %s", o.Output)
		}
	}
}
