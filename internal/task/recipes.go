package task

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
)

// recipes are profiles of less common languages. A recipe is active where its tool is found, and then works as if the
// configuration had added it: only workers with the tool get its programs.
func recipes() []*Profile {
	ofJava := []string{"/etc/java-*", "/etc/kotlin", "/etc/scala"}
	jvm := api.CodeLimits{Memory: 512e6, Pids: 128}
	long := api.CodeLimits{Wall: api.Duration(3 * time.Minute), CPU: api.Duration(4 * time.Minute), Memory: 2e9}
	java := []string{"java", "-XX:ActiveProcessorCount={processors}", "-XX:MaxRAM={memory}", "-XX:MaxRAMPercentage=60", "-XX:+UseSerialGC",
		"-XX:TieredStopAtLevel=1", "-Xss{stack}k", "-XX:-UsePerfData"}
	all := []*Profile{
		{
			Name: "csharp", Aliases: []string{"c#", "cs"}, Extensions: []string{"cs"}, Tools: []string{"mcs"}, Version: []string{"{tool}", "--version"},
			Install: "install Mono (Debian: apt install mono-mcs mono-runtime)",
			Compile: []string{"{tool}", "-out:main.exe", "{sources}"}, Built: []string{"main.exe"}, Run: []string{"mono", "main.exe"}, Mounts: []string{"/etc/mono"},
			Message: []string{`^\[ERROR\] FATAL UNHANDLED EXCEPTION: (.*)`}, OutOfMemory: `^.*System\.OutOfMemoryException.*`,
		},
		{
			Name: "haskell", Aliases: []string{"hs", "ghc"}, Extensions: []string{"hs"}, Tools: []string{"ghc"}, Version: []string{"{tool}", "--numeric-version"},
			Install: "install GHC (Debian: apt install ghc)",
			Compile: []string{"{tool}", "-v0", "-O1", "-outputdir", "build", "-o", "{program}", "{file}"}, CompileLimits: long,
			Mounts:   []string{"/var/lib/ghc"},
			Uncaught: `^main\.bin: `, Message: []string{`^main\.bin: (.*)`}, OutOfMemory: `^main\.bin: .*heap exhausted.*`,
		},
		{
			Name: "julia", Aliases: []string{"jl"}, Extensions: []string{"jl"}, Tools: []string{"julia"}, Version: []string{"{tool}", "--version"},
			Install:  "install Julia from https://julialang.org/downloads",
			Run:      []string{"{tool}", "--startup-file=no", "--history-file=no", "--threads={processors}", "{file}"},
			Uncaught: `^ERROR: `, Message: []string{`^ERROR: LoadError: (.*)`, `^ERROR: (.*)`}, OutOfMemory: `^ERROR: .*OutOfMemoryError.*`,
			Env: map[string]string{"JULIA_DEPOT_PATH": "/tmp/julia"}, Limits: api.CodeLimits{Memory: 1e9},
		},
		{
			Name: "kotlin", Aliases: []string{"kt"}, Extensions: []string{"kt"}, Tools: []string{"kotlinc"}, Install: "install Kotlin from https://kotlinlang.org, and a JRE",
			Compile: []string{"{tool}", "-nowarn", "-include-runtime", "-d", "main.jar", "{sources}"}, Built: []string{"main.jar"}, CompileLimits: long,
			Run:      append(slices.Clip(java), "-jar", "main.jar"),
			Uncaught: `^Exception in thread "main" `, Message: javaMessage, OutOfMemory: javaOutOfMemory, Limits: jvm, Mounts: ofJava,
		},
		{
			Name: "lean", Aliases: []string{"lean4"}, Extensions: []string{"lean"}, Tools: []string{"lean"}, Version: []string{"{tool}", "--version"},
			Install: "install Lean 4 from https://lean-lang.org/install", Run: []string{"{tool}", "--run", "{file}"},
			Uncaught: `^uncaught exception: `, Message: []string{`^uncaught exception: (.*)`, `^\S+:\d+:\d+: error: .*`},
			Limits: api.CodeLimits{Wall: api.Duration(30 * time.Second), Memory: 2e9},
		},
		{
			Name: "lua", Extensions: []string{"lua"}, Tools: []string{"lua", "lua5.4", "lua5.3"}, Version: []string{"{tool}", "-v"},
			Install:     "install Lua (Debian: apt install lua5.4)",
			CheckSource: []string{"{tool}", "-e", "assert(loadfile('{file}'))"},
			Uncaught:    `^\S*lua\S*: `, Message: []string{`^\S*lua\S*: (?:\S+:\d+: )?(.*)`}, OutOfMemory: `^\S*lua\S*: not enough memory`,
		},
		{
			Name: "perl", Aliases: []string{"pl"}, Extensions: []string{"pl"}, Tools: []string{"perl"}, Version: []string{"{tool}", "-e", "print $^V"},
			Install: "install Perl (Debian: apt install perl)", CheckSource: []string{"{tool}", "-c", "{file}"},
			Uncaught: `at \S+ line \d+\.$`, Message: []string{`^(.*) at \S+ line \d+\.$`}, OutOfMemory: `^Out of memory!`,
		},
		{
			Name: "php", Extensions: []string{"php"}, Tools: []string{"php"}, Version: []string{"{tool}", "-r", "echo PHP_VERSION;"},
			Install:     "install PHP (Debian: apt install php-cli)",
			Run:         []string{"{tool}", "-n", "-d", "display_errors=stderr", "-d", "memory_limit={memory}", "-d", "max_execution_time=0", "{file}"},
			CheckSource: []string{"{tool}", "-n", "-d", "display_errors=stderr", "-l", "{file}"},
			Uncaught:    `^(PHP )?(Fatal|Parse) error: `, Message: []string{`^(?:PHP )?(?:Fatal|Parse) error: +(?:Uncaught )?(.*?)(?: in \S+(?: on line |:)\d+)?$`},
			OutOfMemory: `^(PHP )?Fatal error: +(Allowed memory size|Out of memory).*`,
		},
		{
			Name: "r", Aliases: []string{"rscript"}, Extensions: []string{"r", "R"}, Tools: []string{"Rscript"}, Install: "install R (Debian: apt install r-base-core)",
			Run:      []string{"{tool}", "--vanilla", "{file}"},
			Uncaught: `^Execution halted`, Message: []string{`^Error(?: in .*?)?: *\n? *(.*)`}, OutOfMemory: `^Error: cannot allocate vector.*`,
			Limits: api.CodeLimits{Memory: 512e6}, Mounts: []string{"/etc/R"},
		},
		{
			Name: "scala", Extensions: []string{"scala"}, Tools: []string{"scalac"}, Install: "install Scala (Debian: apt install scala; or https://www.scala-lang.org, and a JRE)",
			Compile: []string{"{tool}", "-nowarn", "-d", "main.jar", "{sources}"}, Built: []string{"main.jar"}, CompileLimits: long,
			Run:      []string{"scala", "-cp", "main.jar", "Main"},
			Uncaught: `^Exception in thread "main" `, Message: javaMessage, OutOfMemory: javaOutOfMemory, Limits: jvm, Mounts: ofJava,
		},
		{
			Name: "sql", Aliases: []string{"sqlite", "sqlite3"}, Extensions: []string{"sql"}, Tools: []string{"sqlite3"}, Version: []string{"{tool}", ":memory:", "SELECT sqlite_version()"},
			Install: "install SQLite's shell (Debian: apt install sqlite3)",
			Run:     []string{"{tool}", "-bail", "-batch", "-init", "/dev/null", ":memory:", ".read {file}"},
			Message: []string{`^(?:Runtime |Parse )?[Ee]rror:? near line \d+: (.*)`},
		},
		{
			Name: "swift", Extensions: []string{"swift"}, Tools: []string{"swiftc"}, Version: []string{"{tool}", "--version"}, Install: "install Swift from https://www.swift.org/install",
			Compile: []string{"{tool}", "-O", "-static-stdlib", "-suppress-warnings", "-o", "{program}", "{sources}"}, CompileLimits: long,
			Message: []string{`^\S*Fatal error: (.*)`},
		},
	}
	for _, p := range all {
		p.complete()
	}
	return all
}

// recipe is the recipe of a language, or nil.
func recipe(name string) *Profile {
	all := recipes()
	if i := slices.IndexFunc(all, func(p *Profile) bool { return p.Name == name || slices.Contains(p.Aliases, name) }); i >= 0 {
		return all[i]
	}
	return nil
}

// WithRecipes adds the recipes of the languages whose tool this host has. An existing profile takes precedence over a recipe of the same
// name, and keeps its own aliases and extensions.
func (l *Languages) WithRecipes() *Languages {
	out := &Languages{set: l.set, profiles: maps.Clone(l.profiles), added: l.added}
	for _, p := range recipes() {
		if _, taken := out.set.Resolve(p.Name); taken {
			continue
		}
		if _, err := p.locate(); err != nil {
			out.dormant = append(out.dormant, p)
			continue
		}
		p.Mounts = existing(p.Mounts)
		p.Aliases = slices.DeleteFunc(p.Aliases, func(a string) bool { _, taken := out.set.Resolve(a); return taken })
		p.Extensions = slices.DeleteFunc(p.Extensions, func(e string) bool { _, taken := out.set.OfExtension(e); return taken })
		out.profiles[p.Name], out.set = p, out.set.With(p.languageName())
		out.found = append(append(out.found, p.Name), p.Aliases...)
	}
	return out
}

// existing are the paths of this host that match patterns: distributions keep a tool's settings outside of /usr, where a sandbox does not
// see them, and other installations have none there.
func existing(patterns []string) (all []string) {
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern) // the patterns are constants and well-formed
		all = append(all, found...)
	}
	return all
}

// Dormant are the recipes whose tools this host does not have.
func (l *Languages) Dormant() []*Profile { return l.dormant }

// Install says how to get the tool of a language whose recipe is not active here; "" if there is no such recipe. The language is given by
// one of its names, or by the extension of a source.
func (l *Languages) Install(name string) string {
	name = strings.ToLower(name)
	for _, p := range l.dormant {
		if p.Name == name || slices.Contains(p.Aliases, name) || slices.Contains(p.Extensions, name) {
			return p.Tools[0] + ", needed for " + p.Name + ", is not in PATH: " + p.Install
		}
	}
	return ""
}
