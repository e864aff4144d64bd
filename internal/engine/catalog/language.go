package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// Languages remembers what code may be written in beside the built-in languages: what this server's configuration adds,
// and what workers have brought. A language, once brought, stays known, as a queue does: its worker may come back.
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

// mostNamed is how many languages that profiles add are named to users.
const mostNamed = 24

// Meant says what to write for the name of a language that no profile has. It names the languages that profiles of this
// server and of workers add too; where the store cannot be read, those that this server knows.
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

// Knows reports whether some profile, of this server or of a worker, says how code in a language is run.
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

// LearnOffered makes the languages that a worker offers known to every replica, for good.
func (l *Languages) LearnOffered(ctx context.Context, kinds []string) error {
	for _, kind := range kinds {
		name, ok := flow.OfferedLanguage(kind)
		if !ok || language.CheckName(name) != nil || l.has(name) {
			continue
		}
		err := PersistNames(ctx, l.store, store.LanguageNames, name)
		if err != nil {
			return fmt.Errorf("declare language %q: %w", name, err)
		}
		l.learn(name)
	}
	return nil
}
