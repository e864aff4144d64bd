package definition

import (
	"time"

	"github.com/pawl-run/pawl/internal/problem"
)

// Window buffers signals with the same key: `debounce` until no signal has come for a while, `batch` for a time after the first one. It
// closes early if it is full.
type Window struct {
	Field  string // field of the document: "debounce" or "batch"
	Key    *Template
	Quiet  time.Duration // after the last signal; 0: later signals do not delay the end
	AtMost time.Duration // after the first signal
	Size   int           // number of signals at which it is full
	Bytes  int           // bytes of data at which it is full
	Keep   Keep
}

// Keep selects the signals of a window for its execution.
type Keep string

const (
	KeepLast  Keep = "last"
	KeepFirst Keep = "first"
	KeepAll   Keep = "all"
)

// All reports whether the window's execution gets all of its signals. Expressions then see them as `signals`. It is false for a nil window.
func (w *Window) All() bool { return w != nil && w.Keep == KeepAll }

const (
	maxBuffered      = 24 * time.Hour // for which a signal is buffered
	defaultBatch     = 100            // signals
	mostBatch        = 1000           // signals
	defaultBatchData = 1 << 20        // bytes
	mostBatchData    = 4 << 20        // bytes, so that a page of the store has all of them, and they fit into an input
)

// window reads how a rule buffers signals.
func (b *builder) window(v *value) *Window {
	debounce, batch := v.get("debounce"), v.get("batch")
	if debounce != nil && batch != nil {
		b.fail(batch, "batch", "remove one of them: debounce with keep: all gathers signals, too", "a rule has debounce or batch, and not both")
		return nil
	}
	if batch != nil {
		return b.batch(batch)
	}
	return b.debounce(debounce)
}

func (b *builder) debounce(v *value) *Window {
	if v == nil || !b.object(v, "debounce", []string{"key", "quiet", "at_most", "keep"}) {
		return nil
	}
	w := &Window{Field: "debounce", Size: mostBatch, Bytes: defaultBatchData, Keep: KeepLast}
	w.Key = b.sharedKey(v, w.Field, `"${{ signal.subject }}"`, scopeSignal, noTask)
	w.Quiet = b.bufferTime(v, w.Field, "quiet", "30s")
	w.AtMost = min(10*w.Quiet, maxBuffered) // the default, which docs/automation.md describes; the factor 10 is chosen
	if v.get("at_most") != nil {
		w.AtMost = b.bufferTime(v, w.Field, "at_most", "5m")
	}
	if w.AtMost < w.Quiet {
		b.fail(v.get("at_most"), "debounce.at_most", "make it at least quiet", "%s is less than %s", w.AtMost, w.Quiet)
	}
	if keep := b.oneOf(v.get("keep"), "debounce.keep", string(KeepLast), string(KeepFirst), string(KeepAll)); keep != "" {
		w.Keep = Keep(keep)
	}
	return w
}

func (b *builder) batch(v *value) *Window {
	if !b.object(v, "batch", []string{"key", "size", "wait", "bytes"}) {
		return nil
	}
	w := &Window{Field: "batch", Size: defaultBatch, Bytes: defaultBatchData, Keep: KeepAll}
	w.Key = b.sharedKey(v, w.Field, `"${{ signal.subject }}"`, scopeSignal, noTask)
	w.AtMost = b.bufferTime(v, w.Field, "wait", "5s")
	if n, ok := b.whole(v.get("size"), "batch.size", 1, mostBatch); ok {
		w.Size = n
	}
	if n := v.get("bytes"); n != nil {
		w.Bytes = int(b.sizeWithin(n, "batch.bytes", "4MiB", mostBatchData, defaultBatchData))
	}
	return w
}

// bufferTime reads how long signals are buffered.
func (b *builder) bufferTime(v *value, path, field, example string) time.Duration {
	at := v.get(field)
	if at == nil {
		b.fail(v, path, "add "+field+": "+example, "%s is missing", field)
		return maxBuffered
	}
	d := b.duration(at, problem.Join(path, field), false)
	if d > maxBuffered {
		b.fail(at, problem.Join(path, field), "write at most 24h", "signals would be held for too long")
	}
	return d
}
