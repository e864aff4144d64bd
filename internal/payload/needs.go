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

func knownLanguages(c *api.Code, knows func(string) bool) error {
	for at, name := range LanguagesUsed(c) {
		if _, builtIn := api.LanguageName(name); !builtIn && (knows == nil || !knows(name)) {
			return problem.List{{Path: at, Value: name, Message: "no profile of this server or of a worker of its knows it: " + strconv.Quote(name),
				Fix: "one of " + strings.Join(api.Languages(), ", ") + ", or add a profile"}}
		}
	}
	return nil
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
