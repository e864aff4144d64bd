package app

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An outage of the server is reported after two seconds, once for all calls that wait; the next outage is reported again.
func TestSayRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs strings.Builder
		a := App{Err: &errs}
		a.Prepare()
		say := a.sayRetries()
		for range 2 {
			since := time.Now()
			for time.Since(since) < 30*time.Second {
				before := errs.Len()
				say(errors.New("no route to host"), since, since.Add(time.Minute))
				say(errors.New("no route to host"), since, since.Add(time.Minute))
				if time.Since(since) < 2*time.Second && errs.Len() > before {
					t.Errorf("told after %s", time.Since(since))
				}
				time.Sleep(500 * time.Millisecond)
			}
			time.Sleep(time.Hour)
		}
		if want := "pawl: no route to host; trying again for another 58s"; strings.Count(errs.String(), want) != 2 || strings.Count(errs.String(), "\n") != 2 {
			t.Errorf("told %q, want two lines with %q", errs.String(), want)
		}
	})
}
