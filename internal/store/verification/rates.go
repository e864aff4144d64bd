package verification

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// ratesMost is how many slots of rates are compared with one another; those beyond are not looked at.
const ratesMost = 1_000_000

// slots are the moments from which a key's rate lets executions begin.
type slots struct {
	rate  flow.Rate
	mixed bool // the key has had several rates, and what they allow together is not known
	all   []slot
}

type slot struct {
	at time.Time
	id flow.ID
}

// checkRate notes an execution's slot.
func checkRate(f *Findings, x *flow.Execution) {
	if x.Rate.Key == "" {
		return
	}
	if x.SlotAt.IsZero() {
		if x.Place == flow.Waiting || x.Place.HoldsKey() {
			f.Add(52, x.ID, "it is %s, and has no slot of the rate of key %q", x.Stage, x.Rate.Key)
		}
		return
	}
	if f.metered++; f.metered > ratesMost {
		return
	}
	if f.rates == nil {
		f.rates = map[string]*slots{}
	}
	s := f.rates[x.Rate.Key]
	if s == nil {
		s = &slots{rate: x.Rate}
		f.rates[x.Rate.Key] = s
	}
	over := x.Rate
	over.Over = s.rate.Over
	s.mixed = s.mixed || over != s.rate
	s.all = append(s.all, slot{x.SlotAt, x.ID})
}

// Rates looks for keys of which more begin in a span than their rate allows, once all executions have been looked at.
func (f *Findings) Rates() {
	for key, s := range f.rates {
		if s.mixed {
			continue
		}
		slices.SortFunc(s.all, func(a, b slot) int { return a.at.Compare(b.at) })
		most := s.rate.Limit + max(s.rate.Burst, 1)
		for i := most; i < len(s.all) && !f.Full(); i++ {
			if within := s.all[i].at.Sub(s.all[i-most].at); within < s.rate.Per {
				f.Add(52, s.all[i].id, "it is one of %d that begin within %s by the rate of key %q: %d per %s, burst %d", most+1, within, key, s.rate.Limit, s.rate.Per, s.rate.Burst)
			}
		}
	}
}
