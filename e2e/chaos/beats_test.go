package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/signature"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

var (
	beatsFlag = flag.Int("chaos.beats", 0, "how many schedules fire each second, up to 500; 0: 10, with -chaos.long 50")
	hooksFlag = flag.Int("chaos.hooks", 0, "how many requests to a webhook come each second, each sent one to three times; 0: 10, with -chaos.long 50")
)

// rates are how many ticks and hooks there are each second.
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
	hookRuns   = 5 // a rule runs on one of so many hooks
)

// hookSettings lets servers read the webhook's secret.
var hookSettings = []string{hookVar + "=" + hookSecret, "PAWL_WEBHOOK_SECRETS=" + hookVar + "@hooks"}

// beats are schedules that fire each second, and a webhook; what servers have acknowledged of its requests.
type beats struct {
	names []string
	sites []string // addresses of the servers

	mu    sync.Mutex
	hooks map[string]string // signal, by delivery
	sent  map[string]int    // the number in a delivery's body
}

// beat defines schedules, and a webhook with a rule.
func (l *load) beat(n int, sites []string) {
	l.beats = &beats{sites: sites, hooks: map[string]string{}, sent: map[string]int{}}
	docs := []string{fmt.Sprintf(`kind: webhook
name: chaos
verify: {scheme: github, secret_env: %s}
trigger: chaos.hook
`, hookVar), fmt.Sprintf(`kind: rule
name: on-hook
on: [chaos.hook]
if: signal.data.n %% %d == 0
run: {action: noop, input: {n: "${{ signal.data.n }}"}}
`, hookRuns)}
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

// rest pauses the schedules, so that everything can end.
func (l *load) rest() {
	for _, name := range l.beats.names {
		l.insist("pause "+name, func(ctx context.Context) error {
			_, err := l.any.PauseSchedule(ctx, name, "the test ends")
			return err
		})
	}
}

// deliver sends one request to the webhook until it is accepted, and then again, at any server, as providers do.
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
		b.mu.Unlock()
	}
}

// hooks sends requests to the webhook until stop is closed, some side by side.
func (l *load) hook(stop <-chan struct{}, each int) {
	const most = 64
	tick := time.NewTicker(time.Second / time.Duration(each))
	defer tick.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	room := make(chan struct{}, most)
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-tick.C:
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

// beats: each time of a schedule is fired once or missed, as far as retention has left its ticks; and each request to the webhook that was
// acknowledged is one signal, with what the rule makes of it.
func (v *verdicts) beats(s *postgres.Store, l *load, archive *archive) {
	if l.beats == nil {
		return
	}
	fired := 0
	for _, name := range l.beats.names {
		fired += v.beat(s, name, archive)
	}
	ran, signals := 0, map[string]string{}
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
		if want := map[bool]int{true: 1}[l.beats.sent[id]%hookRuns == 0]; len(all) != want || want == 1 && all[0].State != flow.EnforcementRan {
			v.wrong(40, "%s has the enforcements %+v", id, all)
		}
		ran += len(all)
	}
	v.t.Logf("%d ticks of %d schedules, %d requests to a webhook, of which a rule ran on %d", fired, len(l.beats.names), len(l.beats.hooks), ran)
	if fired == 0 || ran == 0 {
		v.t.Error("no schedule was fired or no request came to the webhook: the test has tested nothing of them")
	}
}

// beat looks at the ticks of a schedule that are left, and returns how many have started something.
func (v *verdicts) beat(s *postgres.Store, name string, archive *archive) (fired int) {
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
		fired++
		if ran := tick.Execution.String(); archive.lives[ran] == nil && !archive.gone[ran] && archive.retention == 0 {
			v.wrong(26, "tick %s of schedule %s has started %s, which never was", tick.Nominal, name, ran)
		}
	}
	if n := len(ticks); n > 0 && !k.Next.Equal(ticks[n-1].Last.Add(time.Second)) {
		v.wrong(26, "schedule %s has decided up to %s, and goes on at %s", name, ticks[n-1].Last, k.Next)
	}
	return fired
}
