// Package engine is the server's shell: it loads the rows that a decision needs, lets the rules decide, commits, and only then notifies.
// Correctness depends only on the store; what the engine keeps in memory are hints.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/crashloop"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/inquiries"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/engine/waits"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Options configures an Engine. Store is required.
type Options struct {
	Store store.Store
	Blobs blob.Store // the store of large logs; nil: nothing writes them
	Log   *slog.Logger
	// Tracer records how long executions that were submitted in a trace waited in queues; nil records none.
	Tracer *telemetry.Tracer
	// Exclusive means that this process is the only one on the store: workers of an earlier process are gone, and their
	// executions are recovered at start without waiting for their leases.
	Exclusive bool
	// Retention is how long finished executions are kept; 0 keeps them for ever.
	Retention time.Duration
	// SignalRetention is how long signals are kept; 0 keeps them for ever.
	SignalRetention time.Duration
	// Queues are known in addition to "default" and those that workers have served: submissions to any other are refused.
	Queues []string
	// Languages are the languages that the configuration adds, by all their names; see KnowsLanguage.
	Languages []string
	// Validate checks the input of a built-in kind's handler before anything is stored; nil accepts everything.
	Validate func(kind flow.Kind, payload []byte) error
	// Needs names the runtime that a worker must have to run a payload, and the language that not every worker has (as its
	// offer); empty: any worker can run it. Nil: any worker can run everything.
	Needs func(kind flow.Kind, payload []byte) []string
	// Poll is how often this replica reads the store for changes of other replicas that it was not notified of; 0: every half second.
	Poll time.Duration
	// Committers is how many transactions this replica runs side by side; 0: one. A store with one writer gains nothing by more.
	Committers int
	// Rows and Bytes bound what one transaction does beyond its requests: the executions that it creates, admits and ends, and their payloads;
	// 0: 1,000 and 4 MB.
	Rows, Bytes int
	// Wide is the number of children from which on a workflow is followed by its changes instead of by counting its rows; 0: 64. All replicas
	// of a store must agree.
	Wide int
	// Lease is how long a worker session lasts without a renewal; 0: handoff.Lease. All replicas of a store must agree.
	Lease time.Duration
	// DrainBroker blocks until the reports that were in the broker when it was called have been recorded. Recovery calls it, and waits for a
	// lease at most, so that an attempt whose report is in the broker does not run again; nothing else depends on it. Nil: there is no broker.
	DrainBroker func(ctx context.Context) error
	// Unreachable reports whether a session's worker cannot be reached now, for example behind a broker that does not answer. Why shows that
	// for an execution of such a worker. Nil: all can be reached.
	Unreachable func(session flow.ID) bool
	// Crashes records evaluations, so that one that ends the process does not end it after each start; nil: nothing is recorded.
	Crashes *crashloop.Journal
	// Before is the session of the previous process's worker if other processes share the database; zero: there is none, or it is not known.
	Before flow.ID
	// Uptime is this process's own clock, which no change of the system time moves: the time since some moment. Jumps of the database's clock
	// are measured against it. Nil: the monotonic clock.
	Uptime func() time.Duration
	// Random returns numbers in [0, 1) for jitter; nil: the global generator. NewID makes ids; nil: UUIDv7.
	Random func() float64
	NewID  func() flow.ID
}

// Engine accepts, hands off, records, cancels and recovers executions. It is safe for concurrent use, by any number of
// goroutines; any number of engines may share one store that allows it.
type Engine struct {
	opts         Options
	catalog      *catalog.Catalog
	languages    *catalog.Languages
	uploads      *uploads.Uploads
	schedules    *schedules
	rules        *rules
	pauses       *pauses
	defining     oneAtATime // calls that write definitions or switches
	kinds        []txn.Kind // that it runs itself
	modules      []txn.Module
	inquiries    *inquiries.Inquiries
	awaited      definition.Waits
	waits        *waits.Waits
	waitLists    chan struct{} // capacity 1: wait lists of keys need to be checked
	found        chan found    // capacity 1: what watchPending found last
	webhooks     *webhooks
	routingKeys  *routingKeys
	handed       handed
	followed     *followed
	watch        *watchers
	sessions     *sessionCache
	clocks       clocks
	counters     counters
	lostSessions lostSessions
	health       health

	distributions distributions

	budget txn.Budget // the maximum of each transaction
	pace   pace       // which part of it a transaction may use now

	mu       sync.Mutex // guards batcher, claimers and closed
	batcher  batcher
	claimers claimers
	closed   error
	signal   chan struct{} // capacity 1: a committer should gather

	notified atomic.Bool  // notifications of other replicas arrive
	retained atomic.Int64 // when retention last finished a pass over all ended executions, in microseconds since 1970
	nextDue  moments      // the earliest Wake of a commit

	crashed        map[flow.ID]bool // sessions of the previous process if it died during an evaluation; Start sets it
	unrecovered    atomic.Int64     // lost sessions that the last round could not recover completely
	unreadable     int              // rows that the store could not read in the last round; sweepSessions' alone
	hintsClearedAt time.Time        // when watchPending last let claimers look into all queues; its alone
}

// ErrClosed means that the engine is stopping.
var ErrClosed = fault.ErrClosed

// ErrOverloaded means that more requests are pending than can be committed soon; try again later.
var ErrOverloaded = fault.ErrOverloaded

const (
	leastLease = time.Second
	mostLease  = 10 * time.Minute
)

// New prepares an engine. Nothing happens until Run.
func New(o Options) (*Engine, error) {
	if o.Store == nil {
		return nil, errors.New("new engine: no store given")
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Poll = cmp.Or(o.Poll, pollEvery)
	o.Committers = cmp.Or(o.Committers, 1)
	o.Lease = cmp.Or(o.Lease, handoff.Lease)
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Lease < leastLease || o.Lease > mostLease {
		return nil, fmt.Errorf("new engine: a lease of %s: give %s to %s", o.Lease, leastLease, mostLease)
	}
	if o.Uptime == nil {
		began := time.Now()
		o.Uptime = func() time.Duration { return time.Since(began) }
	}
	if o.NewID == nil {
		o.NewID = newID
	}
	e := &Engine{
		opts:          o,
		budget:        txn.Budget{Rows: cmp.Or(o.Rows, budgetRows), Bytes: cmp.Or(o.Bytes, budgetBytes), Work: budgetWork},
		crashed:       map[flow.ID]bool{},
		handed:        newHanded(),
		followed:      newFollowed(cmp.Or(o.Wide, wideFrom)),
		watch:         newWatchers(),
		distributions: newDistributions(),
		sessions:      newSessionCache(),
		signal:        make(chan struct{}, 1),
		waitLists:     make(chan struct{}, 1),
		found:         make(chan found, 1),
		claimers:      claimers{queues: newQueueHints()},
		nextDue:       newMoments(),
		catalog:       catalog.New(o.Store),
		languages:     catalog.NewLanguages(o.Store, o.Languages),
		routingKeys:   newRoutingKeys(),
		schedules:     newSchedules(),
		webhooks:      &webhooks{all: map[string]knownWebhook{}},
		rules:         newRules(),
		pauses:        newPauses(),
		defining:      newOneAtATime(),
	}
	e.uploads = &uploads.Uploads{Store: o.Store, Blobs: o.Blobs, NewID: o.NewID, Update: e.update}
	e.inquiries = &inquiries.Inquiries{Store: o.Store, Catalog: e.catalog, NewID: o.NewID, Random: o.Random, Decide: e.decide}
	e.waits = waits.New(waits.Options{
		Store: o.Store, Log: o.Log, Crashes: o.Crashes, Random: o.Random, Budget: e.budget, Decide: e.decide, Awaited: &e.awaited,
		Rules: e.rules.current.Load, FreshRules: e.rulesInForce, PutAside: e.leaveAside,
	})
	e.kinds, e.modules = e.newKinds(), e.newModules()
	for _, q := range o.Queues {
		if err := e.catalog.Expect(q); err != nil {
			return nil, fmt.Errorf("new engine: %w", err)
		}
	}
	e.clocks.most = o.Lease / 2
	return e, nil
}

func newID() flow.ID {
	id, err := uuid.NewV7()
	if err != nil {
		panic(fmt.Sprintf("no randomness: %v", err)) // crypto/rand never fails on the systems that Go supports
	}
	return flow.ID(id)
}

// Reader reads directly from the store.
func (e *Engine) Reader() interface {
	store.Reader
	store.Logs
} {
	return e.opts.Store
}

// Catalog is what the store knows by name.
func (e *Engine) Catalog() *catalog.Catalog { return e.catalog }

// Languages are the languages in which code may be written.
func (e *Engine) Languages() *catalog.Languages { return e.languages }

// Blobs is the store of large logs and files; nil: there is none.
func (e *Engine) Blobs() blob.Store { return e.opts.Blobs }
