package task

import (
	"cmp"
	"go/build"
	"io"
	"os"
	"path"
	goruntime "runtime"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/task/java"
)

// builtIn are the profiles that need no configuration: one for each name in package language.
func builtIn() []*Profile {
	return []*Profile{
		{
			Name: "python", File: "main.py", Tools: []string{"python3", "python"}, Install: "install python3 (Debian: apt install python3)",
			find: (*finder).python, Uncaught: `^Traceback \(most recent call last\):|^\w*(Syntax|Indentation|Tab)Error: `, Message: pythonMessage,
			CheckSource: []string{"{tool}", "-c", "import sys; compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec')", "{file}"},
			Env:         map[string]string{"PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"},
			caller:      &caller{".pawl-call.py", callPython},
			forks:       true,
		},
		{
			Name: "javascript", File: "main.js", Tools: []string{"node", "nodejs"}, Install: "install Node.js (Debian: apt install nodejs)",
			find: (*finder).node, Uncaught: nodeUncaught, Message: nodeMessage, OutOfMemory: nodeOutOfMemory, CheckSource: []string{"{tool}", "--check", "{file}"},
			Run:    []string{"{tool}", "--stack-size={frames}", "{file}"},
			Limits: api.CodeLimits{Pids: 128},
		},
		{
			Name: "typescript", File: "main.ts", Tools: []string{"node", "nodejs"}, Install: "install Node.js 22.6 or later from https://nodejs.org",
			find: (*finder).nodeWithTypes,
			// Type annotations are removed, not checked. Without the second option each program would print a
			// warning that this feature is experimental.
			Run:         []string{"{tool}", "{types}", "--stack-size={frames}", "--disable-warning=ExperimentalWarning", "{file}"},
			CheckSource: []string{"{tool}", "--experimental-vm-modules", "--disable-warning=ExperimentalWarning", "-e", typesCheck, "{file}", "{types}"},
			Uncaught:    nodeUncaught, Message: nodeMessage, OutOfMemory: nodeOutOfMemory, Limits: api.CodeLimits{Pids: 128},
		},
		{
			Name: "bash", File: "main.sh", Tools: []string{"bash"}, Install: "install bash (Debian: apt install bash)",
			find: (*finder).bash, CheckSource: []string{"{tool}", "-n", "{file}"},
		},
		{
			Name: "go", File: "main.go", Tools: []string{"go"}, Install: "install Go from https://go.dev/dl",
			find: (*finder).golang, compiles: goCompiles,
			Compile:  []string{"/bin/sh", "-c", goBuild, "go-build", "{tool}", "{std}", "{program}", "{sources}"},
			Uncaught: `^(panic|fatal error): `, Message: goMessage, Limits: api.CodeLimits{Pids: 128},
		},
		{
			Name: "c", File: "main.c", Tools: []string{"cc", "gcc", "clang"}, Install: "install gcc or clang, and the C library's headers (Debian: apt install gcc libc6-dev)",
			find:     (*finder).compiler,
			Compile:  []string{"{tool}", "-O2", "-o", "{program}", "{sources}", "{flags}", "-lm"},
			dialects: []string{"gnu17", "gnu11"},
			Message:  nativeMessage,
		},
		{
			Name: "c++", File: "main.cpp", Tools: []string{"c++", "g++", "clang++"}, Install: "install g++ or clang++ (Debian: apt install g++)",
			find:     (*finder).compiler,
			Compile:  []string{"{tool}", "-O2", "-o", "{program}", "{sources}", "{flags}"},
			dialects: []string{"gnu++20", "gnu++2a", "gnu++17"},
			Message:  nativeMessage,
		},
		{
			Name: "rust", File: "main.rs", Tools: []string{"rustc"}, Install: "install Rust from https://rustup.rs, and a C linker (Debian: apt install rustc gcc)",
			find:     (*finder).rust,
			Compile:  []string{"{tool}", "--edition=2021", "-Copt-level=2", "-Cdebuginfo=0", "-o", "{program}", "{file}"},
			Uncaught: `^thread .* panicked at `, Message: rustMessage,
		},
		{
			Name: "java", File: "Main.java", Tools: []string{"javac"}, Install: "install a JDK, 11 or later (Debian: apt install default-jdk-headless)",
			find:    (*finder).java,
			file:    java.File,
			Compile: []string{"{tool}/javac", "-J-XX:MaxRAM={memory}", "-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "-J-XX:-UsePerfData", "-encoding", "UTF-8", "-nowarn", "-d", "classes", "{sources}"},
			Built:   []string{"classes"},
			built:   javaStart,
			// The JVM gets the memory and processors of the run as options, because it would otherwise use the
			// host's. Its garbage collector and code cache are small, and it writes nothing to /tmp.
			Run: []string{"{tool}/java", "-XX:ActiveProcessorCount={processors}", "-XX:MaxRAM={memory}", "-XX:MaxRAMPercentage=60", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
				"-XX:ReservedCodeCacheSize=32m", "-Xss{stack}k", "-XX:-UsePerfData", "@" + javaArguments},
			Uncaught: `^Exception in thread "main" |^Error: `, Message: javaMessage, OutOfMemory: javaOutOfMemory, Limits: api.CodeLimits{Memory: 512e6, Pids: 128},
		},
		{
			Name: "ruby", File: "main.rb", Tools: []string{"ruby"}, Install: "install ruby (Debian: apt install ruby)",
			find: (*finder).ruby, CheckSource: []string{"{tool}", "-c", "{file}"},
			Uncaught: `^\S+:\d+:in .*\(([A-Z]\w*::)*[A-Z]\w*\)$|^\S+:\d+: .*syntax error|\(SyntaxError\)$`, Message: rubyMessage,
			Env: map[string]string{"RUBYOPT": "--disable-did_you_mean"},
		},
	}
}

// typesCheck parses a TypeScript source in the way in which the program is run, because `node --check` does not remove types. A
// node before 22.13 lacks the function, and then the check finds nothing.
const typesCheck = `const {stripTypeScriptTypes: strip} = require('module'), fs = require('fs'), vm = require('vm')
const [file, types] = process.argv.slice(1)
if (strip) {
	const js = strip(fs.readFileSync(file, 'utf8'), {mode: types.includes('transform') ? 'transform' : 'strip', sourceUrl: file})
	try { new vm.Script('(function(exports, require, module, __filename, __dirname) {' + js + '\n})') }
	catch { new vm.SourceTextModule(js, {identifier: file}) }
}`

// The messages of a JVM and of Node.js when their heap is full: the heap is smaller than the memory limit, so the
// kernel kills nothing. A JVM that cannot start another thread also reports memory, but means the limit pids.
const (
	javaOutOfMemory = `^.*\bjava\.lang\.OutOfMemoryError: (Java heap space|GC overhead limit exceeded|Metaspace|Compressed class space|Direct buffer memory|Cannot reserve).*|^# There is insufficient memory for the Java Runtime Environment.*`
	nodeOutOfMemory = `^FATAL ERROR: .*heap out of memory.*`
)

// nodeUncaught matches the last line that Node.js writes below an error that has ended a program.
const nodeUncaught = `^Node\.js v\d`

// goBuild compiles and links one package against the export data of a standard library that was built before: the go
// command would compile the library again in every sandbox. $1 is the directory of compile and link, $2 that of the
// library, $3 the program; the sources follow.
const goBuild = `tools=$1 std=$2 program=$3; shift 3
"$tools/compile" -p main -importcfg "$std/importcfg" -o main.pkg -pack "$@" &&
exec "$tools/link" -s -w -importcfg "$std/importcfg" -o "$program" main.pkg`

// goCompiles reports whether a file belongs to the package in the working directory, by the rules of the go command: a subdirectory is
// another package, and tests and files for other systems are excluded by their name or by a constraint in their first lines.
func goCompiles(f runtime.File) bool {
	linux := build.Default
	linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", goruntime.GOARCH, false
	linux.OpenFile = func(string) (io.ReadCloser, error) { return open(f) }
	// The compiler reports a file that cannot be read or is not Go.
	fits, err := linux.MatchFile("", f.Path)
	return !strings.Contains(f.Path, "/") && !strings.HasSuffix(f.Path, "_test.go") && (fits || err != nil)
}

// javaArguments is the file that gives java the class to start. Pawl writes it, and no other file may have this name.
const javaArguments = "main.args"

// largestClass bounds the class files that are read, in bytes. A compiled source is about a hundredth of that.
const largestClass = 16 << 20

// javaStart looks for the class with main among those that javac built. The source does not tell, because a main may be inherited, be
// another method of that name, or be in a comment. The error is a *noProgram if no class has one.
func javaStart(file string, built []runtime.File) ([]runtime.File, error) {
	var classes []java.Class
	for _, f := range built {
		info, err := os.Stat(f.Source)
		if err != nil || path.Ext(f.Path) != ".class" || info.Size() > largestClass {
			continue
		}
		content, err := os.ReadFile(f.Source)
		if err != nil {
			return nil, err
		}
		if c, err := java.Read(content); err == nil {
			classes = append(classes, c)
		}
	}
	start, err := java.Main(classes, file)
	if err != nil {
		return nil, &noProgram{err}
	}
	return []runtime.File{{Path: javaArguments, Mode: 0o644, Content: []byte("-cp classes\n" + start + "\n")}}, nil
}

// toolchain is the path of a language's tool on this host, and the files that it needs.
type toolchain struct {
	tool    string // the program to run
	named   string // the path to show to people, if different
	std     string
	dialect string // the standard of C or C++ for its programs
	types   string // the option with which node reads TypeScript
	mounts  []runtime.Mount
	version string
}

// name is the tool's path for people.
func (t *toolchain) name() string { return cmp.Or(t.named, t.tool) }
