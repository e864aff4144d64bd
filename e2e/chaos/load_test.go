package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// The code that every execution runs: it writes its side effect into the ledger when it begins and when it ends. One attempt writes each
// line once, and the operating system appends each line as a whole.
const source = `
say() { printf '%s %s %s %s %s\n' "$1" "$PAWL_EXECUTION" "$PAWL_ATTEMPT" "$EPOCHREALTIME" "$TAG" >> "$LEDGER"; }
say begin
sleep "$NAP"
if [ "$PAWL_ATTEMPT" -le "$FAILS" ]; then say end; exit 75; fi
echo $(( N * 2 )) > "$PAWL_OUTPUT"
say end
`

// Work lost with its worker is retried as often as needed; work that fails by itself is retried only where the definition says so.
const definitions = `
name: leaf
input: {type: object}
action: code
retry: {max_attempts: 100, backoff: constant, delay: 100ms, on: ["exit:75"]}
with:
  language: bash
  source: ${{ input.source }}
  env: {TAG: "${{ input.tag }}", LEDGER: "${{ input.ledger }}", NAP: "${{ input.nap }}", FAILS: "${{ string(input.fails) }}", N: "${{ string(input.n) }}"}
---
name: first
input: {type: object}
action: code
concurrency: {key: first, limit: 1}
retry: {max_attempts: 100, backoff: constant, delay: 100ms, on: ["exit:75"]}
with:
  language: bash
  source: ${{ input.source }}
  env: {TAG: "${{ input.tag }}", LEDGER: "${{ input.ledger }}", NAP: "${{ input.nap }}", FAILS: "${{ string(input.fails) }}", N: "${{ string(input.n) }}"}
---
name: pair
input: {type: object}
action: code
concurrency: {key: pair, limit: 2}
retry: {max_attempts: 100, backoff: constant, delay: 100ms, on: ["exit:75"]}
with:
  language: bash
  source: ${{ input.source }}
  env: {TAG: "${{ input.tag }}", LEDGER: "${{ input.ledger }}", NAP: "${{ input.nap }}", FAILS: "${{ string(input.fails) }}", N: "${{ string(input.n) }}"}
---
name: mixed
input: {type: object}
tasks:
  start: {action: leaf, with: {source: "${{ input.source }}", ledger: "${{ input.ledger }}", tag: start, nap: "0.01", fails: 0, n: 1}}
  each:
    needs: [start]
    foreach: ${{ input.items }}
    concurrency: 3
    action: leaf
    with: {source: "${{ input.source }}", ledger: "${{ input.ledger }}", tag: "${{ 'each:' + input.name }}", nap: "0.05", fails: 0, n: "${{ item }}"}
  again: {needs: [start], action: leaf, with: {source: "${{ input.source }}", ledger: "${{ input.ledger }}", tag: again, nap: "0.01", fails: 1, n: 4}}
  nap: {needs: [start], action: sleep, with: {for: 0.4}}
  keyed: {needs: [start], action: pair, with: {source: "${{ input.source }}", ledger: "${{ input.ledger }}", tag: pair, nap: "0.03", fails: 0, n: 5}}
  join: {needs: [each, again, nap, keyed], action: noop, with: {all: "${{ tasks.each.output.map(o, o.result) }}", again: "${{ tasks.again.output.result }}", keyed: "${{ tasks.keyed.output.result }}"}}
outputs: {all: "${{ tasks.join.output.all }}", sum: "${{ tasks.join.output.again + tasks.join.output.keyed }}"}
---
name: doomed
input: {type: object}
tasks:
  ok: {action: leaf, with: {source: "${{ input.source }}", ledger: "${{ input.ledger }}", tag: ok, nap: "0.01", fails: 0, n: 1}}
  bad: {needs: [ok], action: code, retry: {max_attempts: 100, delay: 100ms, backoff: constant, on: [oom]}, with: {language: bash, source: "exit 3"}}
  never: {needs: [bad], action: noop}
---
name: last
input: {type: object}
action: code
concurrency: {key: last, limit: 2}
retry: {max_attempts: 100, backoff: constant, delay: 100ms, on: ["exit:75"]}
with:
  language: bash
  source: ${{ input.source }}
  env: {TAG: last, LEDGER: "${{ input.ledger }}", NAP: "0.01", FAILS: "0", N: "${{ string(input.n) }}"}
---
name: small
input: {type: object}
tasks:
  one: {action: leaf, with: {source: "${{ input.source }}", ledger: "${{ input.ledger }}", tag: small, nap: "0.01", fails: 0, n: 1}}
  two: {needs: [one], action: last, with: {source: "${{ input.source }}", ledger: "${{ input.ledger }}", n: "${{ tasks.one.output.result }}"}}
outputs: {n: "${{ tasks.two.output.result }}"}
---
name: nested
input: {type: object}
tasks:
  inner: {foreach: "${{ [1, 2] }}", action: small, with: {source: "${{ input.source }}", ledger: "${{ input.ledger }}"}}
  after: {needs: [inner], action: last, with: {source: "${{ input.source }}", ledger: "${{ input.ledger }}", n: 3}}
outputs: {all: "${{ tasks.inner.output.map(o, o.n) }}", last: "${{ tasks.after.output.result }}"}
` + reacting

// outputs are the outputs of the workflows, as their definitions give them.
var outputs = map[string]string{"mixed": `{"all":[2,4,6,8,10,12],"sum":18}`, "nested": `{"all":[4,4],"last":6}`}

// accepted is an execution that a server has acknowledged.
type accepted struct {
	id, key, action string
	want            api.Status
	at              time.Time // before it was submitted
	cancelled       time.Time // when the cancel was acknowledged; it may have ended otherwise before
	again           *again    // of a rerun
}

// load submits work until it is told to stop, whatever happens to the servers.
type load struct {
	t         *testing.T
	ledger    string
	retention time.Duration    // of the servers; 0: for ever
	http      *http.Client     // for requests without a client
	any       *client.Client   // through the load balancer
	each      []*client.Client // to one server each
	servers   []string         // their addresses

	mu        sync.Mutex
	all       []*accepted
	refusals  int // answers that asked to come back later, and calls without an answer
	unwelcome []string
	reactions reactions
	beats     *beats // nil without schedules
}

func connect(t *testing.T, address string) *client.Client {
	t.Helper()
	c, err := client.New("http://"+address, client.WithPatience(0), client.WithHTTPClient(&http.Client{
		Transport: &http.Transport{IdleConnTimeout: time.Second}, Timeout: 20 * time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// insist repeats a call until it succeeds; it notes an error that a repetition does not cure.
func (l *load) insist(what string, call func(context.Context) error) bool {
	deadline := time.Now().Add(5 * time.Minute)
	for time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		err := call(ctx)
		cancel()
		if err == nil {
			return true
		}
		var p *api.Problem
		if errors.As(err, &p) && p.Status != http.StatusServiceUnavailable && p.Status != http.StatusTooManyRequests {
			l.complain("%s: %v", what, err)
			return false
		}
		l.mu.Lock()
		l.refusals++
		l.mu.Unlock()
		<-time.After(100 * time.Millisecond)
	}
	l.complain("%s: not accepted within 5 minutes", what)
	return false
}

func (l *load) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unwelcome = append(l.unwelcome, fmt.Sprintf(format, args...))
}

// mayBeGone reports whether retention may have removed an execution by now.
func (l *load) mayBeGone(a *accepted) bool {
	return l.retention > 0 && time.Since(a.at) >= l.retention
}

// read reads an execution at a server, unless retention has removed it.
func (l *load) read(c *client.Client, a *accepted) bool {
	return l.insist("read "+a.key, func(ctx context.Context) error {
		_, err := c.Get(ctx, a.id)
		if client.IsNotFound(err) && l.mayBeGone(a) {
			return nil
		}
		return err
	})
}

func (l *load) input(tag, nap string) json.RawMessage {
	b, err := json.Marshal(map[string]any{"source": source, "ledger": l.ledger, "tag": tag, "nap": nap, "fails": 0, "n": 1})
	if err != nil {
		panic(err)
	}
	return b
}

func (l *load) define() {
	l.insist("define", func(ctx context.Context) error {
		_, err := l.any.Define(ctx, []byte(definitions), "chaos.yaml")
		return err
	})
}

// submit repeats one submission until it is accepted.
func (l *load) submit(c *client.Client, key, action string, input json.RawMessage, want api.Status) *accepted {
	var id string
	began := time.Now()
	ok := l.insist("submit "+key, func(ctx context.Context) error {
		x, err := c.Submit(ctx, api.Submission{Action: action, Input: input, IdempotencyKey: key})
		if err == nil {
			id = x.ID
		}
		return err
	})
	if !ok {
		return nil
	}
	a := &accepted{id: id, key: key, action: action, want: want, at: began}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, a)
	return a
}

// run submits everything concurrently until stop is closed, and returns when every submission has its answer.
func (l *load) run(stop <-chan struct{}, pace time.Duration) {
	var wg sync.WaitGroup
	stream := func(every time.Duration, one func(i int)) {
		wg.Go(func() {
			for i := 0; ; i++ {
				one(i)
				select {
				case <-time.After(every):
				case <-stop:
					return
				}
			}
		})
	}
	stream(pace, func(i int) {
		l.submit(l.any, fmt.Sprintf("leaf-%d", i), "leaf", l.input("leaf", "0.02"), api.Completed)
	})
	stream(pace, func(i int) {
		l.submit(l.any, fmt.Sprintf("first-%06d", i), "first", l.input("first", "0.15"), api.Completed)
	})
	stream(pace, func(i int) {
		l.submit(l.any, fmt.Sprintf("pair-%d", i), "pair", l.input("pair", "0.05"), api.Completed)
	})
	stream(3*pace, func(i int) { // the same submission at two servers at once
		var both sync.WaitGroup
		var got [2]*accepted
		for n := range got {
			both.Go(func() {
				got[n] = l.submit(l.each[(i+n)%len(l.each)], fmt.Sprintf("twin-%d", i), "leaf", l.input("leaf", "0.01"), api.Completed)
			})
		}
		both.Wait()
		if got[0] != nil && got[1] != nil && got[0].id != got[1].id && !l.mayBeGone(got[0]) {
			l.complain("invariant 25: one idempotency key gave %s and %s", got[0].id, got[1].id)
		}
	})
	stream(4*pace, func(i int) {
		name := fmt.Sprintf("mixed-%d", i)
		input, err := json.Marshal(map[string]any{"source": source, "ledger": l.ledger, "name": name, "items": []int{1, 2, 3, 4, 5, 6}})
		if err != nil {
			panic(err)
		}
		a := l.submit(l.any, name, "mixed", input, api.Completed)
		if a == nil {
			return
		}
		switch i % 4 {
		case 0:
			wg.Go(func() { l.rerun(i, a, []string{"join"}, "join") })
		case 1, 2:
			l.pause(i, a)
		}
	})
	stream(8*pace, func(i int) {
		l.submit(l.any, fmt.Sprintf("nested-%d", i), "nested", l.input("nested", "0"), api.Completed)
	})
	stream(6*pace, func(i int) {
		if a := l.submit(l.any, fmt.Sprintf("doomed-%d", i), "doomed", l.input("ok", "0"), api.Failed); a != nil && i%2 == 0 {
			wg.Go(func() { l.rerun(i, a, nil, "bad", "never") })
		}
	})
	stream(pace/2, func(i int) {
		l.emit(fmt.Sprintf("hit-%d", i), fmt.Sprintf("s%d", i%5), i, 1+i%3)
	})
	stream(6*pace, func(i int) { wg.Go(func() { l.ask(i) }) })
	stream(4*pace, func(i int) {
		l.submit(l.any, fmt.Sprintf("sleep-%d", i), "sleep", json.RawMessage(`{"for": 0.7}`), api.Completed)
	})
	stream(8*pace, func(i int) { // ends within the grace when the drain comes early, and is handed back otherwise
		l.submit(l.any, fmt.Sprintf("long-%d", i), "leaf", l.input("long", "1.8"), api.Completed)
	})
	stream(5*pace, func(i int) {
		a := l.submit(l.any, fmt.Sprintf("cancel-%d", i), "leaf", l.input("cancel", "30"), api.Cancelled)
		if a == nil {
			return
		}
		<-time.After(300 * time.Millisecond)
		l.insist("cancel "+a.key, func(ctx context.Context) error {
			_, err := l.any.Cancel(ctx, a.id, "no longer wanted", 0)
			if client.IsFinished(err) || client.IsNotFound(err) && l.mayBeGone(a) {
				return nil // the previous answer was lost
			}
			return err
		})
		l.mu.Lock()
		a.cancelled = time.Now()
		l.mu.Unlock()
	})
	wg.Wait()
}
