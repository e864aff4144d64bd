package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/task"
)

// languageTools are the programs that a language can be run with, and the Debian package that has them.
var languageTools = map[string]struct {
	tools []string
	debs  string
}{
	"python":     {[]string{"python3", "python"}, "python3"},
	"javascript": {[]string{"node", "nodejs"}, "nodejs"},
	"bash":       {[]string{"bash"}, "bash"},
	"go":         {[]string{"go"}, "golang"},
	"c":          {[]string{"cc", "gcc", "clang"}, "gcc libc6-dev"},
}

// missingFor says what a language's code needs and this machine does not have.
func missingFor(what, language string) error {
	l, ok := languageTools[language]
	if !ok {
		return nil
	}
	for _, tool := range l.tools {
		if _, err := exec.LookPath(tool); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s needs %s to run its %s code, and %s is not on this machine's PATH: install it (on Debian: apt install %s) and try again",
		what, l.tools[0], language, l.tools[0], l.debs)
}

// missingTools checks the languages of all code in definitions. Only what is written down is looked at; a language that
// is computed shows itself when it runs.
func missingTools(defs []*definition.Definition) error {
	type step struct {
		Action string          `json:"action"`
		With   json.RawMessage `json:"with"`
	}
	language := func(s step) string {
		var with struct {
			Language string `json:"language"`
		}
		if s.Action != "code" || json.Unmarshal(s.With, &with) != nil {
			return ""
		}
		name, _ := api.LanguageName(with.Language)
		return name
	}
	var seen []string
	for _, d := range defs {
		var doc struct {
			step
			Tasks map[string]step `json:"tasks"`
		}
		if err := json.Unmarshal(d.Canonical(), &doc); err != nil {
			return fmt.Errorf("read definition %s: %w", d.Name, err)
		}
		steps := []step{doc.step}
		for _, s := range doc.Tasks {
			steps = append(steps, s)
		}
		for _, s := range steps {
			if name := language(s); name != "" && !slices.Contains(seen, name) {
				seen = append(seen, name)
				if err := missingFor(string(d.Kind)+" "+d.Name, name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (a *app) languagesCommand() *cobra.Command {
	var f format
	c := &cobra.Command{
		Use:   "languages",
		Short: "List the languages that evaluations can be written in, and which of them this machine has",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			found, err := a.languages()
			if err != nil {
				return err
			}
			if f != asTable {
				return writeData(a.out, f, found)
			}
			t := &table{}
			t.row("LANGUAGE", "HERE", "FOUND")
			for _, l := range found {
				here := "yes"
				if !l.Found {
					here = "no"
				}
				t.row(l.Language, here, strings.TrimSpace(l.Say+" "+l.Fix))
			}
			t.write(a.out)
			return nil
		},
	}
	formatFlag(c, &f, asTable, asJSON, asYAML)
	return c
}

// languageFound is a language on this machine.
type languageFound struct {
	Language string `json:"language"`
	Found    bool   `json:"found"`
	Say      string `json:"say"`
	Fix      string `json:"fix,omitempty"`
}

func (a *app) languages() ([]languageFound, error) {
	rt, err := openRuntime("process") // nothing is run with it
	if err != nil {
		return nil, err
	}
	defer func() { _ = rt.Close() }()
	code, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: a.workDir()})
	if err != nil {
		return nil, err
	}
	var all []languageFound
	for _, finding := range code.Diagnose() {
		all = append(all, languageFound{strings.TrimPrefix(finding.What, "language "), finding.OK, finding.Say, finding.Fix})
	}
	return all, nil
}
