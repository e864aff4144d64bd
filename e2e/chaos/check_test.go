package chaos

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

// try is one attempt of one execution.
type try struct {
	execution string
	attempt   int
}

// effect is what the ledger holds of one attempt.
type effect struct {
	begun, ended int
	begin, end   time.Time
	tag          string
}

func readLedger(t *testing.T, path string) map[try]*effect {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[try]*effect{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		w := strings.Fields(lines.Text())
		if len(w) != 5 {
			t.Errorf("the ledger has the line %q", lines.Text())
			continue
		}
		attempt, err := strconv.Atoi(w[2])
		if err != nil {
			t.Errorf("the ledger has the attempt %q", w[2])
		}
		whole, micros, _ := strings.Cut(w[3], ".")
		s, err1 := strconv.ParseInt(whole, 10, 64)
		us, err2 := strconv.ParseInt(micros, 10, 64)
		if err1 != nil || err2 != nil {
			t.Errorf("the ledger has the time %q", w[3])
		}
		k := try{w[1], attempt}
		if all[k] == nil {
			all[k] = &effect{tag: w[4]}
		}
		switch e, at := all[k], time.Unix(s, us*1000); w[0] {
		case "begin":
			e.begun++
			e.begin = at
		case "end":
			e.ended++
			e.end = at
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// verdicts counts, by invariant, the checks and the failures.
type verdicts struct {
	t      *testing.T
	looked map[int]int
	broken map[int]int
}

func (v *verdicts) saw(invariant int) { v.looked[invariant]++ }

func (v *verdicts) wrong(invariant int, format string, args ...any) {
	if v.broken[invariant]++; v.broken[invariant] <= 5 {
		v.t.Errorf("invariant %d: %s", invariant, fmt.Sprintf(format, args...))
	}
}

func (v *verdicts) print() {
	var numbers []int
	for n := range v.looked {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	var b strings.Builder
	for _, n := range numbers {
		fmt.Fprintf(&b, " %d: %d/%d", n, v.looked[n]-v.broken[n], v.looked[n])
	}
	v.t.Logf("held, by invariant:%s", b.String())
}

// check checks the rows, the histories and the ledger, once everything has ended.
func check(t *testing.T, dsn string, l *load, limits map[string]int, w *watcher) {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if w == nil {
		w = newWatcher(dsn, l)
	}
	v := &verdicts{t: t, looked: map[int]int{}, broken: map[int]int{}}
	defer v.print()
	broken, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range broken {
		v.wrong(b.Invariant, "%s: %s", b.Execution, b.Say)
	}
	if err := w.archive.look(t.Context(), s, true); err != nil {
		t.Fatal(err)
	}
	for n, times := range w.looked {
		v.looked[n] += times
	}
	for _, b := range w.broken {
		v.wrong(b.invariant, "%s", b.say)
	}
	v.nothingLeft(s)
	ledger, lives, lost := readLedger(t, l.ledger), w.archive.lives, 0
	for id, k := range lives {
		lost += k.lost
		v.saw(34)
		if !k.x.Stage.Terminal() {
			v.wrong(34, "%s is still %s", id, k.x.Stage)
		}
	}
	v.submissions(l, w.archive)
	v.workflows(lives)
	v.effects(ledger, w.archive)
	v.limits(ledger, lives, limits)
	v.lines(l, lives)
	v.reruns(l, ledger, w.archive)
	v.reactions(s, l, w.archive)
	v.beats(s, l, w.archive)
	t.Logf("%d submissions accepted, %d executions, of which %d were removed and %d not read before; %d attempts lost and repeated, %d side effects, %d refused or unanswered calls",
		len(l.all), len(w.archive.seen), len(w.archive.gone), w.archive.missed(), lost, len(ledger), l.refusals)
	for _, say := range l.unwelcome {
		t.Error(say)
	}
	if len(l.all) == 0 || len(ledger) == 0 {
		t.Error("nothing was done: the test has tested nothing")
	}
	if n := w.archive.missed(); n > len(w.archive.seen)/4 {
		t.Errorf("%d of %d executions were removed before they were read: the test has tested little", n, len(w.archive.seen))
	}
}

// cancelBound is how long after its acknowledgement a cancelled execution may stay open: its owner may be gone and must first lose its
// lease, on a database that may be away.
const cancelBound = 8 * lease

// submissions: every accepted execution exists and ended as it should.
func (v *verdicts) submissions(l *load, archive *archive) {
	keys := map[string]*accepted{}
	for _, a := range l.all {
		v.saw(25)
		if other := keys[a.key]; other != nil && other.id != a.id && !archive.forgotten(other.id, a.id) {
			v.wrong(25, "key %s: %s and %s", a.key, other.id, a.id)
		}
		keys[a.key] = a
		v.saw(31)
		k := archive.lives[a.id]
		if k == nil {
			if !archive.gone[a.id] && !l.mayBeGone(a) {
				v.wrong(31, "%s (%s) was accepted and is gone", a.id, a.key)
			}
			continue
		}
		v.saw(21)
		if got := k.x.Stage.String(); got != string(a.want) && (a.want != api.Cancelled || k.x.Stage != flow.TimedOut) {
			v.wrong(21, "%s (%s) is %s, not %s: %+v", a.id, a.key, got, a.want, k.x.Outcome)
		}
		if want := outputs[a.action]; want != "" && a.want == api.Completed && string(k.x.Outcome.Output) != want {
			v.wrong(21, "%s (%s) ended with %s, not %s", a.id, a.key, k.x.Outcome.Output, want)
		}
		if !a.cancelled.IsZero() {
			v.saw(23)
			if k.ordered.After(a.cancelled) {
				v.wrong(23, "%s: attempt %d was opened after the cancel had been acknowledged", a.id, k.x.Attempt)
			}
			if d := k.x.FinishedAt.Sub(a.cancelled); d > cancelBound {
				v.wrong(23, "%s ended %s after the cancel had been acknowledged", a.id, d)
			}
		}
	}
}

// workflows: each task's items exist once, and only those that should.
func (v *verdicts) workflows(lives map[string]*life) {
	want := map[string]map[string]int{
		"mixed":  {"start": 1, "each": 6, "again": 1, "nap": 1, "keyed": 1, "join": 1},
		"small":  {"one": 1, "two": 1},
		"nested": {"inner": 2, "after": 1},
		"doomed": {"ok": 1, "bad": 1},
		"asked":  {"approve": 1, "hit": 1, "join": 1},
	}
	for id, k := range lives {
		if k.x.Kind != flow.KindWorkflow {
			continue
		}
		v.saw(18)
		got := map[string]int{}
		for _, c := range k.children {
			got[c.Task]++
			v.saw(17)
			v.saw(20)
			if !c.Stage.Terminal() {
				v.wrong(20, "%s is over and its task %s[%d] is %s", id, c.Task, c.Index, c.Stage)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want[k.x.Action]) {
			v.wrong(18, "%s (%s) has the tasks %v, not %v", id, k.x.Action, got, want[k.x.Action])
		}
	}
}

// nothingLeft: no event waits for an earlier one to arrive, and no slot is held.
func (v *verdicts) nothingLeft(s *postgres.Store) {
	v.saw(35)
	sum, err := s.Survey(context.Background())
	if err != nil || sum.Unapplied > 0 || len(sum.Unfinished) > 0 {
		v.wrong(35, "in the end there is %+v, %v", sum, err)
	}
	if keys, err := s.Keys(context.Background(), 100); err != nil || len(keys) > 0 {
		v.wrong(35, "in the end keys are held or waited for: %+v, %v", keys, err)
	}
}

// effects: no attempt ran twice, each is known, and each completed attempt had its effect.
func (v *verdicts) effects(ledger map[try]*effect, archive *archive) {
	for k, e := range ledger {
		v.saw(3)
		if e.begun > 1 || e.ended > 1 {
			v.wrong(3, "%s attempt %d ran %d times", k.execution, k.attempt, e.begun)
		}
		x := archive.lives[k.execution]
		if x == nil && (archive.listed(k.execution) || archive.unseen(e.begin)) {
			continue
		}
		if x == nil || k.attempt > x.x.Attempt {
			v.wrong(11, "%s attempt %d ran and does not exist", k.execution, k.attempt)
		}
	}
	for id, x := range archive.lives {
		if x.x.Kind != flow.KindCode || x.x.Stage != flow.Completed || !x.x.ReusedOf.IsZero() {
			continue
		}
		v.saw(11)
		if e := ledger[try{id, x.x.Attempt}]; e == nil || e.ended != 1 {
			v.wrong(11, "%s completed in attempt %d, which did nothing", id, x.x.Attempt)
		}
	}
}

// span is the time in which an attempt was at work while its worker held it.
type span struct {
	from, to time.Time
	who      try
}

// limits: at no moment were more attempts of a key at work than its limit. Work that a worker continues after the end of its lease, which
// it cannot know yet, does not count.
func (v *verdicts) limits(ledger map[try]*effect, lives map[string]*life, limits map[string]int) {
	byTag := map[string][]span{}
	for k, e := range ledger {
		x := lives[k.execution]
		if x == nil || e.begun == 0 {
			continue
		}
		to := x.over[k.attempt]
		if e.ended > 0 && e.end.Before(to) {
			to = e.end
		}
		if to.After(e.begin) {
			byTag[e.tag] = append(byTag[e.tag], span{e.begin, to, k})
		}
	}
	for tag, spans := range byTag {
		name, _, _ := strings.Cut(tag, ":")
		limit, limited := limits[name]
		if !limited {
			continue
		}
		invariant := 12
		if strings.Contains(tag, ":") {
			invariant = 19
		}
		slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
		for i, s := range spans {
			v.saw(invariant)
			at := []try{s.who}
			for _, o := range spans[:i] {
				if o.to.After(s.from) {
					at = append(at, o.who)
				}
			}
			if len(at) > limit {
				v.wrong(invariant, "%s: %d at work at %s, at most %d may be: %v", tag, len(at), s.from.Format(time.StampMicro), limit, at)
			}
		}
	}
}

// lines: an execution that was submitted earlier under a key, and waited, is admitted earlier. The time of a transaction is the time of its
// begin, so the times of two adjacent transactions may be in reverse order.
func (v *verdicts) lines(l *load, lives map[string]*life) {
	const slack = time.Second
	var latest time.Time
	var who string
	for _, a := range l.all {
		k := lives[a.id]
		if a.action != "first" || k == nil || !k.waited || k.admitted.IsZero() {
			continue
		}
		v.saw(14)
		if k.admitted.Before(latest.Add(-slack)) {
			v.wrong(14, "%s was submitted after %s and admitted %s before it", a.id, who, latest.Sub(k.admitted))
		}
		if k.admitted.After(latest) {
			latest, who = k.admitted, a.id
		}
	}
}
