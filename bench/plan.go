package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/bench/trial"
)

// allPeers are in the order of the table; the ratios compare Pawl, the first, with the others.
var allPeers = []string{"pawl", "river", "dbos", "goworkflows", "restate", "temporal"}

// carriers are Pawl with its worker over HTTP and behind brokers, and a plain queue on each of these brokers.
var carriers = []string{"pawl-http", "pawl-redis", "asynq", "pawl-rabbitmq", "amqploop"}

var (
	throughRedis    = map[string]bool{"pawl-redis": true, "asynq": true}
	throughRabbitMQ = map[string]bool{"pawl-rabbitmq": true, "amqploop": true}
)

// row is one workload under its name in the table.
type row struct {
	name string
	trial.Workload
	metrics []string // those worth a line
	// slow is the number of operations for slower peers: enough for their medians, without waiting for minutes.
	slow int
}

// group is what one process runs, one workload after another.
type group struct {
	name  string
	peers []string // peers that have the workloads
	rows  []row
	once  bool // only in the first round, because it takes long
}

var defaultGroups = []string{"noop", "steady", "latency", "chain", "replicas", "claim", "workers"}

// slowPeers do tens of operations where the others do thousands. River records ended jobs only four times a second when
// there are few: waiting for one takes as long.
var slowPeers = []string{"asynq", "river", "goworkflows", "restate", "temporal"}

// fewRounds is for peers whose server takes longer to start than the others take for all of their work.
var fewRounds = map[string]int{"temporal": 2}

var latencies = []string{trial.P50, trial.P99}

// group describes a group of workloads.
func (o *options) group(name string) (group, bool) {
	pawl, queues, engines := allPeers[:1], allPeers[:2], []string{"pawl", "dbos", "goworkflows", "restate", "temporal"}
	bulk := []string{trial.Completed, trial.Submitted, trial.CPU, trial.ServerCPU, trial.Bytes, trial.RSS}
	noop := func(servers int) trial.Workload {
		return trial.Workload{Name: trial.Noop, Count: o.scaled(50_000), Servers: servers, Slots: o.slots}
	}
	loop := func(what string, count, clients int) trial.Workload {
		return trial.Workload{Name: what, Count: o.scaled(count), Clients: clients, Slots: o.slots}
	}
	switch name {
	case "noop":
		return group{name: name, peers: queues, rows: []row{{name: fmt.Sprintf("noop, %s in bulk, worked off", thousands(noop(1).Count)), Workload: noop(1), metrics: bulk}}}, true
	case "steady":
		return group{name: name, peers: queues, rows: []row{{name: "steady, 32 clients, one at a time", Workload: loop(trial.Steady, 10_000, 32),
			metrics: []string{trial.Submitted, trial.Completed, trial.P50, trial.P99, trial.CPU, trial.ServerCPU, trial.RSS}}}}, true
	case "latency":
		fanout := loop(trial.Fanout, 20, 1)
		fanout.Width = 100
		return group{name: name, peers: allPeers, rows: []row{
			{name: "alone, submit to end known", Workload: loop(trial.Alone, 400, 1), metrics: latencies, slow: 40},
			{name: "chain of 3, alone", Workload: loop(trial.Chain, 200, 1), metrics: latencies, slow: 40},
			{name: "fan-out of 100 and fan-in, alone", Workload: fanout, metrics: latencies, slow: 5},
		}}, true
	case "carriers":
		return group{name: name, peers: slices.Concat(pawl, carriers), rows: []row{
			{name: fmt.Sprintf("noop, %s in bulk, worked off", thousands(noop(1).Count)), Workload: noop(1), metrics: []string{trial.Completed, trial.CPU, trial.ServerCPU}},
			{name: "steady, 32 clients, one at a time", Workload: loop(trial.Steady, 10_000, 32), metrics: []string{trial.Submitted, trial.Completed, trial.CPU, trial.ServerCPU}},
			{name: "alone, submit to end known", Workload: loop(trial.Alone, 400, 1), metrics: latencies, slow: 20},
		}}, true
	case "chain":
		return group{name: name, peers: engines, rows: []row{{name: "chain of 3, 100 at once", Workload: loop(trial.Chain, 3_000, 100),
			metrics: []string{trial.Completed, trial.P50, trial.P99, trial.CPU, trial.ServerCPU, trial.RSS}, slow: 300}}}, true
	case "replicas":
		return group{name: name, peers: pawl, rows: []row{{name: "noop, 3 servers on one database", Workload: noop(3),
			metrics: []string{trial.Completed, trial.Submitted, trial.CPU, trial.ServerCPU, trial.Deadlocks}}}}, true
	case "claim":
		w := trial.Workload{Name: trial.Claim, Count: o.scaled(2_000)}
		full := w
		full.Load = o.scaled(o.queued)
		return group{name: name, peers: pawl, once: true, rows: []row{
			{name: "claim, empty queue", Workload: w, metrics: latencies},
			{name: fmt.Sprintf("claim, %s queued", thousands(full.Load)), Workload: full, metrics: latencies},
		}}, true
	case "workers":
		w := trial.Workload{Name: trial.Workers, Load: o.scaled(1_000), Count: 60}
		return group{name: name, peers: pawl, once: true, rows: []row{
			{name: fmt.Sprintf("%s idle workers", thousands(w.Load)), Workload: w, metrics: []string{trial.Core, trial.RSS}},
		}}, true
	case "fleet":
		w := trial.Workload{Name: trial.Workers, Load: o.scaled(10_000), Count: int(o.fleet.Seconds())}
		return group{name: name, peers: []string{"pawl-redis"}, once: true, rows: []row{
			{name: fmt.Sprintf("%s idle workers behind a broker", thousands(w.Load)), Workload: w, metrics: []string{trial.Core, trial.RedisCore, trial.Lost, trial.RSS}},
		}}, true
	case "finished":
		w := noop(1)
		w.Name = trial.Finished
		empty, idle := w, w
		w.Load = o.scaled(o.finished)
		rows := []row{
			{name: "noop, nothing ended before", Workload: empty, metrics: bulk},
			{name: fmt.Sprintf("noop, %s ended before", thousands(w.Load)), Workload: w, metrics: bulk},
		}
		if idle.Idle, idle.Pace = o.idle, o.pace; o.idle > 0 {
			meanwhile := "as much as can be"
			if o.pace > 0 {
				meanwhile = thousands(o.pace) + " a second"
			}
			rows = append(rows, row{name: fmt.Sprintf("the same, a transaction idle for %s, meanwhile %s", o.idle, meanwhile), Workload: idle, metrics: bulk})
		}
		return group{name: name, peers: pawl, once: true, rows: rows}, true
	}
	return group{}, false
}

func (o *options) scaled(n int) int { return max(int(float64(n)*o.scale), 1) }

// workloads are the workloads for a peer's process.
func (o *options) workloads(g group, peer string) []trial.Workload {
	var ws []trial.Workload
	for _, r := range g.rows {
		if !has(peer, r.Workload.Name) {
			continue
		}
		if r.slow > 0 && slices.Contains(slowPeers, peer) {
			r.Count = o.scaled(r.slow)
		}
		ws = append(ws, r.Workload)
	}
	return ws
}

// has reports whether a peer has a workload: River has no workflows.
func has(peer, workload string) bool {
	return peer != "river" || workload != trial.Chain && workload != trial.Fanout
}

// most bounds the time of one process: a slower one will not end.
func (g group) most() time.Duration {
	if g.once {
		return time.Hour
	}
	return 5 * time.Minute
}
