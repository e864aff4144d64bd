package api

import (
	"encoding/json"
	"time"
)

// Inquiry is a question to people; an execution of the action ask waits for its answer.
type Inquiry struct {
	ID        string          `json:"id" doc:"ID of the question; begins with iq_"`
	State     string          `json:"state" doc:"open, answered, expired or withdrawn"`
	Execution string          `json:"execution" doc:"Execution that waits for the answer, or was the last to wait"`
	Workflow  string          `json:"workflow,omitempty" doc:"Workflow execution that asks; absent outside workflows"`
	Purpose   string          `json:"purpose" doc:"Key of the question: a workflow asks once per purpose, over all its attempts"`
	Title     string          `json:"title" doc:"Question in one line"`
	Text      string          `json:"text,omitempty" doc:"Details of the question"`
	Form      json.RawMessage `json:"form,omitempty" doc:"JSON Schema of the answer; absent: any JSON value is accepted"`
	Assignees []string        `json:"assignees,omitempty" doc:"People, and groups as group:NAME, who may answer; absent: everyone"`
	Exclude   []string        `json:"exclude,omitempty" doc:"People who may not answer"`
	Accept    string          `json:"accept,omitempty" doc:"Expression that must be true for an answer to be accepted"`
	Default   json.RawMessage `json:"default,omitempty" doc:"Answer used after due; absent: the execution times out then"`
	AskedAt   time.Time       `json:"asked_at" doc:"When the question was last asked"`
	Due       *time.Time      `json:"due,omitempty" doc:"When the question expires; absent: never"`
	ClosedAt  *time.Time      `json:"closed_at,omitempty" doc:"When the question was answered, expired or withdrawn"`
	Answer    *Answer         `json:"answer,omitempty" doc:"Answer; absent while there is none"`
}

// The states of an inquiry.
const (
	InquiryOpen      = "open"
	InquiryAnswered  = "answered"
	InquiryExpired   = "expired"
	InquiryWithdrawn = "withdrawn"
)

// Answer is the answer that was accepted.
type Answer struct {
	Value     json.RawMessage `json:"answer" doc:"Value, with the defaults of the form filled in"`
	By        string          `json:"by" doc:"Person who answered, as stated by the caller; empty for a default"`
	At        time.Time       `json:"at" doc:"When it was given, by the clock of the database"`
	Note      string          `json:"note,omitempty" doc:"Note of the person"`
	Via       string          `json:"via,omitempty" doc:"api or link; absent for a default"`
	Defaulted bool            `json:"defaulted,omitempty" doc:"No answer came in time, so the default of the question was used"`
	Declined  bool            `json:"declined,omitempty" doc:"accept is false for this answer, so the execution failed with code declined"`
}

// InquiryPage is a page of inquiries, newest first.
type InquiryPage struct {
	Inquiries  []Inquiry `json:"inquiries" doc:"Newest first"`
	NextCursor string    `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// Reply is an answer to submit. Pawl has no accounts yet, so the caller states who answers.
type Reply struct {
	Answer json.RawMessage `json:"answer" doc:"Value; it must match the form"`
	By     string          `json:"by" doc:"Person who answers, as stated by the caller"`
	Groups []string        `json:"groups,omitempty" doc:"Groups of that person, each as group:NAME"`
	Note   string          `json:"note,omitempty" doc:"Note, kept with the answer"`
}

// Invitation asks for a link by which one person may answer an inquiry.
type Invitation struct {
	For    string   `json:"for" doc:"Person who will answer through the link"`
	Groups []string `json:"groups,omitempty" doc:"Groups of that person, each as group:NAME"`
}

// AnswerLink is a link by which one person may answer an inquiry. It names the person who answers: anyone who has the link can
// answer as that person.
type AnswerLink struct {
	Path string     `json:"path" doc:"Path on this server. Keep it secret: opening it is enough to answer as this person"`
	For  string     `json:"for" doc:"Person who answers through the link"`
	Due  *time.Time `json:"due,omitempty" doc:"When the link expires; absent: valid while the question is open"`
}
