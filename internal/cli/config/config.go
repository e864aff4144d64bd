// Package config contains the settings: their names, defaults and checks, and the sources of their values.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"github.com/pawl-run/pawl/internal/duration"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/task"
)

// Setting is one item of configuration: it is set by flag, environment variable or file, or has its default.
type Setting struct {
	key    string // name in the file; the flag has dashes, the variable is PAWL_KEY
	value  string // default
	doc    string
	Alias  string // another variable, read if PAWL_KEY is not set
	File   bool   // can also be read from the file named by KEY_FILE
	secret bool   // never printed
	on     string // the only command with a flag for it; empty: all commands have it
	check  func(string) error
}

// Flag is the setting's flag, without the dashes in front.
func (s *Setting) Flag() string { return strings.ReplaceAll(s.key, "_", "-") }

func (s *Setting) Variable() string { return "PAWL_" + strings.ToUpper(s.key) }

const defaultListen = "127.0.0.1:7411"

// Settings are in the order in which `pawl config print` shows them.
var Settings = []Setting{
	{key: "server", doc: "URL of the server to work with; empty: an engine in this process"},
	{key: "token", doc: "token for the server, or that the server asks for", File: true, secret: true},
	{key: "broker", doc: "a message broker, as redis://[USER:PASSWORD@]HOST[:PORT] or amqp://[USER:PASSWORD@]HOST[:PORT][/VHOST], or rediss:// and amqps:// for TLS, through which pawl server serves workers and pawl worker works; ?namespace=NAME where several installations share one", File: true, check: checkBroker},
	{key: "state_dir", doc: "where an engine of this process keeps everything (default $XDG_STATE_HOME/pawl)"},
	{key: "store", value: "sqlite", doc: "the database: sqlite (a file in the state directory), sqlite:PATH or postgres://…", Alias: "PAWL_DATABASE_URL", File: true, check: checkStore},
	{key: "store_notify", doc: "where store goes through pgbouncer: a DSN that reaches PostgreSQL itself, for notifications between servers; empty: the store's, or none behind pgbouncer", File: true, check: checkNotify},
	{key: "blobs", value: InStore, doc: "where files and logs lie that are too big for a row: store (in the database where that is PostgreSQL, else in the state directory), a directory's path, or s3://BUCKET/PREFIX?endpoint=URL; after the first, by commas, where they lay before", File: true, check: CheckBlobs},
	{key: "listen", value: defaultListen, doc: "address that pawl server answers on", on: "server", check: checkListen},
	{key: "ui", value: "on", doc: "the web page of pawl server: on, off, or the directory to read it from, for work on the page", on: "server"},
	{key: "compat", doc: "protocols of other evaluators that pawl server speaks beneath /compat/NAME/, by commas: " + strings.Join(Wires, ", ") + "; empty: none", on: "server", check: checkWires},
	{key: "slots", value: "0", doc: "how many executions run at once here; 0: two per processor core, which suits work that waits; give as many as cores to grade programs that compute", check: checkSlots},
	{key: "queues", value: "default", doc: "the queues that workers here serve, by commas; a server makes them known when it starts, with --no-worker too", check: checkQueues},
	{key: "labels", doc: "labels of the workers here, as in gpu=a100,zone=eu; they get, beside what asks for none, what asks for some of these", check: checkLabels},
	{key: "runtime", value: "sandbox", doc: "where work runs, by commas, the first for code that asks for none: sandbox; docker for containers; kubernetes for containers as pods, in pawl-kubernetes; process for code that you trust as yourself", check: checkRuntimes},
	{key: "docker_image", doc: "image in which code runs that asks for runtime docker; empty: it runs containers only"},
	{key: "docker_pull", value: "missing", doc: "when images are fetched that a task says nothing about: missing, always or never", check: oneOf("missing", "always", "never")},
	{key: "docker_runtime", doc: "what the engine runs containers with, by its name there, such as runsc; empty: the engine's default"},
	{key: "docker_networks", doc: "networks of the engine that containers may ask for, by commas; empty: none"},
	{key: "kubernetes_config", doc: "the kubeconfig of the cluster that runtime kubernetes runs pods in; empty: the cluster that this process is in, or else KUBECONFIG"},
	{key: "kubernetes_namespace", doc: "the namespace of the pods; empty: the kubeconfig's, or that of the pod that this process is in"},
	{key: "kubernetes_helper_image", doc: "the image with Pawl's helper for pods, of the same release; runtime kubernetes needs it"},
	{key: "kubernetes_image", doc: "image in which code runs that asks for runtime kubernetes; empty: it runs containers only"},
	{key: "kubernetes_pull", value: "missing", doc: "when nodes fetch images that a task says nothing about: missing, always or never", check: oneOf("missing", "always", "never")},
	{key: "kubernetes_networks", doc: "networks that pods may ask for, by commas, for network policies to tell apart; empty: none"},
	{key: "kubernetes_runtime_class", doc: "the RuntimeClass of the pods, such as gvisor; empty: the nodes' default"},
	{key: "kubernetes_template", doc: "a file with what is to be said of all pods beside what Pawl says: labels, node selectors, tolerations, GPUs, pull secrets; empty: nothing"},
	{key: "kubernetes_registry_logins", doc: "a file like Docker's config.json, with which a worker asks registries for the entrypoints of images; empty: it asks without"},
	{key: "kubernetes_orphan_after", value: "2m", doc: "how long a pod's program goes on without its worker, from 10s to 24h", check: span("10s", "24h")},
	{key: "warm_sandboxes", value: "auto", doc: "how many sandboxes are kept built ahead of the runs that they are for, at about 1 MB each; auto: one per slot in pawl server and pawl worker, none in other commands", check: checkWarm},
	{key: "keep_warm", value: "10m", doc: "how long sandboxes are kept built ahead when nothing runs in any; the next run fills the pool again", check: checkKeep},
	{key: "pin_cpus", value: "false", doc: "true: each run in the sandbox has processors of its own while there are enough, as many as limits.cpus or else one", check: oneOf("true", "false")},
	{key: "max_memory", value: "auto", doc: "the most memory that one program may ask for, as in 2GB; auto: on workers the machine's memory divided by slots, and 512MB at least, but nothing where programs run as pods", check: checkCeiling},
	{key: "max_disk", value: "auto", doc: "the most disk that one program may ask for, which lies in memory; auto: as max_memory", check: checkCeiling},
	{key: "max_output", value: "1GiB", doc: "the most output that one program may ask for", check: checkSize},
	{key: "max_stack", value: "1GiB", doc: "the largest stack that one program may ask for", check: checkSize},
	{key: "max_pids", value: "10000", doc: "the most processes and threads that one program may ask for, up to 100000", check: checkPids},
	{key: "kill_grace", value: "10s", check: span("0s", "10m"),
		doc: "how long a program may go on after SIGTERM when it is cancelled or takes longer than its timeout, " +
			"until it is killed, up to 10m; 0: it is killed at once, as always at its own limits"},
	{key: "idle_limit", value: "10m", check: span("0s", "24h"),
		doc: "how long an interactive program may be given no input and write no output until it is ended, up to 24h; 0: until its own limits"},
	{key: "max_interactive", value: "24h", check: span("1s", "24h"),
		doc: "the longest wall and CPU time that an interactive program may ask for, up to 24h"},
	{key: "allow_degraded", value: "false", doc: "true: pawl server and pawl worker start where there are no cgroups, and limits are held by rlimits and a sampling watchdog only", check: oneOf("true", "false")},
	{key: "signal_retention", value: "168h", doc: "how long signals are kept; 0: for ever", check: checkDuration},
	{key: "retention", value: "720h", doc: "how long finished executions are kept; 0: for ever", check: checkDuration},
	{key: "lease", value: "30s", doc: "how long a worker may be silent until its work is done again elsewhere, from 1s to 10m; the same for all servers of a database", on: "server", check: span("1s", "10m")},
	{key: "upload_limit", value: "1GiB", doc: "how large one content may be that is uploaded for submissions to name, as in 500MB", on: "server", check: checkSize},
	{key: "allow_hosts", doc: "hosts, addresses or networks that http and llm tasks may reach though they are private, by commas; * for all"},
	{key: "llm_keys", doc: "environment variables that llm tasks may name as their api_key_env, as NAME, NAME@host or NAME@host:port, by commas; one for a host goes over https only"},
	{key: "webhook_secrets", doc: "environment variables and files (absolute paths) that webhook tasks may name as their secret, as NAME, NAME@host or NAME@host:port, and those that documents of kind webhook may name, as NAME@hooks, by commas; one for a host is used over https only"},
	{key: "log_level", value: "warn", doc: "debug, info, warn or error", check: oneOf("debug", "info", "warn", "error")},
}

// Config is the configuration of one call.
type Config struct {
	Values map[string]string
	Source map[string]string // the source of a value, for people

	Languages *task.Languages // the built-in profiles, the file's, and the recipes whose tools this host has
	profiles  *yaml.Node      // the file's profiles as written; nil: none
}

func (c *Config) Text(key string) string { return c.Values[key] }

// List is the items of a setting with commas.
func (c *Config) List(key string) []string {
	var all []string
	for s := range strings.SplitSeq(c.Values[key], ",") {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// Labels are the labels of this process's workers.
func (c *Config) Labels() map[string]string {
	labels, _ := flow.ParseLabels(c.Values["labels"]) // checked by Load
	return labels
}

// Slots is the number of executions that run at the same time.
func (c *Config) Slots() int {
	n, _ := strconv.Atoi(c.Values["slots"]) // checked when it was read
	n = cmp.Or(n, 2*goruntime.NumCPU())
	return n
}

// Warm is the number of sandboxes built in advance; stays is true for a command that runs until it is stopped.
func (c *Config) Warm(stays bool) int {
	switch text := c.Values["warm_sandboxes"]; {
	case text != "auto":
		n, _ := strconv.Atoi(text) // checked by Load
		return n
	case stays:
		return c.Slots()
	}
	return 0
}

func (c *Config) Duration(key string) time.Duration {
	d, _ := duration.Parse(c.Values[key]) // checked by Load
	return d
}

// Declare adds the flags of the settings that only the named command has; "" selects those that all commands have.
func Declare(flags *pflag.FlagSet, command string) {
	if command == "" {
		flags.String("config", "", "configuration file (default pawl.yaml in the state directory or in $XDG_CONFIG_HOME/pawl)")
	}
	for _, s := range Settings {
		if s.on != command {
			continue
		}
		doc := s.doc + " [$" + s.Variable() + "]"
		if s.File {
			flags.String(s.Flag()+"-file", "", "file that holds what --"+s.Flag()+" takes [$"+s.Variable()+"_FILE]")
		}
		flags.String(s.Flag(), s.value, doc)
		if s.value == "false" {
			flags.Lookup(s.Flag()).NoOptDefVal = "true"
		}
	}
}

// Load reads flags, then the environment, then the file, then the defaults: the first source with a value wins.
func Load(flags *pflag.FlagSet, getenv func(string) string) (Config, error) {
	c := Config{Values: map[string]string{}, Source: map[string]string{}, Languages: task.BuiltInLanguages()}
	for _, s := range Settings {
		c.Values[s.key], c.Source[s.key] = s.value, "default"
	}
	c.Values["state_dir"] = defaultStateDir(getenv)
	var problems []error
	overlay := func() {
		for _, s := range Settings {
			if err := c.overlay(&s, flags, getenv); err != nil {
				problems = append(problems, err)
			}
		}
	}
	overlay() // for the state directory, which may contain the file
	problems = nil
	if err := c.readFile(flags, getenv); err != nil {
		return c, err
	}
	c.Languages = c.Languages.WithRecipes()
	overlay()
	for _, s := range Settings {
		if s.check == nil {
			continue
		}
		if err := s.check(c.Values[s.key]); err != nil {
			problems = append(problems, fmt.Errorf("%s (%s): %w", s.key, c.Source[s.key], err))
		}
	}
	if key := "store_notify"; c.Text(key) != "" && !IsPostgres(c.Text("store")) {
		problems = append(problems, fmt.Errorf("%s (%s): it is for a store on PostgreSQL that several servers share, and the store is %s", key, c.Source[key], Redacted(c.Text("store"))))
	}
	return c, errors.Join(problems...)
}

// overlay takes a setting from the environment or its flag.
func (c *Config) overlay(s *Setting, flags *pflag.FlagSet, getenv func(string) string) error {
	for _, name := range []string{s.Alias, s.Variable()} { // the last one wins
		if name == "" {
			continue
		}
		if v := getenv(name); v != "" {
			c.Values[s.key], c.Source[s.key] = v, "$"+name
		} else if path := getenv(name + "_FILE"); s.File && path != "" {
			if err := c.readSecret(s, path, "$"+name+"_FILE"); err != nil {
				return err
			}
		}
	}
	if flags == nil {
		return nil
	}
	if f := flags.Lookup(s.Flag()); f != nil && f.Changed {
		c.Values[s.key], c.Source[s.key] = f.Value.String(), "--"+s.Flag()
	} else if f := flags.Lookup(s.Flag() + "-file"); s.File && f != nil && f.Changed {
		return c.readSecret(s, f.Value.String(), "--"+s.Flag()+"-file")
	}
	return nil
}

func (c *Config) readSecret(s *Setting, path, source string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", source, err)
	}
	text := strings.TrimSpace(string(b))
	if text == "" { // without this a server whose secret was not mounted would take requests without a token
		return fmt.Errorf("%s: the file %s is empty: write the value of %s into it, or leave the setting out", source, path, s.key)
	}
	c.Values[s.key], c.Source[s.key] = text, source
	return nil
}

func (c *Config) readFile(flags *pflag.FlagSet, getenv func(string) string) error {
	path, named := "", false
	if flags != nil {
		if f := flags.Lookup("config"); f != nil && f.Changed {
			path, named = f.Value.String(), true
		}
	}
	if v := getenv("PAWL_CONFIG"); !named && v != "" {
		path, named = v, true
	}
	places := []string{filepath.Join(c.Text("state_dir"), "pawl.yaml"), filepath.Join(configHome(getenv), "pawl", "pawl.yaml")}
	if named {
		places = []string{path}
	}
	for _, p := range places {
		b, err := os.ReadFile(p)
		if errors.Is(err, fs.ErrNotExist) && !named {
			continue
		}
		if err != nil && !named && filepath.Dir(p) == c.Text("state_dir") {
			return fmt.Errorf("the state directory %s cannot be used: %w; give another with --state-dir", c.Text("state_dir"), err)
		}
		if err != nil {
			return fmt.Errorf("read configuration: %w", err)
		}
		return c.parse(p, b)
	}
	return nil
}

// parse reads a file and reports everything that is wrong in it, by line.
func (c *Config) parse(path string, b []byte) error {
	var doc yaml.Node
	if err := yaml.Load(b, &doc); err != nil {
		if len(bytes.TrimSpace(b)) == 0 {
			return nil
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(doc.Content) == 0 {
		return nil
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: want settings as in \"slots: 4\"", path, top.Line)
	}
	var problems []error
	lines := map[string]int{} // where each setting is
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if first := lines[key.Value]; first > 0 {
			err := fmt.Errorf("%s:%d:%d: %s is on line %d as well: leave one out", path, key.Line, key.Column, key.Value, first)
			problems = append(problems, err)
			continue
		}
		lines[key.Value] = key.Line
		if key.Value == profilesKey {
			languages, err := readProfiles(path, value)
			if err == nil {
				c.Languages, c.profiles = languages, value
			}
			problems = append(problems, err)
			continue
		}
		text, err := scalars(value)
		secretFile := strings.TrimSuffix(key.Value, "_file")
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("%s:%d:%d: %s: %w", path, value.Line, value.Column, key.Value, err))
		case known(key.Value) != nil:
			c.Values[key.Value], c.Source[key.Value] = text, path
		case secretFile != key.Value && known(secretFile) != nil && known(secretFile).File:
			if err := c.readSecret(known(secretFile), text, path); err != nil {
				problems = append(problems, err)
			}
		default:
			fix := cmp.Or(problem.Nearest(key.Value, settingKeys()), "one of "+SettingKeys())
			problems = append(problems, fmt.Errorf("%s:%d:%d: %q is not a setting: %s", path, key.Line, key.Column, key.Value, fix))
		}
	}
	return errors.Join(problems...)
}

// scalars reads a value, or a list of values as one text with commas.
func scalars(n *yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value, nil
	case yaml.SequenceNode:
		var all []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return "", errors.New("want a list of plain values")
			}
			all = append(all, item.Value)
		}
		return strings.Join(all, ","), nil
	}
	return "", errors.New("want a plain value or a list of them")
}

func known(key string) *Setting {
	if i := slices.IndexFunc(Settings, func(s Setting) bool { return s.key == key }); i >= 0 {
		return &Settings[i]
	}
	return nil
}

func SettingKeys() string { return strings.Join(settingKeys(), ", ") }

func settingKeys() (keys []string) {
	for _, s := range Settings {
		keys = append(keys, s.key)
	}
	return append(keys, profilesKey)
}

func defaultStateDir(getenv func(string) string) string {
	if d := getenv("XDG_STATE_HOME"); d != "" {
		return filepath.Join(d, "pawl")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "state", "pawl")
	}
	return filepath.Join(os.TempDir(), "pawl-"+strconv.Itoa(os.Getuid()))
}

func configHome(getenv func(string) string) string {
	if d := getenv("XDG_CONFIG_HOME"); d != "" {
		return d
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "/nonexistent"
	}
	return filepath.Join(home, ".config")
}

// Print writes the settings as a configuration file; secrets are left out.
func (c *Config) Print() string {
	var b strings.Builder
	for _, s := range Settings {
		value := Redacted(c.Values[s.key])
		if value != "" && strings.ContainsAny(value, ":#{}[]*&!|>'\"%@` ") {
			value = strconv.Quote(value)
		}
		fmt.Fprintf(&b, "# %s\n", s.doc)
		switch {
		case s.secret && value != "":
			fmt.Fprintf(&b, "# %s: (set, not shown)  # %s\n", s.key, c.Source[s.key])
		case value == "":
			fmt.Fprintf(&b, "# %s:\n", s.key)
		default:
			fmt.Fprintf(&b, "%s: %s  # %s\n", s.key, value, c.Source[s.key])
		}
	}
	fmt.Fprintf(&b, "# profiles of languages beside the built-in ones; see pawl languages --help\n")
	if c.profiles == nil {
		fmt.Fprintf(&b, "# %s:\n", profilesKey)
	} else if text, err := yaml.Dump(map[string]*yaml.Node{profilesKey: c.profiles}, yaml.WithIndent(2)); err == nil { // was parsed before
		b.Write(text)
	}
	return b.String()
}

func (c *Config) Tokens() []string {
	if t := c.Text("token"); t != "" {
		return []string{t}
	}
	return nil
}
