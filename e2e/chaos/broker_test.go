package chaos

import (
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq/rabbitmqtest"
	"github.com/pawl-run/pawl/internal/handoff/redis/redistest"
)

// outageBroker is a broker that can be taken down.
type outageBroker interface {
	Addr() string
	URL() string
	Kill()
	Again()
	Signal(os.Signal)
}

// brokerFaults are the faults of the broker, if there is one.
func (c *cluster) brokerFaults() []fault {
	freeze := func(least, most time.Duration) func(*cluster, *rand.Rand) string {
		return func(c *cluster, r *rand.Rand) string {
			d := between(r, least, most)
			c.transport.Signal(syscall.SIGSTOP)
			<-time.After(d)
			c.transport.Signal(syscall.SIGCONT)
			return "for " + d.Round(time.Millisecond).String()
		}
	}
	serverMoments, workerMoments := failpoint.OfBrokers()
	all := []fault{
		{"kill the broker", 4, true, func(c *cluster, r *rand.Rand) string {
			d := between(r, 0, lease)
			c.transport.Kill()
			<-time.After(d)
			c.transport.Again()
			return "for " + d.Round(time.Millisecond).String()
		}},
		{"stop the broker for up to half a lease", 2, false, freeze(lease/10, lease/2)},
		{"stop the broker for one and a half leases", 1, false, freeze(lease*3/2, lease*3/2+time.Second)},
		{"crash a server at a moment of the broker", 2, true, func(_ *cluster, r *rand.Rand) string { return crash(r, pick(r, c.servers), serverMoments) }},
		{"crash a worker at a moment of the broker", 2, true, func(_ *cluster, r *rand.Rand) string { return crash(r, pick(r, c.workers), workerMoments) }},
	}
	switch b := c.transport.(type) {
	case nil:
		return nil
	case *redistest.Server:
		return append(all, redisFaults(b)...)
	case *rabbitmqtest.Server:
		return append(all, rabbitFaults(b)...)
	default:
		c.t.Fatalf("a broker without faults of its own: %T", b)
		return nil
	}
}

func redisFaults(b *redistest.Server) []fault {
	return []fault{
		{"empty Redis", 4, true, func(*cluster, *rand.Rand) string {
			b.Do("FLUSHALL")
			return ""
		}},
		{"kill Redis and let it come back empty", 3, true, func(c *cluster, r *rand.Rand) string {
			d := between(r, 0, lease)
			b.Kill()
			b.Forget()
			<-time.After(d)
			b.Again()
			return "for " + d.Round(time.Millisecond).String()
		}},
		{"destroy a group of Redis", 3, true, func(_ *cluster, r *rand.Rand) string {
			line := pick(r, []string{"ask", "tell", "log"})
			b.Try("XGROUP", "DESTROY", "pawl:{default}:"+line, "servers") // it may be gone already
			return line
		}},
		{"delete a line of Redis", 2, true, func(_ *cluster, r *rand.Rand) string {
			line := pick(r, []string{"ask", "tell", "log"})
			b.Do("DEL", "pawl:{default}:"+line)
			return line
		}},
		{"delete the reply queues of Redis", 3, true, func(*cluster, *rand.Rand) string {
			b.Do("EVAL", "for _, k in ipairs(redis.call('KEYS', 'pawl:{default}:to:*')) do redis.call('DEL', k) end", "0")
			return ""
		}},
		{"close all connections of Redis", 3, true, func(*cluster, *rand.Rand) string {
			b.Do("CLIENT", "KILL", "TYPE", "normal")
			return ""
		}},
		{"leave Redis without memory", 2, false, func(_ *cluster, r *rand.Rand) string {
			d := between(r, 0, lease)
			b.Do("CONFIG", "SET", "maxmemory", "1mb")
			<-time.After(d)
			b.Do("CONFIG", "SET", "maxmemory", "0")
			return "for " + d.Round(time.Millisecond).String()
		}},
	}
}

func rabbitFaults(b *rabbitmqtest.Server) []fault {
	return []fault{
		{"close all connections of RabbitMQ", 4, true, func(*cluster, *rand.Rand) string {
			b.Ctl("close_all_connections", "chaos")
			return ""
		}},
		{"delete all queues and reply queues of RabbitMQ", 3, true, func(*cluster, *rand.Rand) string {
			b.Delete("pawl.")
			return ""
		}},
		{"delete the reply queues of RabbitMQ", 2, true, func(*cluster, *rand.Rand) string {
			b.Delete("pawl.default.to.")
			return ""
		}},
		{"leave RabbitMQ short of memory", 2, false, func(_ *cluster, r *rand.Rand) string {
			d := between(r, 0, lease)
			b.Ctl("set_vm_memory_high_watermark", "absolute", "1MB")
			<-time.After(d)
			b.Ctl("set_vm_memory_high_watermark", "absolute", "1GB")
			return "for " + d.Round(time.Millisecond).String()
		}},
	}
}
