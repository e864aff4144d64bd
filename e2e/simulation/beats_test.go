package simulation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/signature"
	"github.com/pawl-run/pawl/internal/store"
)

// beat is a schedule whose time zone changes its clocks while clients work.
type beat struct {
	zone        string
	change      time.Time
	gap, repeat string
	lines       []beatLine
}

// beatLine is a cron line that fires at seconds from, from+10, … of one minute of every day.
type beatLine struct{ from, minute, hour int }

func (l beatLine) String() string {
	return fmt.Sprintf("%q", fmt.Sprintf("%d-59/10 %d %d * * *", l.from, l.minute, l.hour))
}

var (
	spring = time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)  // 02:00 is 03:00 in Berlin
	autumn = time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC) // 03:00 is 02:00
	island = time.Date(2026, 4, 4, 15, 0, 0, 0, time.UTC)  // 02:00 is 01:30 on Lord Howe Island
)

// beats are the schedules of which a world draws one.
var beats = []beat{
	{"Europe/Berlin", spring, "next", "first", []beatLine{{0, 59, 1}, {0, 0, 2}, {5, 0, 3}}},
	{"Europe/Berlin", spring, "skip", "first", []beatLine{{0, 59, 1}, {0, 30, 2}, {5, 0, 3}}},
	{"Europe/Berlin", autumn, "next", "first", []beatLine{{0, 59, 2}, {0, 0, 2}}},
	{"Europe/Berlin", autumn, "next", "last", []beatLine{{0, 59, 2}, {0, 0, 2}}},
	{"Australia/Lord_Howe", island, "next", "both", []beatLine{{0, 59, 1}, {0, 30, 1}}},
}

// The times of a beat, relative to its change of the clocks: the database's clock begins at beatBegins, and the schedule fires between
// beatFrom and beatUntil.
const (
	beatBegins = 45 * time.Second // before
	beatFrom   = 25 * time.Second // before
	beatUntil  = 35 * time.Second // after
)

func (b *beat) from() time.Time  { return b.change.Add(-beatFrom) }
func (b *beat) until() time.Time { return b.change.Add(beatUntil) }

// beatName and pulse name the two schedules: beat goes by cron lines, pulse by an interval.
const (
	beatName = "beat"
	pulse    = "pulse"
)

// beating holds the documents of each beat.
var beating = sync.OnceValue(func() []*document {
	all := make([]*document, len(beats))
	for i := range beats {
		b := &beats[i]
		lines := make([]string, len(b.lines))
		for n, l := range b.lines {
			lines[n] = l.String()
		}
		bounds := fmt.Sprintf("from: %q\nuntil: %q", b.from().Format(time.RFC3339), b.until().Format(time.RFC3339))
		all[i] = parsed(fmt.Sprintf(`kind: schedule
name: %s
cron: [%s]
zone: %s
gap: %s
repeat: %s
%s
overlap: allow
catch_up: all
run: {action: noop, input: {do: ok, v: 4}}
---
kind: schedule
name: %s
every: 9s
%s
overlap: skip
run: {action: noop, input: {do: chat, v: 5}}
---
kind: rule
name: on-pulse
on: [schedule.%s]
run: {action: noop, input: {do: ok, v: 6}}
---
kind: webhook
name: provider
verify: {scheme: github, secret_env: PROVIDER}
trigger: hook.sim
replay: 1h
---
kind: rule
name: on-hook
on: [hook.sim]
run: {action: noop, input: {do: ok, v: "${{ signal.data.v }}"}}
`, beatName, strings.Join(lines, ", "), b.zone, b.gap, b.repeat, bounds, pulse, bounds, pulse))
	}
	return all
})

// moments returns the nominal times of a beat. It reads the zone's clock second by second and uses nothing of package schedule.
func (b *beat) moments() (all []time.Time) {
	zone, err := time.LoadLocation(b.zone)
	if err != nil {
		panic(err)
	}
	means := func(local time.Time) bool {
		return slices.ContainsFunc(b.lines, func(l beatLine) bool {
			return local.Hour() == l.hour && local.Minute() == l.minute && local.Second() >= l.from && (local.Second()-l.from)%10 == 0
		})
	}
	wall := func(t time.Time) time.Time { // the local time, written as UTC
		l := t.In(zone)
		return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC)
	}
	for t := b.from(); t.Before(b.until()); t = t.Add(time.Second) {
		comes := means(wall(t)) && b.which(t, wall)
		for missing := wall(t.Add(-time.Second)).Add(time.Second); b.gap == "next" && missing.Before(wall(t)); missing = missing.Add(time.Second) {
			comes = comes || means(missing)
		}
		if comes {
			all = append(all, t)
		}
	}
	return all
}

// which reports whether the schedule fires at t, where two moments may have the same local time.
func (b *beat) which(t time.Time, wall func(time.Time) time.Time) bool {
	twice := func(by time.Duration) bool { return wall(t.Add(by)).Equal(wall(t)) }
	switch {
	case b.repeat == "first":
		return !twice(-time.Hour) && !twice(-30*time.Minute)
	case b.repeat == "last":
		return !twice(time.Hour) && !twice(30*time.Minute)
	}
	return true
}

// pulses returns the nominal times of the interval schedule.
func (b *beat) pulses() (all []time.Time) {
	for t := b.from(); t.Before(b.until()); t = t.Add(time.Second) {
		if t.Unix()%9 == 0 {
			all = append(all, t)
		}
	}
	return all
}

// beats reports whether a world has schedules and hooks.
func (p *plan) beats() bool { return p.Beat > 0 }

func (p *plan) beat() *beat { return &beats[p.Beat-1] }

// ticked judges a tick as it is written: its nominal time is one of the schedule's, no other tick has that time, and the transaction also
// creates the execution that it starts.
func (c *commit) ticked(k *store.Tick) {
	of := c.ticks[k.Schedule]
	if of == nil {
		of = map[int64]store.Tick{}
		c.ticks[k.Schedule] = of
	}
	expected := c.w.plan.beat().moments()
	if k.Schedule == pulse {
		expected = c.w.plan.beat().pulses()
	}
	first := slices.IndexFunc(expected, k.Nominal.Equal)
	if first < 0 || first+k.Count > len(expected) || !expected[first+k.Count-1].Equal(k.Last) {
		c.w.violate(27, "schedule %s decides about %s to %s, %d times: the zone's clock says %v", k.Schedule, k.Nominal, k.Last, k.Count, expected)
		return
	}
	for _, at := range expected[first : first+k.Count] {
		if old, ok := of[at.Unix()]; ok {
			c.w.violate(26, "schedule %s decides twice about %s: %+v and %+v", k.Schedule, at, old, *k)
		}
		of[at.Unix()] = *k
	}
	if r := c.rows[k.Execution]; !k.Execution.IsZero() && (r == nil || !r.x.CreatedAt.Equal(k.At)) {
		c.w.violate(26, "tick %s of schedule %s names %s, which was not created with it", k.Nominal, k.Schedule, name(k.Execution))
	}
}

// beatsOver reports whether the engine has decided every time of the schedules.
func (w *world) beatsOver() bool {
	if !w.plan.beats() {
		return true
	}
	for _, name := range []string{beatName, pulse} {
		k, err := w.base.Schedule(w.ctx, name)
		if err != nil {
			w.violate(26, "read schedule %s: %v", name, err)
			return true
		}
		if !k.Next.IsZero() {
			return false
		}
	}
	return true
}

// judgeBeats compares the ticks with the zone's clock: each time after the schedule was applied is fired or missed.
func (w *world) judgeBeats() {
	if !w.plan.beats() {
		return
	}
	for name, expected := range map[string][]time.Time{beatName: w.plan.beat().moments(), pulse: w.plan.beat().pulses()} {
		k, err := w.view.Schedule(w.ctx, name)
		if err != nil {
			w.violate(26, "read schedule %s: %v", name, err)
			return
		}
		started := 0
		for _, at := range expected {
			tick, ok := w.shadow.ticks[name][at.Unix()]
			if !ok && at.After(k.CountedFrom) {
				w.violate(26, "schedule %s has decided nothing about %s; it was applied at %s", name, at, k.CountedFrom)
				return
			}
			if ok && !tick.Execution.IsZero() {
				started++
			}
		}
		if ran := w.shadow.startedBy(name); ran != started {
			w.violate(26, "schedule %s has %d ticks that have started something, and %d executions", name, started, ran)
		}
	}
	w.judgeHooks()
}

// startedBy counts the executions that a schedule started.
func (s *shadow) startedBy(schedule string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beaten[schedule]
}

// hooked is an accepted webhook request.
type hooked struct {
	v        int
	replayed bool
}

// deliver is a provider that sends one request, one to three times, and may send the same content again under another id.
func (l *load) deliver(ctx context.Context, key string, n int) {
	w := l.w
	body := fmt.Appendf(nil, `{"v":%d}`, n)
	d := signature.Delivery{ID: key, At: w.now(), Sum: sha256.Sum256(body)}
	times := 1 + int(3*w.noise("redelivered", key))
	for told := 0; told < times && ctx.Err() == nil; {
		out, err := l.hook(ctx, key, d, body)
		switch {
		case err == nil:
			told++
			l.hooked(d.ID, out, hooked{n, false})
		case !passes(err) && !errors.Is(err, errLost):
			w.violate(1, "a sound request to a webhook was not accepted: %v", err)
			return
		}
		time.Sleep(time.Duration(1 + w.noise("send again", key, told)*float64(3*time.Second)))
	}
	if w.noise("replayed", key) > 0.4 || ctx.Err() != nil {
		return
	}
	d.ID += "-again"
	if out, err := l.hook(ctx, key, d, body); err == nil {
		l.hooked(d.ID, out, hooked{n, true})
	}
}

// hook does the work of a server with a verified webhook request.
func (l *load) hook(ctx context.Context, key string, d signature.Delivery, body []byte) (out engine.Emitted, err error) {
	err = l.call(ctx, key, func(ctx context.Context, e *engine.Engine) error {
		hook, err := e.Webhook(ctx, "provider")
		if err != nil {
			return err
		}
		r, err := hook.Webhook.Request(nil, url.Values{}, body)
		if err == nil {
			out, err = e.Deliver(ctx, hook, d, r, nil)
		}
		return err
	})
	return out, err
}

// hooked notes that a provider got an answer to its request.
func (l *load) hooked(key string, out engine.Emitted, h hooked) {
	r := &l.reactions
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.signals[key]; ok && old != out.Signal {
		l.w.violate(25, "delivery %q gave %s and %s", key, old.Text(flow.SignalPrefix), out.Signal.Text(flow.SignalPrefix))
	}
	r.signals[key], r.hooks[out.Signal] = out.Signal, h
}

// judgeHooks compares the answers to providers with the stored rows: a rule runs once for each delivery, and not for a delivery that
// repeats another.
func (w *world) judgeHooks() {
	r := &w.load.reactions
	for _, id := range sortedIDs(r.hooks) {
		h := r.hooks[id]
		s, err := w.view.Signal(w.ctx, id)
		if err != nil || s.State != flow.SignalMatched || s.Replayed != h.replayed || string(s.Data) != fmt.Sprintf(`{"v":%d}`, h.v) {
			w.violate(53, "delivery %+v was acknowledged as %s and is read as %+v: %v", h, id.Text(flow.SignalPrefix), s, err)
			continue
		}
		all, err := w.view.Enforcements(w.ctx, store.EnforcementFilter{Signal: s.Number, Limit: 10})
		if err != nil {
			w.violate(39, "read the enforcements of %s: %v", id.Text(flow.SignalPrefix), err)
			continue
		}
		if want := map[bool]int{false: 1}[h.replayed]; len(all) != want || want == 1 && (all[0].State != flow.EnforcementRan || !w.shadow.hasBeen(all[0].Execution)) {
			w.violate(40, "delivery %+v has the enforcements %+v", h, all)
		}
	}
}
