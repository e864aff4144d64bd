package archives

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/replay"
	"github.com/pawl-run/pawl/internal/store/verification"
)

const (
	// importEvents and importEventBytes bound one history, which is held while it is checked and written.
	importEvents     = replay.MostEvents
	importEventBytes = 64 << 20
	// importTexts bounds the texts of a request that have no bound of their own, in bytes.
	importTexts = 4096
)

// importer takes in one archive: it checks the rows as they come and keeps them in the spool, and stores them from there.
type importer struct {
	a      *Archives
	spool  *os.File
	to     *bufio.Writer
	size   int64 // of the spool
	result Imported
	at     time.Time

	documents     map[string]*importedDocument // by name, version and hash
	documentBytes int

	trees []span

	// What is being read.
	above      []placed // the workflows above the latest execution, and itself
	x          *flow.Execution
	events     []flow.Event
	eventBytes int
	input      flow.Input
	closed     bool // something other than events has followed the execution
}

// placed is an execution whose children may follow.
type placed struct {
	*flow.Execution
	attempt, index int // of its latest child
	task           string
}

// row checks a row against what came before it, and keeps its line.
func (im *importer) row(r *archive.Row, line []byte) error {
	if r.LeftOut != nil {
		im.result.LeftOut++
		return nil
	}
	if err := im.check(r); err != nil {
		return err
	}
	if !r.Tree.IsZero() {
		im.trees = append(im.trees, span{top: r.Tree, from: im.size})
	}
	t := &im.trees[len(im.trees)-1]
	if r.Execution != nil {
		t.executions++
	}
	n, err := im.to.Write(line)
	im.size += int64(n)
	t.size += int64(n)
	return err
}

func (im *importer) check(r *archive.Row) error {
	if len(r.Events) == 0 && im.x != nil {
		if err := im.closeHistory(); err != nil {
			return err
		}
	}
	switch {
	case !r.Tree.IsZero():
		im.above = im.above[:0]
	case r.Execution != nil:
		return im.begin(r.Execution)
	case len(r.Events) > 0:
		return im.history(r.Events)
	case r.Mark != nil:
		return im.mark(r.Mark)
	case r.Input != nil:
		return im.given(r.Input)
	case r.Log != nil:
		return im.log(r.Log)
	case r.Blob != nil:
		return im.named(r.Blob)
	}
	return nil
}

// latest is the execution that the rows are of.
func (im *importer) latest() *flow.Execution { return im.above[len(im.above)-1].Execution }

// wrong refuses what a row says.
func wrong(id flow.ID, format string, args ...any) error {
	return fault.New("executions", id.String(), fmt.Sprintf(format, args...), "export it again: the archive was made or changed by something else than pawl export")
}

// begin checks an execution and its place in the tree.
func (im *importer) begin(e *archive.Execution) error {
	x, err := e.Flow()
	if err != nil {
		return err
	}
	if err := checkImported(x); err != nil {
		return err
	}
	if e.Definition != "" {
		d := im.documents[documentKey(e.Action, e.Version, e.Definition)]
		switch {
		case d == nil:
			return wrong(x.ID, "the archive has no definition %s with the hash %.64s", catalog.VersionKey(e.Action, e.Version), e.Definition)
		case x.Kind == flow.KindWorkflow && d.Workflow == nil:
			return wrong(x.ID, "it is a workflow, and its definition %s is none", catalog.VersionKey(e.Action, e.Version))
		}
	}
	for len(im.above) > 0 && im.latest().ID != x.Parent {
		im.above = im.above[:len(im.above)-1]
	}
	if len(im.above) == 0 {
		if !x.Parent.IsZero() || im.trees[len(im.trees)-1].executions > 0 {
			return wrong(x.ID, "its workflow %s is not above it", x.Parent)
		}
	} else if err := im.above[len(im.above)-1].place(x); err != nil {
		return err
	}
	im.above = append(im.above, placed{Execution: x})
	im.x, im.events, im.eventBytes, im.input, im.closed = x, im.events[:0], 0, flow.Input{}, false
	return nil
}

// place puts a child behind those that came before it: attempts and tasks in order, items from 0 on.
func (p *placed) place(x *flow.Execution) error {
	switch {
	case p.Kind != flow.KindWorkflow:
		return wrong(x.ID, "%s above it is no workflow", p.ID)
	case x.ParentAttempt < 1 || x.ParentAttempt > p.Attempt:
		return wrong(x.ID, "it is of attempt %d of its workflow, which has %d", x.ParentAttempt, p.Attempt)
	case x.ParentAttempt == p.attempt && x.Task == p.task && x.Index == p.index+1:
	case (x.ParentAttempt > p.attempt || x.ParentAttempt == p.attempt && x.Task > p.task) && x.Index == 0:
	default:
		return wrong(x.ID, "item %d of task %q in attempt %d does not follow item %d of task %q in attempt %d", x.Index, x.Task, x.ParentAttempt, p.index, p.task, p.attempt)
	}
	p.attempt, p.task, p.index = x.ParentAttempt, x.Task, x.Index
	return nil
}

// history adds events, which stand right behind their execution.
func (im *importer) history(all []archive.Event) error {
	if im.x == nil {
		return wrong(im.latest().ID, "events that do not stand behind it")
	}
	for i := range all {
		e := all[i].Flow()
		im.eventBytes += len(e.Data)
		switch {
		case len(e.Data) > flow.MostData || len(e.Type) > importTexts:
			return wrong(im.x.ID, "event %d has more than %d bytes", e.Seq, flow.MostData)
		case len(im.events) == importEvents || im.eventBytes > importEventBytes:
			return fault.New("executions", im.x.ID.String(), fmt.Sprintf("its history has more than %d events or %d MB", importEvents, importEventBytes>>20), "leave it out of the export")
		case len(e.Data) > 0 && !json.Valid(e.Data):
			return wrong(im.x.ID, "the data of event %d is no JSON", e.Seq)
		case !sensible(e.At):
			return wrong(im.x.ID, "event %d was at %s", e.Seq, e.At)
		}
		im.events = append(im.events, e)
	}
	return nil
}

// closeHistory checks the history of the latest execution as the store does that of every one.
func (im *importer) closeHistory() error {
	var f verification.Findings
	x := im.x
	x.Imported = &flow.Import{From: im.result.From, At: x.FinishedAt}
	verification.Execution(&f, x, im.events)
	im.x = nil
	if len(f.All) > 0 {
		return wrong(x.ID, "%s", f.All[0].Say)
	}
	return nil
}

func (im *importer) mark(m *archive.Mark) error {
	x := im.latest()
	switch {
	case x.Kind != flow.KindWorkflow:
		return wrong(x.ID, "it is no workflow and has tasks")
	case m.Attempt < 1 || m.Attempt > x.Attempt || m.Total < 0:
		return wrong(x.ID, "a mark of task %.100q in attempt %d", m.Task, m.Attempt)
	case fault.BadText(m.Task, importTexts) != "" || fault.BadText(m.State, importTexts) != "":
		return wrong(x.ID, "a mark of task %.100q", m.Task)
	}
	return badError(x.ID, m.Error.Flow())
}

func (im *importer) given(p *archive.Input) error {
	x := im.latest()
	if p.Offset != im.input.Size || im.input.Closed || len(p.Data) == 0 && !p.Last {
		return wrong(x.ID, "the pieces of its input do not follow one another at offset %d", p.Offset)
	}
	im.input.Size += int64(len(p.Data))
	if im.input.Closed = p.Last; im.input.Size > flow.InputLimit {
		return wrong(x.ID, "it was given more than %d bytes to read", flow.InputLimit)
	}
	return nil
}

func (im *importer) log(c *flow.LogChunk) error {
	x := im.latest()
	switch {
	case c.Execution != x.ID:
		return wrong(x.ID, "a log of %s stands behind it", c.Execution)
	case c.Attempt < 1 || c.Attempt > x.Attempt || c.Seq < 1 || c.Offset < 0 || c.Size < 0 || !sensible(c.At):
		return wrong(x.ID, "a log with number %d of attempt %d", c.Seq, c.Attempt)
	case c.Stream != "stdout" && c.Stream != "stderr" && c.Stream != "log":
		return wrong(x.ID, "a log of stream %.40q", c.Stream)
	case c.Blob == "" && c.Size != int64(len(c.Data)), c.Blob != "" && (len(c.Data) > 0 || !uploads.Owns(x.ID, c.Blob) || blob.CheckName(c.Blob) != nil):
		return wrong(x.ID, "log %d of attempt %d is not where its row says", c.Seq, c.Attempt)
	}
	c.At = c.At.UTC().Truncate(time.Microsecond)
	return nil
}

// named checks the name of a content: an execution has its own and uploads, and no other's.
func (im *importer) named(b *archive.Blob) error {
	x := im.latest()
	if strings.HasPrefix(b.Name, "uploads/") || uploads.Owns(x.ID, b.Name) && blob.CheckName(b.Name) == nil {
		return nil
	}
	return wrong(x.ID, "the blob %.100q is not its own", b.Name)
}

// sensible reports whether a time can be stored: what counts microseconds of a year before 1970 or after 9999 is none of an execution.
func sensible(t time.Time) bool { return t.IsZero() || t.Year() >= 1970 && t.Year() < 10000 }

// checkImported refuses an execution that no store could have had.
func checkImported(x *flow.Execution) error {
	again := x.AsRerun()
	texts := map[string]string{"action": x.Action, "kind": string(x.Kind), "queue": x.Queue, "task": x.Task, "alias": x.Alias, "key": x.Key, "when_full": string(x.WhenFull),
		"fair_by": x.Fair.By, "rate.key": x.Rate.Key, "rate.over": string(x.Rate.Over), "idempotency_key": x.IdempotencyKey, "traceparent": x.Traceparent, "given_by": again.GivenBy, "kept_as": again.KeptAs,
		"retry.backoff": string(x.Retry.Backoff)}
	for name, value := range x.Labels {
		if fault.BadText(name, fault.LabelLimit) != "" || fault.BadText(value, fault.LabelLimit) != "" {
			return wrong(x.ID, "its label %.100q: a name and a value have up to %d bytes", name, fault.LabelLimit)
		}
	}
	lists := [][]string{x.Rules, again.Only, again.LeftOut, x.Retry.On}
	for i := range again.Beneath {
		b := &again.Beneath[i]
		lists = append(lists, b.Only, b.LeftOut, []string{b.Path, b.GivenBy})
	}
	for _, all := range lists {
		for _, text := range all {
			if fault.BadText(text, importTexts) != "" {
				return wrong(x.ID, "a text of its request has a NUL byte, or is too long: %.100q", text)
			}
		}
	}
	for name, text := range texts {
		if bad := fault.BadText(text, importTexts); bad != "" {
			return wrong(x.ID, "%s %.100q %s", name, text, bad)
		}
	}
	for _, n := range []int{x.Version, x.ParentAttempt, x.Index, int(x.Depth), x.KeyLimit, x.Fair.Weight, x.Rate.Limit, x.Rate.Burst, x.Attempt, x.HandedBack, x.Retry.MaxAttempts} {
		if n < 0 || n > math.MaxInt32 {
			return wrong(x.ID, "a number of it is %d", n)
		}
	}
	for _, t := range []time.Time{x.CreatedAt, x.NotBefore, x.QueuedAt, x.ClaimedAt, x.StartedAt, x.FinishedAt, x.SlotAt} {
		if !sensible(t) {
			return wrong(x.ID, "a time of it is %s", t)
		}
	}
	var asked requests.Faults
	if asked.Check(&x.Request); len(asked.List) > 0 {
		return wrong(x.ID, "no submission can ask for what it has: %s", asked.List[0])
	}
	switch {
	case x.ID.IsZero() || x.Action == "" || x.Kind == "" || x.Queue == "":
		return wrong(x.ID, "it has no id, action, kind or queue")
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
			return wrong(x.ID, "its input or output is no JSON")
		}
	}
	return badError(x.ID, x.Outcome.Error)
}

func badError(id flow.ID, e *flow.Error) error {
	if e != nil && (fault.BadText(e.Code, importTexts) != "" || fault.BadText(e.Message, flow.MostOutput) != "" || len(e.Details) > flow.MostData || len(e.Details) > 0 && !json.Valid(e.Details)) {
		return wrong(id, "its error %.100q", e.Code)
	}
	return nil
}
