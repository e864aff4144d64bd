package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/store"
)

// languages remembers what code may be written in beside the built-in languages: what this server's configuration adds,
// and what workers have brought. A language, once brought, stays known, as a queue does: its worker may come back.
type languages struct {
	store store.Store

	mu    sync.Mutex
	known map[string]bool
}

func newLanguages(s store.Store, configured []string) *languages {
	l := &languages{store: s, known: map[string]bool{}}
	for _, name := range configured {
		l.known[name] = true
	}
	return l
}

func (l *languages) knows(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[name]
}

func (l *languages) learn(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[name] = true
}

// KnowsLanguage reports whether some profile, of this server or of a worker, says how code in a language is run.
func (e *Engine) KnowsLanguage(ctx context.Context, name string) (bool, error) {
	if _, ok := language.BuiltIn().Resolve(name); ok || e.languages.knows(name) {
		return true, nil
	}
	if language.CheckName(name) != nil {
		return false, nil
	}
	known, err := e.opts.Store.HasName(ctx, store.LanguageNames, name)
	if err != nil {
		return false, fmt.Errorf("look up language %q: %w", name, err)
	}
	if !known {
		return false, nil
	}
	e.languages.learn(name)
	return true, nil
}

// learnLanguages makes the languages that a worker offers known to every replica, for good.
func (e *Engine) learnLanguages(ctx context.Context, kinds []string) error {
	for _, kind := range kinds {
		name, ok := flow.OfferedLanguage(kind)
		if !ok || language.CheckName(name) != nil || e.languages.knows(name) {
			continue
		}
		err := persist(ctx, e.opts.Store, func(ctx context.Context, tx store.Tx) error {
			now, err := tx.Now(ctx)
			if err != nil {
				return err
			}
			_, err = tx.AddName(ctx, store.LanguageNames, name, now)
			return err
		})
		if err != nil {
			return fmt.Errorf("declare language %q: %w", name, err)
		}
		e.languages.learn(name)
	}
	return nil
}
