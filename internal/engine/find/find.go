// Package find finds executions by conditions (package query), within the reach of the store's searches.
package find

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/query"
	"github.com/pawl-run/pawl/internal/store"
)

// Bounds of one search by a condition, beside the reach of its filter.
const (
	// MembersReach is how many executions' inputs or outputs it reads, and membersBytes how much of them: about 50 ms.
	MembersReach, membersBytes = 2000, 16 << 20
	// searchableReach is how many definitions it reads for their searchable members.
	searchableReach = 2000
)

// Finder searches a store. Its catalog knows which members of inputs and outputs are searchable.
type Finder struct {
	Store   store.Reader
	Catalog *catalog.Catalog
}

// Query reads a condition on executions (package query). It refuses members of inputs and outputs that no definition declares searchable.
func (k *Finder) Query(ctx context.Context, text string, now time.Time) (*query.Query, error) {
	q, err := query.Parse(text, now)
	if err != nil || !q.Input() && !q.Output() {
		return q, err
	}
	declared, whole, err := k.searchable(ctx, q)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, members := range declared {
		all = append(all, members...)
	}
	slices.Sort(all)
	among := "no definition"
	switch names := q.Actions(); {
	case names != nil:
		among = "no definition of " + strings.Join(names[:min(len(names), catalog.NamesShown)], ", ")
	case !whole:
		among = fmt.Sprintf("none of the first %d definitions, beyond which only action = NAME says where to look,", searchableReach)
	}
	if err := q.CheckMembers(slices.Compact(all), among); err != nil {
		return nil, err
	}
	return q, nil
}

// searchable returns, by action, the members that the newest version of its definition declares searchable; whole is false if there are
// more definitions than one search reads.
func (k *Finder) searchable(ctx context.Context, q *query.Query) (declared map[string][]string, whole bool, err error) {
	declared = map[string][]string{}
	look := func(row *store.Definition) error {
		kind := definition.Kind(row.Kind)
		if kind != definition.KindWorkflow && kind != definition.KindAction || strings.ContainsRune(row.Name, ':') {
			return nil
		}
		def, _, err := k.Catalog.Get(ctx, row.Name, row.Version)
		if err != nil {
			return fmt.Errorf("load definition %q: %w", row.Name, err)
		}
		if len(def.Searchable) > 0 {
			declared[def.Name] = def.Searchable
		}
		return nil
	}
	if names := q.Actions(); names != nil {
		rows, err := k.Store.Latest(ctx, names)
		for i := range rows {
			err = cmp.Or(err, look(&rows[i]))
		}
		return declared, true, err
	}
	const page = 500
	for after, n := "", 0; n < searchableReach; n += page {
		rows, err := k.Store.Definitions(ctx, after, page)
		if err != nil {
			return nil, false, fmt.Errorf("list definitions: %w", err)
		}
		for i := range rows {
			after = rows[i].Name
			if err := look(&rows[i]); err != nil {
				return nil, false, err
			}
		}
		if len(rows) < page {
			return declared, true, nil
		}
	}
	return declared, false, nil
}

// Find finds executions that a filter selects and that meet a condition, as store.Reader.Search does: it reads no more
// executions than the filter allows, and returns where it stopped.
func (k *Finder) Find(ctx context.Context, f store.Filter, q *query.Query) (store.Found, error) {
	b := q.Bounds()
	if b.Never || !narrow(&f, &b) {
		return store.Found{}, nil
	}
	if b.Exact {
		found, err := k.Store.Search(ctx, f)
		return f.Recent(found), err
	}
	s := search{Finder: k, ctx: ctx, q: q, limit: f.Limit}
	if err := s.prepare(); err != nil {
		return store.Found{}, err
	}
	searched, at, err := store.Walk(ctx, k.Store, f, s.take)
	if !searched.IsZero() {
		s.found.Searched, s.found.At = searched, at
	}
	return f.Recent(s.found), err
}

// narrow adds bounds to a filter; false: nothing is within both.
func narrow(f *store.Filter, b *query.Bounds) bool {
	if b.Stages != nil {
		if len(f.Stages) > 0 {
			f.Stages = slices.DeleteFunc(slices.Clone(f.Stages), func(s flow.Stage) bool { return !slices.Contains(b.Stages, s) })
		} else {
			f.Stages = b.Stages
		}
		if len(f.Stages) == 0 {
			return false
		}
	}
	if b.Action != "" {
		if f.Action != "" && f.Action != b.Action {
			return false
		}
		f.Action = b.Action
	}
	labels := map[string]string{}
	for _, from := range []map[string]string{f.Labels, b.Labels} {
		for name, value := range from {
			if had, has := labels[name]; has && had != value {
				return false
			}
			labels[name] = value
		}
	}
	f.Labels = labels
	if b.Codes != nil {
		if len(f.Verdicts) > 0 {
			f.Verdicts = slices.DeleteFunc(slices.Clone(f.Verdicts), func(v string) bool { return !slices.Contains(b.Codes, v) })
		} else {
			f.Verdicts = b.Codes
		}
		if len(f.Verdicts) == 0 {
			return false
		}
	}
	if b.Since.After(f.Since) {
		f.Since = b.Since
	}
	if f.Until.IsZero() || !b.Until.IsZero() && b.Until.Before(f.Until) {
		f.Until = b.Until
	}
	return true
}

// search is a running search by a condition.
type search struct {
	*Finder
	ctx   context.Context
	q     *query.Query
	limit int

	workers  map[flow.ID]string
	declared map[string][]string
	found    store.Found
	size     store.Page
	last     *flow.Execution // that was decided about
	read     int             // executions whose inputs or outputs were read
	bytes    int             // of these
}

func (s *search) prepare() (err error) {
	if s.q.Input() || s.q.Output() {
		if s.declared, _, err = s.searchable(s.ctx, s.q); err != nil {
			return err
		}
	}
	if s.q.Worker() {
		sessions, err := s.Store.LiveSessions(s.ctx)
		if err != nil {
			return fmt.Errorf("list workers: %w", err)
		}
		s.workers = map[flow.ID]string{}
		for i := range sessions {
			s.workers[sessions[i].ID] = sessions[i].Name
		}
	}
	return nil
}

// take adds the executions of a page that meet the condition, and reports whether the search is over: enough were found, or too much was
// read.
func (s *search) take(page []*flow.Execution) (over bool, err error) {
	verdicts := make([]query.Verdict, len(page))
	var unknown []int
	record := func(x *flow.Execution) query.Record {
		members := s.declared[x.Action]
		return query.Record{Execution: x, Worker: s.workers[x.Owner], Searchable: members, Loaded: members == nil}
	}
	for i, x := range page {
		r := record(x)
		if verdicts[i] = s.q.Matches(&r); verdicts[i] == query.Unknown {
			unknown = append(unknown, i)
		}
	}
	for i, x := range page {
		if verdicts[i] == query.Unknown && len(unknown) > 0 && unknown[0] == i {
			n, err := s.decide(page, unknown, verdicts, record)
			if err != nil {
				return true, err
			}
			if unknown = unknown[n:]; n == 0 {
				s.found.Searched, s.found.At = s.last.ID, s.last.CreatedAt // last is set: the first execution's input is always read
				return true, nil
			}
		}
		if s.last = x; verdicts[i] != query.Yes {
			continue
		}
		s.found.Executions = append(s.found.Executions, x)
		if s.size.Execution(x); len(s.found.Executions) == s.limit || s.size.Full() {
			return true, nil
		}
	}
	return false, nil
}

// membersAtOnce is how many executions' inputs and outputs are read together.
const membersAtOnce = 100

// decide reads the inputs and outputs of the first unknown executions, up to the bounds, and decides about them. It
// returns how many: 0 if the bounds are reached.
func (s *search) decide(page []*flow.Execution, unknown []int, verdicts []query.Verdict, record func(*flow.Execution) query.Record) (n int, err error) {
	if s.read >= MembersReach || s.bytes >= membersBytes {
		return 0, nil
	}
	unknown = unknown[:min(len(unknown), membersAtOnce)]
	ids := make([]flow.ID, len(unknown))
	for i, at := range unknown {
		ids[i] = page[at].ID
	}
	inputs, outputs := make([]json.RawMessage, len(ids)), make([]json.RawMessage, len(ids))
	if s.q.Input() {
		if inputs, err = s.Store.Documents(s.ctx, store.InputOf, ids); err != nil {
			return 0, err
		}
	}
	if s.q.Output() {
		if outputs, err = s.Store.Documents(s.ctx, store.OutputOf, ids); err != nil {
			return 0, err
		}
	}
	for n < min(len(inputs), len(outputs)) {
		at := unknown[n]
		r := record(page[at])
		r.Loaded, r.Input, r.Output = true, bytes.TrimSpace(inputs[n]), bytes.TrimSpace(outputs[n])
		verdicts[at] = s.q.Matches(&r)
		s.read++
		s.bytes += len(inputs[n]) + len(outputs[n])
		n++
	}
	return n, nil
}
