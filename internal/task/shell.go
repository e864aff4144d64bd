package task

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/runtime"
)

// Shell returns a handler that opens an interactive shell where h would start its program, with the same files, environment and
// limits except those on time. The shell reads Task.Input and writes to the streams of the program. It returns false if h
// starts no program.
func Shell(h Handler) (Handler, bool) {
	switch h := h.(type) {
	case *Code:
		return h.withShell(), true
	case *Container:
		return &Container{h.code.withShell()}, true
	}
	return nil, false
}

func (c *Code) withShell() *Code {
	return &Code{CodeOptions: c.CodeOptions, finder: finder{dir: c.finder.dir}, shell: true}
}

// shellArgs are the arguments of "sh". Bash is preferred. Without --noediting it would echo its input, which the user's
// terminal has already shown.
var shellArgs = []string{"-c", `command -v bash > /dev/null && exec bash --noediting -i; exec sh -i`}

const shellStdin = ".pawl-stdin"

// openShell starts a shell in place of the program of spec, and prints the program's command.
func (e *evaluation) openShell(ctx context.Context, spec runtime.Spec) (*api.CodeResult, error) {
	command := quoted(spec.Argv)
	if c := spec.Container; c != nil && c.Entrypoint == nil {
		command = strings.TrimSpace("(the entrypoint of the image) " + command)
	} else if c != nil {
		command = quoted(slices.Concat(c.Entrypoint, spec.Argv))
	}
	if !e.code.Interactive && (len(e.code.Stdin.Bytes) > 0 || e.code.Stdin.Blob != "") {
		f, err := e.content(ctx, e.code.Stdin, "shell-stdin")
		if err != nil {
			return nil, err
		}
		f.Path = shellStdin
		spec.Files = append(slices.Clip(spec.Files), f)
		command += " < " + shellStdin
	}
	if len(e.code.Cases) > 0 {
		command += fmt.Sprintf(" (on each of %d cases, whose inputs are not here)", len(e.code.Cases))
	}
	_, _ = fmt.Fprintf(e.task.Log("log"), "the attempt's own command: %s\n", command) // writing to the log fails only at the attempt's end
	typing, stop := context.WithCancel(context.WithoutCancel(ctx))
	stdin := live{e.task.Input(typing), stop}
	defer stdin.Close()
	spec.Stdin, spec.Lasting, spec.Collect = stdin, false, nil
	if spec.Container != nil {
		alone := *spec.Container
		alone.Entrypoint = []string{"sh"}
		spec.Container, spec.Argv = &alone, shellArgs
	} else {
		spec.Argv = append([]string{"sh"}, shellArgs...)
	}
	spec.Limits.Wall, spec.Limits.CPU, spec.Limits.Overrun = time.Duration(api.MaxWall), time.Duration(api.MaxWall), 0
	result, _, err := e.start(ctx, spec, "shell")
	return result, err
}

// quoted writes a command in shell syntax.
func quoted(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		if words[i] = arg; arg == "" || strings.ContainsAny(arg, " \t\n'\"\\$&|;<>()*?[]#~`!{}") {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
