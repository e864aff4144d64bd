package definition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/pawl-run/pawl/internal/definition/compute"
	"github.com/pawl-run/pawl/internal/problem"
)

// soleEqualsSign is the message of CEL's parser for a = that is not part of ==, !=, <= or >=.
const soleEqualsSign = "token recognition error at: '="

// keywordField matches a field whose name is a keyword of CEL. CEL's parser takes it for the operator.
var keywordField = regexp.MustCompile(`\.\s*(in|true|false|null)\b`)

// isBrokenText reports whether CEL's parser stopped at the quote of a text that does not end on its line.
func isBrokenText(message string) bool {
	_, at, found := strings.Cut(message, "token recognition error at: '")
	return found && (at[:min(1, len(at))] == `"` || strings.HasPrefix(at, "'")) && strings.Contains(at, "\n")
}

// explain converts CEL's message to ours, with a fix.
func (e *compiled) explain(err *cel.Error) issue {
	i := issue{err.Location.Line(), err.Location.Column(), err.Message, ""}
	i.message, _, _ = strings.Cut(i.message, " (in container '')")
	i.message, _, _ = strings.Cut(i.message, " (did you mean")
	if rest, ok := strings.CutPrefix(i.message, "undeclared reference to '"); ok {
		name := strings.TrimSuffix(rest, "'")
		i.message = fmt.Sprintf("%q is not a variable or function here", name)
		i.fix = e.offer(name)
	}
	if m := noOverload.FindStringSubmatch(i.message); m != nil {
		i.message, i.fix = compute.Refused(m[1], operandTypes(m[2]))
	}
	if _, rest, ok := strings.Cut(i.message, "Syntax error: "); ok {
		i.message = "syntax error: " + rest
	}
	if strings.Contains(i.message, soleEqualsSign) {
		i.message, i.fix = "syntax error: = is not an operator here", "write == to compare"
	}
	if word := keywordField.FindStringSubmatch(e.text); word != nil && strings.HasPrefix(i.message, "syntax error: ") {
		i.message = fmt.Sprintf("syntax error: %s is a word of expressions and cannot follow a dot", word[1])
		i.fix = fmt.Sprintf(`write ["%s"] in place of .%s`, word[1], word[1])
	}
	if isBrokenText(err.Message) {
		i.message, i.fix = "syntax error: a text in quotes has a line break in it", `write \n there; within double quotes of YAML that is \\n`
	}
	i.message = problem.Clip(i.message, 300)
	return i
}

// noOverload matches the error of CEL's check for operands of the wrong types; for a method, the first operand is before a dot.
var noOverload = regexp.MustCompile(`^found no matching overload for '(.+)' applied to '(.*)'$`)

// operandTypes returns the names of the types in "(int, list(string))" or "int.(string)".
func operandTypes(list string) (names []string) {
	list = strings.Replace(strings.TrimSuffix(list, ")"), ".(", ", ", 1)
	list = strings.TrimSuffix(strings.TrimPrefix(list, "("), ", ")
	depth, from := 0, 0
	for i, c := range list + "," {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			names = append(names, compute.NameOf(strings.TrimSpace(list[from:i])))
			from = i + 1
		}
	}
	return names
}

// otherNames maps names of functions and variables in other systems to Pawl's.
var otherNames = map[string]string{
	"failure": "failed()", "canceled": "cancelled()", "toJSON": "json(x)", "toJson": "json(x)", "tojson": "json(x)", "fromJSON": "parse_json(text)",
	"fromJson": "parse_json(text)", "inputs": "input", "params": "input", "parameters": "input", "args": "input", "steps": "tasks", "jobs": "tasks",
	"outputs": "tasks.NAME.output", "matrix": "item", "len": "size(x)", "length": "size(x)", "str": "string(x)", "float": "double(x)",
	"startsWith": "text.startsWith(x)", "endsWith": "text.endsWith(x)", "contains": "text.contains(x), or x in list",
	"format": `"a " + string(x)`, "github": "input, or signal in a rule", "event": "signal, in a rule",
	"secrets": "secret_env in a task that has it: expressions do not see secrets", "None": "null", "True": "true", "False": "false", "nil": "null",
}

func (e *compiled) offer(name string) string {
	if _, ok := statusFunctions[name]; ok {
		return name + "() can be called in `if` of a task only"
	}
	if here := otherNames[name]; here != "" {
		return "write " + here
	}
	if slices.Contains(variables, name) {
		switch name {
		case "item", "index":
			return name + " exists in a task with `foreach` only"
		case "round", "previous":
			return name + " exists in a task with `repeat` only"
		}
		return fmt.Sprintf("%s is not available in this place; here are %s", name, strings.Join(scopeVariables[e.scope], ", "))
	}
	if strings.Contains(e.text, "-"+name) {
		return `names with a dash need brackets, as in tasks["load-data"].output`
	}
	known := append([]string{"json", "parse_json", "default", "sum", "size", "has", "string", "int", "double"}, scopeVariables[e.scope]...)
	if s := problem.Nearest(name, known); s != "" {
		return s
	}
	return "the variables here are " + strings.Join(scopeVariables[e.scope], ", ") + "; text needs quotes"
}
