package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// Languages caches the languages beside the built-in ones: from this server's configuration and from workers. A worker's language stays
// known, as its queue does: the worker may come back.
type Languages struct {
	store store.Store

	mu    sync.Mutex
	known map[string]bool
}

func NewLanguages(s store.Store, configured []string) *Languages {
	l := &Languages{store: s, known: map[string]bool{}}
	for _, name := range configured {
		l.known[name] = true
	}
	return l
}

// mostNamed is how many of the languages that profiles add are listed for users.
const mostNamed = 24

// Meant suggests a replacement for a language that no profile has. It also names languages that profiles of this server and of workers add;
// if the store cannot be read, those that this server knows.
func (l *Languages) Meant(ctx context.Context, name string) string {
	if fix := language.BuiltIn().Suggest(name); fix != "" {
		return fix
	}
	added, err := l.store.Names(ctx, store.LanguageNames, "", mostNamed)
	if err != nil {
		added = nil
	}
	l.mu.Lock()
	added = slices.AppendSeq(added, maps.Keys(l.known))
	l.mu.Unlock()
	slices.Sort(added)
	added = slices.Compact(added)
	if fix := problem.Nearest(name, append(language.BuiltIn().All(), added...)); fix != "" {
		return fix
	}
	return problem.OneOf(append(language.BuiltIn().Names(), added...)) + "; a profile in the configuration, of the server or of a worker, adds another"
}

func (l *Languages) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[name]
}

func (l *Languages) learn(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[name] = true
}

// Knows reports whether a profile, of this server or of a worker, can run code in a language.
func (l *Languages) Knows(ctx context.Context, name string) (bool, error) {
	if _, ok := language.BuiltIn().Resolve(name); ok || l.has(name) {
		return true, nil
	}
	if language.CheckName(name) != nil {
		return false, nil
	}
	known, err := l.store.HasName(ctx, store.LanguageNames, name)
	if err != nil {
		return false, fmt.Errorf("look up language %q: %w", name, err)
	}
	if !known {
		return false, nil
	}
	l.learn(name)
	return true, nil
}

// MostLanguages is the number of languages from which on workers cannot add more. Their names are kept for good, in the store and in the
// memory of each server.
const MostLanguages = 1000

// ErrTooManyLanguages refuses a worker with a new language.
var ErrTooManyLanguages = errors.New("too many languages")

// LearnOffered makes the languages that a worker offers known to every replica, for good, up to MostLanguages.
func (l *Languages) LearnOffered(ctx context.Context, kinds []string) error {
	var added []string
	for _, kind := range kinds {
		name, ok := flow.OfferedLanguage(kind)
		if !ok || language.CheckName(name) != nil || slices.Contains(added, name) {
			continue
		}
		if known, err := l.Knows(ctx, name); err != nil {
			return err
		} else if !known {
			added = append(added, name)
		}
	}
	if len(added) == 0 {
		return nil
	}
	all, err := l.store.Names(ctx, store.LanguageNames, "", MostLanguages)
	if err != nil {
		return fmt.Errorf("list languages: %w", err)
	}
	if sum := len(all) + len(added); sum > MostLanguages {
		return fmt.Errorf("%w: %q is new, and with the %d new ones of this worker there would be %d languages, of which workers bring up to %d: "+
			"give its profile the name of a language that exists", ErrTooManyLanguages, added[0], len(added), sum, MostLanguages)
	}
	if err := PersistNames(ctx, l.store, store.LanguageNames, slices.Sorted(slices.Values(added))...); err != nil {
		return fmt.Errorf("declare language %q: %w", added[0], err)
	}
	for _, name := range added {
		l.learn(name)
	}
	return nil
}
