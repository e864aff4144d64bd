package operate

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/task"
)

func LanguagesCommand(a *app.App) *cobra.Command {
	var f output.Format
	c := &cobra.Command{
		Use:   "languages",
		Short: "List the languages for evaluations, and which of them this machine has",
		Long: `List the languages that code can be written in, and look for their tools. With -o yaml each is printed with its
whole profile: how programs are built and run, what they can see, and their default limits. Languages beyond the
built-in ones (C#, Haskell, Julia, Kotlin, Lean, Lua, Perl, PHP, R, Scala, SQL, Swift) are there where their tool is.

The configuration file can add languages, which the workers of this machine then also offer to their server:

  languages:
    lua:
      aliases: [lua5.4]            # other names
      extensions: [lua]            # of sources
      file: main.lua               # what the source is called; main.EXTENSION by default
      files: {prelude.lua: "…"}    # placed next to it
      tools: [lua5.4, lua]         # the first that PATH finds is {tool}
      version: ["{tool}", "-v"]    # asks for the version
      install: "install lua (Debian: apt install lua5.4)"
      compile: […]                 # leaves {program}, or what built: [paths] says; none: nothing to compile
      run: ["{tool}", "{file}"]
      check: [luac5.4, -p, "{file}"]  # looks at the source of a failed program: another code than 0 is syntax_error
      uncaught: "^lua: "           # a line of stderr that tells an uncaught error from a checker's exit code 1
      message: ["^lua: (.*)"]      # what stderr says of the error that ended a program; groups are joined by ": "
      out_of_memory: "not enough memory"   # a line of stderr for which the verdict is oom
      mounts: [/opt/lua]           # of this machine, read-only, in addition to the tool's directory
      env: {LUA_PATH: "./?.lua"}
      limits: {wall: 10s, memory: 128MB}
      compile_limits: {}
      like: c                      # a built-in language, whose profile counts for what this one does not say
      warm: {imports: [numpy]}     # only Python: programs are forked from an interpreter that has imported this
      override: false              # true: it takes a built-in language's place

{tool}, {file}, {sources} (the source and the files of its kind), {program}, {memory} (the limit in bytes) and
{processors} (how many the program may use) are replaced by their values.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := languages(cmd.Context(), a)
			if f != output.AsTable {
				return output.WriteData(a.Out, f, found)
			}
			t := output.Titled("LANGUAGE", "HERE", "VERSION", "TOOL")
			for _, l := range found {
				if l.Found {
					t.Row(l.Language, "yes", l.Version, l.Tool)
				} else {
					t.Row(l.Language, "no", "", l.Say+": "+l.Fix)
				}
			}
			t.Write(a.Out)
			return nil
		},
	}
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

type languageFound struct {
	Language string        `json:"language"`
	Found    bool          `json:"found"`
	Tool     string        `json:"tool,omitempty"`
	Version  string        `json:"version,omitempty"`
	Say      string        `json:"say,omitempty"` // what is missing
	Fix      string        `json:"fix,omitempty"`
	Profile  *task.Profile `json:"profile"`
}

func languages(ctx context.Context, a *app.App) []languageFound {
	var all []languageFound
	for _, l := range task.Look(ctx, append(a.Config.Languages.Profiles(), a.Config.Languages.Dormant()...)...) {
		say, fix := l.Lacks()
		all = append(all, languageFound{l.Profile.Name, l.Err == nil, l.Tool, l.Version, say, fix, l.Profile})
	}
	return all
}
