package browser

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// untilIdle follows the stream of changes until it has said times times that nothing changed; it says so once every 5 s.
func (s *server) untilIdle(t *testing.T, times int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/api/v1/executions", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); times > 0 && lines.Scan(); {
		var change struct{ Idle bool }
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &change) == nil && change.Idle {
			times--
		}
	}
	if times > 0 {
		t.Fatal("the stream of changes has ended")
	}
}

// The work screen asks the server when something changes, and rarely otherwise: three requests every 3 s would be 60 in a minute, and 80
// with a line.
func TestWorkOfAnIdleServer(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	held := s.submit(t, "/api/v1/executions", `{"action": "sleep", "input": {"for": "1h"}, "concurrency": {"key": "deploy", "limit": 1}}`)
	tb := open(t, strings.TrimPrefix(s.url, "http://"))
	tb.do("open", chromedp.Navigate(s.url+"/ui/work?key=deploy"))
	tb.see("None waits for it")
	s.untilIdle(t, 2)
	tb.traffic()
	began := time.Now()
	s.untilIdle(t, 6)
	requests, _ := tb.traffic()
	within(t, "requests of 30 idle seconds", requests*30/max(30, time.Since(began).Seconds()), 7) // a busy machine takes longer
	s.submit(t, "/api/v1/executions", `{"action": "noop", "concurrency": {"key": "deploy", "limit": 1}}`)
	tb.see("1 of 1 held, 1 waiting")
	s.call(t, http.MethodPost, "/api/v1/queues/default/pause", `{"reason": "the disks are full"}`)
	tb.see("the disks are full")
	s.call(t, http.MethodPost, "/api/v1/executions/"+held+"/cancel?wait=30s", `{}`)
	tb.see("1 of 1 held, 0 waiting")
	tb.check("an idle Work")
}
