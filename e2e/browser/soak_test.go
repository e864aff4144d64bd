package browser

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var (
	soak  = flag.Duration("soak", 20*time.Second, "how long TestSoak goes on after its tabs have been open for a tenth of that")
	crowd = flag.Int("crowd", 5, "how many tabs TestCrowd opens")
)

// longTask is the longest time, in milliseconds, for which the page may not answer to a key. It is of the clock, and so only asked of a run that has
// the machine for itself: one with a -soak of a minute or more.
const longTask = 100

// load has 167 executions come and end each second for a span of time. It calls each with the label of a second's last one, and counts the seconds
// from rounds on.
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

// Tabs of as many browsers, which each have connections of their own, look at a list into which 167 executions come each second. make soak-ui opens 50.
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

// Four tabs are open for as long as -soak says, on what changes all the time: a list into which 167 executions come each second, a workflow of
// which an item ends each second, the log of a program that writes ten lines a second, and the queues. make soak-ui has them
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

	eval[any](tabs["list"], `(() => { window.longest = 0; new PerformanceObserver((l) => { for (const e of l.getEntries()) window.longest = Math.max(window.longest, e.duration); }).observe({entryTypes: ['longtask']}); })()`)
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
	longest := eval[float64](tabs["list"], `window.longest`)
	t.Logf("%d executions in %d rounds; the list did not answer for %.0f ms at most", 167*rounds, rounds, longest)
	if *soak >= time.Minute && longest > longTask {
		t.Errorf("the list did not answer for %.0f ms, at most %d", longest, longTask)
	}
}
