package chaos

import (
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/failpoint"
)

// brokerFaults are those of the broker, where there is one.
func (c *cluster) brokerFaults() []fault {
	if c.redis == nil {
		return nil
	}
	freeze := func(least, most time.Duration) func(*cluster, *rand.Rand) string {
		return func(c *cluster, r *rand.Rand) string {
			d := between(r, least, most)
			c.redis.Signal(syscall.SIGSTOP)
			<-time.After(d)
			c.redis.Signal(syscall.SIGCONT)
			return "for " + d.Round(time.Millisecond).String()
		}
	}
	serverMoments, workerMoments := failpoint.OfBrokers()
	return []fault{
		{"kill Redis", 4, true, func(c *cluster, r *rand.Rand) string {
			d := between(r, 0, lease)
			c.redis.Kill()
			<-time.After(d)
			c.redis.Again()
			return "for " + d.Round(time.Millisecond).String()
		}},
		{"empty Redis", 4, true, func(c *cluster, _ *rand.Rand) string {
			c.redis.Do("FLUSHALL")
			return ""
		}},
		{"stop Redis for up to half a lease", 2, false, freeze(lease/10, lease/2)},
		{"stop Redis for one and a half leases", 1, false, freeze(lease*3/2, lease*3/2+time.Second)},
		{"crash a server at a moment of the broker", 2, true, func(_ *cluster, r *rand.Rand) string { return crash(r, pick(r, c.servers), serverMoments) }},
		{"crash a worker at a moment of the broker", 2, true, func(_ *cluster, r *rand.Rand) string { return crash(r, pick(r, c.workers), workerMoments) }},
	}
}
