package task

import (
	"cmp"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/runtime"
)

// builtIn are the profiles that need no configuration: one for each name in package language.
func builtIn() []*Profile {
	return []*Profile{
		{
			Name: "python", File: "main.py", Tools: []string{"python3", "python"}, Install: "install python3 (Debian: apt install python3)",
			find: (*finder).python, Uncaught: `^Traceback \(most recent call last\):|^\w*(Syntax|Indentation|Tab)Error: `,
			CheckSource: []string{"{tool}", "-c", "import sys; compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec')", "{file}"},
			Env:         map[string]string{"PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"},
		},
		{
			Name: "javascript", File: "main.js", Tools: []string{"node", "nodejs"}, Install: "install Node.js (Debian: apt install nodejs)",
			find: (*finder).node, Uncaught: nodeUncaught, CheckSource: []string{"{tool}", "--check", "{file}"},
			Limits: api.CodeLimits{Pids: 128},
		},
		{
			Name: "typescript", File: "main.ts", Tools: []string{"node", "nodejs"}, Install: "install Node.js 22.6 or later from https://nodejs.org",
			find: (*finder).nodeWithTypes,
			// Type annotations are removed, not checked. Without the second option each program would print a
			// warning that this is experimental.
			Run:      []string{"{tool}", "--experimental-strip-types", "--disable-warning=ExperimentalWarning", "{file}"},
			Uncaught: nodeUncaught, Limits: api.CodeLimits{Pids: 128},
		},
		{
			Name: "bash", File: "main.sh", Tools: []string{"bash"}, Install: "install bash (Debian: apt install bash)",
			find: (*finder).bash, CheckSource: []string{"{tool}", "-n", "{file}"},
		},
		{
			Name: "go", File: "main.go", Tools: []string{"go"}, Install: "install Go from https://go.dev/dl",
			find:    (*finder).golang,
			Compile: []string{"/bin/sh", "-c", goBuild, "go-build", "{tool}", "{std}", "{program}", "{sources}"},
			Limits:  api.CodeLimits{Pids: 128},
		},
		{
			Name: "c", File: "main.c", Tools: []string{"cc", "gcc", "clang"}, Install: "install gcc or clang, and the C library's headers (Debian: apt install gcc libc6-dev)",
			find:    (*finder).compiler,
			Compile: []string{"{tool}", "-O2", "-o", "{program}", "{sources}", "-lm"},
		},
		{
			Name: "c++", File: "main.cpp", Tools: []string{"c++", "g++", "clang++"}, Install: "install g++ or clang++ (Debian: apt install g++)",
			find:    (*finder).compiler,
			Compile: []string{"{tool}", "-O2", "-std=c++17", "-o", "{program}", "{sources}"},
		},
		{
			Name: "rust", File: "main.rs", Tools: []string{"rustc"}, Install: "install Rust from https://rustup.rs, and a C linker (Debian: apt install rustc gcc)",
			find:    (*finder).rust,
			Compile: []string{"{tool}", "--edition=2021", "-Copt-level=2", "-Cdebuginfo=0", "-o", "{program}", "{file}"},
		},
		{
			Name: "java", File: "Main.java", Tools: []string{"javac"}, Install: "install a JDK, 11 or later (Debian: apt install default-jdk-headless)",
			find:    (*finder).java,
			Compile: []string{"/bin/sh", "-c", javaBuild, "java-build", "{tool}", "{memory}", "{file}", "{sources}"},
			Built:   []string{"classes", "main.args"},
			// The JVM is told the memory and processors that the run may use, since it would otherwise see the
			// host's. Its garbage collector and code cache are small, and it writes nothing to /tmp.
			Run: []string{"{tool}/java", "-XX:ActiveProcessorCount={processors}", "-XX:MaxRAM={memory}", "-XX:MaxRAMPercentage=60", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
				"-XX:ReservedCodeCacheSize=32m", "-Xss1m", "-XX:-UsePerfData", "@main.args"},
			Uncaught: `^Exception in thread "main" |^Error: `, Limits: api.CodeLimits{Memory: 512e6, Pids: 128},
		},
		{
			Name: "ruby", File: "main.rb", Tools: []string{"ruby"}, Install: "install ruby (Debian: apt install ruby)",
			find: (*finder).ruby, CheckSource: []string{"{tool}", "-c", "{file}"},
			Uncaught: `^\S+:\d+:in .*\(([A-Z]\w*::)*[A-Z]\w*\)$|^\S+:\d+: .*syntax error|\(SyntaxError\)$`,
			Env:      map[string]string{"RUBYOPT": "--disable-did_you_mean"},
		},
	}
}

// nodeUncaught is the last line that Node.js writes below an error that has ended a program.
const nodeUncaught = `^Node\.js v\d`

// goBuild compiles and links one package against the export data of a standard library that was built beforehand: the go
// command itself would compile the library anew in every sandbox. $1 is the directory of compile and link, $2 that of the
// library, $3 the program; the sources follow.
const goBuild = `tools=$1 std=$2 program=$3; shift 3
"$tools/compile" -p main -importcfg "$std/importcfg" -o main.pkg -pack "$@" &&
exec "$tools/link" -s -w -importcfg "$std/importcfg" -o "$program" main.pkg`

// javaBuild compiles. A public class must be in a file of its name, and the program starts with it. Without one it starts with
// the class declared last at the start of a line before main, since javac does not say which class has a main. $1 is the
// directory of javac, $2 the memory, $3 the source; all sources follow.
const javaBuild = `tools=$1 memory=$2 file=$3; shift 4
declares='((final|abstract|sealed|strictfp) +)*(class|record|enum|interface) +([A-Za-z_$][A-Za-z0-9_$]*)'
class=$(sed -nE "s/^public +$declares.*/\4/p" "$file" | head -n 1)
if [ -n "$class" ]; then
	[ "$class.java" = "$file" ] || mv "$file" "$class.java" && file=$class.java
else
	class=$(sed -nE "/^$declares/{h;s/^$declares.*/\4/;x;};/void +main *\(/{g;p;q;}" "$file")
fi
package=$(sed -n 's/^ *package  *\([A-Za-z0-9_.]*\) *;.*/\1./p' "$file" | head -n 1)
mkdir classes && printf -- '-cp classes\n%s\n' "$package${class:-Main}" >main.args &&
exec "$tools/javac" -J-XX:MaxRAM="$memory" -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 -J-XX:-UsePerfData -encoding UTF-8 -nowarn -d classes "$file" "$@"`

// toolchain is the path of a language's tool on this host, and the files that it needs.
type toolchain struct {
	tool    string // the program to run
	named   string // the path that people know, if it is another one
	std     string
	mounts  []runtime.Mount
	version string
}

// name is the tool as people know it.
func (t *toolchain) name() string { return cmp.Or(t.named, t.tool) }
