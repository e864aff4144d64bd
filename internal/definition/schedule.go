package definition

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/schedule"
)

// Schedule starts executions of one action at certain times.
type Schedule struct {
	*schedule.Schedule
	Overlap schedule.Overlap
	// PauseAfter is the number of consecutive failed executions after which the schedule pauses itself; 0: never.
	PauseAfter int
	// Paused is set in the document: applying it pauses the schedule.
	Paused bool
	Run    Start
}

// Start is the execution that a tick or a signal starts.
type Start struct {
	Action   string // a registered name, or a built-in kind
	Version  int    // 0 is the latest
	Position Position
	// Input is evaluated for each execution; nil is {}.
	Input    *Template
	Settings Settings
}

// mostPauseAfter limits PauseAfter, because that many executions are read when a tick is due.
const mostPauseAfter = 100

// Tick is the variable `tick` in expressions of a schedule.
type Tick struct {
	Nominal   time.Time `json:"nominal"`
	Local     string    `json:"local"` // with the zone's offset
	LocalDate string    `json:"local_date"`
	Zone      string    `json:"zone"`
	Why       string    `json:"why"`
	Previous  time.Time `json:"previous,omitzero"` // the previous nominal time; absent for the first one
}

// TickOf returns the variable for a nominal time.
func (s *Schedule) TickOf(nominal, previous time.Time, why string) Tick {
	local := nominal.In(s.Location())
	return Tick{Nominal: nominal.UTC(), Local: local.Format(time.RFC3339), LocalDate: local.Format(time.DateOnly), Zone: s.Location().String(), Why: why, Previous: previous}
}

// InputFor evaluates the input of the execution that a tick starts. An error is an *EvalError. w counts and limits the work.
func (s *Schedule) InputFor(name string, t Tick, w *Work) (json.RawMessage, error) {
	if s.Run.Input == nil {
		return json.RawMessage("{}"), nil
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("describe tick %s: %w", t.Nominal, err)
	}
	return s.Run.Input.Eval(&Vars{Tick: raw, Name: name, Work: w})
}

// ActionText returns the action in the form of a submission.
func (r *Start) ActionText() string {
	if r.Version > 0 {
		return fmt.Sprintf("%s@%d", r.Action, r.Version)
	}
	return r.Action
}

var (
	scheduleFields = []string{"kind", "name", "description", "cron", "days", "every", "offset", "at", "zone", "gap", "repeat", "from", "until", "except", "jitter", "catch_up", "overlap", "pause_after", "paused", "run"}
	catchUpFields  = []string{"policy", "within", "at_most"}
	runFields      = append([]string{"action", "input", "labels", "priority", "queue", "retry"}, flow.SpanNames()...)
)

func (b *builder) scheduleDocument(v *value, d *Definition) {
	s := &Schedule{Paused: b.boolean(v.get("paused"), "paused")}
	spec := schedule.Spec{
		Cron: b.texts(v.get("cron"), "cron"), Except: b.texts(v.get("except"), "except"),
		Days:   schedule.Days(b.oneOf(v.get("days"), "days", string(schedule.EitherDay), string(schedule.BothDays))),
		Every:  b.duration(v.get("every"), "every", false),
		Offset: b.duration(v.get("offset"), "offset", true),
		At:     b.filledText(v.get("at"), "at", 100),
		Zone:   b.filledText(v.get("zone"), "zone", 100),
		Gap:    schedule.Gap(b.oneOf(v.get("gap"), "gap", string(schedule.GapNext), string(schedule.GapSkip))),
		Repeat: schedule.Repeat(b.oneOf(v.get("repeat"), "repeat", string(schedule.RepeatFirst), string(schedule.RepeatLast), string(schedule.RepeatBoth))),
		From:   b.filledText(v.get("from"), "from", 100),
		Until:  b.filledText(v.get("until"), "until", 100),
		Jitter: b.duration(v.get("jitter"), "jitter", true),
	}
	if spec.Jitter > schedule.MostJitter {
		b.fail(v.get("jitter"), "jitter", "write at most 24h", "%s is too long", spec.Jitter)
	}
	b.catchUp(v.get("catch_up"), &spec)
	b.idleCatchUp(v)
	b.idleOffset(v)
	s.Overlap = schedule.Overlap(b.oneOf(v.get("overlap"), "overlap", string(schedule.OverlapSkip), string(schedule.OverlapQueueOne),
		string(schedule.OverlapQueue), string(schedule.OverlapAllow), string(schedule.OverlapCancel)))
	s.Overlap = cmp.Or(s.Overlap, schedule.OverlapSkip)
	s.PauseAfter, _ = b.whole(v.get("pause_after"), "pause_after", 1, mostPauseAfter)
	b.start(v.get("run"), v, &s.Run, scopeTick, "schedule", runFields)
	if len(b.problems) == 0 {
		var err error
		if s.Schedule, err = schedule.New(spec); err != nil {
			b.scheduleFaults(v, err)
		} else if costly := s.Schedule.Costly(); costly != nil && !b.trusted {
			b.scheduleFaults(v, costly)
		} else if strict := s.Schedule.Strict(); strict != nil && !b.trusted {
			b.scheduleFaults(v, strict)
		}
	}
	d.Schedule = s
	b.sum(v, d)
}

func (b *builder) scheduleFaults(v *value, err error) {
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	}
	for _, err := range list {
		var f schedule.Fault
		if !errors.As(err, &f) {
			b.fail(v, "", "", "%v", err)
			continue
		}
		b.fail(v.below(f.Path), f.Path, f.Fix, "%s", f.Message)
	}
}

// below returns the value at a path such as cron[1], or the nearest existing one above it.
func (v *value) below(path string) *value {
	name, index, listed := strings.Cut(strings.TrimSuffix(path, "]"), "[")
	at := v.get(name)
	if at == nil {
		return v
	}
	if n, err := strconv.Atoi(index); listed && err == nil && at.kind == listValue && n < len(at.list) {
		return at.list[n]
	}
	return at
}

func (b *builder) texts(v *value, path string) []string {
	switch {
	case v == nil:
		return nil
	case v.kind != listValue:
		if s := b.plainText(v, path, 1000); s != "" {
			return []string{s}
		}
		if v.kind == textValue {
			b.fail(v, path, "leave it out, or write a line", "the text is empty")
		}
		return nil
	}
	all := make([]string, 0, len(v.list))
	for i, el := range v.list {
		all = append(all, b.plainText(el, fmt.Sprintf("%s[%d]", path, i), 1000))
	}
	if len(all) == 0 {
		b.fail(v, path, "leave it out, or write a line", "the list is empty")
	}
	return all
}

func (b *builder) catchUp(v *value, spec *schedule.Spec) {
	policies := []string{string(schedule.CatchUpNone), string(schedule.CatchUpLast), string(schedule.CatchUpAll)}
	switch {
	case v == nil:
	case v.kind == textValue:
		spec.CatchUp = schedule.CatchUp(b.oneOf(v, "catch_up", policies...))
	case b.object(v, "catch_up", catchUpFields):
		spec.CatchUp = schedule.CatchUp(b.oneOf(v.get("policy"), "catch_up.policy", policies...))
		if spec.Within = b.duration(v.get("within"), "catch_up.within", false); spec.Within > schedule.MostWithin {
			b.fail(v.get("within"), "catch_up.within", "write at most 31d", "%s is too long", spec.Within)
		}
		spec.AtMost, _ = b.whole(v.get("at_most"), "catch_up.at_most", 1, schedule.MostAtMost)
	}
}

// start reads what a tick or a signal starts. of is the kind of the document.
func (b *builder) start(v, owner *value, r *Start, sc scope, of string, known []string) {
	const path = "run"
	if v == nil {
		b.fail(owner, "", "add run: {action: my-action}", "the %s does not say what to run", of)
		return
	}
	if !b.object(v, path, known) {
		return
	}
	var t Task
	b.taskAction(&t, v, path)
	r.Action, r.Version, r.Position = t.Action, t.Version, Position{b.file, v.line, v.column}
	if r.Action == "workflow" {
		b.fail(v.get("action"), "run.action", "write the workflow's own name", "a %s runs a workflow by its name", of)
	}
	r.Input = b.template(v.get("input"), "run.input", sc, noTask)
	b.settings(v, path, &r.Settings, sc, noTask)
	r.Settings.Queue = b.queue(v.get("queue"), "run.queue")
	if BuiltIn(r.Action) && r.Action != "workflow" {
		b.payload(r.Action, v, v.get("input"), "run.input", false)
	}
}
