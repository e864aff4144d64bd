package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime/docker"
	"github.com/pawl-run/pawl/internal/runtime/process"
	"github.com/pawl-run/pawl/internal/runtime/sandbox"
)

// The checks say of a text what is wrong with it as the value of a setting.

func atLeast(least int) func(string) error {
	return func(s string) error {
		if n, err := strconv.Atoi(s); err != nil || n < least || n > 10_000 {
			return fmt.Errorf("%.40q is not a number from %d to 10000", s, least)
		}
		return nil
	}
}

func oneOf(values ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(values, s) {
			return fmt.Errorf("%.40q is none of %s", s, strings.Join(values, ", "))
		}
		return nil
	}
}

// runtimeNames are the runtimes that there are, in the order in which pawl doctor shows them.
var runtimeNames = []string{sandbox.Name, docker.Name, process.Name}

func checkLabels(s string) error {
	_, err := flow.ParseLabels(s)
	return err
}

func checkRuntimes(s string) error {
	c := config{values: map[string]string{"runtime": s}}
	names := c.list("runtime")
	if len(names) == 0 {
		return errors.New("no runtime is named: write at least one, such as sandbox")
	}
	for i, name := range names {
		if err := oneOf(runtimeNames...)(name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%q is named twice", name)
		}
	}
	return nil
}

func checkDuration(s string) error {
	_, err := parseDuration(s)
	return err
}

func checkWarm(s string) error {
	if s == "auto" {
		return nil
	}
	if n, err := strconv.Atoi(s); err != nil || n < 0 || n > 1000 {
		return fmt.Errorf("%.40q is neither auto nor a number from 0 to 1000", s)
	}
	return nil
}

func checkKeep(s string) error {
	d, err := parseDuration(s)
	if err == nil && d < time.Second {
		err = fmt.Errorf("%.40q is too short: give 1s or more, or set warm_sandboxes to 0", s)
	}
	return err
}

func checkLease(s string) error {
	d, err := parseDuration(s)
	if err == nil && (d < time.Second || d > 10*time.Minute) {
		err = fmt.Errorf("%.40q is out of range: give 1s to 10m", s)
	}
	return err
}

// parseDuration reads a duration that is not negative; days are understood as well.
func parseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	if s == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%.40q is not a duration: write it as in 30s, 12h or 30d", s)
	}
	return d, nil
}

func checkStore(s string) error {
	if path, ok := strings.CutPrefix(s, "sqlite:"); s == "sqlite" || (ok && path != "") || isPostgres(s) {
		return nil
	}
	return fmt.Errorf("%.60q is not a database: write sqlite, sqlite:PATH or postgres://USER@HOST/DATABASE", redacted(s))
}

// isPostgres reports whether a database is one that several processes can share.
func isPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

func checkQueues(s string) error {
	c := config{values: map[string]string{"queues": s}}
	if len(c.list("queues")) == 0 {
		return errors.New("no queue is named: write at least one, such as default")
	}
	return nil
}

// redacted hides the password in a URL.
func redacted(value string) string {
	if u, err := url.Parse(value); err == nil && u.User != nil {
		return u.Redacted()
	}
	return value
}
