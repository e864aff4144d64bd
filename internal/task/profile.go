package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime"
)

// Profile describes a language: how its tool is found, and how its programs are built and run. In the argument lists, {tool}
// stands for the interpreter or compiler, {file} for the source, {program} for the output of the compile step, {memory} for the
// memory limit in bytes, {processors} for the number of processors that a run may use, {std} for the prepared standard library,
// and {sources} and {flags}, which must be whole arguments, for all sources, and for the standard and the flags of a request.
type Profile struct {
	Name       string            `json:"name"`
	Aliases    []string          `json:"aliases,omitempty"`
	Extensions []string          `json:"extensions,omitempty"` // of sources, without the dot
	File       string            `json:"file"`                 // the source's name in the working directory
	Files      map[string]string `json:"files,omitempty"`      // put beside the source, by path
	Tools      []string          `json:"tools,omitempty"`      // programs to look for, best first: names in PATH or absolute paths
	Version    []string          `json:"version,omitempty"`    // command that prints the tool's version in its first line
	Install    string            `json:"install,omitempty"`    // how to get the tool
	Compile    []string          `json:"compile,omitempty"`    // empty: there is no compile step
	Built      []string          `json:"built,omitempty"`      // files from the compile step for the run: paths, directories, patterns
	Run        []string          `json:"run"`
	// CheckSource makes the tool check the source without running it; an exit code other than 0 means that the source is
	// not well-formed. It runs after a program has failed with a message about syntax.
	CheckSource []string `json:"check,omitempty"`
	// Uncaught is a regular expression for the stderr line that the tool writes when an uncaught error ended the program with exit code 1.
	Uncaught string `json:"uncaught,omitempty"`
	// Message are regular expressions for what the tool writes to stderr about an error that has ended the program. The message consists
	// of the groups of the last match of the first matching expression; if none matches, it is the last line.
	Message []string `json:"message,omitempty"`
	// OutOfMemory is a regular expression for the stderr line that the tool writes when it is out of memory: the verdict is then oom.
	OutOfMemory string            `json:"out_of_memory,omitempty"`
	Mounts      []string          `json:"mounts,omitempty"` // host paths, read-only, in addition to those that the tool itself needs
	Env         map[string]string `json:"env,omitempty"`
	Limits      api.CodeLimits    `json:"limits,omitzero"` // defaults of a run
	// CompileLimits are the limits of the compile step.
	CompileLimits api.CodeLimits `json:"compile_limits,omitzero"`
	// Warm lets programs be forked from a started interpreter; nil: each starts its own. It is only for Python.
	Warm *Warm `json:"warm,omitempty"`
	// Like is the built-in language whose fields this profile inherits where it leaves them out.
	Like string `json:"like,omitempty"`
	// Override allows the profile to replace a built-in one of the same name.
	Override bool `json:"override,omitempty"`

	// find asks a built-in language's tool for its path and its needs.
	find func(f *finder, ctx context.Context, path string) (toolchain, error)
	// dialects are standards of C or C++, best first; the first that the compiler supports is used.
	dialects []string
	// compiles selects the files with the language's extensions that are part of {sources}; nil: all.
	compiles func(runtime.File) bool
	// forks is true if the interpreter can be a template.
	forks bool
	// caller calls functions of programs of the language; nil: they cannot be called.
	caller *caller
	// file returns the name that a source must have; nil: File.
	file func(source, file string) string
	// built inspects the output of the compile step for the source in the named file, and returns the files to add to it. A
	// *noProgram means that it cannot be started because of the source.
	built func(file string, built []runtime.File) ([]runtime.File, error)
}

// Warm configures interpreters from which programs are forked.
type Warm struct {
	Imports []string `json:"imports,omitempty"` // modules that the interpreter imports beforehand
}

// The defaults of a run, and of a compile step.
var (
	runLimits   = api.CodeLimits{Wall: api.Duration(10 * time.Second), Memory: 256e6, Pids: 64, Output: 10e6, Disk: 64e6}
	buildLimits = api.CodeLimits{Wall: api.Duration(60 * time.Second), CPU: api.Duration(120 * time.Second), Memory: 1e9, Pids: 256, Output: 1e6, Disk: 512e6}
)

// program is the name of the compile step's output, unless the profile sets another. No file may have this name.
const program = "main.bin"

// languageName are the profile's names, for look-ups.
func (p *Profile) languageName() language.Name {
	return language.Name{Name: p.Name, Aliases: p.Aliases, Extensions: p.Extensions, Calls: p.caller != nil}
}

func (p *Profile) compiled() bool { return len(p.Compile) > 0 }

// toolAtRun reports whether a run, and not only the compile step, needs the language's tool.
func (p *Profile) toolAtRun() bool {
	return !p.compiled() || slices.ContainsFunc(p.Run, func(arg string) bool { return strings.Contains(arg, "{tool}") })
}

// inImage is the toolchain in an image that contains the language's first tool in its search path.
func (p *Profile) inImage() (toolchain, error) {
	for _, list := range [][]string{p.Compile, p.Run} {
		if slices.ContainsFunc(list, func(arg string) bool { return strings.Contains(arg, "{std}") }) {
			return toolchain{}, Errorf(flow.CodeInvalidInput, "language: %s needs a library that is prepared on the worker's host, which an image does not have (leave runtime out, or use a container task)", p.Name)
		}
	}
	tc := toolchain{types: stripTypes}
	if len(p.dialects) > 0 {
		tc.dialect = p.dialects[0]
	}
	if len(p.Tools) > 0 {
		tc.tool = path.Base(p.Tools[0])
	}
	return tc, nil
}

// complete fills in the fields that a profile may leave out.
func (p *Profile) complete() {
	if p.File == "" {
		p.File = "main"
		if len(p.Extensions) > 0 {
			p.File += "." + p.Extensions[0]
		}
	}
	if p.compiled() && len(p.Built) == 0 {
		p.Built = []string{program}
	}
	if len(p.Run) == 0 {
		p.Run = []string{"{tool}", "{file}"}
		if p.compiled() {
			p.Run = []string{"./" + program}
		}
	}
	p.Limits = completed(p.Limits, runLimits)
	if p.compiled() {
		p.CompileLimits = completed(p.CompileLimits, buildLimits)
	}
}

func completed(l, defaults api.CodeLimits) api.CodeLimits {
	return *inForce(limitsOf(l).Or(limitsOf(defaults)))
}

// limitsOf converts limits of the API into a runtime's.
func limitsOf(l api.CodeLimits) runtime.Limits {
	return runtime.Limits{Wall: time.Duration(l.Wall), CPU: time.Duration(l.CPU), Memory: int64(l.Memory), Pids: l.Pids,
		CPUs: l.CPUs, Output: int64(l.Output), Disk: int64(l.Disk), Stack: int64(l.Stack)}
}

// inForce converts a runtime's limits into those of the API.
func inForce(l runtime.Limits) *api.CodeLimits {
	return &api.CodeLimits{Wall: api.Duration(l.Wall), CPU: api.Duration(l.CPU), Memory: api.Size(l.Memory), Pids: l.Pids,
		CPUs: l.CPUs, Output: api.Size(l.Output), Disk: api.Size(l.Disk), Stack: api.Size(l.Stack)}
}

// placeholders are the names that argument lists may contain in braces.
var placeholders = []string{
	"tool", "file", "sources", "flags", "program", "memory", "processors", "stack", "frames", "std", "types",
}

var moduleName = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`)

// Check returns all faults of a profile. Paths are relative to the profile.
func (p *Profile) Check() []api.FieldError {
	var faults []api.FieldError
	fault := func(at, value, message, fix string) {
		faults = append(faults, api.FieldError{Path: at, Value: value, Message: message, Fix: fix})
	}
	for i, alias := range p.Aliases {
		if err := language.CheckName(alias); err != nil {
			fault(fmt.Sprintf("aliases[%d]", i), alias, err.Error(), "")
		}
	}
	for i, e := range p.Extensions {
		if e == "" || strings.ContainsAny(e, "./\x00 ") {
			fault(fmt.Sprintf("extensions[%d]", i), e, fmt.Sprintf("it is not an extension of a file's name: %q", e),
				`write it without the dot, such as "kt"`)
		}
	}
	local := func(at, name string) {
		if !filepath.IsLocal(name) || path.Clean(name) != name || name == "." || strings.ContainsRune(name, 0) {
			fault(at, name, fmt.Sprintf("it is not a path beneath the working directory: %q", name), `write one such as "main.kt"`)
		}
	}
	if p.File != "" {
		local("file", p.File)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		local("files."+name, name)
		if name == p.File {
			fault("files."+name, name, "it is the source's own name", "use another one")
		}
	}
	for i, b := range p.Built {
		local(fmt.Sprintf("built[%d]", i), b)
	}
	for i, m := range p.Mounts {
		if !filepath.IsAbs(m) || filepath.Clean(m) != m || m == "/" {
			fault(fmt.Sprintf("mounts[%d]", i), m, fmt.Sprintf("it is not a directory or file to mount: %q", m), "write a clean absolute path other than /")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(p.Env[name], 0) {
			fault("env."+name, name, "it is not an environment variable", "write NAME: value, without = in the name and NUL")
		}
	}
	uses := false
	for at, args := range map[string][]string{"compile": p.Compile, "run": p.Run, "check": p.CheckSource, "version": p.Version} {
		for i, arg := range args {
			p.checkArgument(fmt.Sprintf("%s[%d]", at, i), arg, fault)
			uses = uses || strings.Contains(arg, "{tool}")
		}
	}
	if uses = uses || len(p.Run) == 0 && !p.compiled(); uses && len(p.Tools) == 0 && p.Like == "" {
		fault("tools", "", "{tool} is used and no program is named", `write the names to look for, such as tools: [kotlinc]`)
	}
	for i, t := range p.Tools {
		if t == "" || strings.Contains(t, "/") && !filepath.IsAbs(t) {
			fault(fmt.Sprintf("tools[%d]", i), t, fmt.Sprintf("it is not a program's name: %q", t),
				"write a name that PATH finds, or an absolute path")
		}
	}
	pattern := func(at, text string) {
		if _, err := regexp.Compile(text); err != nil {
			fault(at, text, fmt.Sprintf("it is not a regular expression: %q", text), `write one such as "^Traceback "`)
		}
	}
	if p.Warm != nil {
		for i, name := range p.Warm.Imports {
			if !moduleName.MatchString(name) {
				fault(fmt.Sprintf("warm.imports[%d]", i), name, fmt.Sprintf("it is not a module's name: %q", name), "write one such as numpy or os.path")
			}
		}
	}
	pattern("uncaught", p.Uncaught)
	pattern("out_of_memory", p.OutOfMemory)
	for i, m := range p.Message {
		pattern(fmt.Sprintf("message[%d]", i), m)
	}
	if len(p.Compile) > 0 && len(p.CheckSource) > 0 {
		fault("check", "", "the compile step finds errors of syntax", "leave check or compile out")
	}
	if len(p.Compile) == 0 && len(p.Built) > 0 && p.Like == "" {
		fault("built", "", "there is no compile step that would build it", "add compile:, or leave it out")
	}
	slices.SortStableFunc(faults, func(a, b api.FieldError) int { return strings.Compare(a.Path, b.Path) })
	return faults
}

func (p *Profile) checkArgument(at, arg string, fault func(at, value, message, fix string)) {
	if strings.ContainsRune(arg, 0) {
		fault(at, "", "it holds a NUL character", "remove it")
	}
	for rest := arg; ; {
		_, after, open := strings.Cut(rest, "{")
		name, behind, closed := strings.Cut(after, "}")
		if !open || !closed {
			return
		}
		if rest = behind; (name == "sources" || name == "flags") && arg != "{"+name+"}" {
			fault(at, arg, "{"+name+"} stands for several arguments", "make it an argument of its own")
		}
		if name == "std" || name == "types" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == "" && name != "" && !slices.Contains(placeholders, name) {
			fault(at, arg, fmt.Sprintf("{%s} is no placeholder", name), "use {tool}, {file}, {sources}, {flags}, {program}, {memory}, {processors}, {stack} or {frames}")
		}
	}
}

// Languages are the profiles of a worker, by name. It is immutable.
type Languages struct {
	set      language.Set
	profiles map[string]*Profile
	added    []string   // with all their names
	found    []string   // recipes whose tools this host has
	dormant  []*Profile // recipes without their tools
}

func BuiltInLanguages() *Languages {
	l := &Languages{set: language.BuiltIn(), profiles: map[string]*Profile{}}
	for _, p := range builtIn() {
		name := p.Name
		for _, n := range language.BuiltIn().Known() {
			if n.Name == name {
				p.Aliases, p.Extensions = n.Aliases, n.Extensions
			}
		}
		p.complete()
		l.profiles[name] = p
	}
	return l
}

// With adds profiles, each of which has passed its Check. It returns the faults that the profiles have together; paths
// start with the profile's name.
func (l *Languages) With(more []Profile) (*Languages, []api.FieldError) {
	var faults []api.FieldError
	out := &Languages{set: l.set, profiles: maps.Clone(l.profiles), added: slices.Clone(l.added)}
	for i := range more {
		p := more[i]
		p.Name = strings.ToLower(p.Name)
		if p.Like != "" {
			base, ok := BuiltInLanguages().Profile(p.Like)
			if !ok {
				base = recipe(strings.ToLower(p.Like))
			}
			if base == nil {
				faults = append(faults, api.FieldError{Path: p.Name + ".like", Value: p.Like, Message: fmt.Sprintf("there is no built-in language %q", p.Like),
					Fix: "one of " + strings.Join(language.BuiltIn().Names(), ", ") + ", or of the recipes that pawl languages shows"})
				continue
			}
			p.inherit(base)
		}
		if p.Warm != nil && !p.forks {
			faults = append(faults, api.FieldError{Path: p.Name + ".warm", Message: "only interpreters of Python can be forked", Fix: "leave it out, or write like: python"})
			continue
		}
		p.complete()
		if _, there := l.profiles[p.Name]; there && !p.Override {
			faults = append(faults, api.FieldError{Path: p.Name, Value: p.Name, Message: fmt.Sprintf("there is a built-in language %q", p.Name),
				Fix: "use another name, or write override: true if this profile is to take its place"})
			continue
		}
		others := out.set
		for _, alias := range p.Aliases {
			if owner, taken := others.Resolve(alias); taken && owner != p.Name {
				faults = append(faults, api.FieldError{Path: p.Name + ".aliases", Value: alias, Message: fmt.Sprintf("%q means %s already", alias, owner), Fix: "leave it out"})
			}
		}
		if owner, taken := others.Resolve(p.Name); taken && owner != p.Name {
			faults = append(faults, api.FieldError{Path: p.Name, Value: p.Name, Message: fmt.Sprintf("%q means %s already", p.Name, owner), Fix: "use another name"})
		}
		out.profiles[p.Name] = &p
		out.set = out.set.With(p.languageName())
		out.added = append(append(out.added, p.Name), p.Aliases...)
	}
	return out, faults
}

// Added lists, by all their names, the languages that are not built in.
func (l *Languages) Added() []string { return slices.Concat(l.added, l.found) }

// Configured lists those of them that the configuration adds; the others are recipes whose tool this host has.
func (l *Languages) Configured() []string { return l.added }

func (l *Languages) Set() language.Set { return l.set }

// Found is the state of a language on this host.
type Found struct {
	Profile *Profile
	Tool    string // empty for a profile without a tool
	Version string
	Err     error // something that is missing
}

// Lacks says what is missing and how to get it; both are empty if nothing is missing.
func (f *Found) Lacks() (what, fix string) {
	if f.Err == nil {
		return "", ""
	}
	if m, ok := errors.AsType[*missing](f.Err); ok {
		return m.what, m.fix
	}
	return f.Err.Error(), f.Profile.install()
}

// Look searches for the tools of languages, without earlier results, and prepares nothing.
func Look(ctx context.Context, profiles ...*Profile) []Found {
	all := make([]Found, len(profiles))
	var looking finder
	for i, p := range profiles {
		tc, err := looking.find(ctx, p)
		all[i] = Found{p, tc.name(), tc.version, err}
	}
	return all
}

// Missing names the tool of a language that this host lacks, and how to get it; empty if the host has it. It only looks for the
// program's file.
func (l *Languages) Missing(name string) (tool, install string) {
	p, ok := l.Profile(name)
	if !ok || len(p.Tools) == 0 {
		return "", ""
	}
	if _, err := p.locate(); err == nil {
		return "", ""
	}
	return p.Tools[0], p.install()
}

// Profile is the profile of a language, under any of its names.
func (l *Languages) Profile(name string) (*Profile, bool) {
	proper, _ := l.set.Resolve(name)
	p, ok := l.profiles[proper]
	return p, ok
}

func (p *Profile) fileOf(source string) string {
	if p.file == nil {
		return p.File
	}
	return p.file(source, p.File)
}

// taken are the files that the profile, or Pawl itself, places beside those of a submission; file is the source's name.
func (p *Profile) taken(file string) []string {
	names := slices.Concat([]string{p.File, file, payload.OutputFile, javaArguments}, p.Built, slices.Sorted(maps.Keys(p.Files)))
	if p.caller != nil {
		names = append(names, p.caller.file)
	}
	return slices.Compact(names)
}

// Taken lists the names that files of code must not have; none for a language that only workers know.
func (l *Languages) Taken(c *api.Code) []string {
	p, ok := l.Profile(c.Language)
	if !ok {
		return nil
	}
	return p.taken(p.fileOf(c.Source))
}

func (l *Languages) Profiles() []*Profile {
	var all []*Profile
	for _, name := range l.set.Names() {
		all = append(all, l.profiles[name])
	}
	return all
}
