package submit

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/duration"
)

// flowControl are the flags for the concurrency key, the rate and the start time of an execution.
type flowControl struct {
	concurrency, whenFull, fairBy string
	weight                        int
	rate, over                    string
	burst                         int
	at                            string
	in                            time.Duration
}

func (o *flowControl) declare(f *pflag.FlagSet) {
	f.StringVar(&o.concurrency, "concurrency", "",
		"key and how many executions may hold it at the same time, for example db1=2; replaces the action's own")
	f.StringVar(&o.whenFull, "when-full", "", "with --concurrency: queue (the default), cancel_new or cancel_oldest")
	f.StringVar(&o.fairBy, "fair-by", "", "with --concurrency: fairness group; groups that wait for the key are served in turn")
	f.IntVar(&o.weight, "weight", 0, "with --fair-by: share of this group compared with others (default 1)")
	f.StringVar(&o.rate, "rate", "", "key and how often executions with it may begin, for example mails=6/1m; replaces the action's own")
	f.IntVar(&o.burst, "burst", 0, "with --rate: starts allowed together after a quiet time (default 1)")
	f.StringVar(&o.at, "at", "", "earliest start, for example 2026-11-02T10:00:00Z")
	app.DurationVar(f, &o.in, "in", "delay before the start")
	f.StringVar(&o.over, "over", "", "with --rate, above the limit: delay (the default), or drop")
}

// read converts the flags into the API's form. It leaves checks of values to the server.
func (o *flowControl) read() (k *api.Concurrency, r *api.Rate, err error) {
	if o.concurrency != "" {
		key, limit, ok := cutLast(o.concurrency, "=")
		n, err := strconv.Atoi(limit)
		if !ok || key == "" || err != nil {
			return nil, nil, exit.Usagef("--concurrency %s: write it as KEY=NUMBER, as in db1=2", o.concurrency)
		}
		k = &api.Concurrency{Key: key, Limit: n, WhenFull: o.whenFull, FairBy: o.fairBy, Weight: o.weight}
	} else if o.whenFull != "" || o.fairBy != "" || o.weight != 0 {
		return nil, nil, exit.Usagef("--when-full, --fair-by and --weight are about the key of --concurrency: add it, as in --concurrency db1=2")
	}
	if o.rate != "" {
		key, bound, ok := cutLast(o.rate, "=")
		limit, span, per := strings.Cut(bound, "/")
		n, err := strconv.Atoi(limit)
		d, bad := duration.Parse(span)
		if !ok || key == "" || !per || err != nil || bad != nil {
			return nil, nil, exit.Usagef("--rate %s: write it as KEY=NUMBER/SPAN, as in mails=6/1m", o.rate)
		}
		r = &api.Rate{Key: key, Limit: n, Per: api.Duration(d), Burst: o.burst, Over: o.over}
	} else if o.burst != 0 || o.over != "" {
		return nil, nil, exit.Usagef("--burst and --over are about the key of --rate: add it, as in --rate mails=6/1m")
	}
	return k, r, nil
}

// start reads --at and --in. Without them both results are zero, and the execution may start at once. A past time is
// accepted, because a script may run late; a message reports it, in case it was mistyped.
func (o *flowControl) start(a *app.App) (at time.Time, in api.Duration, err error) {
	switch {
	case o.at != "" && o.in != 0:
		return at, 0, exit.Usagef("--at and --in both say when it may start: leave one of them out")
	case o.at != "":
		if at, err = time.Parse(time.RFC3339, o.at); err != nil {
			return at, 0, exit.Usagef("--at %q: write a time as 2026-11-02T10:00:00Z, or how long from now with --in 10m", o.at)
		}
		if time.Since(at) > 0 {
			a.Say("pawl: --at %s is past: it starts at once", o.at)
		}
	}
	return at, api.Duration(o.in), nil
}

// cutLast cuts a text at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
