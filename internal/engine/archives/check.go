package archives

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/replay"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/verification"
)

const (
	// mostEvents and mostEventBytes bound one history, which is in memory while it is checked and written.
	mostEvents     = replay.MostEvents
	mostEventBytes = 64 << 20
	// mostText bounds the texts of a request that have no bound of their own, in bytes.
	mostText = 4096
	// exportAgain is the advice for an archive that no server has written.
	exportAgain = "export it again: the archive was made or changed by something else than pawl export"
)

// placed is an execution whose tasks may follow in the archive.
type placed struct {
	ID       flow.ID
	Kind     flow.Kind
	Attempts int

	// of the latest task
	attempt, index int
	task           string
}

func (u *unpacker) check(r *archive.Row) error {
	if len(r.Events) == 0 && u.x != nil {
		if err := u.closeHistory(); err != nil {
			return err
		}
	}
	switch {
	case !r.Tree.IsZero():
		u.above, u.inTree = u.above[:0], 0
	case r.Execution != nil:
		return u.begin(r.Execution)
	case len(r.Events) > 0:
		return u.history(r.Events)
	case r.Mark != nil:
		return u.marked(r.Mark)
	case r.Input != nil:
		return u.checkInput(r.Input)
	case r.Log != nil:
		return u.log(r.Log)
	case r.Blob != nil:
		return u.named(r.Blob)
	}
	return nil
}

// latest is the execution that the current rows belong to.
func (u *unpacker) latest() *placed { return &u.above[len(u.above)-1] }

func wrong(id flow.ID, format string, args ...any) error {
	return fault.New("executions", id.String(), id.String()+": "+fmt.Sprintf(format, args...), exportAgain)
}

// begin checks a new execution and its place in the tree.
func (u *unpacker) begin(e *archive.Execution) error {
	x, err := e.Flow()
	if err != nil {
		return err
	}
	if err := checkExecution(x); err != nil {
		return err
	}
	if err := u.checkTimes(x); err != nil {
		return err
	}
	if e.Definition != "" {
		workflow, known := u.workflows[documentKey(e.Action, e.Version, e.Definition)]
		switch {
		case !known:
			return wrong(x.ID, "the archive has no definition %s with the hash %.64s", catalog.VersionKey(e.Action, e.Version), e.Definition)
		case x.Kind == flow.KindWorkflow && !workflow:
			return wrong(x.ID, "it is a workflow, and its definition %s is not one", catalog.VersionKey(e.Action, e.Version))
		}
	}
	for len(u.above) > 0 && u.latest().ID != x.Parent {
		u.above = u.above[:len(u.above)-1]
	}
	if len(u.above) == 0 {
		if !x.Parent.IsZero() || u.inTree > 0 {
			return wrong(x.ID, "its workflow %s is not above it", x.Parent)
		}
	} else if err := u.latest().place(x); err != nil {
		return err
	}
	if n := len(u.above); n > requests.DepthLimit {
		return wrong(x.ID, "it is %d workflows deep, and workflows nest %d deep at most", n, requests.DepthLimit)
	}
	if n := len(u.above); int(x.Depth) != n {
		return wrong(x.ID, "its depth is %d, and %d workflows are above it", x.Depth, n)
	}
	u.inTree++
	u.above = append(u.above, placed{ID: x.ID, Kind: x.Kind, Attempts: x.Attempt})
	u.x, u.events, u.eventBytes = x, nil, 0
	u.input, u.pieces, u.mark, u.chunk = flow.Input{}, 0, archive.Mark{}, flow.LogChunk{}
	return nil
}

// place checks that a child comes in order: attempts and tasks in order, items from 0 on.
func (p *placed) place(x *flow.Execution) error {
	switch {
	case p.Kind != flow.KindWorkflow:
		return wrong(x.ID, "%s above it is not a workflow", p.ID)
	case x.ParentAttempt < 1 || x.ParentAttempt > p.Attempts:
		return wrong(x.ID, "it is of attempt %d of its workflow, which has %d", x.ParentAttempt, p.Attempts)
	case x.ParentAttempt == p.attempt && x.Task == p.task && x.Index == p.index+1:
	case (x.ParentAttempt > p.attempt || x.ParentAttempt == p.attempt && x.Task > p.task) && x.Index == 0:
	default:
		return wrong(x.ID, "item %d of task %q in attempt %d does not follow item %d of task %q in attempt %d", x.Index, x.Task, x.ParentAttempt, p.index, p.task, p.attempt)
	}
	p.attempt, p.task, p.index = x.ParentAttempt, x.Task, x.Index
	return nil
}

// history adds events. They come directly after their execution.
func (u *unpacker) history(all []archive.Event) error {
	if u.x == nil {
		return wrong(u.latest().ID, "events that do not stand behind it")
	}
	for i := range all {
		e := all[i].Flow()
		u.eventBytes += len(e.Data)
		switch {
		case len(e.Data) > flow.MostData || len(e.Type) > mostText:
			return wrong(u.x.ID, "event %d has more than %d bytes", e.Seq, flow.MostData)
		case len(u.events) == mostEvents || u.eventBytes > mostEventBytes:
			return fault.New("executions", u.x.ID.String(), fmt.Sprintf("its history has more than %d events or %d MB", mostEvents, mostEventBytes>>20), "leave it out of the export")
		case len(e.Data) > 0 && !json.Valid(e.Data):
			return wrong(u.x.ID, "the data of event %d is not JSON", e.Seq)
		case e.At.IsZero() || !u.past(e.At) || u.x.CreatedAt.Sub(e.At) > clocksApart:
			return wrong(u.x.ID, "event %d was at %s", e.Seq, e.At)
		}
		u.events = append(u.events, e)
	}
	return nil
}

// closeHistory checks the history of the latest execution by the same rules as the store. Then the execution can be written.
func (u *unpacker) closeHistory() error {
	var f verification.Findings
	x, events := u.x, u.events
	verification.Execution(&f, x, events)
	if len(f.All) > 0 {
		return wrong(x.ID, "%s", f.All[0].Say)
	}
	u.x, u.events = nil, nil
	u.delta.Drafts = append(u.delta.Drafts, store.Archived(x, events))
	return u.wrote(x.PayloadSize() + len(x.Outcome.Output) + u.eventBytes + 100*len(events))
}

// marked checks a mark: the tasks of each attempt come in order.
func (u *unpacker) marked(m *archive.Mark) error {
	x := u.latest()
	switch {
	case x.Kind != flow.KindWorkflow:
		return wrong(x.ID, "it is not a workflow and has tasks")
	case m.Attempt < 1 || m.Attempt > x.Attempts || m.Total < 0 || m.Total > math.MaxInt32:
		return wrong(x.ID, "a mark of task %.100q in attempt %d", m.Task, m.Attempt)
	case m.Attempt < u.mark.Attempt || m.Attempt == u.mark.Attempt && m.Task <= u.mark.Task:
		return wrong(x.ID, "the mark of task %.100q in attempt %d comes behind that of task %.100q in attempt %d", m.Task, m.Attempt, u.mark.Task, u.mark.Attempt)
	case fault.BadText(m.Task, mostText) != "" || orchestration.MarkNamed(m.State).String() != m.State:
		return wrong(x.ID, "a mark of task %.100q", m.Task)
	}
	u.mark = archive.Mark{Attempt: m.Attempt, Task: m.Task}
	return badError(x.ID, m.Error.Flow())
}

func (u *unpacker) checkInput(p *archive.Input) error {
	x := u.latest()
	if p.Offset != u.input.Size || u.input.Closed || len(p.Data) == 0 && !p.Last {
		return wrong(x.ID, "the pieces of its input do not follow one another at offset %d", p.Offset)
	}
	u.input.Size += int64(len(p.Data))
	if u.input.Closed = p.Last; u.input.Size > flow.InputLimit {
		return wrong(x.ID, "it was given more than %d bytes to read", flow.InputLimit)
	}
	return nil
}

func (u *unpacker) log(c *flow.LogChunk) error {
	x := u.latest()
	switch {
	case c.Execution != x.ID:
		return wrong(x.ID, "a log of %s stands behind it", c.Execution)
	case c.Attempt < 1 || c.Attempt > x.Attempts || c.Seq < 1 || !u.past(c.At):
		return wrong(x.ID, "a log with number %d of attempt %d, at %s", c.Seq, c.Attempt, c.At)
	case c.Attempt < u.chunk.Attempt || c.Attempt == u.chunk.Attempt && c.Seq <= u.chunk.Seq:
		return wrong(x.ID, "log %d of attempt %d comes behind log %d of attempt %d", c.Seq, c.Attempt, u.chunk.Seq, u.chunk.Attempt)
	case c.Offset < 0 || c.Offset > flow.MostOffset || c.Size < 1 || c.Size > flow.MostChunk:
		return wrong(x.ID, "log %d of attempt %d has %d bytes at offset %d: a chunk has 1 to %d", c.Seq, c.Attempt, c.Size, c.Offset, flow.MostChunk)
	case c.Stream != "stdout" && c.Stream != "stderr" && c.Stream != "log":
		return wrong(x.ID, "a log of stream %.40q", c.Stream)
	case c.Blob == "" && c.Size != int64(len(c.Data)), c.Blob != "" && (len(c.Data) > 0 || !uploads.Owns(x.ID, c.Blob) || blob.CheckName(c.Blob) != nil):
		return wrong(x.ID, "log %d of attempt %d is not where its row says", c.Seq, c.Attempt)
	}
	c.At = c.At.UTC().Truncate(time.Microsecond)
	u.chunk = flow.LogChunk{Attempt: c.Attempt, Seq: c.Seq}
	return nil
}

// named checks the name of a content: an execution can only have its own blobs and uploads.
func (u *unpacker) named(b *archive.Blob) error {
	x := u.latest()
	if strings.HasPrefix(b.Name, "uploads/") || uploads.Owns(x.ID, b.Name) && blob.CheckName(b.Name) == nil {
		return nil
	}
	return wrong(x.ID, "the blob %.100q is not its own", b.Name)
}

// sensible reports whether a time can be stored: rows count microseconds, and an execution has no time before 1970 or after 9999.
func sensible(t time.Time) bool { return t.IsZero() || t.Year() >= 1970 && t.Year() < 10000 }

// past reports whether a time can be stored and has come.
func (u *unpacker) past(t time.Time) bool { return sensible(t) && t.Sub(u.now) <= clocksApart }

// clocksApart is how much the clocks of two machines may differ: of the server that made an id and its database, or of two installations.
const clocksApart = 24 * time.Hour

// checkTimes refuses times that no server could have written. Lists and streams walk executions by their ids, which begin with a time: a
// wrong id would put the execution in the wrong place.
func (u *unpacker) checkTimes(x *flow.Execution) error {
	var ms [8]byte
	copy(ms[2:], x.ID[:6])
	made := time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))) // 48 bits
	switch {
	case x.CreatedAt.Sub(made).Abs() > clocksApart:
		return wrong(x.ID, "it was created at %s, and its id at %s", x.CreatedAt, made.UTC())
	case !sensible(x.NotBefore):
		return wrong(x.ID, "it was not to begin before %s", x.NotBefore)
	}
	for _, t := range []time.Time{x.CreatedAt, x.QueuedAt, x.ClaimedAt, x.StartedAt, x.FinishedAt, x.SlotAt} {
		if !u.past(t) {
			return wrong(x.ID, "a time of it is %s, which has not come or is before 1970", t)
		}
	}
	return nil
}

// checkExecution refuses an execution that no store could have had.
func checkExecution(x *flow.Execution) error {
	again := x.AsRerun()
	texts := map[string]string{"action": x.Action, "kind": string(x.Kind), "queue": x.Queue, "task": x.Task, "alias": x.Alias, "key": x.Key, "when_full": string(x.WhenFull),
		"fair_by": x.Fair.By, "rate.key": x.Rate.Key, "rate.over": string(x.Rate.Over), "idempotency_key": x.IdempotencyKey,
		"traceparent": x.Traceparent, "given_by": again.OverriddenBy, "kept_as": again.KeptAs,
		"retry.backoff": string(x.Retry.Backoff)}
	for name, value := range x.Labels {
		if fault.BadText(name, fault.LabelLimit) != "" || fault.BadText(value, fault.LabelLimit) != "" {
			return wrong(x.ID, "its label %.100q: a name and a value have up to %d bytes", name, fault.LabelLimit)
		}
	}
	lists := [][]string{x.Rules, again.Only, again.LeftOut, x.Retry.On}
	overrides := slices.Clone(again.Outputs)
	for i := range again.Beneath {
		b := &again.Beneath[i]
		overrides = append(overrides, b.Outputs...)
		lists = append(lists, b.Only, b.LeftOut, []string{b.Path, b.OverriddenBy})
	}
	for i := range overrides {
		g := &overrides[i]
		if g.Index < 0 || g.Index > math.MaxInt32 || fault.BadText(g.Task, mostText) != "" || !json.Valid(g.Output) {
			return wrong(x.ID, "an output that it was given, of item %d of task %.100q", g.Index, g.Task)
		}
	}
	for _, all := range lists {
		for _, text := range all {
			if fault.BadText(text, mostText) != "" {
				return wrong(x.ID, "a text of its request has a NUL byte, or is too long: %.100q", text)
			}
		}
	}
	for name, text := range texts {
		if bad := fault.BadText(text, mostText); bad != "" {
			return wrong(x.ID, "%s %.100q %s", name, text, bad)
		}
	}
	for _, n := range []int{x.Version, x.ParentAttempt, x.Index, int(x.Depth), x.KeyLimit, x.Fair.Weight, x.Rate.Limit, x.Rate.Burst, x.Attempt, x.HandedBack, x.Retry.MaxAttempts} {
		if n < 0 || n > math.MaxInt32 {
			return wrong(x.ID, "a number of it is %d", n)
		}
	}
	var asked requests.Faults
	if asked.Check(&x.Request); len(asked.List) > 0 {
		return wrong(x.ID, "no submission can ask for what it has: %s", asked.List[0])
	}
	switch {
	case x.ID.IsZero() || x.Action == "" || x.Kind == "" || x.Queue == "":
		return wrong(x.ID, "it has no id, action, kind or queue")
	case !x.Kind.BuiltIn() && !handlerName.MatchString(string(x.Kind)):
		return wrong(x.ID, "%.100q is neither a built-in kind nor the name of a handler", x.Kind)
	case badRoutingKey(x.Queue, x.Kind):
		return wrong(x.ID, "%.100q is not a queue, with or without needs", x.Queue)
	case !x.Stage.Terminal():
		return wrong(x.ID, "it is %s, and only what has ended is in an archive", x.Stage)
	case x.CreatedAt.IsZero() || x.FinishedAt.Before(x.CreatedAt):
		return wrong(x.ID, "it was created at %s and ended at %s", x.CreatedAt, x.FinishedAt)
	case x.Parent.IsZero() != (x.Task == ""):
		return wrong(x.ID, "it is of task %q of %s", x.Task, x.Parent)
	case len(x.Labels) > fault.LabelsLimit:
		return wrong(x.ID, "it has %d labels", len(x.Labels))
	case len(x.Input) > fault.InputLimit || len(x.With) > fault.InputLimit || len(x.Outcome.Output) > flow.MostOutput:
		return wrong(x.ID, "its input or output has more than %d MB", fault.InputLimit>>20)
	}
	for _, text := range [][]byte{x.Input, x.With, x.Outcome.Output} {
		if len(text) > 0 && !json.Valid(text) {
			return wrong(x.ID, "its input or output is not JSON")
		}
	}
	return badError(x.ID, x.Outcome.Error)
}

var (
	handlerName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,99}$`)
	// needText matches the needs of a routing key: names of runtimes, labels, and prefixed languages, kinds and actions.
	needText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:=+#-]*$`)
)

// badRoutingKey reports whether a text cannot be the routing key of an execution of a kind.
func badRoutingKey(text string, kind flow.Kind) bool {
	queue, needs := flow.SplitRoutingKey(text)
	return len(text) > flow.RoutingKeyLimit || queue != string(kind) && catalog.CheckQueue(queue) != nil ||
		slices.ContainsFunc(needs, func(need string) bool { return !needText.MatchString(need) })
}

func badError(id flow.ID, e *flow.Error) error {
	if e != nil && (fault.BadText(e.Code, mostText) != "" || fault.BadText(e.Message, flow.MostOutput) != "" || len(e.Details) > flow.MostData || len(e.Details) > 0 && !json.Valid(e.Details)) {
		return wrong(id, "its error %.100q", e.Code)
	}
	return nil
}
