package admission

import "time"

// Reserve decides when an execution may begin if its key has a rate of limit in per, and burst at once. It is the generic cell rate
// algorithm: tat is the time at which the key would be idle if all reserved executions came evenly spaced, and the new tat is for the next
// one. In any span of per no more than limit + burst begin. The zero time is a key without reservations.
func Reserve(tat, now time.Time, limit int, per time.Duration, burst int) (begin, next time.Time) {
	interval := per / time.Duration(limit)
	tolerance := time.Duration(max(burst, 1)-1) * interval
	begin = now
	if earliest := tat.Add(-tolerance); earliest.After(now) {
		begin = earliest
	}
	if tat.Before(begin) {
		tat = begin
	}
	return begin, tat.Add(interval)
}
