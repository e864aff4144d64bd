package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/signature"
	"github.com/pawl-run/pawl/internal/store"
)

// webhookPrefix marks webhooks among the definitions.
const webhookPrefix = "webhook:"

// Webhook is the latest version of a webhook.
type Webhook struct {
	*definition.Definition
	Version   int
	CreatedAt time.Time
}

// webhooks caches recently used documents, and the names of all webhooks. Requests to /hooks need no token, so
// strangers choose the names in them: unknown names are not cached, and the store is read for names once per LatestFor,
// however many are asked for.
type webhooks struct {
	mu    sync.Mutex
	all   map[string]knownWebhook
	names map[string]bool
	asked time.Time // when names was the latest

	reading sync.Mutex // held while names is read
}

type knownWebhook struct {
	webhook *Webhook
	asked   time.Time
}

// Webhook returns the latest version of a webhook, or store.ErrNotFound. A version from another replica may come up to 250 ms late
// (Settle).
func (e *Engine) Webhook(ctx context.Context, name string) (*Webhook, error) {
	missing := fmt.Errorf("webhook %.100q: %w", name, store.ErrNotFound)
	if fault.BadText(name, 100) != "" {
		return nil, missing
	}
	e.webhooks.mu.Lock()
	known, there := e.webhooks.all[name]
	e.webhooks.mu.Unlock()
	if there && time.Since(known.asked) < catalog.LatestFor {
		return known.webhook, nil
	}
	if !there {
		is, err := e.isWebhook(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("look for webhook %q: %w", name, err)
		}
		if !is {
			return nil, missing
		}
	}
	asked := time.Now()
	row, err := e.opts.Store.Definition(ctx, webhookPrefix+name, 0)
	if errors.Is(err, store.ErrNotFound) {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("load webhook %q: %w", name, err)
	}
	w := known.webhook
	if w == nil || w.Version != row.Version {
		if w, err = webhookOf(&row); err != nil {
			return nil, err
		}
	}
	e.webhooks.keep(name, knownWebhook{w, asked})
	return w, nil
}

func (e *Engine) isWebhook(ctx context.Context, name string) (bool, error) {
	k := e.webhooks
	if is, fresh := k.named(name); fresh {
		return is, nil
	}
	k.reading.Lock()
	defer k.reading.Unlock()
	if is, fresh := k.named(name); fresh {
		return is, nil
	}
	asked, names := time.Now(), map[string]bool{}
	for last := ""; ; {
		page, err := e.webhookNames(ctx, last, webhooksAtOnce)
		if err != nil {
			return false, err
		}
		for _, of := range page {
			last = strings.TrimPrefix(of, webhookPrefix)
			names[last] = true
		}
		if len(page) < webhooksAtOnce {
			break
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.names, k.asked = names, asked
	return names[name], nil
}

// webhooksAtOnce is how many names of webhooks one read gets.
const webhooksAtOnce = 1000

// named reports whether a name is among the cached names, and whether these are fresh.
func (k *webhooks) named(name string) (is, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.names[name], time.Since(k.asked) < catalog.LatestFor
}

func (k *webhooks) keep(name string, w knownWebhook) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) >= catalog.Limit {
		clear(k.all)
	}
	k.all[name] = w
}

// forget makes this replica see its own definition at once.
func (k *webhooks) forget(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, name)
	k.asked = time.Time{}
}

func webhookOf(row *store.Definition) (*Webhook, error) {
	d, err := definition.Decode(row.Document)
	if err == nil && d.Webhook == nil {
		err = errors.New("it is not a webhook")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s@%d: %w", row.Name, row.Version, err)
	}
	return &Webhook{d, row.Version, row.CreatedAt}, nil
}

// webhookNames are the names among the definitions of up to n webhooks after a name, in order.
func (e *Engine) webhookNames(ctx context.Context, after string, n int) (names []string, err error) {
	rows, err := e.opts.Store.Definitions(ctx, webhookPrefix+after, n)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if !strings.HasPrefix(rows[i].Name, webhookPrefix) {
			break
		}
		names = append(names, rows[i].Name)
	}
	return names, nil
}

// Webhooks returns up to n webhooks after a name, in order.
func (e *Engine) Webhooks(ctx context.Context, after string, n int) ([]*Webhook, error) {
	names, err := e.webhookNames(ctx, after, n)
	if err != nil {
		return nil, fmt.Errorf("list webhooks: %w", err)
	}
	if len(names) == 0 {
		return nil, nil
	}
	rows, err := e.opts.Store.Latest(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("load webhooks: %w", err)
	}
	all := make([]*Webhook, len(rows))
	for i := range rows {
		if all[i], err = webhookOf(&rows[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Deliver emits the signal of a verified request to a webhook. A repeated request returns the first signal, because it has the same id; the
// same content under another id, if ids are not signed, is kept as a replay. chain are the rules that have led to the request.
func (e *Engine) Deliver(ctx context.Context, w *Webhook, d signature.Delivery, r *definition.WebhookRequest, chain []string) (Emitted, error) {
	s, err := w.Webhook.Signal(w.Name, r)
	if err != nil {
		return Emitted{}, fault.New("", "", err.Error(), "")
	}
	m := Emission{Trigger: s.Trigger, Data: r.Body, Key: s.Key, Subject: s.Subject, Source: webhookPrefix + w.Name, Headers: s.Headers, Rules: chain, Most: definition.MostMaxBody}
	if m.Key == "" && d.ID != "" {
		m.Key = definition.DeliveryKey(w.Name, d.ID)
	}
	if w.Webhook.Replay > 0 { // even if the id is signed: key and trigger may come from unsigned parts of the request
		m.Body, m.Replay = sha256.Sum256(append([]byte(w.Name+"\x00"), d.Sum[:]...)), w.Webhook.Replay
	}
	all, err := e.Emit(ctx, []Emission{m})
	if err != nil {
		return Emitted{}, err
	}
	return all[0], all[0].Err
}
