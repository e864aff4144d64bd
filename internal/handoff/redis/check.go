package redis

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/handoff/post"
)

// oldest is the first major version whose XAUTOCLAIM passes over what was deleted, instead of returning nothing for it.
const oldest = 7

// check looks whether this Redis, or Valkey, will do.
func (f *Office) check(ctx context.Context) error {
	info, err := f.info(ctx)
	if err != nil {
		return err
	}
	version := info["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldest {
		return fmt.Errorf("the broker is Redis %s: version %d or later is needed", version, oldest)
	}
	if err := f.readClock(ctx); err != nil {
		return err
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		f.log.Warn("Redis may evict what workers and servers say to each other when its memory is full: nothing is lost for good, and all of it waits; set maxmemory-policy noeviction", "maxmemory_policy", policy)
	}
	return f.claimNamespace(ctx)
}

func (f *Office) info(ctx context.Context) (map[string]string, error) {
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

// claimNamespace notes that the namespace is this installation's, unless it is another one's.
func (f *Office) claimNamespace(ctx context.Context) error {
	if f.o.Installation == "" {
		return nil
	}
	meta := f.key("meta")
	if err := f.do(ctx, "HSETNX", meta, "installation", f.o.Installation).Error(); err != nil {
		return failed(ctx, "note whose the namespace is", err)
	}
	owner, err := f.do(ctx, "HGET", meta, "installation").ToString()
	if err != nil {
		return failed(ctx, "look whose the namespace is", err)
	}
	if owner != f.o.Installation {
		return post.OtherInstallation("delete the key " + meta)
	}
	return nil
}

// Health implements post.Broker.
func (f *Office) Health(ctx context.Context) (h post.Health, err error) {
	info, err := f.info(ctx)
	if err != nil {
		return h, err
	}
	h.Product = "Redis " + info["redis_version"]
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		h.Concern = "it evicts (" + policy + ")"
		h.Remedy = "set maxmemory-policy noeviction: what is evicted is sent again, and everything waits for it"
	}
	if h.Lines, err = f.Backlog(ctx); err != nil {
		return h, err
	}
	h.Dead, err = f.do(ctx, "XLEN", f.key("dead")).AsInt64()
	if err != nil {
		return h, failed(ctx, "count dead letters", err)
	}
	return h, nil
}
