package definition

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	compare "github.com/pawl-run/pawl/internal/comparison"
	"github.com/pawl-run/pawl/internal/duration"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/problem"
)

// limit is a limit of code, in seconds, bytes, or a plain number.
type limit struct {
	unit        string
	least, most float64
}

var codeLimits = map[string]limit{
	"wall": longest, "timeout": longest, "cpu": longest,
	"memory": {"size", float64(api.MinMemory), float64(api.MaxMemory)}, "output": {"size", 1, float64(api.MaxOutput)}, "disk": {"size", 1, float64(api.MaxDisk)},
	"stack": {"size", float64(api.MinStack), float64(api.MaxStack)},
	"pids":  {"count", 1, api.MaxPids}, "cpus": {"share", api.MinCPUs, api.MaxCPUs},
}

var longest = limit{"time", 0, time.Duration(api.MaxWall).Seconds()}

// payload checks the constant parts of the `with` of a built-in action. with is nil if owner has none; needed means that it is required.
func (b *builder) payload(action string, owner, with *value, path string, needed bool) {
	fields, required, known := payload.Fields(flow.Kind(action))
	if !known || with == nil && !needed || with != nil && with.kind != objectValue {
		return
	}
	if with == nil {
		b.fail(owner, path, fmt.Sprintf("add with: {%s: …}", strings.Join(required, ": …, ")), "the %s needs %s", action, strings.Join(required, " and "))
		return
	}
	before := len(b.problems)
	b.object(with, path, fields)
	for _, name := range required {
		if with.get(name) == nil && !with.misspells(name, fields) {
			b.fail(with, path, "add "+name+": …", "%s is missing", name)
		}
	}
	defer func() {
		if len(b.problems) == before && !b.trusted {
			b.fixedPayload(flow.Kind(action), with, path)
			b.ceilings(flow.Kind(action), with, path)
		}
	}()
	switch action {
	case "code":
		b.codePayload(with, path)
	case "container":
		b.containerPayload(with, path)
	case "workflow":
		b.workflowPayload(with, path)
	case "http":
		if m := with.get("method"); m != nil && m.kind == textValue && m.fixed() && !b.trusted {
			if message, fix := payload.BadMethod(m.text); message != "" {
				b.fail(m, problem.Join(path, "method"), fix, "%q: %s", problem.Clip(m.text, 40), message)
			}
		}
	case "ask":
		b.askPayload(with, path)
	case "wait":
		b.waitPayload(with, path)
	case "sleep":
		if v := with.get("for"); v != nil && v.fixed() {
			b.sleepPayload(v, problem.Join(path, "for"))
		}
	}
}

// fixedPayload reports everything for which a submission would be refused in a payload without expressions, since the task would be refused
// at each start. Checks that depend on the operator, such as the languages of profiles, are left to the submission.
func (b *builder) fixedPayload(kind flow.Kind, with *value, path string) {
	switch kind {
	case flow.KindHTTP, flow.KindLLM, flow.KindWebhook, flow.KindCode, flow.KindContainer:
	default:
		return
	}
	fields, _, _ := payload.Fields(kind)
	fixed := &value{kind: objectValue}
	for _, f := range with.fields {
		switch {
		case f.value.mentions(opening):
			return
		case slices.Contains(fields, f.name) && f.name != "env": // the numbers in env become texts
			fixed.fields = append(fixed.fields, f)
		}
	}
	var ps Problems
	if errors.As(payload.Operator{Knows: func(string) bool { return true }}.Validate(kind, fixed.appendJSON(nil)), &ps) {
		b.withProblems(with, path, ps)
	}
}

// ceilings reports limits above those of the operator, which every execution would be refused for. Parts with expressions are left out.
func (b *builder) ceilings(kind flow.Kind, with *value, path string) {
	if !kind.RunsCode() || b.most == (payload.Ceilings{}) {
		return
	}
	fixed := with.withoutExpressions()
	fixed.drop("env") // the numbers in it become texts
	for name, text := range map[string]string{"language": "bash", "source": "true", "image": "image"} {
		if fields, _, _ := payload.Fields(kind); slices.Contains(fields, name) && fixed.get(name) == nil {
			fixed.fields = append(fixed.fields, field{name: name, value: &value{kind: textValue, text: text}})
		}
	}
	var above error
	switch raw := fixed.appendJSON(nil); kind {
	case flow.KindCode:
		if code, err := payload.Code(raw); err == nil {
			above = b.most.Code(&code)
		}
	case flow.KindContainer:
		if container, err := payload.Container(raw); err == nil {
			above = b.most.Container(&container)
		}
	}
	var ps problem.List
	if errors.As(above, &ps) {
		b.withProblems(with, path, ps)
	}
}

// withoutExpressions returns v without the members that have an expression, and without lists that have a scalar one.
func (v *value) withoutExpressions() *value {
	fixed := &value{kind: v.kind, text: v.text, line: v.line, column: v.column}
	for _, f := range v.fields {
		open := func(el *value) bool { return el.kind < listValue && !el.fixed() }
		if f.value.fixed() || f.value.kind >= listValue && !slices.ContainsFunc(f.value.list, open) {
			f.value = f.value.withoutExpressions()
			fixed.fields = append(fixed.fields, f)
		}
	}
	for _, el := range v.list {
		fixed.list = append(fixed.list, el.withoutExpressions())
	}
	return fixed
}

// misspells reports whether v has an unknown member whose name is close to the given name.
func (v *value) misspells(name string, fields []string) bool {
	return slices.ContainsFunc(v.fields, func(f field) bool {
		return !slices.Contains(fields, f.name) && strings.Contains(problem.Nearest(f.name, fields), strconv.Quote(name))
	})
}

func (b *builder) knows(name string) bool {
	_, ok := language.BuiltIn().Resolve(name)
	return ok || slices.ContainsFunc(b.languages, func(knows func(string) bool) bool { return knows(strings.ToLower(name)) })
}

// fixed reports whether v is a scalar without expressions.
func (v *value) fixed() bool {
	return v.kind != listValue && v.kind != objectValue && !strings.Contains(v.text, opening)
}

func (b *builder) codePayload(with *value, path string) {
	if l := with.get("language"); l != nil && l.fixed() && !b.trusted && !b.knows(l.text) {
		fix := cmp.Or(language.BuiltIn().Suggest(l.text), problem.Nearest(l.text, language.BuiltIn().All()),
			"the languages are "+strings.Join(language.BuiltIn().Names(), ", ")+", and those that profiles add")
		b.fail(l, problem.Join(path, "language"), fix, "%q is not a language that Pawl knows", problem.Clip(l.text, 40))
	}
	if c := with.get("compare"); c != nil && c.kind == textValue && c.fixed() && c.text != "checker" && c.text != "interactor" && !slices.Contains(compare.Modes(), compare.Mode(c.text)) {
		b.fail(c, problem.Join(path, "compare"), "write exact, trimmed, tokens or numeric, or an object with more of it", "%q is not a way to compare", problem.Clip(c.text, 40))
	}
	b.envPayload(with, path)
	b.limitsPayload(with, path, "limits")
	b.limitsPayload(with, path, "compile_limits")
}

func (b *builder) containerPayload(with *value, path string) {
	for _, name := range []string{"entrypoint", "command"} {
		if v := with.get(name); v != nil && v.kind != listValue && v.fixed() {
			b.fail(v, problem.Join(path, name), `write a list, such as ["sh", "-c", "…"]`, "%s is not a list of words", name)
		}
	}
	if v := with.get("pull"); v != nil && v.fixed() && !slices.Contains([]string{"missing", "always", "never"}, v.text) {
		b.fail(v, problem.Join(path, "pull"), "write missing, always or never", "%q is not a pull policy", problem.Clip(v.text, 40))
	}
	b.envPayload(with, path)
	b.limitsPayload(with, path, "limits")
}

// envPayload checks the variables of code and containers in the same way as a task's own env.
func (b *builder) envPayload(with *value, path string) {
	if env := with.get("env"); env != nil && env.kind == objectValue && !b.trusted {
		b.variables(env, problem.Join(path, "env"))
	}
}

func (b *builder) limitsPayload(with *value, path, name string) {
	limits := with.get(name)
	if limits == nil || limits.kind == textValue && !limits.fixed() {
		return
	}
	path = problem.Join(path, name)
	if !b.object(limits, path, sortedKeys(codeLimits)) {
		return
	}
	for _, f := range limits.fields {
		if l, known := codeLimits[f.name]; known && (f.value.fixed() || f.value.kind >= listValue) {
			b.limit(f.value, problem.Join(path, f.name), l)
		}
	}
}

func (b *builder) limit(v *value, path string, l limit) {
	var n float64
	var err error
	fix := fmt.Sprintf("write a whole number from %.0f to %.0f", l.least, l.most)
	switch {
	case v.kind != numberValue && (v.kind != textValue || l.unit == "count" || l.unit == "share"):
		err = strconv.ErrSyntax
	case l.unit == "size":
		var size api.Size
		size, err = api.ParseSize(v.text)
		n = float64(size)
		fix = fmt.Sprintf("write 64MB, 64MiB or a number of bytes, from %.0f to %.0f", l.least, l.most)
	case l.unit == "time":
		n, err = secondsOf(v)
		fix = "write 10s, 500ms or a number of seconds, more than 0 and at most 24h"
		if n == 0 {
			err = strconv.ErrRange
		}
	default:
		n, err = strconv.ParseFloat(v.text, 64)
	}
	if l.unit == "share" {
		fix = fmt.Sprintf("write a number from %g to %g, such as 1 or 0.5", l.least, l.most)
	}
	if err != nil || n < l.least || n > l.most || l.unit == "count" && n != math.Trunc(n) {
		what := "the value"
		if v.text != "" {
			what = problem.Clip(v.text, 40)
		}
		b.fail(v, path, fix, "%s is not a limit within the range", what)
	}
}

func secondsOf(v *value) (float64, error) {
	if v.kind == numberValue {
		return strconv.ParseFloat(v.text, 64)
	}
	d, err := duration.Parse(v.text)
	return d.Seconds(), err
}

func (b *builder) workflowPayload(with *value, path string) {
	if name := with.get("name"); name != nil && !strings.Contains(name.text, opening) && !byAlias(name.text) {
		b.name(name, problem.Join(path, "name"), "workflow's name")
	}
	if n := with.get("version"); n != nil && !strings.Contains(n.text, opening) {
		b.whole(n, problem.Join(path, "version"), 1, 1_000_000_000)
	}
}

func (b *builder) sleepPayload(v *value, path string) {
	seconds, err := 0.0, error(nil)
	switch v.kind {
	case numberValue:
		seconds, err = strconv.ParseFloat(v.text, 64)
	case textValue:
		var d time.Duration
		d, err = duration.Parse(v.text)
		seconds = d.Seconds()
	default:
		err = strconv.ErrSyntax
	}
	if err != nil || seconds < 0 || seconds > maxTimeout.Seconds() {
		b.fail(v, path, "write 90s, 1h30m or a number of seconds, at most 366d", "%s is not how long to sleep", problem.Clip(v.describe(), 60))
	}
}
