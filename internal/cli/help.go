package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
)

const flagsTopic = `The flags that every command has. Each is a setting: it comes from its flag, else from its environment variable, else from
the configuration file, else from its default. pawl config print shows what is set, and from where.

`

// addHelp sets the form of the commands' help, and adds the topic that explains the flags of all commands.
func addHelp(root *cobra.Command) {
	root.SetUsageFunc(usage)
	topic := &cobra.Command{Use: "flags", Short: "the flags that every command has", Long: flagsTopic + root.PersistentFlags().FlagUsages()}
	topic.SetHelpFunc(func(c *cobra.Command, _ []string) { fmt.Fprint(c.OutOrStdout(), c.Long) })
	root.AddCommand(topic)
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command, or the flags that every command has (pawl help flags)",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range root.Commands() {
				names = append(names, c.Name())
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(c, args[len(args)-len(rest)])
			}
			return c.Help()
		},
	})
}

// usage shows the flags of the command itself. The flags of all commands, about twenty, are only named. It does not use a template of
// cobra: with one the linker keeps every exported method of every type, which makes the binary half as large again.
func usage(c *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:")
	if c.Runnable() {
		b.WriteString("\n  " + c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\n  " + c.CommandPath() + " [command]")
	}
	if c.HasExample() {
		b.WriteString("\n\nExamples:\n" + c.Example)
	}
	if c.HasAvailableSubCommands() {
		list := func(title, group string) {
			b.WriteString("\n\n" + title)
			for _, sub := range c.Commands() {
				if sub.GroupID == group && (sub.IsAvailableCommand() || group != "" && sub.Name() == "help") {
					fmt.Fprintf(&b, "\n  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short)
				}
			}
		}
		for _, group := range c.Groups() {
			list(group.Title, group.ID)
		}
		if len(c.Groups()) == 0 {
			list("Commands:", "")
		}
	}
	if flags := c.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		b.WriteString("\n\nFlags:\n" + strings.TrimRight(flags.FlagUsages(), " \n"))
	}
	b.WriteString("\n\n" + globalFlags(c.Root()) + "\n")
	_, err := c.OutOrStderr().Write([]byte(b.String()))
	return err
}

func globalFlags(root *cobra.Command) string {
	var names []string
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !strings.HasSuffix(f.Name, "-file") {
			names = append(names, "--"+f.Name)
		}
	})
	lines := []string{"Global flags (pawl help flags explains them):", " "}
	for _, name := range names {
		if len(lines[len(lines)-1])+len(name) > 100 {
			lines = append(lines, " ")
		}
		lines[len(lines)-1] += " " + name
	}
	return strings.Join(lines, "\n")
}

// argsOf rewrites errors about a command's arguments in the words of its usage: cobra says that it "accepts 1 arg(s), received 0".
func argsOf(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		err := check(cmd, args)
		if _, own := errors.AsType[*exit.Error](err); err == nil || own { // the command's own words say more than its usage
			return err
		}
		_, wanted, _ := strings.Cut(cmd.Use, " ")
		switch extra := len(strings.Fields(wanted)); {
		case cmd.HasAvailableSubCommands():
			return unknownCommand(cmd, args[0])
		case wanted == "" || strings.HasPrefix(wanted, "--"):
			hint := fmt.Sprintf("leave %q out, or see %s --help for its flags", args[0], cmd.CommandPath())
			if cmd.Flags().Lookup("label") != nil && strings.Contains(args[0], "=") {
				hint = "did you mean --label " + args[0] + "?"
			}
			return exit.Usagef("%s takes no arguments: %s", cmd.CommandPath(), hint)
		case len(args) == 0:
			return exit.Usagef("%s needs %s, as in: %s", cmd.CommandPath(), wanted, app.FirstExample(cmd))
		default:
			surplus := args[min(extra, len(args)-1)]
			hint := ""
			switch {
			case strings.Contains(surplus, "="):
				hint = ", or write a comma before it where it belongs to a flag, as in --label a=1,b=2"
			case cmd.Flags().Lookup("arg") != nil:
				hint = ", or hand it to the program with --arg"
			}
			return exit.Usagef("%s takes %s and no more: leave %q out%s", cmd.CommandPath(), wanted, surplus, hint)
		}
	}
}

// unknownCommand suggests commands that may have been meant.
func unknownCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	near := cmd.SuggestionsFor(name)
	hint := cmd.CommandPath() + " --help lists the commands"
	if here := otherCommands[name]; here != "" && !cmd.HasParent() {
		hint = here
	} else if parent := cmd.CommandPath(); parent == "pawl pause" || parent == "pawl resume" {
		hint = fmt.Sprintf("for the action of that name write %s action %s; %s", parent, name, hint)
	} else if len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return exit.Usagef("there is no command %q in %s: %s", name, cmd.CommandPath(), hint)
}

// otherCommands are commands of other tools.
var otherCommands = map[string]string{
	"list": "pawl get executions lists executions, pawl get definitions what can be run", "ls": "pawl get executions lists executions",
	"ps": "pawl get executions --status running lists what runs", "status": "pawl get executions lists executions, pawl describe ID shows one, pawl doctor checks this machine",
	"show": "pawl describe ID shows an execution", "start": "pawl run NAME runs a workflow, pawl server starts a server", "submit": "pawl run NAME --detach submits a workflow",
	"exec": "pawl eval runs a program", "stop": "pawl cancel ID ends an execution", "delete": "pawl retire NAME takes a definition out of use", "create": "pawl apply FILE applies documents",
	"deploy": "pawl apply FILE applies documents", "register": "pawl apply FILE applies documents", "trigger": "pawl emit TRIGGER emits a signal", "approve": "pawl answer INQUIRY answers a question",
	"signal": "pawl emit TRIGGER emits a signal", "history": "pawl events ID lists what has happened to an execution", "inspect": "pawl describe ID shows an execution",
}

// elsewhere gives, by command and flag, this program's form for flags of other tools.
var elsewhere = map[string]map[string]string{
	"eval": {
		"timeout": "--limit wall=5s", "time": "--limit wall=5s", "wall": "--limit wall=5s", "cpu": "--limit cpu=2s",
		"memory": "--limit memory=64MB", "mem": "--limit memory=64MB", "lang": "--language", "input": "--stdin FILE", "args": "--arg",
		"c": "a dash and pipe the program in: echo 'print(1)' | pawl eval - --language python", "e": "--env NAME=value",
	},
	"run":  {"param": "--set NAME=VALUE", "var": "--set NAME=VALUE", "args": "--set NAME=VALUE", "d": "--detach", "label-worker": "--worker-label"},
	"logs": {"tail": "| tail", "n": "| tail", "task": "the task's own id, which pawl describe shows"},
	"get":  {"all": "--limit 1000", "n": "--limit", "l": "--label NAME=VALUE"},
}

var unknownFlag = regexp.MustCompile(`^unknown (?:flag: --|shorthand flag: ')([[:alnum:]-]+)`)

var notAForm = regexp.MustCompile(`^invalid argument "(.+?)=.*" for "-o, --output" flag`)

// flagError suggests the flag that was probably meant in place of one that does not exist, or has another meaning.
func flagError(cmd *cobra.Command, err error) error {
	if found := notAForm.FindStringSubmatch(err.Error()); found != nil && cmd.Flags().Lookup("give") != nil {
		return fmt.Errorf("%w; to give a task its output: --give '%s=JSON'", err, found[1])
	}
	found := unknownFlag.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	if other := elsewhere[cmd.Name()][found[1]]; other != "" {
		return fmt.Errorf("%w: use %s", err, other)
	}
	return err
}
