package web

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

var update = flag.Bool("update", false, "write types.d.ts")

// The page's types are package api's: types.d.ts is generated from it, and this test fails when they differ.
func TestTypesAreTheAPIs(t *testing.T) {
	t.Parallel()
	w := &typeWriter{seen: map[reflect.Type]bool{}}
	for _, v := range []any{
		api.Execution{}, api.ExecutionPage{}, api.Counts{}, api.Why{}, api.Replay{}, api.Event{}, api.LogPage{}, api.LogMatches{}, api.LogSummary{}, api.End{}, api.Change{}, api.Tasks{}, api.TaskItems{}, api.Timeline{}, api.CodeResult{},
		api.Definition{}, api.DefinitionPage{}, api.Defined{}, api.Validation{}, api.Graph{}, api.SchedulePage{}, api.ScheduleWhy{}, api.TickPage{}, api.RuleList{}, api.RuleState{}, api.SignalPage{}, api.SignalWhy{}, api.EnforcementPage{}, api.WebhookPage{}, api.InquiryPage{}, api.Session{}, api.Queues{}, api.Keys{}, api.Workers{}, api.SubmissionCheck{}, api.QueueLine{}, api.KeyLine{}, api.Stats{}, api.Activity{}, api.Verification{}, api.Problem{}, api.Submission{}, api.BulkRequest{}, api.BulkResult{}, api.RerunPlan{}, api.AliasPage{},
	} {
		w.name(reflect.TypeOf(v))
	}
	got := "// Written by go test ./web -update from package api.\n" + w.out.String()
	if *update {
		if err := os.WriteFile("types.d.ts", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("types.d.ts")
	if err != nil || string(want) != got {
		t.Errorf("types.d.ts is not what package api says (%v): run go test ./web -update", err)
	}
}

// The page reads the letters of digests as package api writes them.
func TestLettersOfCases(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("part/cells.js")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "export const letters = {")
	table, _, _ = strings.Cut(table, "}")
	read := map[byte]string{}
	for _, m := range regexp.MustCompile(`([A-Z]): '(\w+)'`).FindAllStringSubmatch(table, -1) {
		read[m[1][0]] = m[2]
	}
	if len(read) != 13 || read[api.CasePassed] != api.VerdictOK || read[api.CaseUncompared] != api.VerdictOK {
		t.Errorf("part/cells.js reads the letters %q", read)
	}
	for l, verdict := range read {
		if got := api.CaseLetter(verdict, l == api.CaseUncompared); got != l {
			t.Errorf("%c is read as %s, whose letter is %c", l, verdict, got)
		}
	}
}

// typeWriter writes interfaces, each after those that it refers to.
type typeWriter struct {
	seen map[reflect.Type]bool
	out  strings.Builder
}

// name is the TypeScript name of a type.
func (w *typeWriter) name(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time](), t == reflect.TypeFor[api.Duration](), t == reflect.TypeFor[[]byte]():
		return "string"
	case t == reflect.TypeFor[json.RawMessage]():
		return "unknown"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.name(t.Elem())
	case reflect.Slice:
		return w.name(t.Elem()) + "[]"
	case reflect.Map:
		return "Record<string, " + w.name(t.Elem()) + ">"
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Struct:
		w.declare(t)
		return t.Name()
	}
	return "number"
}

func (w *typeWriter) declare(t reflect.Type) {
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	var b strings.Builder
	fmt.Fprintf(&b, "\nexport interface %s {\n", t.Name())
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || tag == "-" || tag == "" {
			continue
		}
		optional := ""
		if strings.Contains(options, "omit") {
			optional = "?"
		}
		fmt.Fprintf(&b, "  %s%s: %s;\n", tag, optional, w.name(f.Type))
	}
	b.WriteString("}\n")
	w.out.WriteString(b.String())
}

// The page has a word for each thing that an execution may wait for.
func TestWaitsHaveWords(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("part/status.js")
	if err != nil {
		t.Fatal(err)
	}
	_, words, _ := strings.Cut(string(script), "const waits = table({")
	words, _, _ = strings.Cut(words, "});")
	f, _ := reflect.TypeFor[api.ReplayWhy]().FieldByName("Waiting")
	all := strings.Split(f.Tag.Get("enum"), ",")
	if len(all) < 10 {
		t.Fatalf("the API lists %q", all)
	}
	for _, w := range append(all, "cancel", "aside") { // states that only the present has are not in a history
		if !strings.Contains(words, w+": ") && !strings.Contains(words, "'"+w+"': ") {
			t.Errorf("no word for %q", w)
		}
	}
}
