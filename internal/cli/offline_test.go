package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cli/exit"
)

// Without a server pawl validate finds contradictions between files, and lists what it could not check.
func TestValidateOffline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const waits = "name: w\ntasks: {a: {action: wait, with: {signal: paid}}}\n"
	for name, c := range map[string]struct {
		src     string
		code    int
		say     []string
		without string
	}{
		"kind": {"name: w\ntasks: {a: {action: cod, with: {language: bash, source: x}}}\n", exit.General, []string{`tasks.a.action: there is no action "cod" in these files (did you mean "code"?`}, "not checked"},
		"both": {"name: w\ntasks: {a: {action: cod, needs: [nope], queue: gpus}}\n", exit.General,
			[]string{`there is no action "cod" in these files`, `tasks.a.needs: there is no task "nope"`, `declares queue "gpus"`, "3 problems"}, "not checked"},
		"a name that cannot be read": {"name: De ploy\naction: noop\n---\nname: w\ntasks: {a: {action: deploy, needs: [nope]}}\n", exit.General,
			[]string{"name: ", `there is no task "nope"`, "2 problems"}, "there is no action"},
		"near": {"name: deploy\naction: noop\n---\nname: w\ntasks: {a: {action: deplyo}}\n", exit.General, []string{`did you mean "deploy"?`}, "not checked"},
		"loop": {"name: w\naction: noop\n---\nkind: rule\nname: again\non: execution.ended\nif: signal.data.action == 'w'\nrun: {action: w}\n", exit.General, []string{"again → again"}, "not checked"},
		"open": {"name: w\ntasks: {a: {action: node}, b: {action: workflow, with: {name: sub}}}\n---\nkind: rule\nname: r\non: [alert.fired, execution.ended]\nif: signal.data.action == 'x'\nrun: {action: w@3}\n",
			exit.OK, []string{"workflow w is valid", "not checked", "action node, action sub, a version of w, trigger alert.fired", "--server"}, "execution.ended"},
		"an action as a workflow": {"name: x\nkind: action\naction: noop\n---\n" + "name: w\ntasks: {a: {action: workflow, with: {name: x}}}\n",
			exit.General, []string{`tasks.a.action: "x" is an action, not a workflow`}, "not checked"},
		"an input that the action refuses": {"name: x\naction: noop\ninput: {type: object, required: [n]}\n" +
			"---\nname: w\ntasks: {a: {action: x}}\n",
			exit.General, []string{`tasks.a.with: missing property 'n' (by the input of x)`}, "not checked"},
		"waits": {waits + "---\nkind: action\nname: x\naction: wait\nwith: {signal: sent}\n", exit.OK,
			[]string{"not checked", "trigger paid, trigger sent"}, "there is no"},
		"a wait for what nothing can wait for": {"kind: trigger\nname: paid\n---\n" + waits, exit.General,
			[]string{`tasks.a.with.signal: nothing can wait for the trigger "paid" (add waits: true to its document)`}, "not checked"},
		"a wait for a signal of these files": {"kind: trigger\nname: paid\nwaits: true\n---\n" + waits, exit.OK,
			[]string{"workflow w is valid"}, "not checked"},
		"all": {"name: w\ntasks: {a: {action: noop}}\n---\nkind: webhook\nname: h\nverify: {scheme: none}\ntrigger: 'gh.${{ query.as }}'\n---\nkind: rule\nname: r\non: gh.push\nrun: {action: w}\n",
			exit.OK, []string{"rule r is valid"}, "not checked"},
	} {
		file := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(file, []byte(c.src), 0o600); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, code := pawl(t, environment(t), "validate", file)
		if code != c.code {
			t.Errorf("%s: exit code %d", name, code)
		}
		for _, want := range c.say {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("%s: no %q in\n%s%s", name, want, stdout, stderr)
			}
		}
		if strings.Contains(stdout+stderr, c.without) {
			t.Errorf("%s: %q is in\n%s%s", name, c.without, stdout, stderr)
		}
	}
}

// Commands of other tools get an answer with the right command.
func TestOtherCommands(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"list":           "pawl get executions lists executions",
		"status":         "pawl describe ID shows one",
		"pause ci":       "write pawl pause action ci",
		"why etl-orders": "pawl get executions --action etl-orders lists the executions",
		"logs etl":       "pawl get executions --action etl lists the executions",
		"run ../../examples/sleep.yaml --input day=1": "--set day=1",
	} {
		_, stderr, code := pawl(t, environment(t), strings.Fields(args)...)
		if code == exit.OK || !strings.Contains(stderr, want) {
			t.Errorf("pawl %s: %d %s, want %q", args, code, stderr, want)
		}
	}
}
