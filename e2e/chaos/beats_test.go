package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/signature"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

var (
	beatsFlag = flag.Int("chaos.beats", 0, "how many schedules fire each second, up to 500; 0: 10, with -chaos.long 50")
	hooksFlag = flag.Int("chaos.hooks", 0, "how many requests to a webhook come each second, each sent one to three times; 0: 10, with -chaos.long 50")
)

// rates returns how many ticks and hooks there are each second.
func rates() (beats, hooks int) {
	beats, hooks = 10, 10
	if *long {
		beats, hooks = 50, 50
	}
	if *beatsFlag > 0 {
		beats = *beatsFlag
	}
	if *hooksFlag > 0 {
		hooks = *hooksFlag
	}
	return beats, hooks
}

const (
	hookSecret = "the secret of the chaos" // of the webhook
	hookVar    = "CHAOS_HOOK"
	hookRuns   = 5 // a rule runs on one hook of so many
	hookBatch  = 7 // another rule gathers so many hooks, or those of half a second
)

// hookSettings lets servers read the webhook's secret.
var hookSettings = []string{hookVar + "=" + hookSecret, "PAWL_WEBHOOK_SECRETS=" + hookVar + "@hooks"}

// beats are schedules that fire each second, and a webhook with the requests that servers have acknowledged.
type beats struct {
	names []string
	sites []string // addresses of the servers

	mu       sync.Mutex
	hooks    map[string]string // signal, by delivery
	sent     map[string]int    // the number in a delivery's body
	requests int               // acknowledged, including repeated ones
	began    time.Time         // of the schedules
	rested   time.Time         // when they were paused
	hooked   time.Duration     // for how long requests were sent
}

// beat defines schedules, and a webhook with a rule.
func (l *load) beat(n int, sites []string) {
	l.beats = &beats{sites: sites, began: time.Now(), hooks: map[string]string{}, sent: map[string]int{}}
	docs := []string{fmt.Sprintf(`kind: webhook
name: chaos
verify: {scheme: github, secret_env: %s}
trigger: chaos.hook
`, hookVar), fmt.Sprintf(`kind: rule
name: on-hook
on: [chaos.hook]
if: signal.data.n %% %d == 0
run: {action: noop, input: {n: "${{ signal.data.n }}"}}
`, hookRuns), fmt.Sprintf(`kind: rule
name: gather
on: [chaos.hook]
batch: {key: all, size: %d, wait: 500ms}
run: {action: noop, input: {all: "${{ signals.map(s, s.data.n) }}"}}
`, hookBatch)}
	for i := range n {
		name := fmt.Sprintf("beat-%03d", i)
		l.beats.names = append(l.beats.names, name)
		docs = append(docs, fmt.Sprintf("kind: schedule\nname: %s\nevery: 1s\noverlap: allow\ncatch_up: {policy: all, at_most: 100, within: 1h}\nrun: {action: noop, input: {at: \"${{ tick.nominal }}\"}}\n", name))
	}
	l.insist("define schedules", func(ctx context.Context) error {
		_, err := l.any.Define(ctx, []byte(strings.Join(docs, "---\n")), "beats.yaml")
		return err
	})
}

var errHeld = errors.New("a window holds signals")

// rest pauses the schedules and waits for the end of the last window, so that everything can end.
func (l *load) rest() {
	l.beats.rested = time.Now()
	for _, name := range l.beats.names {
		l.insist("pause "+name, func(ctx context.Context) error {
			_, err := l.any.PauseSchedule(ctx, name, "the test ends")
			return err
		})
	}
	l.insist("see all windows closed", func(ctx context.Context) error {
		held, err := l.any.Enforcements(ctx, client.EnforcementFilter{Rule: "gather", State: "held", Limit: 1})
		if err == nil && len(held.Enforcements) > 0 {
			err = errHeld
		}
		return err
	})
}

// deliver sends one request to the webhook until it is accepted, and then again at any server, as providers do.
func (l *load) deliver(i int) {
	b := l.beats
	id := fmt.Sprintf("delivery-%06d", i)
	body := fmt.Appendf(nil, `{"n":%d}`, i)
	for again := range 1 + i%3 {
		var out api.Received
		ok := l.insist("deliver "+id, func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.sites[(i+again)%len(b.sites)]+"/hooks/chaos", bytes.NewReader(body))
			if err != nil {
				return err
			}
			fields, err := signature.Sign(&signature.Hook{Scheme: signature.GitHub}, hookSecret, id, time.Now(), body)
			if err != nil {
				return err
			}
			for _, f := range fields {
				r.Header.Set(f.Name, f.Value)
			}
			res, err := l.http.Do(r)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if err != nil {
				return err
			}
			if res.StatusCode/100 != 2 {
				p := &api.Problem{Status: res.StatusCode, Title: string(text)}
				_ = json.Unmarshal(text, p)
				return p
			}
			return json.Unmarshal(text, &out)
		})
		if !ok {
			return
		}
		b.mu.Lock()
		if old := b.hooks[id]; old != "" && old != out.Signal {
			l.complain("invariant 53: %s gave %s and %s", id, old, out.Signal)
		}
		b.hooks[id], b.sent[id] = out.Signal, i
		b.requests++
		b.mu.Unlock()
	}
}

// hook sends each requests a second to the webhook until stop is closed, without waiting for earlier answers, as providers do. With 512
// requests under way it waits for one of their answers.
func (l *load) hook(stop <-chan struct{}, each int) {
	const most = 512
	var all sync.WaitGroup
	room := make(chan struct{}, most)
	began := time.Now()
	defer func() {
		all.Wait()
		l.beats.hooked = time.Since(began)
	}()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(each)))):
		}
		select {
		case <-stop:
			return
		case room <- struct{}{}:
		}
		all.Go(func() {
			l.deliver(i)
			<-room
		})
	}
}

// beats: each time of a schedule is fired once or missed, as far as retention has left its ticks; each acknowledged request to the webhook
// is one signal, and the rule has acted on it.
func (v *verdicts) beats(s *postgres.Store, l *load, archive *archive) {
	if l.beats == nil {
		return
	}
	decided := 0
	for _, name := range l.beats.names {
		decided += v.beat(s, name, l.beats.began, archive)
	}
	ran, gathered, signals := 0, 0, map[string]string{}
	for id, text := range l.beats.hooks {
		v.saw(53)
		if other := signals[text]; other != "" {
			v.wrong(53, "%s and %s are one signal, %s", id, other, text)
		}
		signals[text] = id
		sig, err := flow.ParseID(flow.SignalPrefix, text)
		if err != nil {
			v.t.Fatal(err)
		}
		x, err := s.Signal(v.t.Context(), sig)
		if err != nil || x.State != flow.SignalMatched || string(x.Data) != fmt.Sprintf(`{"n":%d}`, l.beats.sent[id]) {
			v.wrong(41, "%s was acknowledged as %s and is read as %+v: %v", id, text, x, err)
			continue
		}
		all, err := s.Enforcements(v.t.Context(), store.EnforcementFilter{Signal: x.Number, Limit: 10})
		if err != nil {
			v.t.Fatal(err)
		}
		v.saw(40)
		states := map[string]flow.EnforcementState{}
		for _, e := range all {
			states[e.Rule] = e.State
		}
		holds := l.beats.sent[id]%hookRuns == 0
		if (states["on-hook"] == flow.EnforcementRan) != holds || len(states) != map[bool]int{false: 1, true: 2}[holds] {
			v.wrong(40, "%s has the enforcements %+v", id, all)
		}
		v.saw(49)
		if of := states["gather"]; of != flow.EnforcementRan && of != flow.EnforcementFolded {
			v.wrong(49, "%s is in no batch: %+v", id, all)
		} else if gathered++; holds {
			ran++
		}
	}
	b := l.beats
	took := b.rested.Sub(b.began)
	pace, hooked := float64(decided)/took.Seconds(), float64(len(b.hooks))/b.hooked.Seconds()
	v.t.Logf("%d times of %d schedules in %s, %.0f a second; %d requests to a webhook in %s, %.0f a second, of which %.0f were new; a rule ran on %d, another gathered %d",
		decided, len(b.names), took.Round(time.Second), pace, b.requests, b.hooked.Round(time.Second), float64(b.requests)/b.hooked.Seconds(), hooked, ran, gathered)
	for what, n := range map[string]int{"no time of a schedule was decided about": decided, "a rule ran on no request to the webhook": ran, "no request to the webhook came into a batch": gathered} {
		if n == 0 {
			v.t.Errorf("%s: the test has tested nothing of that", what)
		}
	}
	if beats, hooks := rates(); *long && (pace < 0.9*float64(beats) || hooked < 0.9*float64(hooks)) {
		v.t.Errorf("%.0f times of schedules and %.0f hooks a second: the test was to drive %d and %d", pace, hooked, beats, hooks)
	}
}

// beat checks the ticks of a schedule that retention has left, and returns about how many nominal times have been decided in all.
func (v *verdicts) beat(s *postgres.Store, name string, since time.Time, archive *archive) int {
	k, err := s.Schedule(v.t.Context(), name)
	if err != nil {
		v.t.Fatal(err)
	}
	ticks, err := s.Ticks(v.t.Context(), name, time.Time{}, 100_000)
	if err != nil {
		v.t.Fatal(err)
	}
	slices.Reverse(ticks) // the oldest first
	for i, tick := range ticks {
		v.saw(26)
		if i > 0 && !tick.Nominal.Equal(ticks[i-1].Last.Add(time.Second)) {
			v.wrong(26, "schedule %s decided about %s, and then about %s", name, ticks[i-1].Last, tick.Nominal)
		}
		if tick.Execution.IsZero() {
			continue
		}
		if ran := tick.Execution.String(); archive.lives[ran] == nil && !archive.gone[ran] && archive.retention == 0 {
			v.wrong(26, "tick %s of schedule %s has started %s, which never was", tick.Nominal, name, ran)
		}
	}
	if n := len(ticks); n > 0 && !k.Next.Equal(ticks[n-1].Last.Add(time.Second)) {
		v.wrong(26, "schedule %s has decided up to %s, and goes on at %s", name, ticks[n-1].Last, k.Next)
	}
	return max(0, int(k.Next.Sub(since)/time.Second))
}
