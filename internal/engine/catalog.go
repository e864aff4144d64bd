package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/store"
)

// catalog resolves names to definitions and remembers what it has decoded. Versions never change, so they are kept;
// which version is the latest is asked again after a while.
type catalog struct {
	store store.Store

	latest  recent[int]    // versions, by the definition's name
	aliases recent[*Alias] // by the name of the alias's row
	retired recent[Retirement]

	mu       sync.Mutex
	versions map[string]*definition.Definition // "name@version"
	queues   map[string]bool
}

// aliased is where an alias stands, and when the store said so.
type aliased struct {
	*Alias
	asked time.Time
}

// latestFor is how long a replica may believe that a version is the latest after another replica defined a newer one.
// A caller that defines one may wait that long (Settle), so that every replica runs it once the answer is there.
const latestFor = 250 * time.Millisecond

// catalogLimit bounds the decoded versions in memory; beyond it the memory starts anew.
const catalogLimit = 5000

func newCatalog(s store.Store) *catalog {
	return &catalog{store: s, versions: map[string]*definition.Definition{}, queues: map[string]bool{DefaultQueue: true}}
}

// recent remembers for latestFor what rows said that other servers may change. Each change of such a row has a number, 1, 2, …
type recent[T any] struct {
	mu   sync.Mutex
	rows map[string]heard[T]
}

// heard is what the store said, the number of the change that it saw, and when it was asked.
type heard[T any] struct {
	value  T
	number int
	asked  time.Time
}

// get returns what was heard within latestFor.
func (r *recent[T]) get(name string) (value T, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.rows[name]
	if !ok || time.Since(a.asked) >= latestFor {
		return value, false
	}
	return a.value, true
}

// keep remembers an answer. Answers may come late: the one that saw the later change counts.
func (r *recent[T]) keep(name string, value T, number int, asked time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.rows[name]
	if ok && (number < known.number || number == known.number && asked.Before(known.asked)) {
		return
	}
	if r.rows == nil || len(r.rows) >= catalogLimit {
		r.rows = map[string]heard[T]{}
	}
	r.rows[name] = heard[T]{value, number, asked}
}

// resolved is a version of a definition that has been looked up.
type resolved struct {
	definition *definition.Definition
	version    int
	latest     bool      // it was asked for as the newest
	asked      time.Time // when; zero: the catalog has it already
	alias      aliased   // by which it was asked for; asked is zero where the catalog has it already
}

// definitions is where a version is read that the catalog does not have: the store, or a decision's transaction.
type definitions interface {
	Definition(ctx context.Context, name string, version int) (store.Definition, error)
}

// get loads a version of a definition; 0 is the latest, or what the name's alias stands for. It returns the version as well.
func (c *catalog) get(ctx context.Context, name string, version int) (*definition.Definition, int, error) {
	return c.getFor(ctx, name, version, "")
}

// getFor is get for the caller of a text: where an alias stands for several versions, the same text gets the same one.
func (c *catalog) getFor(ctx context.Context, name string, version int, by string) (*definition.Definition, int, error) {
	r, err := c.resolve(ctx, c.store, name, version, by)
	if err != nil {
		return nil, 0, err
	}
	c.remember(r)
	return r.definition, r.version, nil
}

// resolve is getFor, and leaves it to the caller to remember what was read.
func (c *catalog) resolve(ctx context.Context, from definitions, name string, version int, by string) (r resolved, err error) {
	if strings.ContainsRune(name, ':') { // what else lies among the definitions
		return r, fmt.Errorf("definition %q: %w", name, store.ErrNotFound)
	}
	name, alias, _ := strings.Cut(name, "@")
	if version == 0 {
		alias = cmp.Or(alias, LatestAlias)
		if r.alias, err = c.alias(ctx, from, name, alias); err != nil {
			return r, fmt.Errorf("alias %s@%s: %w", name, alias, err)
		}
		if version = r.alias.choose(by); version == 0 && alias != LatestAlias {
			return r, fmt.Errorf("alias %s@%s: %w", name, alias, store.ErrNotFound)
		}
	}
	newest := version == 0
	if newest {
		version, _ = c.latest.get(name)
	}
	c.mu.Lock()
	d := c.versions[versionKey(name, version)]
	c.mu.Unlock()
	if d != nil {
		r.definition, r.version = d, version
		return r, nil
	}
	r.latest, r.asked = newest, time.Now()
	row, err := from.Definition(ctx, name, version)
	if err != nil {
		return r, err
	}
	if r.definition, err = definition.Decode(row.Document); err != nil {
		return r, fmt.Errorf("decode definition %s@%d: %w", name, row.Version, err)
	}
	r.version = row.Version
	if !newest {
		return r, nil
	}
	// What was known of the alias may be older than the version that was read: who defines a version that the name does not stand for
	// writes both at once.
	r.alias.asked = time.Now()
	if r.alias.Alias, err = readAlias(ctx, from, name, LatestAlias); err != nil {
		return r, err
	}
	if version = r.alias.choose(by); version == 0 || version == r.version {
		return r, nil
	}
	of, err := c.resolve(ctx, from, name, version, by)
	of.alias = r.alias
	return of, err
}

// alias looks up where an alias stands. asked is zero where the catalog has it already.
func (c *catalog) alias(ctx context.Context, from definitions, name, alias string) (aliased, error) {
	if known, ok := c.aliases.get(aliasRow(name, alias)); ok {
		return aliased{Alias: known}, nil
	}
	asked := time.Now()
	a, err := readAlias(ctx, from, name, alias)
	return aliased{a, asked}, err
}

// remember keeps what was read from the store. What a transaction has read is remembered once it is committed: it may have
// read a version that it defined itself.
func (c *catalog) remember(r resolved) {
	if !r.alias.asked.IsZero() {
		c.isAlias(r.alias.Alias, r.alias.asked)
	}
	if r.asked.IsZero() {
		return
	}
	c.put(r.definition, r.version)
	if r.latest {
		c.isLatest(r.definition.Name, r.version, r.asked)
	}
}

// definition is catalog.getFor within a transaction.
func (t *transaction) definition(ctx context.Context, name string, version int, by string) (*definition.Definition, int, error) {
	key := versionKey(name, version) + " " + by
	r, have := t.loaded.definitions[key]
	if !have {
		var err error
		if r, err = t.e.catalog.resolve(ctx, t.tx, name, version, by); err != nil {
			return nil, 0, err
		}
		if t.loaded.definitions == nil {
			t.loaded.definitions = map[string]resolved{}
		}
		t.loaded.definitions[key] = r
	}
	return r.definition, r.version, nil
}

func versionKey(name string, version int) string { return fmt.Sprintf("%s@%d", name, version) }

func (c *catalog) put(d *definition.Definition, version int) { c.keep(versionKey(d.Name, version), d) }

func (c *catalog) keep(key string, d *definition.Definition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.versions) >= catalogLimit {
		clear(c.versions)
	}
	c.versions[key] = d
}

// isAlias remembers where an alias stood when the store was asked.
func (c *catalog) isAlias(a *Alias, asked time.Time) {
	c.aliases.keep(aliasRow(a.Name, a.Alias), a, a.Number, asked)
}

// isLatest remembers that a version was the newest when the store was asked.
func (c *catalog) isLatest(name string, version int, asked time.Time) {
	c.latest.keep(name, version, version, asked)
}

// DefaultQueue is where executions go that name no queue.
const DefaultQueue = "default"

var queueName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?$`)

// expect makes a queue known to this replica.
func (c *catalog) expect(name string) error {
	if !queueName.MatchString(name) {
		return fmt.Errorf("queue %.100q: a queue's name is 1 to 100 of a-z, 0-9, '.', '_' and '-', beginning and ending with a letter or digit", name)
	}
	c.mu.Lock()
	c.queues[name] = true
	c.mu.Unlock()
	return nil
}

// persist runs a transaction beside the committer's, and again when another replica was faster: replicas that start on an
// empty store declare the same things at the same time.
func persist(ctx context.Context, s store.Store, decide func(context.Context, store.Tx) error) error {
	for n := 1; ; n++ {
		err := s.Update(ctx, decide)
		if !errors.Is(err, store.ErrConflict) || n == maxConflicts {
			return err
		}
	}
}

// persistQueue makes a queue known to every replica, for good.
func (c *catalog) persistQueue(ctx context.Context, name string) error {
	err := persist(ctx, c.store, func(ctx context.Context, tx store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		_, err = tx.AddName(ctx, store.QueueNames, name, now)
		return err
	})
	if err != nil {
		return fmt.Errorf("declare queue %q: %w", name, err)
	}
	return nil
}

// declareQueue does both, once.
func (c *catalog) declareQueue(ctx context.Context, name string) error {
	c.mu.Lock()
	known := c.queues[name]
	c.mu.Unlock()
	if known {
		return nil
	}
	if err := c.expect(name); err != nil {
		return err
	}
	return c.persistQueue(ctx, name)
}

// workerKeyName is the setting that holds the key of WorkerKey.
const workerKeyName = "worker_key"

// WorkerKey is a random key that all replicas on the store share, for the tokens of workers.
func (e *Engine) WorkerKey(ctx context.Context) ([]byte, error) {
	return e.sharedKey(ctx, workerKeyName)
}

// sharedKey is a random key that all replicas on the store share under a name, made by the one that asks first.
func (e *Engine) sharedKey(ctx context.Context, name string) ([]byte, error) {
	doc, err := e.opts.Store.Setting(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		fresh := make([]byte, 32)
		rand.Read(fresh) // never fails on the systems that Go supports
		if doc, err = json.Marshal(fresh); err == nil {
			err = persist(ctx, e.opts.Store, func(ctx context.Context, tx store.Tx) error { return tx.KeepSetting(ctx, name, doc) })
		}
		if err == nil {
			doc, err = e.opts.Store.Setting(ctx, name)
		}
	}
	var key []byte
	if err == nil {
		err = json.Unmarshal(doc, &key)
	}
	if err != nil {
		return nil, fmt.Errorf("load the key %s: %w", name, err)
	}
	return key, nil
}

// knowsQueue reports whether a queue has ever been declared or served.
func (c *catalog) knowsQueue(ctx context.Context, name string) (bool, error) {
	c.mu.Lock()
	known := c.queues[name]
	c.mu.Unlock()
	if known {
		return true, nil
	}
	if known, err := c.store.HasName(ctx, store.QueueNames, name); err != nil || !known {
		return false, err
	}
	c.mu.Lock()
	c.queues[name] = true
	c.mu.Unlock()
	return true, nil
}
