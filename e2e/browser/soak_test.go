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

var soak = flag.Duration("soak", 20*time.Second, "how long TestSoak goes on after its tabs have been open for a tenth of that")

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

	pace := time.NewTicker(time.Second)
	defer pace.Stop()
	rounds := 0
	work := func(span time.Duration) {
		for until := time.Now().Add(span); time.Now().Before(until); rounds++ {
			label := fmt.Sprintf("round-%d", rounds)
			s.call(t, http.MethodPost, "/api/v1/executions:batch", `{"executions": [`+strings.Repeat(`{"action": "noop"}, `, 166)+`{"action": "noop", "labels": {"of": "`+label+`"}}]}`)
			tabs["list"].see(label)
			<-pace.C
		}
	}
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
