package verification

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// ratesMost is how many slots of rates are compared; further ones are ignored.
const ratesMost = 1_000_000

// slots are the times from which a key's rate lets executions begin.
type slots struct {
	rate  flow.Rate
	mixed bool // the key has had several rates, so their combined limit is unknown
	all   []slot
}

type slot struct {
	at time.Time
	id flow.ID
}

// checkRate records an execution's slot.
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

// Rates finds keys for which more executions begin in a span than their rate allows; it is called after all executions were checked.
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
