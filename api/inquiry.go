package api

import (
	"encoding/json"
	"time"
)

// Inquiry is a question to people that an execution of action ask waits for.
type Inquiry struct {
	ID        string          `json:"id" doc:"Begins with iq_"`
	State     string          `json:"state" doc:"open, answered, expired or withdrawn"`
	Execution string          `json:"execution" doc:"The execution that waits for the answer, or was the last to do so"`
	Workflow  string          `json:"workflow,omitempty" doc:"The workflow execution that asks; absent outside workflows"`
	Purpose   string          `json:"purpose" doc:"What a workflow asks once for, over all its attempts"`
	Title     string          `json:"title" doc:"The question"`
	Text      string          `json:"text,omitempty" doc:"More about it"`
	Form      json.RawMessage `json:"form,omitempty" doc:"JSON Schema of the answer; absent: any JSON value"`
	Assignees []string        `json:"assignees,omitempty" doc:"Who may answer: people, and groups as group:NAME; absent: anybody"`
	Exclude   []string        `json:"exclude,omitempty" doc:"Who must not answer"`
	Accept    string          `json:"accept,omitempty" doc:"The expression that must hold for an answer"`
	Default   json.RawMessage `json:"default,omitempty" doc:"The answer when nobody answers in time; absent: the execution times out"`
	AskedAt   time.Time       `json:"asked_at" doc:"When it was asked, for the last time"`
	Due       *time.Time      `json:"due,omitempty" doc:"When it expires; absent: never"`
	ClosedAt  *time.Time      `json:"closed_at,omitempty" doc:"When it was answered, expired or was withdrawn"`
	Answer    *Answer         `json:"answer,omitempty" doc:"The answer; absent while there is none"`
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
	Value     json.RawMessage `json:"answer" doc:"Its value, with the form's defaults"`
	By        string          `json:"by" doc:"Who gave it, on the caller's word; empty for a default"`
	At        time.Time       `json:"at" doc:"When it was given, by the database's clock"`
	Note      string          `json:"note,omitempty" doc:"Why, for people"`
	Via       string          `json:"via,omitempty" doc:"api or link; absent for a default"`
	Defaulted bool            `json:"defaulted,omitempty" doc:"Nobody answered in time, and this is the question's default"`
	Declined  bool            `json:"declined,omitempty" doc:"accept does not hold for it: the execution has failed as declined"`
}

// InquiryPage is a page of inquiries, newest first.
type InquiryPage struct {
	Inquiries  []Inquiry `json:"inquiries" doc:"Newest first"`
	NextCursor string    `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// Reply is an answer as it is given. Until Pawl has accounts the caller says who answers.
type Reply struct {
	Answer json.RawMessage `json:"answer" doc:"The value; it must fit the form"`
	By     string          `json:"by" doc:"Who answers, on the caller's word"`
	Groups []string        `json:"groups,omitempty" doc:"Groups of the person, each group:NAME"`
	Note   string          `json:"note,omitempty" doc:"Why, for people"`
}

// Invitation asks for a link by which one person may answer an inquiry.
type Invitation struct {
	For    string   `json:"for" doc:"The person who will answer by it"`
	Groups []string `json:"groups,omitempty" doc:"Groups of the person, each group:NAME"`
}

// AnswerLink is a link by which one person may answer an inquiry. It names the person who answers: anyone who has the link can
// answer as that person.
type AnswerLink struct {
	Path string     `json:"path" doc:"On this server; anyone who has it can answer as this person"`
	For  string     `json:"for" doc:"The person who answers by it"`
	Due  *time.Time `json:"due,omitempty" doc:"When it expires; absent: it is valid as long as the question is open"`
}
