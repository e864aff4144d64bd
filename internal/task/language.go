package task

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// language is one row of the table of languages: how its programs are found, built and run. In argument lists, {tool} is
// the interpreter or compiler, {file} the source, {sources} every source given, {program} what the compile step builds
// and {std} the standard library that find prepared.
type language struct {
	file    string   // what the source is called in the working directory
	ext     string   // of sources, for {sources}
	tools   []string // names to look for in PATH, best first
	install string   // how to get it
	// find asks the tool itself where it lies and what it needs.
	find    func(f *finder, ctx context.Context, path string) (toolchain, error)
	compile []string // nil: nothing to compile
	run     []string
	env     []string
	limits  runtime.Limits // defaults of a run
}

// The defaults of a run, and of a compile step.
var (
	runLimits     = runtime.Limits{Wall: 10 * time.Second, Memory: 256e6, Pids: 64, Output: 10e6, Disk: 64e6}
	compileLimits = runtime.Limits{Wall: 60 * time.Second, CPU: 120 * time.Second, Memory: 1e9, Pids: 256, Output: 1e6, Disk: 512e6}
)

// program is the name of what a compile step builds. It may not be taken by a file.
const program = "main.bin"

var languages = map[string]*language{
	"python": {
		file: "main.py", tools: []string{"python3", "python"}, install: "install python3",
		find: (*finder).python,
		run:  []string{"{tool}", "{file}"},
		// Without a buffer, what a program has written is there when it is read live, and when it is killed.
		env:    []string{"PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1", "PYTHONIOENCODING=utf-8"},
		limits: runLimits,
	},
	"javascript": {
		file: "main.js", tools: []string{"node", "nodejs"}, install: "install Node.js",
		find:   (*finder).node,
		run:    []string{"{tool}", "{file}"},
		limits: withPids(runLimits, 128),
	},
	"bash": {
		file: "main.sh", tools: []string{"bash"}, install: "install bash",
		find:   (*finder).single,
		run:    []string{"{tool}", "{file}"},
		limits: runLimits,
	},
	"go": {
		file: "main.go", ext: ".go", tools: []string{"go"}, install: "install Go from https://go.dev/dl",
		find:    (*finder).golang,
		compile: []string{"/bin/sh", "-c", goBuild, "go-build", "{tool}", "{std}", program, "{sources}"},
		run:     []string{"./" + program},
		limits:  withPids(runLimits, 128),
	},
	"c": {
		file: "main.c", ext: ".c", tools: []string{"cc", "gcc", "clang"}, install: "install gcc or clang, and the C library's headers",
		find:    (*finder).compiler,
		compile: []string{"{tool}", "-O2", "-o", program, "{sources}", "-lm"},
		run:     []string{"./" + program},
		limits:  runLimits,
	},
}

// goBuild compiles and links one package against the standard library's export data, which was built beforehand: the go
// command itself would compile the library anew in every sandbox. $1 is the directory of compile and link, $2 that of
// the library, $3 the program; the sources follow.
const goBuild = `tools=$1 std=$2 program=$3; shift 3
"$tools/compile" -p main -importcfg "$std/importcfg" -o main.pkg -pack "$@" &&
exec "$tools/link" -s -w -importcfg "$std/importcfg" -o "$program" main.pkg`

func withPids(l runtime.Limits, n int) runtime.Limits {
	l.Pids = n
	return l
}

// toolchain is where a language's tool lies on this host and what it needs beside it.
type toolchain struct {
	tool    string
	std     string
	mounts  []runtime.Mount
	version string
}
