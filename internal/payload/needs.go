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

// AnyContainer is what a container needs that asks for no runtime by name: a worker that has one for containers.
const AnyContainer = string(flow.KindContainer)

// Validate checks what a built-in handler would get, without running it. The error names the field, the value and the fix. Kinds
// that take anything are never at fault.
func Validate(kind flow.Kind, payload []byte) error { return Operator{}.Validate(kind, payload) }

// Operator is what an installation allows beside what is built in, and what it allows less.
type Operator struct {
	// Knows says whether code may be in a language that is not built in; nil: in none.
	Knows func(language string) bool
	// Meant says what to write instead of an unknown language; nil: one of those that are built in.
	Meant func(language string) string
	// Taken lists the files that the profile of a language places itself; nil: none.
	Taken func(code *api.Code) []string
	// Images says whether a runtime of that name takes programs from images; nil: none does.
	Images func(runtime string) bool
	// Most are the most that one program may ask for.
	Most Ceilings
}

// Validate is the function Validate, by what the operator allows.
func (o Operator) Validate(kind flow.Kind, payload []byte) error {
	if s, ok := specs[kind]; ok {
		return s.validate(payload, o)
	}
	return nil
}

// languages is about what the profiles of languages decide.
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

// joined refuses an interactor in a runtime of images: there no pipe joins two runs.
func (o Operator) joined(c *api.Code) error {
	if c.Compare == nil || c.Compare.Interactor == nil || o.Images == nil || !o.Images(c.Runtime) {
		return nil
	}
	return problem.List{{Path: "runtime", Value: strconv.Quote(c.Runtime), Message: "it runs programs in containers, and cannot join a program and an interactor",
		Fix: "leave it out, for a worker with the sandbox"}}
}

// Needs names the runtime that a payload of a built-in kind cannot do without, as workers offer it, and the language that not
// every worker has (as flow.OfferLanguage writes it); empty: the worker's own choice will do.
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
