package browser

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

var (
	soak  = flag.Duration("soak", 20*time.Second, "how long TestSoak goes on after its tabs have been open for a tenth of that")
	crowd = flag.Int("crowd", 5, "how many tabs TestCrowd opens")
)

// load creates 167 executions that end at once, each second for a span of time. It calls each with the label of a second's last execution,
// and numbers the seconds from rounds on.
func (s *server) load(t *testing.T, span time.Duration, rounds int, each func(label string)) int {
	t.Helper()
	pace := time.NewTicker(time.Second)
	defer pace.Stop()
	for until := time.Now().Add(span); time.Now().Before(until); rounds++ {
		label := fmt.Sprintf("round-%d", rounds)
		s.call(t, http.MethodPost, "/api/v1/executions:batch", `{"executions": [`+strings.Repeat(`{"action": "noop"}, `, 166)+`{"action": "noop", "labels": {"of": "`+label+`"}}]}`)
		each(label)
		<-pace.C
	}
	return rounds
}

// Tabs of many browsers, each with connections of its own, show a list that gets 167 executions each second. make soak-ui opens 50.
func TestCrowd(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	share := func(rounds int) (int, float64) {
		used, began := s.cpu(t), time.Now()
		rounds = s.load(t, *soak/2, rounds, func(string) {})
		return rounds, (s.cpu(t) - used) / time.Since(began).Seconds()
	}
	rounds, alone := share(0)
	for range *crowd {
		tb := open(t, strings.TrimPrefix(s.url, "http://"), chromedp.WithNewBrowserContext())
		tb.do("open", chromedp.Navigate(s.url+"/ui/executions"))
		tb.see("Live")
	}
	_, followed := share(rounds)
	within(t, fmt.Sprintf("share of a core that %d tabs cost the server", *crowd), followed-alone, 0.10)
}

// tasksOf calls during and returns how many seconds of processor time each task of the tab's main thread used meanwhile. It uses the
// browser's trace, of which only one can run at a time.
func (tb *tab) tasksOf(during func()) []float64 {
	tb.t.Helper()
	const mark = "whose tasks are counted"
	type event struct {
		Name     string  `json:"name"`
		Process  int     `json:"pid"`
		Thread   int     `json:"tid"`
		Duration float64 `json:"tdur"` // of the thread's clock, in microseconds: the wall clock also counts other processes' time
	}
	var (
		events []event
		lost   bool
		over   = make(chan struct{})
	)
	ctx, stop := context.WithCancel(tb.ctx)
	defer stop()
	if err := chromedp.Listen(ctx, func(e any) {
		switch e := e.(type) {
		case *tracing.EventDataCollected:
			for _, v := range e.Value {
				var found event
				if json.Unmarshal(v, &found) == nil {
					events = append(events, found)
				}
			}
		case *tracing.EventTracingComplete:
			lost = e.DataLossOccurred
			close(over)
		}
	}); err != nil {
		tb.t.Fatal(err)
	}
	tb.do("begin a trace", command(tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{IncludedCategories: []string{"toplevel", "blink.user_timing"}, ExcludedCategories: []string{"*"}}}))
	eval[any](tb, `performance.mark(`+quote(mark)+`) && null`)
	during()
	tb.do("end the trace", command(tracing.End, cdp.Empty{}))
	<-over
	if lost {
		tb.t.Fatal("a part of the trace is lost")
	}
	at := slices.IndexFunc(events, func(e event) bool { return e.Name == mark })
	if at < 0 {
		tb.t.Fatalf("the tab is not among %d events of the trace", len(events))
	}
	var all []float64
	for _, e := range events {
		if strings.HasSuffix(e.Name, "RunTask") && e.Process == events[at].Process && e.Thread == events[at].Thread {
			all = append(all, e.Duration/1e6)
		}
	}
	return all
}

// A list that gets 167 executions each second answers to keys all the time.
func TestListAtPace(t *testing.T) {
	t.Parallel()
	span := min(*soak, time.Minute) // a trace has room for only some minutes
	s := serve(t, "")
	tb := open(t, strings.TrimPrefix(s.url, "http://"), chromedp.WithNewBrowserContext()) // a process of its own
	tb.do("open", chromedp.Navigate(s.url+"/ui/executions"))
	tb.see("Live")
	rounds := s.load(t, span/10, 0, tb.see)
	all := tb.tasksOf(func() { s.load(t, span, rounds, tb.see) })
	sum, long := 0.0, 0.0
	for _, seconds := range all {
		sum += seconds
		if seconds > 0.100 {
			long++
		}
	}
	within(t, "tasks of more than 100 ms of a processor", long, 0)
	within(t, "seconds of a processor that the longest task has used", slices.Max(all), 0.100)
	within(t, "share of a core that the list takes", sum/span.Seconds(), 0.10)
	if len(all) < int(span.Seconds()) {
		t.Errorf("%d tasks were measured", len(all))
	}
}

// Four tabs are open for as long as -soak says, on screens that change all the time: a list that gets 167 executions each second, a
// workflow of which an item ends each second, the log of a program that writes ten lines a second, and the queues. make soak-ui keeps them
// open for an hour.
func TestSoak(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.call(t, http.MethodPost, "/api/v1/definitions", `{"name": "slow", "input": {"type": "object", "properties": {"n": {"type": "array"}}},
		"tasks": {"each": {"foreach": "${{ input.n }}", "concurrency": 1, "action": "sleep", "with": {"for": "1s"}}}}`)
	workflow := s.submit(t, "/api/v1/executions", `{"action": "slow", "input": {"n": [`+strings.Repeat("1, ", 9999)+`1]}}`)
	program := s.submit(t, "/api/v1/evaluations", `{"language": "bash", "source": "while :; do echo written at $((i++)); sleep 0.1; done", "limits": {"wall": "2h", "cpu": "30m", "output": "16MB"}}`)
	tabs := map[string]*tab{}
	for name, path := range map[string]string{"list": "executions", "workflow": "executions/" + workflow + "/tasks", "log": "executions/" + program + "/logs", "queues": "work"} {
		tabs[name] = open(t, strings.TrimPrefix(s.url, "http://"))
		tabs[name].do("open", chromedp.Navigate(s.url+"/ui/"+path))
	}
	tabs["workflow"].see("of 10,000 items")
	tabs["log"].see("written at")
	tabs["queues"].see("default")

	rounds := 0
	work := func(span time.Duration) { rounds = s.load(t, span, rounds, tabs["list"].see) }
	type kept struct{ heap, nodes, listeners float64 }
	of := func(tb *tab) (k kept) {
		k.nodes, k.listeners = tb.counters()
		k.heap = tb.heap()
		return k
	}
	work(*soak / 10)
	before := map[string]kept{}
	for name, tb := range tabs {
		before[name] = of(tb)
	}
	work(*soak)
	for name, tb := range tabs {
		b, now := before[name], of(tb)
		within(t, "bytes of the heap that are more, "+name, now.heap-b.heap, 10e6)
		within(t, "nodes that were in the document and are kept, "+name, now.nodes-b.nodes, 500)
		within(t, "listeners that are more, "+name, now.listeners-b.listeners, 50)
	}
	t.Logf("%d executions in %d rounds", 167*rounds, rounds)
}
