package api

import (
	"encoding/json"
	"time"
)

// Inquiry is a question to people that an execution of action ask waits for.
type Inquiry struct {
	ID        string          `json:"id"`
	State     string          `json:"state"`
	Execution string          `json:"execution"`
	Workflow  string          `json:"workflow,omitempty"`
	Purpose   string          `json:"purpose"`
	Title     string          `json:"title"`
	Text      string          `json:"text,omitempty"`
	Form      json.RawMessage `json:"form,omitempty"`
	Assignees []string        `json:"assignees,omitempty"`
	Exclude   []string        `json:"exclude,omitempty"`
	Accept    string          `json:"accept,omitempty"`
	Default   json.RawMessage `json:"default,omitempty"`
	AskedAt   time.Time       `json:"asked_at"`
	Due       *time.Time      `json:"due,omitempty"`
	ClosedAt  *time.Time      `json:"closed_at,omitempty"`
	Answer    *Answer         `json:"answer,omitempty"`
}

// The states of an inquiry.
const (
	InquiryOpen      = "open"
	InquiryAnswered  = "answered"
	InquiryExpired   = "expired"
	InquiryWithdrawn = "withdrawn"
)

// Answer is what became of a question.
type Answer struct {
	Value     json.RawMessage `json:"answer"`
	By        string          `json:"by"`
	At        time.Time       `json:"at"`
	Note      string          `json:"note,omitempty"`
	Via       string          `json:"via,omitempty"`
	Defaulted bool            `json:"defaulted,omitempty"`
	Declined  bool            `json:"declined,omitempty"`
}

// InquiryPage is a page of inquiries, newest first.
type InquiryPage struct {
	Inquiries  []Inquiry `json:"inquiries"`
	NextCursor string    `json:"next_cursor,omitempty"`
}

// Reply is an answer as it is given. Until Pawl has accounts the caller says who answers.
type Reply struct {
	Answer json.RawMessage `json:"answer"`
	By     string          `json:"by"`
	Groups []string        `json:"groups,omitempty"`
	Note   string          `json:"note,omitempty"`
}

// Invitation asks for a link by which one person may answer an inquiry.
type Invitation struct {
	For    string   `json:"for"`
	Groups []string `json:"groups,omitempty"`
}

// AnswerLink is a link by which one person may answer an inquiry. It names the person who answers: anyone who has the link can
// answer as that person.
type AnswerLink struct {
	Path string     `json:"path"`
	For  string     `json:"for"`
	Due  *time.Time `json:"due,omitempty"`
}
