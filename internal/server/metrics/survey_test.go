package metrics

import (
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/engine/enginetest"
)

// If the store does not answer, the figures of this process are still reported.
func TestMetricsWithoutStore(t *testing.T) {
	t.Parallel()
	m := New(Options{Engine: enginetest.OnSQLite(t).Engine, Log: slog.New(slog.DiscardHandler)})
	m.surveys.last = &surveyed{at: time.Now(), err: os.ErrDeadlineExceeded}
	m.surveys.failures = 1
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	page := w.Body.String()
	for _, line := range []string{"pawl_store_up 0", "pawl_survey_failures_total 1", "pawl_commits_total "} {
		if !strings.Contains(page, "\n"+line) {
			t.Errorf("there is no line %q", line)
		}
	}
	if strings.Contains(page, "pawl_store_bytes") {
		t.Error("it tells the size of a store that did not answer")
	}
}

// A scrape does not wait for a slow survey: it shows the previous one.
func TestScrapeBesideASlowSurvey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &surveys{last: &surveyed{at: time.Now(), took: time.Second}, ongoing: make(chan struct{})}
		begun := time.Now()
		s.look()
		if took := time.Since(begun); took > surveyPatience/2 {
			t.Errorf("it took %s", took)
		}
	})
}
