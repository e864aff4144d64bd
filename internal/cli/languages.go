package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/task"
)

// missingFor says what a language's code needs and this machine does not have.
func (a *app) missingFor(what, name string) error {
	tool, install := a.config.Languages.Missing(name)
	if tool == "" {
		return nil
	}
	return fmt.Errorf("%s needs %s to run its %s code, and %s is not on this machine's PATH: %s and try again", what, tool, name, tool, install)
}

// knowsLanguage reports whether a language has a profile here.
func (a *app) knowsLanguage(name string) bool {
	_, ok := a.config.Languages.Set().Resolve(name)
	return ok
}

// mayKnowLanguage is knowsLanguage where a server that is named has the last word.
func (a *app) mayKnowLanguage(name string) bool {
	return a.knowsLanguage(name) || a.config.Text("server") != "" && language.CheckName(name) == nil
}

// step is what runs one action, as a definition says it.
type step struct {
	Action string          `json:"action"`
	With   json.RawMessage `json:"with"`
}

// stepsOf lists the action of a definition and those of its tasks.
func stepsOf(d *definition.Definition) ([]step, error) {
	var doc struct {
		step
		Tasks map[string]step `json:"tasks"`
	}
	if err := json.Unmarshal(d.Canonical(), &doc); err != nil {
		return nil, fmt.Errorf("read definition %s: %w", d.Name, err)
	}
	return append([]step{doc.step}, slices.Collect(maps.Values(doc.Tasks))...), nil
}

// missingTools checks the languages of all code in definitions. Only what is written down is looked at; a language that
// is computed shows itself when it runs.
func (a *app) missingTools(defs []*definition.Definition) error {
	languageIn := func(s step) string {
		var with struct {
			Language string `json:"language"`
		}
		if s.Action != "code" || json.Unmarshal(s.With, &with) != nil {
			return ""
		}
		name, _ := a.config.Languages.Set().Resolve(with.Language)
		return name
	}
	var seen []string
	for _, d := range defs {
		steps, err := stepsOf(d)
		if err != nil {
			return err
		}
		for _, s := range steps {
			if name := languageIn(s); name != "" && !slices.Contains(seen, name) {
				seen = append(seen, name)
				if err := a.missingFor(string(d.Kind)+" "+d.Name, name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// missingRuntimes checks, of definitions that run in this process and nowhere else, whether it has the handlers, the runtimes
// and the labels that they need.
func (a *app) missingRuntimes(defs []*definition.Definition) error {
	for _, d := range defs {
		if d.Action != nil && d.Action.Handler != "" && !config.IsPostgres(a.config.Text("store")) {
			return exit.Usagef("action %s is run by programs that serve handler %q, and none of them can reach the engine of this command: start pawl server and such a program, and name the server with --server",
				d.Name, d.Action.Handler)
		}
		steps, err := stepsOf(d)
		if err != nil {
			return err
		}
		if err := a.missingLabelsOf(d); err != nil {
			return err
		}
		for _, s := range steps {
			if err := a.missingRuntime(string(d.Kind)+" "+d.Name, flow.Kind(s.Action), s.With); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *app) languagesCommand() *cobra.Command {
	var f output.Format
	c := &cobra.Command{
		Use:   "languages",
		Short: "List the languages that evaluations can be written in, and which of them this machine has",
		Long: `List the languages that code here may be written in, and look for their tools. With -o yaml each comes with its whole
profile: how its programs are built and run, what they see, and their limits unless they are given others.

The configuration file may add languages, which this machine's workers then offer to their server as well:

  languages:
    lua:
      aliases: [lua5.4]            # other names
      extensions: [lua]            # of sources
      file: main.lua               # what the source is called; main.EXTENSION by default
      files: {prelude.lua: "…"}    # placed beside it
      tools: [lua5.4, lua]         # the first that PATH finds is {tool}
      version: ["{tool}", "-v"]    # asks for the version
      install: "install lua (Debian: apt install lua5.4)"
      compile: […]                 # leaves {program}, or what built: [paths] says; none: nothing to compile
      run: ["{tool}", "{file}"]
      check: [luac5.4, -p, "{file}"]  # looks at the source of a failed program: another code than 0 is syntax_error
      uncaught: "^lua: "           # a line of stderr that tells an uncaught error from a checker's exit code 1
      mounts: [/opt/lua]           # of this machine, read-only, beside the tool's own directory
      env: {LUA_PATH: "./?.lua"}
      limits: {wall: 10s, memory: 128MB}
      compile_limits: {}
      like: c                      # a built-in language, whose profile counts for what this one does not say
      override: false              # true: it takes a built-in language's place

{tool}, {file}, {sources} (the source and the files of its kind), {program}, {memory} (the limit in bytes) and
{processors} (how many the program may use) are filled in.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := a.languages(cmd.Context())
			if f != output.AsTable {
				return output.WriteData(a.out, f, found)
			}
			t := &output.Table{}
			t.Row("LANGUAGE", "HERE", "VERSION", "TOOL")
			for _, l := range found {
				if l.Found {
					t.Row(l.Language, "yes", l.Version, l.Tool)
				} else {
					t.Row(l.Language, "no", "", l.Say+": "+l.Fix)
				}
			}
			t.Write(a.out)
			return nil
		},
	}
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

// languageFound is a language on this machine.
type languageFound struct {
	Language string        `json:"language"`
	Found    bool          `json:"found"`
	Tool     string        `json:"tool,omitempty"`
	Version  string        `json:"version,omitempty"`
	Say      string        `json:"say,omitempty"` // what is missing
	Fix      string        `json:"fix,omitempty"`
	Profile  *task.Profile `json:"profile"`
}

func (a *app) languages(ctx context.Context) []languageFound {
	var all []languageFound
	for _, l := range task.Look(ctx, a.config.Languages.Profiles()...) {
		say, fix := l.Lacks()
		all = append(all, languageFound{l.Profile.Name, l.Err == nil, l.Tool, l.Version, say, fix, l.Profile})
	}
	return all
}
