package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Execution is an ended execution: its request, its progress, and its outcome.
type Execution struct {
	ID            flow.ID `json:"id"`
	Parent        flow.ID `json:"parent,omitzero"`
	ParentAttempt int     `json:"parent_attempt,omitempty"`
	Task          string  `json:"task,omitempty"`
	Index         int     `json:"index,omitempty"`
	Depth         int     `json:"depth,omitempty"`

	Action     string    `json:"action"`
	Version    int       `json:"version,omitempty"`
	Definition string    `json:"definition,omitempty"` // SHA-256 of the document of this version
	Alias      string    `json:"alias,omitempty"`
	Kind       flow.Kind `json:"kind"`
	Queue      string    `json:"queue"`
	Priority   int       `json:"priority,omitempty"`

	Key        string        `json:"key,omitempty"`
	KeyLimit   int           `json:"key_limit,omitempty"`
	WhenFull   flow.WhenFull `json:"when_full,omitempty"`
	FairBy     string        `json:"fair_by,omitempty"`
	FairWeight int           `json:"fair_weight,omitempty"`
	Rate       *Rate         `json:"rate,omitempty"`

	Timeout      time.Duration `json:"timeout_ns,omitempty"`
	QueueTimeout time.Duration `json:"queue_timeout_ns,omitempty"`
	TotalTimeout time.Duration `json:"total_timeout_ns,omitempty"`
	Retry        flow.Retry    `json:"retry,omitzero"` // with times in nanoseconds

	Input Value `json:"input,omitempty"`
	With  Value `json:"with,omitempty"`

	Labels         map[string]string `json:"labels,omitempty"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"`
	Traceparent    string            `json:"traceparent,omitempty"`
	CreatedAt      time.Time         `json:"created_at"`
	NotBefore      time.Time         `json:"not_before,omitzero"`

	Signal       string           `json:"signal,omitempty"`
	Rules        []string         `json:"rules,omitempty"`
	RerunOf      flow.ID          `json:"rerun_of,omitzero"`
	RerunFirst   flow.ID          `json:"rerun_first,omitzero"`
	Only         []string         `json:"only,omitempty"`
	LeftOut      []string         `json:"left_out,omitempty"`
	Outputs      []OutputOverride `json:"outputs,omitempty"`
	OverriddenBy string           `json:"given_by,omitempty"`
	Beneath      []Beneath        `json:"beneath,omitempty"`
	KeptWith     flow.ID          `json:"kept_with,omitzero"`
	KeptAs       string           `json:"kept_as,omitempty"`
	RetryOf      flow.ID          `json:"retry_of,omitzero"`
	ReusedOf     flow.ID          `json:"reused_of,omitzero"`
	Cache        *Cache           `json:"cache,omitempty"`
	NoCache      bool             `json:"no_cache,omitempty"`

	Status     flow.Stage      `json:"status"`
	Attempt    int             `json:"attempt"`
	Events     int64           `json:"events"` // of its history
	HandedBack int             `json:"handed_back,omitempty"`
	QueuedAt   time.Time       `json:"queued_at,omitzero"`
	ClaimedAt  time.Time       `json:"claimed_at,omitzero"`
	StartedAt  time.Time       `json:"started_at,omitzero"`
	FinishedAt time.Time       `json:"finished_at"`
	SlotAt     time.Time       `json:"slot_at,omitzero"`
	PausedFor  *flow.PausedFor `json:"stood,omitempty"`

	Output Value  `json:"output,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// Rate limits how often executions with a key begin.
type Rate struct {
	Key   string        `json:"key"`
	Limit int           `json:"limit"`
	Per   time.Duration `json:"per_ns"`
	Burst int           `json:"burst,omitempty"`
	Over  flow.Over     `json:"over,omitempty"`
}

// Cache is the hash under which the outcome was cached for tasks with the same work, and for how long. An import does not cache it.
type Cache struct {
	Hash string        `json:"sha256"`
	TTL  time.Duration `json:"ttl_ns"`
}

// OutputOverride is an output that overrides that of an item of a rerun.
type OutputOverride struct {
	Task   string `json:"task"`
	Index  int    `json:"index,omitempty"`
	Output Value  `json:"output"`
}

// Beneath is a sub-workflow of a rerun that ran again only in part.
type Beneath struct {
	Path         string           `json:"path"`
	Of           flow.ID          `json:"of"`
	First        flow.ID          `json:"first"`
	Version      int              `json:"version,omitempty"`
	Work         string           `json:"work_sha256"`
	Only         []string         `json:"only,omitempty"`
	LeftOut      []string         `json:"left_out,omitempty"`
	Outputs      []OutputOverride `json:"outputs,omitempty"`
	OverriddenBy string           `json:"given_by,omitempty"`
}

func beneathOf(all []flow.Beneath) (rows []Beneath) {
	for i := range all {
		b := &all[i]
		rows = append(rows, Beneath{b.Path, b.Of, b.First, b.Version, hex.EncodeToString(b.Work[:]), b.Only, b.LeftOut, overridesOf(b.Outputs),
			b.OverriddenBy})
	}
	return rows
}

func (b *Beneath) flow(of flow.ID) (flow.Beneath, error) {
	out := flow.Beneath{Path: b.Path, Of: b.Of, First: b.First, Version: b.Version, Only: b.Only, LeftOut: b.LeftOut,
		Outputs: outputsOf(b.Outputs), OverriddenBy: b.OverriddenBy}
	sum, err := hex.DecodeString(b.Work)
	if err != nil || len(sum) != len(out.Work) {
		return out, broken("%s: beneath: work_sha256 %q: a SHA-256 in hexadecimal digits is expected", of, b.Work)
	}
	copy(out.Work[:], sum)
	return out, nil
}

func overridesOf(all []flow.OutputOverride) (rows []OutputOverride) {
	for i := range all {
		rows = append(rows, OutputOverride{all[i].Task, all[i].Index, Value(all[i].Output)})
	}
	return rows
}

func outputsOf(rows []OutputOverride) (all []flow.OutputOverride) {
	for _, g := range rows {
		all = append(all, flow.OutputOverride{Task: g.Task, Index: g.Index, Output: json.RawMessage(g.Output)})
	}
	return all
}

// ExecutionOf returns an execution as a row; definition is the hash of its version's document.
func ExecutionOf(x *flow.Execution, definition string) *Execution {
	again := x.AsRerun()
	e := &Execution{
		ID: x.ID, Parent: x.Parent, ParentAttempt: x.ParentAttempt, Task: x.Task, Index: x.Index, Depth: int(x.Depth),
		Action: x.Action, Version: x.Version, Definition: definition, Alias: x.Alias, Kind: x.Kind, Queue: x.Queue, Priority: x.Priority,
		Key: x.Key, KeyLimit: x.KeyLimit, WhenFull: x.WhenFull, FairBy: x.Fair.By, FairWeight: x.Fair.Weight,
		Timeout: x.Timeout, QueueTimeout: x.QueueTimeout, TotalTimeout: x.TotalTimeout, Retry: x.Retry,
		Input: Value(x.Input), With: Value(x.With), Labels: x.Labels, IdempotencyKey: x.IdempotencyKey, Traceparent: x.Traceparent,
		CreatedAt: x.CreatedAt, NotBefore: x.NotBefore, Signal: x.Signal.Text(flow.SignalPrefix), Rules: x.Rules,
		RerunOf: x.RerunOf, RerunFirst: x.RerunFirst(), Only: again.Only, LeftOut: again.LeftOut, OverriddenBy: again.OverriddenBy,
		RetryOf: again.RetryOf, ReusedOf: x.ReusedOf, NoCache: x.NoCache,
		Status: x.Stage, Attempt: x.Attempt, Events: x.NextSeq - 1, HandedBack: x.HandedBack,
		QueuedAt: x.QueuedAt, ClaimedAt: x.ClaimedAt, StartedAt: x.StartedAt, FinishedAt: x.FinishedAt, SlotAt: x.SlotAt, PausedFor: x.PausedFor,
	}
	if r := x.Rate; r != (flow.Rate{}) {
		e.Rate = &Rate{r.Key, r.Limit, r.Per, r.Burst, r.Over}
	}
	if c := x.Cache; c != nil {
		e.Cache = &Cache{hex.EncodeToString(c.Hash[:]), c.TTL}
	}
	e.Outputs, e.Beneath, e.KeptWith, e.KeptAs = overridesOf(again.Outputs), beneathOf(again.Beneath), again.KeptWith, again.KeptAs
	if x.Outcome != nil {
		e.Output, e.Error = Value(x.Outcome.Output), ErrorOf(x.Outcome.Error)
	}
	return e
}

// rerun returns what the request of a rerun, or of an item of one, has in addition, or nil if nothing.
func (e *Execution) rerun() (*flow.Rerun, error) {
	again := &flow.Rerun{Only: e.Only, LeftOut: e.LeftOut, Outputs: outputsOf(e.Outputs), OverriddenBy: e.OverriddenBy, KeptWith: e.KeptWith,
		KeptAs: e.KeptAs, RetryOf: e.RetryOf}
	if e.RerunFirst != e.RerunOf {
		again.First = e.RerunFirst
	}
	for i := range e.Beneath {
		b, err := e.Beneath[i].flow(e.ID)
		if err != nil {
			return nil, err
		}
		again.Beneath = append(again.Beneath, b)
	}
	if again.First.IsZero() && len(again.Only) == 0 && again.OverriddenBy == "" && len(again.Beneath) == 0 && again.KeptWith.IsZero() &&
		again.RetryOf.IsZero() {
		return nil, nil
	}
	return again, nil
}

func (e *Execution) Flow() (*flow.Execution, error) {
	x := &flow.Execution{ID: e.ID, Outcome: &flow.Outcome{Output: json.RawMessage(e.Output), Error: e.Error.Flow()}}
	x.Request = flow.Request{
		Parent: e.Parent, ParentAttempt: e.ParentAttempt, Task: e.Task, Index: e.Index, Depth: int32(e.Depth),
		Action: e.Action, Version: e.Version, Alias: e.Alias, Kind: e.Kind, Queue: e.Queue, Priority: e.Priority,
		Key: e.Key, KeyLimit: e.KeyLimit, WhenFull: e.WhenFull, Fair: flow.Fair{By: e.FairBy, Weight: e.FairWeight},
		Settings: flow.Settings{Timeout: e.Timeout, QueueTimeout: e.QueueTimeout, TotalTimeout: e.TotalTimeout}, Retry: e.Retry,
		Input: json.RawMessage(e.Input), With: json.RawMessage(e.With), Labels: e.Labels, IdempotencyKey: e.IdempotencyKey, Traceparent: e.Traceparent,
		CreatedAt: instant(e.CreatedAt), NotBefore: instant(e.NotBefore), Rules: e.Rules,
		RerunOf: e.RerunOf, ReusedOf: e.ReusedOf, NoCache: e.NoCache,
	}
	if e.Signal != "" {
		var err error
		if x.Signal, err = flow.ParseID(flow.SignalPrefix, e.Signal); err != nil {
			return nil, broken("%s: signal: %v", e.ID, err)
		}
	}
	if r := e.Rate; r != nil {
		x.Rate = flow.Rate{Key: r.Key, Limit: r.Limit, Per: r.Per, Burst: r.Burst, Over: r.Over}
	}
	if c := e.Cache; c != nil {
		sum, err := hex.DecodeString(c.Hash)
		if err != nil || len(sum) != sha256.Size || c.TTL <= 0 {
			return nil, broken("%s: cache: sha256 %q, ttl_ns %d: a SHA-256 in hexadecimal digits and a span are expected", e.ID, c.Hash, c.TTL)
		}
		x.Cache = &flow.Cache{Hash: [sha256.Size]byte(sum), TTL: c.TTL}
	}
	if e.Depth < 0 || e.Depth > math.MaxInt32 {
		return nil, broken("%s: depth %d: a number of workflows above it is expected", e.ID, e.Depth)
	}
	var err error
	if x.Rerun, err = e.rerun(); err != nil {
		return nil, err
	}
	x.State = flow.State{Stage: e.Status, Attempt: e.Attempt, NextSeq: e.Events + 1, Place: flow.Finished, HandedBack: e.HandedBack,
		QueuedAt: instant(e.QueuedAt), ClaimedAt: instant(e.ClaimedAt), StartedAt: instant(e.StartedAt), FinishedAt: instant(e.FinishedAt), SlotAt: instant(e.SlotAt)}
	if s := e.PausedFor; s != nil {
		if s.Here < 0 || s.All < s.Here || x.FinishedAt.Sub(x.CreatedAt) < s.All {
			return nil, broken("%s: stood: all_ns %d, here_ns %d: spans within its time are expected", e.ID, s.All, s.Here)
		}
		x.PausedFor = s
	}
	return x, nil
}
