package pawl

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// FleetFlag makes the program a process with many workers behind a broker.
const FleetFlag = "-behind"

// perTransport is how many workers of a fleet share the connections that are not used for waiting.
const perTransport = 50

// Fleet runs n workers behind the Redis at url until it gets a signal.
func Fleet(url, n string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	count, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	defer all.Wait()
	for i := 0; i < count && ctx.Err() == nil; i += perTransport {
		transport, hangUp, err := redisTransport(ctx, url)
		if err != nil {
			stop()
			return err
		}
		defer hangUp()
		for range min(perTransport, count-i) {
			c := brokerrpc.NewClient(transport, "")
			w, err := worker.New(worker.Options{Handoff: c, Handlers: task.Passes(nil), Slots: 1})
			if err != nil {
				stop()
				return err
			}
			all.Go(func() {
				defer c.Stop()
				if err := w.Run(ctx); err != nil {
					panic(err) // a trial without its server would report wrong figures
				}
			})
			select { // the workers start at different times
			case <-time.After(3 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
	<-ctx.Done()
	return nil
}

// fleet starts a process with n workers behind the broker, and raises Redis's limit on connections: the default of 10,000 is too low for
// 10,000 workers that each wait on one, and 200 shared ones.
func (p *peer) fleet(ctx context.Context, n int) (stop func(), err error) {
	if c := p.redis(); c != nil {
		err := c.ConfigSet(ctx, "maxclients", strconv.Itoa(max(n+n/2+1000, 10_000))).Err()
		_ = c.Close()
		if err != nil {
			return nil, fmt.Errorf("let Redis take the connections of %d workers: %w", n, err)
		}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	c := exec.CommandContext(ctx, program, FleetFlag, p.spec.Redis, strconv.Itoa(n))
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start the workers: %w", err)
	}
	return func() {
		_ = c.Process.Kill() // their sessions end with the database
		_ = c.Wait()
	}, nil
}

// redis is a client of the broker; nil if that is not Redis.
func (p *peer) redis() *redis.Client {
	url, _, ok := strings.Cut(p.spec.Redis, "?")
	if !ok {
		return nil
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil
	}
	return redis.NewClient(o)
}

// redisTime is the processor time that Redis has used; 0 if there is none.
func (p *peer) redisTime(ctx context.Context) time.Duration {
	c := p.redis()
	if c == nil {
		return 0
	}
	defer func() { _ = c.Close() }()
	text, err := c.Info(ctx, "cpu").Result()
	if err != nil {
		return 0
	}
	sum := 0.0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			seconds, _ := strconv.ParseFloat(value, 64) // Redis writes numbers
			sum += seconds
		}
	}
	return time.Duration(sum * float64(time.Second))
}
