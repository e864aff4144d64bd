package definition

import (
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/schedule"
)

const (
	localForm = "Mon 2006-01-02 15:04:05 -07:00"
	// changeSpan is for how long clock changes of a zone are listed.
	changeSpan = 2 * 366 * 24 * time.Hour
	// lastYear is the last year that JSON can represent.
	lastYear = 9999
)

// Preview returns up to count next times of a schedule after a moment, and the effects of the clock changes of its zone in the two years
// after it.
func (s *Schedule) Preview(name string, from time.Time, count int) api.SchedulePreview {
	zone := s.Location()
	p := api.SchedulePreview{Name: name, Zone: zone.String(), Times: []api.PreviewTime{}, Changes: []api.ClockChange{}}
	for at := from; len(p.Times) < count; {
		next, comes := s.Next(at)
		if !comes {
			break
		}
		p.Times = append(p.Times, api.PreviewTime{Local: next.In(zone).Format(localForm), Nominal: next.UTC(), Due: s.Due(name, next).UTC()})
		at = next
	}
	for _, c := range s.Changes(from, from.Add(changeSpan)) {
		if c.At.UTC().Year() > lastYear {
			break
		}
		change := api.ClockChange{At: c.At, Before: offsetText(c.Before), After: offsetText(c.After), Times: []api.ClockTouched{}}
		add := func(is string, all []schedule.Fired) {
			for _, f := range all {
				l := api.ClockTouched{Local: f.Local.Format(time.TimeOnly), Is: is, Fired: []string{}}
				for _, t := range f.At {
					l.Fired = append(l.Fired, t.In(zone).Format("15:04:05 -07:00"))
				}
				change.Times = append(change.Times, l)
			}
		}
		add("skipped", c.Skipped)
		add("repeated", c.Repeated)
		p.Changes = append(p.Changes, change)
	}
	return p
}

func offsetText(d time.Duration) string {
	return time.Unix(0, 0).In(time.FixedZone("", int(d/time.Second))).Format("-07:00")
}
