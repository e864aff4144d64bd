package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// walk executes the commands of one file of testdata/walk.
type walk struct {
	testing.TB
	*rig
	plan     *scripted
	ends     []func() // of the rig
	ids      map[string]flow.ID
	names    []string          // of executions, in the order of their submission
	shown    map[string]string // the state of each after the last command
	began    time.Time
	workers  map[string]*walker
	attempts map[string]*walkAttempt // by execution, and by worker and execution
	settle   func()                  // waits until the engine is idle; nil: the output is awaited
}

// walker is a worker of a walk. die ends the renewal of its lease.
type walker struct {
	*hand
	die context.CancelFunc
}

// walkAttempt is an attempt of a worker, and how many of its events were reported.
type walkAttempt struct {
	handoff.Assignment
	by   *walker
	sent int64
}

// TestWalk runs the files of testdata/walk (its README.md lists the commands): on SQLite with a clock that moves only while the engine is
// idle, and files in which no time passes also on PostgreSQL. With -rewrite it writes the outputs anew.
func TestWalk(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/walk/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Run("sqlite", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { walkThrough(t, path, newRig, synctest.Wait) })
			})
			if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "\npass ") {
				return
			}
			t.Run("postgres", func(t *testing.T) { walkThrough(t, path, newPostgresRig, nil) })
		})
	}
}

func walkThrough(t *testing.T, path string, engine func(testing.TB, ...func(*Options)) *rig, settle func()) {
	w := &walk{TB: t, settle: settle}
	t.Cleanup(w.end)
	datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "server" {
			w.begin(engine)
			return ""
		}
		show := w.run(d)
		if settle != nil {
			settle()
		}
		for deadline := time.Now().Add(patience); ; {
			changed, stop := w.e.WatchAll()
			stand, changes := w.changes()
			if d.Cmd == "serve" {
				changes = "" // of simultaneous turns, any may be next
			}
			if out := show() + changes; settle != nil || out == d.Expected || time.Now().After(deadline) {
				stop()
				w.shown = stand
				return out
			}
			select {
			case <-changed:
			case <-time.After(10 * time.Millisecond):
			}
			stop()
		}
	})
}

// begin starts a server on an empty store.
func (w *walk) begin(engine func(testing.TB, ...func(*Options)) *rig) {
	w.end()
	w.ids, w.workers, w.attempts = map[string]flow.ID{}, map[string]*walker{}, map[string]*walkAttempt{}
	w.names, w.shown, w.began = nil, nil, time.Now()
	w.rig = engine(w, func(o *Options) {
		w.plan = &scripted{Store: o.Store, names: map[flow.ID]string{}}
		o.Store, o.Random = w.plan, func() float64 { return 0.5 }
	})
}

func (w *walk) Cleanup(f func()) { w.ends = append(w.ends, f) }

func (w *walk) end() {
	for _, x := range w.workers {
		x.die()
	}
	for _, f := range slices.Backward(w.ends) {
		f()
	}
	w.ends, w.workers = nil, nil
}

// run executes a command, and returns what shows its result, followed by the changed executions.
func (w *walk) run(d *datadriven.TestData) (show func() string) {
	names := namesIn(d.CmdArgs)
	switch d.Cmd {
	case "submit", "begin", "complete", "fail", "cancel", "panic":
		return w.ask(false, *d)
	case "together":
		var commands []datadriven.TestData
		for line := range strings.Lines(d.Input) {
			word, args, err := datadriven.ParseLine(line)
			if err != nil {
				w.Fatal(err)
			}
			commands = append(commands, datadriven.TestData{Pos: d.Pos, Cmd: word, CmdArgs: args})
		}
		return w.ask(true, commands...)
	case "define":
		w.define(d.Input)
	case "worker":
		w.open(names[0], d.HasArg("part-of-server"))
	case "take":
		patient := 100 * time.Millisecond
		if w.settle == nil && d.Expected != "nothing\n" {
			patient = patience
		}
		if _, err := w.take(names[0], 100, patient); !errors.Is(err, context.DeadlineExceeded) {
			return w.says(err)
		}
		return func() string { return "nothing\n" }
	case "serve":
		var served []string
		for n, _ := strconv.Atoi(names[1]); n > 0; n-- {
			taken, err := w.take(names[0], 1, patience)
			if err != nil {
				w.Fatal(err)
			}
			w.ask(false, datadriven.TestData{Cmd: "complete", CmdArgs: []datadriven.CmdArg{{Key: taken[0]}}})
			served = append(served, taken[0])
		}
		slices.Sort(served)
		return func() string { return strings.Join(served, " ") + "\n" }
	case "dies":
		w.workers[names[0]].die()
	case "close":
		w.workers[names[0]].die()
		return w.says(w.e.Close(w.ctx, w.workers[names[0]].session))
	case "renew":
		_, err := w.e.Renew(w.ctx, w.workers[names[0]].session)
		return w.says(err)
	case "why":
		why, err := w.e.Why(w.ctx, w.ids[names[0]])
		if err != nil {
			w.Fatal(err)
		}
		return func() string { return why.Summary + "\n" }
	case "lost":
		return w.lost
	case "await":
		end := w.e.WaitForEnd(w.ids[names[0]])
		go func() {
			defer end.Close()
			if _, err := end.Wait(w.ctx); err == nil {
				w.plan.tell(names[0])
			}
		}()
	case "told":
		return w.plan.told
	case "pass":
		span, err := time.ParseDuration(names[0])
		if err != nil {
			w.Fatal(err)
		}
		time.Sleep(span) // of the bubble: TestWalk runs files with pass only in synctest
	case "restart":
		for _, x := range w.workers {
			x.die()
		}
		w.settle()
		w.restart(func(o *Options) { o.Crashes = died(w, d.HasArg("evaluating")) })
	case "store":
		w.plan.set(names)
	case "transactions":
		all := w.plan.taken()
		return func() string { return strings.Join(all, "\n") + "\n" }
	case "history":
		return func() string { return fmt.Sprintln(w.history(w.ids[names[0]])) }
	default:
		w.Fatalf("%s: there is no command %q", d.Pos, d.Cmd)
	}
	return func() string { return "" }
}

// namesIn are the arguments without a value.
func namesIn(args []datadriven.CmdArg) (names []string) {
	for _, a := range args {
		if len(a.Vals) == 0 {
			names = append(names, a.Key)
		}
	}
	return names
}

// says shows an error, with the names of workers instead of their sessions.
func (w *walk) says(err error) func() string {
	var text string
	if err != nil {
		text = err.Error() + "\n"
	}
	for name, x := range w.workers {
		text = strings.ReplaceAll(text, x.session.Text(flow.SessionPrefix), name)
	}
	return func() string { return text }
}

// lost shows the lost sessions, the latest first.
func (w *walk) lost() string {
	var out strings.Builder
	for _, s := range w.e.LostSessions() {
		fmt.Fprintf(&out, "%s: attempts=%d\n", s.Name, s.Attempts)
	}
	return out.String()
}

// ask sends the requests of commands to the committer, together or one after the other, and waits for the answers. It shows the refusals.
func (w *walk) ask(together bool, commands ...datadriven.TestData) func() string {
	var refused strings.Builder
	var ops []op
	var answers []func() string
	flush := func() {
		if err := w.e.enqueue(ops...); err != nil {
			w.Fatal(err)
		}
		for _, answer := range answers {
			refused.WriteString(answer())
		}
		ops, answers = nil, nil
	}
	for i := range commands {
		for _, name := range namesIn(commands[i].CmdArgs) {
			o, answer := w.request(&commands[i], name)
			if ops, answers = append(ops, o), append(answers, answer); !together {
				flush()
			}
		}
	}
	flush()
	return refused.String
}

// request is one request, and a function that waits for its answer and returns the refusal.
func (w *walk) request(d *datadriven.TestData, name string) (op, func() string) {
	failed := func(err error) string {
		if err == nil {
			return ""
		}
		first, _, _ := strings.Cut(err.Error(), "\n")
		return name + ": " + first + "\n"
	}
	g := newGroup(1)
	switch d.Cmd {
	case "submit":
		s := w.submission(d)
		o := &submitOp{group: g, submitted: &w.e.counters.submitted}
		if err := w.e.prepare(w.ctx, &s, o); err != nil {
			w.Fatal(err)
		}
		w.ids[name], w.names = o.id, append(w.names, name)
		w.plan.name(o.id, name)
		return o, func() string {
			<-g.over
			return failed(o.verdict.Err)
		}
	case "cancel", "panic":
		id := w.ids[name]
		r := newRequest([]flow.ID{id}, classCall, func(_ context.Context, t *transaction) (struct{}, error) {
			x := t.Draft(id)
			if d.Cmd == "panic" {
				panic("a defect")
			}
			err := x.Cancel(flow.Cancelled, flow.CodeCancelled, "no longer wanted", t.now)
			t.cancelled(x)
			return struct{}{}, err
		})
		return r, func() string { return failed((<-r.answer).err) }
	}
	of, end := name, flow.Event{}
	if d.HasArg("by") {
		var by string
		d.ScanArgs(w, "by", &by)
		of = by + " " + name
	}
	a := w.attempts[of]
	if a == nil {
		w.Fatalf("%s: %s was given to no worker", d.Pos, of)
	}
	var events []flow.Event
	if a.sent == 0 {
		events = append(events, ev(&a.Assignment, 0, flow.EvRunning, nil))
	}
	switch d.Cmd {
	case "complete":
		end = ev(&a.Assignment, 1, flow.EvCompleted, &flow.Outcome{Output: json.RawMessage("1")})
	case "fail":
		end = ev(&a.Assignment, 1, flow.EvFailed, &flow.Outcome{Error: &flow.Error{Code: "boom", Message: "it broke"}})
	}
	if end.Seq > 0 {
		events = append(events, end)
	}
	a.sent += int64(len(events))
	o := &reportOp{session: a.by.session, group: g, report: flow.Report{Execution: a.Execution, Attempt: a.Attempt, Events: events}}
	return o, func() string {
		<-g.over
		if o.err == nil && o.receipt.Verdict != flow.Applied {
			return strings.TrimSuffix(fmt.Sprintf("%s: the report is %s: %s", name, o.receipt.Verdict, o.receipt.Reason), ": ") + "\n"
		}
		return failed(o.err)
	}
}

func (w *walk) submission(d *datadriven.TestData) Submission {
	s := Submission{Action: "noop"}
	var input, when, in string
	var priority, attempts int
	for name, to := range map[string]any{"action": &s.Action, "input": &input, "key": &s.Key, "limit": &s.KeyLimit, "when-full": &when,
		"priority": &priority, "attempts": &attempts, "in": &in} {
		d.MaybeScanArgs(w, name, to)
	}
	if s.WhenFull = flow.WhenFull(when); input != "" {
		s.Input = json.RawMessage(input)
	}
	if d.HasArg("priority") {
		s.Priority = &priority
	}
	if attempts > 0 {
		s.Retry = &flow.Retry{MaxAttempts: attempts}
	}
	if in != "" {
		span, err := time.ParseDuration(in)
		if err != nil {
			w.Fatal(err)
		}
		s.StartIn = span
	}
	return s
}

// open opens the session of a worker, and renews it until the worker dies.
func (w *walk) open(name string, embedded bool) {
	id, err := w.e.Open(w.ctx, handoff.Session{Name: name, Queues: []string{flow.DefaultQueue}, Slots: 100, Embedded: embedded})
	if err != nil {
		w.Fatal(err)
	}
	ctx, die := context.WithCancel(w.ctx)
	w.workers[name] = &walker{&hand{w.rig, id}, die}
	go func(e *Engine) {
		for {
			select {
			case <-time.After(e.Lease() / 3):
				_, _ = e.Renew(ctx, id) // a lost session shows in what it gets
			case <-ctx.Done():
				return
			}
		}
	}(w.e)
}

// take claims at most n executions for a worker, and returns their names. It waits for one as long as patient says.
func (w *walk) take(worker string, n int, patient time.Duration) (names []string, err error) {
	ctx, cancel := context.WithTimeout(w.ctx, patient)
	defer cancel()
	by := w.workers[worker]
	work, err := w.e.Take(ctx, by.session, n)
	for _, a := range work {
		name, given := w.plan.nameOf(a.Execution), &walkAttempt{Assignment: a, by: by}
		w.attempts[name], w.attempts[worker+" "+name] = given, given
		names = append(names, name)
	}
	return names, err
}

// changes shows the executions whose state has changed since the last command.
func (w *walk) changes() (stand map[string]string, says string) {
	stand = map[string]string{}
	for _, name := range w.names {
		stand[name] = w.stands(name)
		if stand[name] != w.shown[name] {
			says += name + ": " + stand[name] + "\n"
		}
	}
	return stand, says
}

func (w *walk) stands(name string) string {
	x, err := w.rig.store.Get(w.ctx, w.ids[name])
	if err != nil {
		return "not stored"
	}
	says := x.Place.String()
	switch x.Place {
	case flow.Delayed:
		says += " until " + x.WakeAt.Sub(w.began).Round(time.Second).String()
	case flow.Held:
		for by, of := range w.workers {
			if of.session == x.Owner {
				says = map[flow.Stage]string{flow.Provisioning: "given to ", flow.Running: "running on "}[x.Stage] + by
			}
		}
	case flow.Finished:
		if says = x.Stage.String(); x.Outcome.Error != nil {
			says += ": " + x.Outcome.Error.Code + ": " + x.Outcome.Error.Message
		}
	}
	if x.Attempt > 1 {
		says += fmt.Sprintf(", attempt %d", x.Attempt)
	}
	if x.HandedBack > 0 {
		says += fmt.Sprintf(", %d of them not counted", x.HandedBack)
	}
	if x.State.Cancel != nil && x.Place != flow.Finished {
		says += ", ordered to end"
	}
	return says
}
