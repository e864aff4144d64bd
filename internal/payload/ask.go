package payload

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// Ask is the payload of kind "ask": a question to people. Package definition checks form and accept.
type Ask struct {
	Purpose   string          `json:"purpose,omitempty"` // default: the task with its index
	Title     string          `json:"title" check:"title"`
	Text      string          `json:"text,omitempty"`
	Form      json.RawMessage `json:"form,omitempty"` // JSON Schema
	Assignees []string        `json:"assignees,omitempty" check:"people"`
	Exclude   []string        `json:"exclude,omitempty" check:"people"`
	Remind    []api.Duration  `json:"remind,omitempty"` // after it was asked
	Expires   api.Duration    `json:"expires,omitempty"`
	OnExpiry  string          `json:"on_expiry,omitempty" enum:"fail,default"`
	Default   json.RawMessage `json:"default,omitempty"`
	Accept    string          `json:"accept,omitempty"`
}

// Limits of a question, in bytes except for the number of people.
const (
	mostTitle   = 500
	mostText    = 20_000
	mostPurpose = 500
	mostAccept  = 8_000
	mostForm    = 64 << 10
	mostPeople  = 100

	mostReminders = 20
	mostExpires   = 366 * 24 * time.Hour
)

// Question reads the payload of kind "ask". The error is a *strictjson.Error that lists all errors.
func Question(payload []byte) (*Ask, error) {
	a, err := decode[Ask](payload)
	if err != nil {
		return nil, err
	}
	return &a, nil
}

func checkTitle(r *strictjson.Reader, at string, v reflect.Value) {
	if n := v.Len(); n == 0 || n > mostTitle {
		r.ProblemAt(at, "", fmt.Sprintf("it has %d bytes", n), fmt.Sprintf("write a question of 1 to %d bytes; text has room for more", mostTitle))
	}
}

// checkPeople normalizes names for comparison.
func checkPeople(r *strictjson.Reader, at string, v reflect.Value) {
	people := v.Interface().([]string)
	if len(people) > mostPeople {
		r.ProblemAt(at, "", fmt.Sprintf("it has %d names", len(people)), fmt.Sprintf("name at most %d, or a group", mostPeople))
		return
	}
	for i, text := range people {
		who, err := flow.ReadWho(text)
		if err != nil {
			r.ProblemAt(fmt.Sprintf("%s[%d]", at, i), text, "it names neither a person nor a group", "write ada, user:ada or group:release, without spaces")
			continue
		}
		people[i] = who
	}
}

func wholeAsk(r *strictjson.Reader, a *Ask) {
	for _, f := range []struct {
		at   string
		size int
		most int
	}{{"text", len(a.Text), mostText}, {"purpose", len(a.Purpose), mostPurpose}, {"accept", len(a.Accept), mostAccept}, {"form", len(a.Form), mostForm}, {"default", len(a.Default), mostForm}} {
		if f.size > f.most {
			r.ProblemAt(f.at, "", fmt.Sprintf("it has %d bytes", f.size), fmt.Sprintf("at most %d", f.most))
		}
	}
	if d := time.Duration(a.Expires); d < 0 || d > mostExpires {
		r.ProblemAt("expires", "", "it is out of range", "give a time span of more than 0 and up to 366 days")
	}
	if len(a.Remind) > mostReminders {
		r.ProblemAt("remind", "", fmt.Sprintf("it has %d reminders", len(a.Remind)), fmt.Sprintf("at most %d", mostReminders))
	}
	for i, d := range a.Remind {
		if time.Duration(d) <= 0 || time.Duration(d) > mostExpires || i > 0 && d <= a.Remind[i-1] {
			r.ProblemAt(fmt.Sprintf("remind[%d]", i), d.String(), "it is out of range or not after the one before", "give time spans after the question was asked, in order, as [4h, 1d]")
		} else if a.Expires > 0 && d >= a.Expires {
			r.ProblemAt(fmt.Sprintf("remind[%d]", i), d.String(), "the question has expired by then", "remind before expires")
		}
	}
	switch {
	case a.OnExpiry != "" && a.Expires == 0:
		r.ProblemAt("on_expiry", a.OnExpiry, "the question never expires", `add expires, such as "2d"`)
	case a.OnExpiry == "default" && a.Default == nil:
		r.ProblemAt("default", "", "it is missing", "give the answer that counts when nobody answers in time, or write on_expiry: fail")
	case a.OnExpiry != "default" && a.Default != nil:
		r.ProblemAt("default", "", "it is given, and never used", "add on_expiry: default")
	}
}
