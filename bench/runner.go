package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/bench/trial"
)

// cell is one figure of the table.
type cell struct{ row, metric, peer string }

// runner measures the peers one after another and keeps the results.
type runner struct {
	options
	measured    map[cell][]float64
	skipped     map[string]string // the reason why a peer is not in the table
	dir         string
	programs    map[string]string // of peers that have one
	server      string            // version of PostgreSQL
	measuredDSN string            // DSN for the measured processes: the proxy's with -latency
	began       time.Time
}

// restateVersion is the server's package; the client's is in go.mod.
const restateVersion = "1.7.12"

func (r *runner) run(ctx context.Context) (err error) {
	if r.dir, err = os.MkdirTemp("", "pawl-bench-peers-"); err != nil {
		return fmt.Errorf("make a place for the bench: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	if r.server, err = r.ask(ctx, `SHOW server_version`); err != nil {
		return err
	}
	durable, err := r.ask(ctx, `SELECT current_setting('fsync') || current_setting('synchronous_commit') || current_setting('full_page_writes')`)
	if err != nil {
		return err
	}
	if durable != "ononon" {
		return errors.New("the server's durability was turned down (fsync, synchronous_commit, full_page_writes): its figures would mean nothing")
	}
	r.measuredDSN = r.dsn
	if r.latency > 0 {
		if r.measuredDSN, err = delay(ctx, r.dsn, r.latency); err != nil {
			return err
		}
	}
	r.prepare(ctx)
	r.began = time.Now()
	for round := range r.rounds {
		for _, g := range r.groups {
			if g.once && round > 0 {
				continue
			}
			for _, peer := range r.turn(round, g) {
				if err := r.measure(ctx, g, peer, round); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// turn is the order of the peers, which differs by round: background work that one peer leaves on the server must
// not always slow the same next peer.
func (r *runner) turn(round int, g group) []string {
	var peers []string
	for _, p := range r.peers {
		if few := fewRounds[p]; few > 0 && round >= few {
			continue
		}
		if _, skipped := r.skipped[p]; slices.Contains(g.peers, p) && !skipped {
			peers = append(peers, p)
		}
	}
	if n := len(peers); n > 0 {
		peers = append(peers[round%n:], peers[:round%n]...)
	}
	return peers
}

// prepare gets the programs of peers that are not part of this one. A peer whose program cannot be had is left out, and the table
// says so.
func (r *runner) prepare(ctx context.Context) {
	r.programs = map[string]string{}
	needed := func(peer string) bool {
		return slices.Contains(r.peers, peer) && slices.ContainsFunc(r.groups, func(g group) bool { return slices.Contains(g.peers, peer) })
	}
	for peer, get := range map[string]func(context.Context) (string, error){"temporal": r.buildTemporal, "restate": r.installRestate} {
		if !needed(peer) {
			continue
		}
		program, err := get(ctx)
		if err != nil {
			r.skipped[peer] = err.Error()
			continue
		}
		r.programs[peer] = program
	}
}

// buildTemporal builds the program of the neighbouring module, relative to this program's working directory.
func (r *runner) buildTemporal(ctx context.Context) (string, error) {
	say("building temporal's server (minutes, the first time)")
	program := filepath.Join(r.dir, "temporal")
	if out, err := exec.CommandContext(ctx, "go", "build", "-C", "temporal", "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, lastLine(out))
	}
	return program, nil
}

// installRestate makes npm install Restate's server into the user's cache.
func (r *runner) installRestate(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	place := filepath.Join(cache, "pawl-bench", "restate-"+restateVersion)
	find := func() string {
		found, err := filepath.Glob(filepath.Join(place, "node_modules/@restatedev/restate-server-*/bin/restate-server"))
		if err != nil || len(found) == 0 {
			return ""
		}
		return found[0]
	}
	if program := find(); program != "" {
		return program, nil
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return "", errors.New("npm, with which its server comes, is not installed")
	}
	say("installing restate's server with npm")
	if err := os.MkdirAll(place, 0o755); err != nil {
		return "", err
	}
	c := exec.CommandContext(ctx, "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", place, "@restatedev/restate-server@"+restateVersion)
	c.WaitDelay = time.Second
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install @restatedev/restate-server@%s: %w: %s", restateVersion, err, lastLine(out))
	}
	program := find()
	if program == "" {
		return "", fmt.Errorf("@restatedev/restate-server@%s has no server for this system", restateVersion)
	}
	return program, nil
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// measure runs one process and keeps its figures.
func (r *runner) measure(ctx context.Context, g group, peer string, round int) (err error) {
	dir, err := os.MkdirTemp(r.dir, peer)
	if err != nil {
		return fmt.Errorf("make a place for the trial: %w", err)
	}
	name := fmt.Sprintf("bench_%s_%d", strings.ReplaceAll(peer, "-", "_"), time.Now().UnixNano())
	if err := r.exec(ctx, `CREATE DATABASE `+name); err != nil {
		return err
	}
	defer func() {
		done := context.WithoutCancel(ctx)
		err = errors.Join(err, r.exec(done, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`, `DROP DATABASE IF EXISTS `+name+trial.SecondDatabase+` WITH (FORCE)`), os.RemoveAll(dir))
	}()
	// Data that the previous process left unwritten must not count for this one.
	if err := r.exec(ctx, `CHECKPOINT`); err != nil {
		return err
	}
	spec := trial.Spec{Peer: peer, DSN: onDatabase(r.measuredDSN, name), Workloads: r.workloads(g, peer), Dir: dir, Server: r.programs[peer], Committers: r.committers}
	if throughRedis[peer] {
		spec.Redis = r.redis + "?namespace=" + name
	}
	if throughRabbitMQ[peer] {
		spec.RabbitMQ = r.rabbitmq + "?namespace=" + name
	}
	if r.profile != "" {
		spec.Profile = filepath.Join(r.profile, fmt.Sprintf("%s-%s-%d.pprof", peer, g.name, round+1))
	}
	begin := time.Now()
	results, err := r.start(ctx, spec, g.most())
	if err != nil {
		if ctx.Err() != nil || peer == allPeers[0] {
			return err // a table without Pawl is useless
		}
		r.skipped[peer] = fmt.Sprintf("failed in %s: %v", g.name, err)
		say("%s left out: %v", peer, err)
		return nil
	}
	var shown []string
	i := 0
	for _, row := range g.rows {
		if !has(peer, row.Workload.Name) {
			continue
		}
		for _, m := range row.metrics {
			if v, ok := results[i][m]; ok {
				c := cell{row.name, m, peer}
				r.measured[c] = append(r.measured[c], v)
			}
		}
		shown = append(shown, fmt.Sprintf("%s %s", figure(results[i][row.metrics[0]]), row.metrics[0]))
		i++
	}
	say("round %d  %-9s %-12s %s  (%.1f s)", round+1, g.name, peer, strings.Join(shown, ", "), time.Since(begin).Seconds())
	return nil
}

// start runs the process of one trial.
func (r *runner) start(ctx context.Context, spec trial.Spec, most time.Duration) ([]trial.Result, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	args := []string{trialFlag, string(text)}
	if spec.Peer == "temporal" {
		program, args = r.programs[spec.Peer], args[1:]
	}
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var out, errs bytes.Buffer
	c := exec.CommandContext(limited, program, args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, lastLine(errs.Bytes()))
	}
	// Some peers print to standard output even with another logger; the results are the last line.
	var results []trial.Result
	if err := json.Unmarshal([]byte(lastLine(out.Bytes())), &results); err != nil {
		return nil, fmt.Errorf("read the trial's results: %w", err)
	}
	if len(results) != len(spec.Workloads) {
		return nil, fmt.Errorf("%d results of %d workloads", len(results), len(spec.Workloads))
	}
	return results, nil
}

// onDatabase is the DSN of another database on the same server.
func onDatabase(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return dsn + " dbname=" + name // in a key=value DSN, the last word wins
	}
	u.Path = "/" + name
	return u.String()
}

func (r *runner) exec(ctx context.Context, statements ...string) error {
	c, err := pgx.Connect(ctx, r.dsn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = c.Close(ctx) }()
	for _, s := range statements {
		if _, err := c.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func (r *runner) ask(ctx context.Context, query string) (answer string, err error) {
	c, err := pgx.Connect(ctx, r.dsn)
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = c.Close(ctx) }()
	err = c.QueryRow(ctx, query).Scan(&answer)
	return answer, err
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
