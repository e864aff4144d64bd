package redis

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// oldest is the first major version whose XAUTOCLAIM skips deleted entries, instead of returning nothing for them.
const oldest = 7

// check reports whether this server, a Redis or a Valkey, can be used.
func (f *Broker) check(ctx context.Context) error {
	info, err := f.info(ctx)
	if err != nil {
		return err
	}
	version := info["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldest {
		return fmt.Errorf("the broker is Redis %s: version %d or later is needed, or Valkey", version, oldest)
	}
	if err := f.readClock(ctx); err != nil {
		return err
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		return fmt.Errorf("the broker's maxmemory-policy is %s: when its memory is full it would delete what servers and workers say to each other, "+
			"and all work would wait; set maxmemory-policy noeviction in redis.conf, or by redis-cli CONFIG SET maxmemory-policy noeviction", policy)
	}
	return f.claimNamespace(ctx)
}

func (f *Broker) info(ctx context.Context) (map[string]string, error) {
	text, err := f.client.Do(ctx, f.client.B().Info().Build()).ToString()
	if err != nil {
		return nil, failed(ctx, "look at the server", err)
	}
	info := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}

// limits returns which of Redis's own limits is near, that is, more than four fifths used: connections or memory.
func limits(info map[string]string) (concern, remedy string) {
	near := func(used, most string) bool {
		u, err := strconv.ParseInt(info[used], 10, 64)
		m, err2 := strconv.ParseInt(info[most], 10, 64)
		return err == nil && err2 == nil && m > 0 && u > m/5*4
	}
	switch {
	case near("used_memory", "maxmemory"):
		return fmt.Sprintf("it uses %s of its maxmemory of %s bytes", info["used_memory"], info["maxmemory"]), "raise maxmemory: when it is full nothing can be sent, and workers wait"
	case near("connected_clients", "maxclients"):
		return fmt.Sprintf("it has %s connections and maxclients is %s", info["connected_clients"], info["maxclients"]), "raise maxclients to twice the number of workers and 1,000: beyond it workers cannot connect"
	}
	return "", ""
}

// wrongType reports whether a key has another type than the one that Pawl has given it.
func wrongType(err error) bool { return err != nil && strings.Contains(err.Error(), "WRONGTYPE") }

// repair deletes the keys of the namespace that have another type, for example a list in place of a line, which another program has put
// there. They are made again like keys that were lost. Reply queues are not among them: their owners make new ones.
func (f *Broker) repair(ctx context.Context) error {
	keys := []string{f.key("bytes"), f.key("meta"), f.key("dead")}
	for _, line := range brokerrpc.Lines() {
		keys = append(keys, f.line(line))
	}
	deleted, err := repairScript.Exec(ctx, f.client, keys, nil).AsStrSlice()
	if err != nil {
		return failed(ctx, "look for keys of another type", err)
	}
	for _, key := range deleted {
		f.log.Warn("another program has replaced a key of Pawl by one of another type: it is deleted and made again, and its messages "+
			"are sent again; keep other programs from keys that begin with pawl:", "key", key)
	}
	return nil
}

// claimNamespace registers the namespace for this installation, unless another one has it.
func (f *Broker) claimNamespace(ctx context.Context) error {
	if f.o.Installation == "" {
		return nil
	}
	if err := f.repair(ctx); err != nil {
		return err
	}
	meta := f.key("meta")
	if err := f.do(ctx, "HSETNX", meta, "installation", f.o.Installation).Error(); err != nil {
		return failed(ctx, "register the namespace", err)
	}
	owner, err := f.do(ctx, "HGET", meta, "installation").ToString()
	if err != nil {
		return failed(ctx, "read the owner of the namespace", err)
	}
	if owner != f.o.Installation {
		return brokerrpc.OtherInstallation(f.namespace, "delete the key "+meta)
	}
	return nil
}

func (f *Broker) Health(ctx context.Context) (h brokerrpc.Health, err error) {
	info, err := f.info(ctx)
	if err != nil {
		return h, err
	}
	h.Product = "Redis " + info["redis_version"]
	h.Concern, h.Remedy = limits(info)
	if h.Lines, err = f.Backlog(ctx); err != nil {
		return h, err
	}
	h.Dead, err = f.do(ctx, "XLEN", f.key("dead")).AsInt64()
	if err != nil {
		return h, failed(ctx, "count dead letters", err)
	}
	return h, nil
}
