package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

func (c *call) listExecutions() error   { return c.list(func(*store.Filter) {}) }
func (c *call) listEvaluations() error  { return c.list(onlyEvaluations) }
func (c *call) countExecutions() error  { return c.count(func(*store.Filter) {}) }
func (c *call) countEvaluations() error { return c.count(onlyEvaluations) }

// onlyEvaluations selects ad-hoc code.
func onlyEvaluations(f *store.Filter) { f.Action, f.TopLevel = string(flow.KindCode), true }

// verdicts refuses verdicts with which no code ends, such as WA; executions of handlers may end with other codes.
func (c *call) verdicts(given []string) {
	known := []string{"ok"}
	for _, c := range flow.ErrorCodes() {
		if c.Kinds == nil || slices.Contains(c.Kinds, flow.KindCode) {
			known = append(known, c.Code)
		}
	}
	for _, verdict := range given {
		if !slices.Contains(known, verdict) {
			c.fault("verdict", verdict, "no evaluation ends with it", problem.NearestOr(verdict, known, "one of"))
		}
	}
}

// selected reads the filter of a request, and waits if the request asks for it.
func (c *call) selected(narrow func(*store.Filter)) (f store.Filter, unfinished *int, err error) {
	wait := c.wait()
	if wait > 0 && len(c.query["label"]) == 0 {
		c.fault("wait", c.query.Get("wait"), "there is nothing to wait for", "name what to wait for by a label, as in ?label=run=17&wait=60s")
	}
	if f, err = c.filter(); err != nil {
		return f, nil, err
	}
	narrow(&f)
	if f.Action == string(flow.KindCode) {
		c.verdicts(f.Verdicts)
	}
	if err := c.checked(); err != nil {
		return f, nil, err
	}
	if wait > 0 && c.where != nil {
		c.fault("where", c.where.String(), "what is waited for is named by labels", "leave it out, or ask without wait")
		return f, nil, c.checked()
	}
	if wait > 0 {
		n, err := c.awaitAll(f, wait)
		if err != nil {
			return f, nil, err
		}
		unfinished = &n
	}
	return f, unfinished, nil
}

// The pause between two searches for unfinished executions with a label is at least setPause, and setPauseRatio times as long as one search
// takes.
const (
	setPause      = 50 * time.Millisecond
	setPauseRatio = 4
)

// awaitAll waits until all executions with the filter's labels have ended, and returns how many have not ended when the wait is
// over. It ignores the filter's status, verdict and times.
func (c *call) awaitAll(f store.Filter, wait time.Duration) (unfinished int, err error) {
	open := store.Filter{Labels: f.Labels, Action: f.Action, TopLevel: f.TopLevel, Workflow: f.Workflow, Stages: openStages()}
	changed, stop := c.Engine.WatchAll() // before the first search, so that no change is missed
	defer stop()
	over := time.After(wait)
	deadline := time.Now().Add(wait)
	for {
		begun := time.Now()
		counts, _, err := c.Engine.Reader().Tally(c.ctx(), open)
		if err != nil {
			return 0, fmt.Errorf("wait for executions: %w", err)
		}
		unfinished = 0
		for _, t := range counts {
			unfinished += t.Count
		}
		if unfinished == 0 || !time.Now().Before(deadline) {
			return unfinished, nil
		}
		pause := time.Now().Add(max(setPause, setPauseRatio*time.Since(begun)))
		if pause.After(deadline) {
			pause = deadline
		}
		if !c.pauseUntil(pause) {
			return unfinished, nil
		}
		if _, goesOn := c.untilChanged(changed, pollEvery, over); !goesOn {
			return unfinished, nil
		}
	}
}

// untilChanged waits for a hint, for the duration "most", or for the end of the wait. It reports whether there was a hint and whether the
// request goes on.
func (c *call) untilChanged(changed <-chan struct{}, most time.Duration, over <-chan time.Time) (hint, goesOn bool) {
	select {
	case <-changed:
		return true, true
	case <-time.After(most):
	case <-over:
	case <-c.draining.Done():
		return false, false
	case <-c.ctx().Done():
		return false, false
	}
	return false, true
}

func (c *call) list(narrow func(*store.Filter)) error {
	shown := shown{outputs: c.flag("outputs"), cases: c.flag("cases"), digest: c.flag("digest")}
	if c.wantsStream() {
		return c.watchExecutions()
	}
	within := c.idRange()
	f, unfinished, err := c.selected(narrow)
	if err != nil {
		return err
	}
	within(&f)
	limit := f.Limit
	f.Limit++ // one more, to see whether there is another page
	found, searched, searchedTo, err := c.search(f)
	if err != nil {
		return err
	}
	more := len(found) > limit
	found = found[:min(len(found), limit)]
	var size store.Page
	for _, x := range found {
		size.Execution(x)
	}
	rows, err := c.rows(found, shown)
	if err != nil {
		return err
	}
	page := api.ExecutionPage{Executions: rows, Unfinished: unfinished}
	var last flow.ID
	if len(rows) > 0 {
		last = found[len(rows)-1].ID
	}
	switch {
	case more || len(rows) < len(found):
		page.NextCursor = last.String()
	case !searched.IsZero():
		page.NextCursor, page.SearchedTo = searched.String(), &searchedTo
	case size.Full():
		f.Limit = 1
		if found, searched, _, err = c.search(f.Beyond(last)); err != nil {
			return err
		}
		if len(found) > 0 || !searched.IsZero() {
			page.NextCursor = last.String()
		}
	}
	return c.json(http.StatusOK, page)
}

// namedMost is how many ids a list may be asked for. The ids are in the URL, and most proxies accept one of 8 kB.
const namedMost = 200

// idRange reads the parameters of a list that concern ids, and returns a function that narrows a filter accordingly.
func (c *call) idRange() (narrow func(*store.Filter)) {
	var ids []flow.ID
	named := c.query["id"]
	if len(named) > namedMost {
		c.fault("id", fmt.Sprint(len(named)), fmt.Sprintf("there are more than %d", namedMost), "ask for the others in another request")
		named = nil
	}
	for _, text := range named {
		id, err := flow.ParseID(flow.ExecutionPrefix, text)
		if err != nil {
			c.fault("id", text, err.Error(), "pass it as the server gave it")
			continue
		}
		ids = append(ids, id)
	}
	var first, last flow.ID
	if text := c.query.Get("q"); text != "" {
		var err error
		if first, last, err = flow.IDsWith(flow.ExecutionPrefix, text); err != nil {
			c.fault("q", text, err.Error(), "pass how an id begins, or leave it out")
		}
	}
	after := c.id("after")
	return func(f *store.Filter) {
		f.IDs = ids
		cursor := f.Before
		if f.Oldest = !after.IsZero(); f.Oldest {
			f.Before = flow.ID{}
			f.After = after
			if !cursor.IsZero() {
				f.After = cursor
			}
		}
		if first.IsZero() && last.IsZero() {
			return
		}
		if first = first.Before(); bytes.Compare(first[:], f.After[:]) > 0 {
			f.After = first
		}
		if last = last.After(); f.Before.IsZero() || !last.IsZero() && bytes.Compare(last[:], f.Before[:]) < 0 {
			f.Before = last
		}
	}
}

// reach is the default of Options.Reach: examining that many executions takes some 100 ms. A search with a condition that needs the
// payloads ends after searchFor: reading 7,000 executions with payloads takes 58 ms on SQLite and 166 ms on PostgreSQL.
const (
	reach     = 40_000
	searchFor = 75 * time.Millisecond
)

// search finds executions. If it gave up, searched is the last execution that it examined and "at" is the creation time of that execution;
// searched is zero if it examined none.
func (c *call) search(f store.Filter) (all []*flow.Execution, searched flow.ID, at time.Time, err error) {
	f.Reach = cmp.Or(c.Reach, reach)
	var found store.Found
	if c.where != nil {
		f.Within = searchFor
		found, err = c.Engine.Finder().Find(c.ctx(), f, c.where)
	} else if found, err = c.Engine.Reader().Search(c.ctx(), f); err == nil {
		found = f.Recent(found)
	}
	if err != nil {
		return nil, flow.ID{}, at, fmt.Errorf("list executions: %w", err)
	}
	return found.Executions, found.Searched, found.At, nil
}

// The time between two messages of a stream of changes is at least changedEvery and at most changedAnyway. Hints of other replicas' commits
// may be late or lost, and the removal of old executions gives none.
const (
	changedEvery  = time.Second
	changedAnyway = 5 * time.Second
)

// watchExecutions streams hints that executions may have changed: one at once, so that the client reads the state before the stream, and
// one after every change. A message sent without a hint is marked Idle, unless this server gets no hints of other servers' commits. The
// parameters of the list are checked but do not narrow the stream, because a hint has only the id of an execution.
func (c *call) watchExecutions() error {
	if c.query.Has("wait") {
		c.fault("wait", c.query.Get("wait"), "a stream of changes does not wait for an end", "leave wait out, or follow executions:outcomes")
	}
	if _, err := c.filter(); err != nil {
		return err
	}
	changed, stop := c.Engine.WatchAll() // before the first message, so that no change is missed
	defer stop()
	s, err := c.openStream(mediaEvents)
	for hint, goesOn := true, true; err == nil && goesOn; {
		if err = s.add(api.StreamChanged, "", api.Change{At: time.Now().UTC(), Idle: !hint && c.Engine.HearsPeers()}); err == nil {
			err = s.flush()
		}
		if err != nil || !c.pauseUntil(time.Now().Add(changedEvery)) {
			break
		}
		hint, goesOn = c.untilChanged(changed, changedAnyway-changedEvery, nil)
	}
	return nil // the client has disconnected, or the server drains
}

// shown selects the columns of a list's rows in addition to the summary.
type shown struct {
	outputs bool
	cases   bool // the verdict of each case of code
	digest  bool // the same with one letter per case
}

// rows renders executions for a list. It ends the list early if the outputs fill a page. It reads outputs to summarise code whose last
// event has no digest; rows include them, like the other columns, only if requested.
func (c *call) rows(found []*flow.Execution, shown shown) ([]api.Execution, error) {
	digests, err := c.digests(found)
	if err != nil {
		return nil, err
	}
	wanted := func(x *flow.Execution) bool {
		return x.Outcome != nil && (shown.outputs || x.Kind == flow.KindCode && (shown.cases || digests[x.ID] == nil))
	}
	asking, err := c.asking(found)
	if err != nil {
		return nil, err
	}
	var ids []flow.ID
	for _, x := range found {
		if wanted(x) {
			ids = append(ids, x.ID)
		}
	}
	var read []json.RawMessage
	if len(ids) > 0 {
		if read, err = c.Engine.Reader().Documents(c.ctx(), store.OutputOf, ids); err != nil {
			return nil, fmt.Errorf("list executions: %w", err)
		}
	}
	out := make([]api.Execution, 0, len(found))
	for _, x := range found {
		row := render(x)
		row.Inquiry = asking[x.ID].Text(flow.InquiryPrefix)
		digest := digests[x.ID]
		if wanted(x) {
			if len(read) == 0 {
				break
			}
			renderRun(&row, x, read[0])
			if digest == nil && shown.digest && x.Kind == flow.KindCode {
				digest = api.DigestCases(read[0])
			}
			if shown.outputs {
				row.Output = read[0]
			}
			if shown.cases && x.Kind == flow.KindCode {
				row.CaseVerdicts = caseVerdicts(read[0])
			}
			read = read[1:]
		} else if digest != nil {
			renderDigest(&row, x, digest)
		}
		if shown.digest {
			row.Digest = digest
		}
		if row.Error != nil {
			const most = 1000 // the last line of a program's output may be long
			row.Error.Message = problem.Clip(row.Error.Message, most)
		}
		out = append(out, row)
	}
	return out, nil
}

// countedEnds is how many ended executions with a label are counted, unless Options.Reach is set.
const countedEnds = 10_000

func (c *call) count(narrow func(*store.Filter)) error {
	if len(c.query["label"]) == 0 {
		c.fault("label", "", "it is missing", "name what is to be counted by a label, as in ?label=run=17")
	}
	f, _, err := c.selected(narrow)
	if err != nil {
		return err
	}
	f.Reach = cmp.Or(c.Reach, countedEnds)
	all, more, err := c.Engine.Reader().Tally(c.ctx(), f)
	if err != nil {
		return fmt.Errorf("count executions: %w", err)
	}
	out := api.Counts{More: more, Statuses: map[api.Status]int{}, Verdicts: map[string]int{}}
	for _, t := range all {
		out.Total += t.Count
		out.Statuses[status(t.Stage)] += t.Count
		switch {
		case !t.Stage.Terminal():
			out.Unfinished += t.Count
		case t.Stage == flow.Completed:
			out.Verdicts[api.VerdictOK] += t.Count
		case t.Code != "":
			out.Verdicts[t.Code] += t.Count
		}
	}
	return c.json(http.StatusOK, out)
}
