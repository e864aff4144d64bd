// Package catalog finds things of a store by name: definitions with their versions, aliases and retirements; queues and languages; and the
// settings that all servers share. It reads and caches. Versions never change; rows that other servers may change are read again after
// LatestFor. Definitions, aliases and retirements are written by decisions of the engine, names and settings in transactions of their own.
package catalog

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Catalog resolves names to definitions and caches decoded versions. Versions never change; the latest version is read
// again after a while.
type Catalog struct {
	store store.Store

	latest  recent[int]        // versions, by the definition's name
	aliases recent[*api.Alias] // by the name of the alias's row
	retired recent[Retirement]

	mu       sync.Mutex
	versions map[string]*definition.Definition // "name@version"
	queues   map[string]bool
}

// aliased is the targets of an alias, and when the store gave them.
type aliased struct {
	*api.Alias
	asked time.Time
}

// LatestFor is how long a replica may believe that a version is the latest after another replica defined a newer one. A caller that defines
// a version may wait that long (Settle), so that every replica runs it once the caller has its answer.
const LatestFor = 250 * time.Millisecond

// Limit bounds the decoded versions in memory; beyond it the cache is emptied.
const Limit = 5000

func New(s store.Store) *Catalog {
	return &Catalog{store: s, versions: map[string]*definition.Definition{}, queues: map[string]bool{flow.DefaultQueue: true}}
}

// recent caches, for latestFor, rows that other servers may change. Each change of such a row has a number, 1, 2, …
type recent[T any] struct {
	mu   sync.Mutex
	rows map[string]heard[T]
}

// heard is an answer of the store, the number of the change that it saw, and when it was asked.
type heard[T any] struct {
	value  T
	number int
	asked  time.Time
	again  bool // one caller asks again
}

// get returns an answer younger than latestFor. When the answer is almost that old, one caller asks again and the others use it: otherwise
// a hundred clients that submit one action would all ask at once.
func (r *recent[T]) get(name string) (value T, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.rows[name]
	age := time.Since(a.asked)
	if !ok || age >= LatestFor {
		return value, false
	}
	if age >= LatestFor*3/4 && !a.again {
		a.again = true
		r.rows[name] = a
		return value, false
	}
	return a.value, true
}

// keep caches an answer. Answers may come late: the one that saw the later change counts.
func (r *recent[T]) keep(name string, value T, number int, asked time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.rows[name]
	if ok && (number < known.number || number == known.number && asked.Before(known.asked)) {
		return
	}
	if r.rows == nil || len(r.rows) >= Limit {
		r.rows = map[string]heard[T]{}
	}
	r.rows[name] = heard[T]{value: value, number: number, asked: asked}
}

// Resolved is a version of a definition that has been looked up.
type Resolved struct {
	Definition *definition.Definition
	Version    int
	latest     bool      // it was asked for as the newest
	asked      time.Time // when; zero: the catalog has it already
	alias      aliased   // the alias that was asked for; asked is zero where the catalog has it already
}

// Source reads a version that is not in the catalog: the store, or a decision's transaction.
type Source interface {
	Definition(ctx context.Context, name string, version int) (store.Definition, error)
}

// Get loads a version of a definition; 0 is the latest, or the target of the name's alias. It returns the version as well.
func (c *Catalog) Get(ctx context.Context, name string, version int) (*definition.Definition, int, error) {
	return c.GetFor(ctx, name, version, "")
}

// Loader loads a version of a definition for the requests of children: GetFor or a replacement.
type Loader = func(ctx context.Context, name string, version int, by string) (*definition.Definition, int, error)

// GetFor is Get for a caller's text: if an alias has several versions, the same text gets the same version.
func (c *Catalog) GetFor(ctx context.Context, name string, version int, by string) (*definition.Definition, int, error) {
	r, err := c.Resolve(ctx, c.store, name, version, by)
	if err != nil {
		return nil, 0, err
	}
	c.Remember(r)
	return r.Definition, r.Version, nil
}

// Resolve is GetFor, but leaves it to the caller to cache the result.
func (c *Catalog) Resolve(ctx context.Context, from Source, name string, version int, by string) (r Resolved, err error) {
	if strings.ContainsRune(name, ':') { // other names among the definitions
		return r, fmt.Errorf("definition %q: %w", name, store.ErrNotFound)
	}
	name, alias, _ := strings.Cut(name, "@")
	if version == 0 {
		alias = cmp.Or(alias, definition.LatestAlias)
		if r.alias, err = c.alias(ctx, from, name, alias); err != nil {
			return r, fmt.Errorf("alias %s@%s: %w", name, alias, err)
		}
		if version = Choose(r.alias.Alias, by); version == 0 && alias != definition.LatestAlias {
			return r, fmt.Errorf("alias %s@%s: %w", name, alias, store.ErrNotFound)
		}
	}
	newest := version == 0
	if newest {
		version, _ = c.latest.get(name)
	}
	if d := c.Known(name, version); d != nil {
		r.Definition, r.Version = d, version
		return r, nil
	}
	r.latest, r.asked = newest, time.Now()
	row, err := from.Definition(ctx, name, version)
	if err != nil {
		return r, err
	}
	r.Version = row.Version
	if r.Definition = c.Known(name, r.Version); r.Definition == nil {
		if r.Definition, err = definition.Decode(row.Document); err != nil {
			return r, fmt.Errorf("decode definition %s@%d: %w", name, r.Version, err)
		}
	}
	if !newest {
		return r, nil
	}
	// The cached alias may be older than the version that was read: when a version is defined that the name does not get, both rows are
	// written at once.
	r.alias.asked = time.Now()
	if r.alias.Alias, err = ReadAlias(ctx, from, name, definition.LatestAlias); err != nil {
		return r, err
	}
	if version = Choose(r.alias.Alias, by); version == 0 || version == r.Version {
		return r, nil
	}
	of, err := c.Resolve(ctx, from, name, version, by)
	of.alias = r.alias
	return of, err
}

// alias looks up the targets of an alias. asked is zero if the catalog has them already.
func (c *Catalog) alias(ctx context.Context, from Source, name, alias string) (aliased, error) {
	if known, ok := c.aliases.get(aliasRow(name, alias)); ok {
		return aliased{Alias: known}, nil
	}
	asked := time.Now()
	a, err := ReadAlias(ctx, from, name, alias)
	return aliased{a, asked}, err
}

// Remember caches what was read from the store. The reads of a transaction are cached after its commit: it may have read a version that it
// defined itself.
func (c *Catalog) Remember(r Resolved) {
	if !r.alias.asked.IsZero() {
		c.NoteAlias(r.alias.Alias, r.alias.asked)
	}
	if r.asked.IsZero() {
		return
	}
	c.Put(r.Definition, r.Version)
	if r.latest {
		c.NoteLatest(r.Definition.Name, r.Version, r.asked)
	}
}

// Known returns a version that the catalog has, or nil. A version never changes, so it is what Resolve returns.
func (c *Catalog) Known(name string, version int) *definition.Definition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.versions[VersionKey(name, version)]
}

func VersionKey(name string, version int) string { return name + "@" + strconv.Itoa(version) }

func (c *Catalog) Put(d *definition.Definition, version int) { c.keep(VersionKey(d.Name, version), d) }

func (c *Catalog) keep(key string, d *definition.Definition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.versions) >= Limit {
		clear(c.versions)
	}
	c.versions[key] = d
}

// NoteAlias caches the targets of an alias as of the time when the store was asked.
func (c *Catalog) NoteAlias(a *api.Alias, asked time.Time) {
	c.aliases.keep(aliasRow(a.Name, a.Alias), a, a.Number, asked)
}

// NoteLatest caches that a version was the newest when the store was asked.
func (c *Catalog) NoteLatest(name string, version int, asked time.Time) {
	c.latest.keep(name, version, version, asked)
}

// Forget empties the caches.
func (c *Catalog) Forget() {
	c.latest.forget()
	c.aliases.forget()
	c.retired.forget()
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.versions)
}

func (r *recent[T]) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.rows)
}
