package store

import (
	"reflect"
	"testing"
)

// The port consists of small interfaces: one with more methods than a reader can remember must be split by noun.
func TestSmallInterfaces(t *testing.T) {
	t.Parallel()
	const most = 10
	all := map[string]bool{}
	for _, of := range []reflect.Type{
		reflect.TypeFor[Executions](), reflect.TypeFor[WaitLists](), reflect.TypeFor[Workflows](), reflect.TypeFor[Sessions](),
		reflect.TypeFor[Catalog](),
		reflect.TypeFor[Registry](), reflect.TypeFor[Inputs](), reflect.TypeFor[Numbering](), reflect.TypeFor[Uploads](), reflect.TypeFor[Schedules](),
		reflect.TypeFor[Signals](), reflect.TypeFor[Inquiries](), reflect.TypeFor[Waits](), reflect.TypeFor[Meters](), reflect.TypeFor[Shares](),
		reflect.TypeFor[Enforcements](), reflect.TypeFor[Switches](), reflect.TypeFor[Windows](), reflect.TypeFor[Pauses](), reflect.TypeFor[Reruns](),
		reflect.TypeFor[Cache](), reflect.TypeFor[Cleaning](), reflect.TypeFor[ExecutionReader](), reflect.TypeFor[WaitListReader](),
		reflect.TypeFor[QueueReader](), reflect.TypeFor[SessionReader](),
		reflect.TypeFor[DefinitionReader](), reflect.TypeFor[OutcomeReader](), reflect.TypeFor[ScheduleReader](), reflect.TypeFor[SignalReader](),
		reflect.TypeFor[InquiryReader](), reflect.TypeFor[WaitReader](), reflect.TypeFor[AsideReader](), reflect.TypeFor[EnforcementReader](),
		reflect.TypeFor[SwitchReader](), reflect.TypeFor[WindowReader](), reflect.TypeFor[PauseReader](), reflect.TypeFor[RegistryReader](),
		reflect.TypeFor[RerunReader](), reflect.TypeFor[PendingReader](), reflect.TypeFor[Surveyor](), reflect.TypeFor[Logs](), reflect.TypeFor[Pausing](),
	} {
		if n := of.NumMethod(); n > most {
			t.Errorf("%s has %d methods, at most %d are small", of.Name(), n, most)
		}
		for m := range of.Methods() {
			all[m.Name] = true
		}
	}
	const own = 8 // methods of Store and Tx themselves: Update, Ready, Size …
	for _, of := range []reflect.Type{reflect.TypeFor[Store](), reflect.TypeFor[Tx]()} {
		alone := 0
		for m := range of.Methods() {
			if !all[m.Name] {
				alone++
			}
		}
		if alone > own {
			t.Errorf("%s has %d methods of its own, want at most %d", of.Name(), alone, own)
		}
	}
	t.Logf("%d methods", len(all))
}

// The rows of a decision are grouped by noun: a new field of a noun belongs in its group.
func TestFewPartsOfADelta(t *testing.T) {
	t.Parallel()
	const most = 15
	if n := reflect.TypeFor[Delta]().NumField(); n > most {
		t.Errorf("Delta has %d fields, at most %d are wanted", n, most)
	}
}
