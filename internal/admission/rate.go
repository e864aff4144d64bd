package admission

import "time"

// Reserve decides when an execution may begin whose key has a rate of limit in per, burst of them at once. It is the
// generic cell rate algorithm: tat is the moment at which the key would be idle if everything that was reserved came
// evenly spaced, and the new tat is what the next one goes by. In any span of per no more than limit + burst begin. The
// zero time stands for a key that nothing was reserved of.
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
