package payload

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// AnyContainer is the need of a container that names no runtime: a worker with any runtime for containers.
const AnyContainer = string(flow.KindContainer)

// Validate checks the payload of a built-in handler without running it. The error names the field, the value and the fix. Kinds that accept
// any payload give no error.
func Validate(kind flow.Kind, payload []byte) error { return Operator{}.Validate(kind, payload) }

// Operator has the additional languages and runtimes of an installation, and its limits.
type Operator struct {
	// Knows reports whether code may be in a language that is not built in. If it is nil, it may not.
	Knows func(language string) bool
	// Meant returns a suggestion for an unknown language. If it is nil, a built-in one is suggested.
	Meant func(language string) string
	// Taken returns the files that the profile of a language places itself. If it is nil, it places none.
	Taken func(code *api.Code) []string
	// Images reports whether the runtime with this name takes programs from images. If it is nil, none does.
	Images func(runtime string) bool
	// Most are the highest limits for one program.
	Most Ceilings
}

// Validate is the function Validate with the operator's languages and limits.
func (o Operator) Validate(kind flow.Kind, payload []byte) error {
	if s, ok := specs[kind]; ok {
		return s.validate(payload, o)
	}
	return nil
}

// languages makes the checks that depend on the profiles of languages.
func (o Operator) languages(c *api.Code) error {
	for at, name := range LanguagesUsed(c) {
		if _, builtIn := api.LanguageName(name); !builtIn && (o.Knows == nil || !o.Knows(name)) {
			fix := "one of " + strings.Join(api.Languages(), ", ") + ", or add a profile"
			if o.Meant != nil {
				fix = o.Meant(name)
			}
			return problem.List{{Path: at, Value: name, Message: "no profile of this server or of a worker of its knows it: " + strconv.Quote(name), Fix: fix}}
		}
	}
	if o.Taken == nil {
		return nil
	}
	list := Placed("files", c.Files, o.Taken(c)...)
	if at, judge := Judge(c); judge != nil {
		list = append(list, Placed(at+".files", judge.Files, o.Taken(&api.Code{Language: judge.Language, Source: judge.Source})...)...)
	}
	return list.Err()
}

// joined refuses an interactor in a runtime of images, where no pipe can connect two runs.
func (o Operator) joined(c *api.Code) error {
	if c.Compare == nil || c.Compare.Interactor == nil || o.Images == nil || !o.Images(c.Runtime) {
		return nil
	}
	return problem.List{{Path: "runtime", Value: strconv.Quote(c.Runtime), Message: "it runs programs in containers, and cannot join a program and an interactor",
		Fix: "leave it out, for a worker with the sandbox"}}
}

// Needs returns the runtime that a payload of a built-in kind requires, as workers offer it, and a language that not every worker has (as
// flow.OfferLanguage writes it); empty: any worker will do.
func Needs(kind flow.Kind, payload []byte) []string {
	if s := specs[kind]; s.needs != nil {
		return s.needs(payload)
	}
	return nil
}

func needsOfCode(payload []byte) (needs []string) {
	if name := strictjson.Text(payload, "runtime"); name != "" {
		needs = append(needs, name)
	}
	if name := strictjson.Text(payload, "language"); name != "" {
		if _, builtIn := api.LanguageName(name); !builtIn {
			needs = append(needs, flow.OfferLanguage(strings.ToLower(name)))
		}
	}
	return needs
}

func needsOfContainer(payload []byte) []string {
	return []string{cmp.Or(strictjson.Text(payload, "runtime"), AnyContainer)}
}
