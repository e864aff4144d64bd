package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/duration"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/runtime/docker"
	"github.com/pawl-run/pawl/internal/runtime/process"
	"github.com/pawl-run/pawl/internal/runtime/sandbox"
)

// The checks return an error if a text is not valid for the setting.

func checkSlots(s string) error {
	if n, err := strconv.Atoi(s); err != nil || n < 0 || n > 10_000 {
		return fmt.Errorf("%.40q is not a number from 0 to 10000", s)
	}
	return nil
}

// span checks a duration between two others.
func span(least, most string) func(string) error {
	low, _ := duration.Parse(least)
	high, _ := duration.Parse(most)
	return func(s string) error {
		d, err := duration.Parse(s)
		if err == nil && (d < low || d > high) {
			err = fmt.Errorf("%.40q is out of range: give %s to %s", s, least, most)
		}
		return err
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

// RuntimeNames are the existing runtimes, in the order of pawl doctor.
var RuntimeNames = []string{sandbox.Name, docker.Name, Kubernetes, process.Name}

// Isolating is a runtime for an execution of a kind, which must isolate: the named one if it isolates; else docker
// for a container; else the first isolating one of the setting, or the sandbox.
func (c *Config) Isolating(name string, kind flow.Kind) string {
	isolates := func(name string) bool { return name != process.Name && slices.Contains(RuntimeNames, name) }
	configured := c.List("runtime")
	switch i := slices.IndexFunc(configured, isolates); {
	case isolates(name):
		return name
	case kind == flow.KindContainer:
		return docker.Name
	case i >= 0:
		return configured[i]
	}
	return sandbox.Name
}

// Kubernetes is the runtime that only cmd/pawl-kubernetes has; every program knows its settings.
const Kubernetes = "kubernetes"

// Wires are the protocols of other evaluators that the setting compat accepts: those of SandboxFusion, open-instruct, Piston and Judge0.
var Wires = []string{"run_code", "test_program", "piston", "judge0"}

func checkWires(s string) error {
	c := Config{Values: map[string]string{"compat": s}}
	for _, name := range c.List("compat") {
		if !slices.Contains(Wires, name) {
			return fmt.Errorf("%.40q is not a protocol that pawl server speaks: %s", name, problem.NearestOr(name, Wires, "one of"))
		}
	}
	return nil
}

func checkLabels(s string) error {
	_, err := flow.ParseLabels(s)
	return err
}

func checkRuntimes(s string) error {
	c := Config{Values: map[string]string{"runtime": s}}
	names := c.List("runtime")
	if len(names) == 0 {
		return errors.New("no runtime is named: write at least one, such as sandbox")
	}
	for i, name := range names {
		if err := oneOf(RuntimeNames...)(name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%q is named twice", name)
		}
	}
	return nil
}

func checkDuration(s string) error {
	_, err := duration.Parse(s)
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

func checkCeiling(s string) error {
	if s == "auto" {
		return nil
	}
	if err := checkSize(s); err != nil {
		return fmt.Errorf("%w; or give auto", err)
	}
	return nil
}

func checkPids(s string) error {
	if n, err := strconv.Atoi(s); err != nil || n < 1 || n > api.MaxPids {
		return fmt.Errorf("%.40q is not a number from 1 to %d", s, api.MaxPids)
	}
	return nil
}

func checkKeep(s string) error {
	d, err := duration.Parse(s)
	if err == nil && d < time.Second {
		err = fmt.Errorf("%.40q is too short: give 1s or more, or set warm_sandboxes to 0", s)
	}
	return err
}

func checkSize(s string) error {
	n, err := api.ParseSize(s)
	if err == nil && n == 0 {
		err = fmt.Errorf("%.40q is out of range: give 1 byte or more", s)
	}
	return err
}

// Size is a setting that is a size; checkSize has checked it.
func (c *Config) Size(key string) int64 {
	n, _ := api.ParseSize(c.Values[key])
	return int64(n)
}

func checkStore(s string) error {
	if path, ok := strings.CutPrefix(s, "sqlite:"); s == "sqlite" || (ok && path != "") || IsPostgres(s) {
		return nil
	}
	return fmt.Errorf("%.60q is not a database: write sqlite, sqlite:PATH or postgres://USER@HOST/DATABASE", Redacted(s))
}

func checkNotify(s string) error {
	if s == "" || IsPostgres(s) {
		return nil
	}
	return fmt.Errorf("%.60q is not a PostgreSQL database: write postgres://USER@HOST/DATABASE", Redacted(s))
}

func checkBroker(s string) error {
	if s == "" {
		return nil
	}
	if u, err := url.Parse(s); err == nil && u.Host != "" && slices.Contains([]string{"redis", "rediss", "amqp", "amqps"}, u.Scheme) {
		return nil
	}
	return fmt.Errorf("%.60q is not a broker: write redis://HOST:6379 or amqp://USER:PASSWORD@HOST:5672/VHOST (rediss:// and amqps:// for TLS)", Redacted(s))
}

// IsPostgres reports whether several processes can share a database.
func IsPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

func checkQueues(s string) error {
	c := Config{Values: map[string]string{"queues": s}}
	if len(c.List("queues")) == 0 {
		return errors.New("no queue is named: write at least one, such as default")
	}
	return nil
}

// Redacted hides the password in a URL. In a URL with an unescaped "@" or "/" in the password, everything up to the last "@"
// may be part of it.
func Redacted(value string) string {
	value = passwords.ReplaceAllString(value, "${1}xxxxx")
	scheme, rest, ok := strings.Cut(value, "://")
	end := strings.LastIndex(rest, "@")
	if !ok || end < 0 {
		return value
	}
	user, _, has := strings.Cut(rest[:end], ":")
	if !has {
		return value
	}
	return scheme + "://" + user + ":xxxxx" + rest[end:]
}

// passwords matches those in the parameters of a URL, or in a list such as "host=h password=p".
var passwords = regexp.MustCompile(`(password\s*=\s*)('[^']*'|[^&\s]*)`)

func checkListen(s string) error {
	_, port, err := net.SplitHostPort(s)
	n, fault := strconv.Atoi(port)
	if err != nil || fault != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%.60q is not an address to listen on: write host and port, as in %s, or :7411 for all addresses", s, defaultListen)
	}
	return nil
}

// InStore is the value of the setting blobs for the database of the executions.
const InStore = "store"

func IsBucket(place string) bool { return strings.HasPrefix(place, "s3://") }

// CheckBlobs returns an error if a value is not valid for the setting blobs.
func CheckBlobs(s string) error {
	c := Config{Values: map[string]string{"blobs": s}}
	places := c.List("blobs")
	if len(places) == 0 {
		return fmt.Errorf("no place is named: write %s, a directory's path, or s3://BUCKET", InStore)
	}
	for i, place := range places {
		switch {
		case place == InStore, filepath.IsAbs(place), IsBucket(place):
		case strings.Contains(s, "@"): // any item may be part of a secret that contains a comma
			return fmt.Errorf("place %d is neither %s nor a directory's path from the root nor s3://BUCKET; in s3://KEY:SECRET@BUCKET write %%2C for a comma", i+1, InStore)
		default:
			return fmt.Errorf("%.60q is neither %s nor a directory's path from the root nor s3://BUCKET", place, InStore)
		}
	}
	return nil
}
