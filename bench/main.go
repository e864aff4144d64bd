// Command bench compares Pawl with its peers: the same workloads, each through the peer's own Go client, on the same PostgreSQL server, one
// after another. It prints one table with absolute figures and their ratios.
//
//	go run . -dsn postgres://… [-redis redis://…] [-rabbitmq amqp://…] [-peers pawl,river] [-workload noop,chain] [-rounds 5] [-latency 1ms] [-o markdown|json]
//
// The workload carriers runs Pawl's worker in the server's process, over HTTP and behind Redis and RabbitMQ, and a plain queue on each of
// the two; fleet has ten thousand idle workers behind Redis, and needs maxclients 19000 and as many open files.
//
// Every measurement is a process with its own database, so that no peer is slowed by another's memory, tables or connections. Only the
// ratios within one run are comparable.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/bench/peer/amqploop"
	"github.com/pawl-run/pawl/bench/peer/asynq"
	"github.com/pawl-run/pawl/bench/peer/dbos"
	"github.com/pawl-run/pawl/bench/peer/goworkflows"
	"github.com/pawl-run/pawl/bench/peer/pawl"
	"github.com/pawl-run/pawl/bench/peer/restate"
	"github.com/pawl-run/pawl/bench/peer/river"
	"github.com/pawl-run/pawl/bench/trial"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == pawl.FleetFlag {
		if err := pawl.Fleet(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 3 && os.Args[1] == trialFlag {
		if err := trial.Serve(os.Args[2], open); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// trialFlag makes the program the process of one measurement.
const trialFlag = "-trial"

func open(ctx context.Context, s trial.Spec) (trial.Peer, error) {
	switch s.Peer {
	case "pawl", "pawl-http", "pawl-redis", "pawl-rabbitmq":
		return pawl.Open(ctx, s)
	case "asynq":
		return asynq.Open(ctx, s)
	case "amqploop":
		return amqploop.Open(ctx, s)
	case "river":
		return river.Open(ctx, s)
	case "dbos":
		return dbos.Open(ctx, s)
	case "goworkflows":
		return goworkflows.Open(ctx, s)
	case "restate":
		return restate.Open(ctx, s)
	default:
		return nil, fmt.Errorf("no peer is called %q", s.Peer)
	}
}

// options are the flags.
type options struct {
	dsn        string
	redis      string
	rabbitmq   string
	peers      []string
	groups     []group
	rounds     int
	scale      float64
	slots      int
	committers int
	queued     int
	finished   int
	idle       time.Duration
	fleet      time.Duration
	latency    time.Duration
	pace       int
	output     string
	profile    string
}

func run(ctx context.Context) error {
	o, err := parse(os.Args[1:])
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	r := &runner{options: o, measured: map[cell][]float64{}, skipped: map[string]string{}}
	if err := r.run(ctx); err != nil {
		return err
	}
	return r.table().write(os.Stdout, o.output)
}

func parse(args []string) (options, error) {
	var o options
	var peers, workloads string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.dsn, "dsn", os.Getenv("PAWL_TEST_POSTGRES"), "a PostgreSQL server on which databases may be made (default $PAWL_TEST_POSTGRES)")
	f.StringVar(&o.redis, "redis", os.Getenv("PAWL_TEST_REDIS"), "a Redis, for what goes through one (default $PAWL_TEST_REDIS)")
	f.StringVar(&o.rabbitmq, "rabbitmq", os.Getenv("PAWL_TEST_RABBITMQ"), "a RabbitMQ, for what goes through one (default $PAWL_TEST_RABBITMQ)")
	f.StringVar(&peers, "peers", strings.Join(slices.Concat(allPeers, carriers), ","), "whom to measure")
	f.StringVar(&workloads, "workload", strings.Join(defaultGroups, ","), "what to measure; also carriers, fleet (see -for) and finished (see -finished)")
	f.IntVar(&o.rounds, "rounds", 5, "how often; medians are printed")
	f.Float64Var(&o.scale, "scale", 1, "multiplies how much is done: 0.01 shows that everything runs")
	f.IntVar(&o.slots, "slots", 0, "slots of Pawl's worker (default 2000, as many as River works at once)")
	f.IntVar(&o.committers, "committers", 4, "transactions that a server of Pawl runs side by side")
	f.IntVar(&o.queued, "queued", 1_000_000, "how much is queued in the workload claim")
	f.IntVar(&o.finished, "finished", 5_000_000, "how much has ended before in the workload finished")
	f.DurationVar(&o.fleet, "for", 10*time.Minute, "fleet: how long workers are idle")
	f.DurationVar(&o.idle, "idle", 0, "finished: also measure with a transaction idle elsewhere for so long")
	f.DurationVar(&o.latency, "latency", 0, "how much longer a round trip to PostgreSQL takes, as in 1ms: a server in another building")
	f.IntVar(&o.pace, "pace", 0, "finished: executions per second that are worked off while the transaction is idle; 0: as many as can be")
	f.StringVar(&o.output, "o", "markdown", "markdown or json")
	f.StringVar(&o.profile, "profile", "", "a directory for CPU profiles of the measured processes")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.dsn == "" {
		return o, errors.New("no PostgreSQL: give -dsn, or set PAWL_TEST_POSTGRES (scripts/services up starts a server and prints it)")
	}
	if o.rounds < 1 || o.scale <= 0 {
		return o, errors.New("-rounds must be at least 1, -scale above 0")
	}
	if o.latency < 0 {
		return o, errors.New("-latency must not be negative")
	}
	if o.output != "markdown" && o.output != "json" {
		return o, fmt.Errorf("-o %q: markdown or json", o.output)
	}
	for _, name := range strings.Split(peers, ",") {
		if known := slices.Concat(allPeers, carriers); !slices.Contains(known, name) {
			return o, fmt.Errorf("-peers %q: some of %s", name, strings.Join(known, ","))
		}
		o.peers = append(o.peers, name)
	}
	for _, name := range strings.Split(workloads, ",") {
		g, ok := o.group(name)
		if !ok {
			return o, fmt.Errorf("-workload %q: some of %s,carriers,fleet,finished", name, strings.Join(defaultGroups, ","))
		}
		o.groups = append(o.groups, g)
	}
	for _, g := range o.groups {
		needs := func(through map[string]bool) bool {
			return slices.ContainsFunc(g.peers, func(p string) bool { return slices.Contains(o.peers, p) && through[p] })
		}
		if o.redis == "" && needs(throughRedis) {
			return o, errors.New("no Redis: give -redis, or set PAWL_TEST_REDIS (scripts/services up starts one and prints it)")
		}
		if o.rabbitmq == "" && needs(throughRabbitMQ) {
			return o, errors.New("no RabbitMQ: give -rabbitmq, or set PAWL_TEST_RABBITMQ (scripts/services up starts one and prints it)")
		}
	}
	return o, nil
}
