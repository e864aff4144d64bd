package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/wirejson"
)

const InquiryPrefix = "iq_"

// Inquiry is a question to people that an execution of KindAsk waits for. A workflow asks one question per purpose, over all its attempts:
// an answered question is not asked again.
type Inquiry struct {
	ID ID
	InquiryKey
	// Execution waits for the answer while the inquiry is open; afterwards it is the last one that did.
	Execution ID
	State     InquiryState
	Revision  int // of the stored row, which counts its changes; 0: it is not stored
	AskedAt   time.Time
	Due       time.Time // when it expires; zero: never
	ClosedAt  time.Time // when it was answered, expired or was withdrawn; zero while it is open
	Question
	Answer *Answer // of an answered one, or one that expired with a default
}

type InquiryKey struct {
	Asker   ID // the workflow execution that asks, or an execution outside workflows itself
	Purpose string
}

// Question is the question, its assignees, and which answers are accepted.
type Question struct {
	Title string          `json:"title,omitempty"`
	Text  string          `json:"text,omitempty"`
	Form  json.RawMessage `json:"form,omitempty"` // JSON Schema of the answer; nil: anything

	Assignees []string        `json:"assignees,omitempty"` // "ada" or "group:release"; none: anybody may answer
	Exclude   []string        `json:"exclude,omitempty"`
	Accept    string          `json:"accept,omitempty"` // an expression; "": every answer is accepted
	Remind    []time.Duration `json:"remind,omitempty"` // after it was asked, in order
	Expires   time.Duration   `json:"expires,omitempty"`
	Default   json.RawMessage `json:"default,omitempty"` // the answer if it expires; nil: the execution times out
	// DefaultDeclined means that the default is not accepted as an answer.
	DefaultDeclined bool `json:"default_declined,omitempty"`
}

// Same reports whether two questions ask the same and accept the same answers. Assignees and deadlines may differ.
func (q *Question) Same(other *Question) bool {
	return q.Title == other.Title && q.Text == other.Text && q.Accept == other.Accept && string(q.Form) == string(other.Form)
}

type Answer struct {
	AnswerOutput
	Via      string `json:"via,omitempty"` // "api" or "link"; "" for a default
	Declined bool   `json:"declined,omitempty"`
}

// AnswerOutput is the part of an answer that is the output of the asking execution.
type AnswerOutput struct {
	Value     json.RawMessage `json:"answer" doc:"Value, in the shape of the form"`
	By        string          `json:"by" doc:"Person who answered; empty for the default"`
	At        time.Time       `json:"at" doc:"When the answer was given"`
	Note      string          `json:"note" doc:"Note of the person"`
	Defaulted bool            `json:"defaulted" doc:"No answer came in time, so the default of the question was used"`
}

// Outcome is the outcome of the asking execution.
func (a *Answer) Outcome() (Stage, Outcome, error) {
	raw, err := wirejson.Marshal(&a.AnswerOutput)
	if err != nil {
		return 0, Outcome{}, fmt.Errorf("write an answer: %w", err)
	}
	switch {
	case !a.Declined:
		return Completed, Outcome{Output: raw}, nil
	case a.Defaulted:
		return Failed, Outcome{Output: raw, Error: &Error{Code: CodeDeclined, Message: "nobody answered in time, and the default is not accepted"}}, nil
	}
	say := "declined by " + a.By
	if a.Note != "" {
		say += ": " + a.Note
	}
	return Failed, Outcome{Output: raw, Error: &Error{Code: CodeDeclined, Message: say}}, nil
}

type InquiryState uint8

// The states of an inquiry. It is open exactly while its execution is held, and leaves that state in the transaction that
// ends the attempt.
const (
	InquiryOpen      InquiryState = 1 + iota
	InquiryAnswered               // by a person
	InquiryExpired                // not answered in time; the default, if any, is the answer
	InquiryWithdrawn              // its execution was cancelled or timed out
)

var inquiryStates = [...]string{"", "open", "answered", "expired", "withdrawn"}

func (s InquiryState) String() string { return inquiryStates[s] }

// InquiryStateNamed is the state with a name; false if there is none.
func InquiryStateNamed(name string) (InquiryState, bool) {
	i := slices.Index(inquiryStates[:], name)
	return InquiryState(max(i, 0)), i > 0
}

// Person is the author of an answer, with their groups, each "group:NAME".
type Person struct {
	Name   string
	Groups []string
}

var (
	// ErrNotAsked means that a question has other assignees.
	ErrNotAsked = errors.New("not asked")
	// ErrExcluded means that this person must not answer.
	ErrExcluded = errors.New("excluded")
	// ErrAnswered means that there is another answer.
	ErrAnswered = errors.New("answered already")
	// ErrClosed means that no execution waits for the answer any more.
	ErrClosed = errors.New("not open any more")
)

// mostPerson is the longest name of a person or a group, in bytes.
const mostPerson = 100

// ReadWho reads the name of a person ("ada" or "user:ada") or of a group ("group:release"). Names are letters, digits and punctuation
// without spaces and colons. It returns the canonical form, in which names are compared.
func ReadWho(text string) (string, error) {
	name, kind := text, ""
	if before, after, both := strings.Cut(text, ":"); both {
		kind, name = before, after
	}
	bad := name == "" || len(name) > mostPerson || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool {
		return r == ':' || r == ',' || unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
	switch {
	case bad, kind != "" && kind != "user" && kind != "group":
		return "", fmt.Errorf("%.*q names neither a person nor a group: write ada, user:ada or group:release, without spaces", mostPerson, text)
	case kind == "group":
		return text, nil
	}
	return name, nil
}

// May returns why a person must not answer: ErrNotAsked or ErrExcluded.
func (q *Question) May(p Person) error {
	is := func(who string) bool { return who == p.Name || slices.Contains(p.Groups, who) }
	if slices.ContainsFunc(q.Exclude, is) {
		return fmt.Errorf("%w: %s must not answer this question", ErrExcluded, p.Name)
	}
	if len(q.Assignees) > 0 && !slices.ContainsFunc(q.Assignees, is) {
		return fmt.Errorf("%w: %s is not among those asked: %s", ErrNotAsked, p.Name, strings.Join(q.Assignees, ", "))
	}
	return nil
}

// Ask asks a question under a key; existing is the inquiry with the key, or nil. An existing inquiry without an answer is asked again for
// the new execution. The returned inquiry is open, or has an answer, which is that of the new execution as well. An error says why the
// question cannot be asked under the key.
func Ask(existing *Inquiry, id, execution ID, key InquiryKey, q Question, now time.Time) (*Inquiry, error) {
	i := &Inquiry{ID: id, InquiryKey: key}
	if existing != nil {
		if !existing.Same(&q) {
			return nil, fmt.Errorf("purpose %q has another question already (%s): give each question of a workflow a purpose of its own",
				key.Purpose, existing.ID.Text(InquiryPrefix))
		}
		if existing.State == InquiryOpen && existing.Execution != execution {
			return nil, fmt.Errorf("purpose %q is being asked already by %s (%s): give each question of a workflow a purpose of its own",
				key.Purpose, existing.Execution, existing.ID.Text(InquiryPrefix))
		}
		again := *existing
		i = &again
	}
	i.Execution = execution
	if i.Answer != nil {
		return i, nil
	}
	i.Question, i.State, i.AskedAt, i.Due, i.ClosedAt = q, InquiryOpen, now, time.Time{}, time.Time{}
	if q.Expires > 0 {
		i.Due = now.Add(q.Expires)
	}
	return i, nil
}

// Reply decides about an answer that fits the form; same reports whether it has the value of the existing answer. changed is false if the
// same person repeats the same value. The errors are ErrAnswered, ErrClosed, ErrNotAsked and ErrExcluded.
func (i *Inquiry) Reply(a Answer, p Person, same bool) (changed bool, err error) {
	if err := i.May(p); err != nil {
		return false, err
	}
	switch {
	case i.State == InquiryAnswered && i.Answer.By == a.By && same:
		return false, nil
	case i.State == InquiryAnswered:
		return false, fmt.Errorf("%w: by %s at %s", ErrAnswered, i.Answer.By, i.Answer.At.Format(time.RFC3339))
	case i.State != InquiryOpen:
		return false, fmt.Errorf("%w: it was %s at %s", ErrClosed, i.State, i.ClosedAt.Format(time.RFC3339))
	case !i.Due.IsZero() && !i.Due.After(a.At):
		return false, fmt.Errorf("%w: it expired at %s", ErrClosed, i.Due.Format(time.RFC3339))
	}
	i.close(InquiryAnswered, a.At)
	i.Answer = &a
	return true, nil
}

// Expire ends an overdue inquiry: with its default, if it has one.
func (i *Inquiry) Expire(now time.Time) {
	i.close(InquiryExpired, now)
	if i.Default != nil {
		i.Answer = &Answer{AnswerOutput: AnswerOutput{Value: i.Default, At: now, Defaulted: true}, Declined: i.DefaultDeclined}
	}
}

// Reminded is how many of its reminders are due by a moment.
func (i *Inquiry) Reminded(now time.Time) (n int) {
	for _, after := range i.Remind {
		if !i.AskedAt.Add(after).After(now) {
			n++
		}
	}
	return n
}

// Wake is the next time after now for a decision about an open inquiry: a reminder, or its end; zero: never.
func (i *Inquiry) Wake(now time.Time) time.Time {
	if n := i.Reminded(now); n < len(i.Remind) {
		if at := i.AskedAt.Add(i.Remind[n]); i.Due.IsZero() || at.Before(i.Due) {
			return at
		}
	}
	return i.Due
}

// Withdraw ends an inquiry whose execution does not wait any more.
func (i *Inquiry) Withdraw(now time.Time) { i.close(InquiryWithdrawn, now) }

func (i *Inquiry) close(state InquiryState, at time.Time) { i.State, i.ClosedAt = state, at }
