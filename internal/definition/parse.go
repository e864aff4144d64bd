package definition

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/problem"
)

// Parse reads and validates all documents of a file. file is only used in positions. If there is any error, it returns only the error,
// which is of type Problems and lists all of them (at most the first few hundred). Code may be in the built-in languages and in those for
// which a function in knows returns true.
func Parse(file string, src []byte, knows ...func(language string) bool) ([]*Definition, error) {
	defs, problems := Examine(file, src, knows...)
	if len(problems) > 0 {
		return nil, problems
	}
	return defs, nil
}

// Examine is Parse that also returns definitions with errors: they are good only for looking up their references. It returns none if a
// document has no name by which others could refer to it, or if there are too many errors to list more.
func Examine(file string, src []byte, knows ...func(language string) bool) ([]*Definition, Problems) {
	return ExamineWithin(payload.Ceilings{}, file, src, knows...)
}

// ExamineWithin is Examine that also refuses limits of programs above most.
func ExamineWithin(most payload.Ceilings, file string, src []byte, knows ...func(language string) bool) ([]*Definition, Problems) {
	docs, problems := read(file, src)
	b := &builder{file: file, src: src, problems: problems, languages: knows, most: most}
	if len(docs) == 0 && len(problems) == 0 {
		b.failAt(Position{File: file, Line: 1, Column: 1}, "", "write a document with `tasks` or `action`", "the file has no document")
	}
	var defs []*Definition
	type namespaced struct {
		kind Kind // "" for workflows and actions, which share a namespace
		name string
	}
	lines, nameless := map[namespaced]int{}, false
	for _, doc := range docs {
		d := b.document(doc)
		b.misreadings(doc, "")
		if d.Name == "" {
			nameless = true
			continue
		}
		key := namespaced{d.Kind, d.Name}
		if d.Runnable() {
			key.kind = ""
		}
		if first, twice := lines[key]; twice {
			b.fail(doc.get("name"), "name", "give each definition its own name; workflows and actions share one namespace",
				"the name %q is here twice; it was first used on line %d", d.Name, first)
		} else {
			lines[key] = d.Position.Line
		}
		defs = append(defs, d)
	}
	if len(b.problems) == 0 {
		return defs, nil
	}
	listed := b.problems.Sorted()
	if len(b.problems) >= maxProblems {
		listed = append(listed, Problem{File: file, Message: fmt.Sprintf("there are more than %d problems; the rest is not listed", maxProblems)})
	}
	if nameless || len(b.problems) >= maxProblems {
		defs = nil
	}
	return defs, listed
}

// Decode reads the result of Canonical. It trusts that the text is valid: expressions and schemas are compiled on first use.
func Decode(canonical []byte) (*Definition, error) {
	j := (&reading{src: canonical}).jsonReader()
	j.unplaced = true
	doc, err := j.file()
	if err != nil {
		return nil, fmt.Errorf("decode definition: %w", err)
	}
	b := &builder{src: canonical, trusted: true}
	d := b.document(doc)
	if len(b.problems) > 0 {
		return nil, fmt.Errorf("decode definition: %w", b.problems.Sorted())
	}
	return d, nil
}

var (
	commonFields   = append([]string{"kind", "name", "description", "input", "concurrency", "retry", "priority", "rate", "labels", "env", "searchable"}, flow.SpanNames()...)
	workflowFields = append([]string{"tasks", "outputs", "cleanup_timeout"}, commonFields...)
	actionFields   = append([]string{"action", "handler", "with", "queue", "worker_labels"}, commonFields...)
)

// documents are the kinds beside workflows and actions.
var documents = map[Kind]struct {
	example string // of a name; empty: my-KIND
	fields  []string
	read    func(*builder, *value, *Definition)
}{
	KindQueue:    {"", []string{"kind", "name"}, (*builder).queueDocument},
	KindSchedule: {"", scheduleFields, (*builder).scheduleDocument},
	KindTrigger:  {"alert.fired", triggerFields, (*builder).triggerDocument},
	KindRule:     {"", ruleFields, (*builder).ruleDocument},
	KindWebhook:  {"", webhookFields, (*builder).webhookDocument},
}

// document builds one definition, which is not usable if it adds errors.
func (b *builder) document(v *value) *Definition {
	d := &Definition{Position: Position{b.file, v.line, v.column}}
	b.mentions, b.inputType, b.itemType, b.signalType, b.tasks, b.taskNames = nil, nil, nil, nil, nil, nil
	if v.kind != objectValue {
		b.fail(v, "", "write name:, and tasks: or action:", "want a document with fields, not %s", v.kind)
		return d
	}
	d.Kind = b.kind(v)
	if d.Kind == "" {
		return d
	}
	d.Name = b.name(v.get("name"), "name", "name")
	other, isOther := documents[d.Kind]
	if v.get("name") == nil {
		b.fail(v, "", "add name: "+cmp.Or(other.example, "my-"+string(d.Kind)), "the %s has no name", d.Kind)
	}
	d.Description = b.text(v.get("description"), "description", 10_000)
	if isOther {
		b.object(v, "", other.fields)
		other.read(b, v, d)
		return d
	}
	if BuiltIn(d.Name) {
		b.fail(v.get("name"), "name", "choose another", "%q is the name of a built-in action", d.Name)
	}
	if s := v.get("input"); s != nil {
		d.Input = b.schema(s, "input")
		b.inputType = schemaType(s, 0)
	}
	d.Searchable = b.searchable(v.get("searchable"))
	if d.Kind == KindWorkflow {
		b.object(v, "", workflowFields)
		b.settings(v, "", &d.Settings, scopeWorkflow, noTask)
		d.Workflow = b.workflow(v, d)
	} else {
		b.object(v, "", actionFields)
		b.settings(v, "", &d.Settings, scopeAction, noTask)
		d.Settings.Queue = b.queue(v.get("queue"), "queue")
		d.Action = b.action(v)
		d.Settings.WorkerLabels = b.workerLabels(v.get("worker_labels"), "worker_labels", d.Action.Kind)
	}
	if v.get("kind") == nil {
		v.fields = append(v.fields, field{name: "kind", value: &value{kind: textValue, text: string(d.Kind)}})
	}
	b.sum(v, d)
	return d
}

// sum sets the canonical form of a document and its hash.
func (b *builder) sum(v *value, d *Definition) {
	d.canonical = v.appendOrdered(nil, "tasks")
	sum := sha256.Sum256(d.canonical)
	d.hash = hex.EncodeToString(sum[:])
}

func (b *builder) queueDocument(v *value, d *Definition) {
	if strings.HasSuffix(d.Name, ".") || strings.HasSuffix(d.Name, "_") || strings.HasSuffix(d.Name, "-") {
		b.fail(v.get("name"), "name", "end it with a letter or digit", "%q is not the name of a queue", problem.Clip(d.Name, 60))
	}
}

func (b *builder) kind(v *value) Kind {
	if k := v.get("kind"); k != nil {
		return Kind(b.oneOf(k, "kind", string(KindWorkflow), string(KindAction), string(KindQueue), string(KindSchedule), string(KindTrigger), string(KindRule), string(KindWebhook)))
	}
	switch {
	case v.get("tasks") != nil:
		return KindWorkflow
	case v.get("action") != nil || v.get("handler") != nil:
		return KindAction
	}
	for _, f := range v.fields {
		if here := otherDocuments[f.name]; here != "" {
			b.failAt(Position{b.file, f.line, f.column}, "", here, "the document is of another system: %q is not a field of Pawl's", f.name)
			return ""
		}
	}
	b.fail(v, "", "add tasks: for a workflow, or action: (or handler:) for an action", "the document defines neither a workflow nor an action")
	return ""
}

// otherDocuments maps fields that identify documents of other systems to the way in which Pawl expresses them.
var otherDocuments = map[string]string{
	"jobs": "jobs are tasks here, and their steps programs: write name: my-workflow and tasks: {build: {action: code, with: {language: bash, source: …}}}; " +
		"what stands in on: is a schedule, or a webhook and a rule",
	"steps":  "write name: my-workflow and tasks: {name: {action: …}}, of which each has needs: of those before it",
	"stages": "write name: my-workflow and tasks: {name: {action: …}}, of which each has needs: of those before it",
	"states": "write name: my-workflow and tasks: {name: {action: …}}, of which each has needs: of those before it",
	"spec":   "write name: my-workflow and tasks: {name: {action: …}} at the top",
}

func (b *builder) action(v *value) *Action {
	a := &Action{With: b.template(v.get("with"), "with", scopeAction, noTask), SignalAt: b.memberPlace(v.get("with"), "signal")}
	b.objectTemplate(v.get("with"), a.With, "with")
	kind, handler := v.get("action"), v.get("handler")
	switch {
	case kind != nil && handler != nil:
		b.fail(handler, "handler", "remove one of them", "an action is either of a built-in kind (action) or for a custom handler (handler)")
	case kind == nil && handler == nil:
		b.fail(v, "", "add action: "+strings.Join(BuiltIns[:4], ", ")+", …; or handler: name", "the action says neither its kind nor its handler")
	case kind != nil:
		a.Kind = b.oneOf(kind, "action", BuiltIns...)
		b.payload(a.Kind, v, v.get("with"), "with", false)
	default:
		a.Handler = b.name(handler, "handler", "handler")
		if BuiltIn(a.Handler) {
			b.fail(handler, "handler", "write action: "+a.Handler, "%q is a built-in kind, not a custom handler", a.Handler)
		}
	}
	return a
}

// settings reads the settings that workflows, actions and tasks share.
func (b *builder) settings(v *value, path string, s *Settings, sc scope, task int) {
	for _, span := range s.Spans() {
		*span.Value = b.duration(v.get(span.Name), problem.Join(path, span.Name), false)
	}
	if n, ok := b.whole(v.get("priority"), problem.Join(path, "priority"), -1000, 1000); ok {
		s.Priority = &n
	}
	s.Retry = b.retry(v.get("retry"), problem.Join(path, "retry"), kindOf(v))
	if c := v.get("concurrency"); c != nil && c.kind != numberValue && (c.kind != textValue || path == "") {
		s.Concurrency = b.concurrency(c, problem.Join(path, "concurrency"), sc, task)
	} else if c != nil && path == "" {
		b.fail(c, "concurrency", `write concurrency: {key: "…", limit: `+problem.Clip(c.text, 10)+`}`, "want an object with key and limit, not a number")
	}
	s.Rate = b.rate(v.get("rate"), problem.Join(path, "rate"), sc, task)
	s.Labels = b.labels(v.get("labels"), problem.Join(path, "labels"))
	b.idleSettings(v, path)
	s.Env = b.env(v.get("env"), problem.Join(path, "env"), sc, task)
}

func (b *builder) queue(v *value, path string) string { return b.name(v, path, "queue") }

// share reads a number in [0, 1].
func (b *builder) share(v *value, path string) float64 {
	if v == nil {
		return 0
	}
	var x float64
	_, err := fmt.Sscanf(v.text, "%g", &x)
	if v.kind != numberValue || err != nil || x < 0 || x > 1 {
		b.fail(v, path, "write a number from 0 to 1", "want a share from 0 to 1, not %s", v.describe())
		return 0
	}
	return x
}

var labelKey = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`)

func (b *builder) labels(v *value, path string) map[string]string {
	if v == nil {
		return nil
	}
	if v.kind != objectValue {
		b.fail(v, path, "write labels: {team: x}", "want an object of strings, not %s", v.kind)
		return nil
	}
	if len(v.fields) > maxLabels {
		b.fail(v, path, "remove some", "there are %d labels; at most %d are allowed", len(v.fields), maxLabels)
		return nil
	}
	m := make(map[string]string, len(v.fields))
	for _, f := range v.fields {
		if !labelKey.MatchString(f.name) {
			b.failAt(Position{b.file, f.line, f.column}, path, "use up to 63 letters, digits, '.', '_', '/' and '-'", "%q is not a label's name", problem.Clip(f.name, 60))
			continue
		}
		f.value.asWritten()
		switch f.value.kind {
		case textValue, numberValue, boolValue:
			if strings.Contains(f.value.text, opening) || len(f.value.text) > 256 {
				b.fail(f.value, problem.Join(path, f.name), "write plain text of at most 256 bytes", "a label's value has an expression or is too long")
			}
			m[f.name] = f.value.text
		default:
			b.fail(f.value, problem.Join(path, f.name), "write plain text", "want a string, not %s", f.value.kind)
		}
	}
	return m
}

// workerLabels reads the labels that a worker must have to run executions of the action.
func (b *builder) workerLabels(v *value, path, action string) map[string]string {
	if v == nil {
		return nil
	}
	if v.kind != objectValue {
		b.fail(v, path, "write worker_labels: {gpu: a100}", "want an object of labels, not %s", v.kind)
		return nil
	}
	if flow.Kind(action).ByEngine() {
		b.fail(v, path, "remove it; a workflow's tasks and actions each ask for the labels that they need", "no worker runs a %s", action)
		return nil
	}
	if len(v.fields) > flow.SelectorLimit {
		b.fail(v, path, "remove some", "there are %d labels; at most %d may be asked for", len(v.fields), flow.SelectorLimit)
		return nil
	}
	m := make(map[string]string, len(v.fields))
	for _, f := range v.fields {
		at := problem.Join(path, f.name)
		f.value.asWritten()
		switch k := f.value.kind; {
		case flow.BadLabelKey(f.name):
			b.failAt(Position{b.file, f.line, f.column}, path, flow.LabelKeyForm, "%q is not the key of a worker's label", problem.Clip(f.name, 80))
		case k != textValue && k != numberValue && k != boolValue:
			b.fail(f.value, at, "write plain text", "want a string, not %s", k)
		case strings.Contains(f.value.text, opening):
			b.fail(f.value, at, "write the value itself; an action for each value tells them apart", "worker_labels cannot have expressions")
		case flow.BadLabelValue(f.value.text):
			b.fail(f.value, at, flow.LabelValueForm, "%q is not the value of a worker's label", problem.Clip(f.value.text, 80))
		default:
			m[f.name] = f.value.text
		}
	}
	if text := flow.LabelText(m); len(text) > flow.RoutingKeyLimit-maxName {
		b.fail(v, path, "ask for fewer labels, or shorter ones", "the labels have %d bytes together; at most %d are allowed", len(text),
			flow.RoutingKeyLimit-maxName)
	}
	return m
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,254}$`)

func (b *builder) env(v *value, path string, sc scope, task int) *Template {
	if v == nil || !b.variables(v, path) {
		return nil
	}
	return b.template(v, path, sc, task)
}

// variables checks the constant parts of an environment. It returns false if v is not an object.
func (b *builder) variables(v *value, path string) bool {
	if v.kind != objectValue {
		b.fail(v, path, "write env: {NAME: value}", "want an object of strings, not %s", v.kind)
		return false
	}
	if len(v.fields) > maxEnv {
		b.fail(v, path, "put them in a file", "there are %d variables; at most %d are allowed", len(v.fields), maxEnv)
		return false
	}
	for _, f := range v.fields {
		if !envName.MatchString(f.name) {
			b.failAt(Position{b.file, f.line, f.column}, path, "use letters, digits and '_', beginning with a letter", "%q is not a variable's name", problem.Clip(f.name, 60))
		}
		f.value.asWritten()
		if k := f.value.kind; k == listValue || k == objectValue {
			b.fail(f.value, problem.Join(path, f.name), "write text; ${{ json(x) }} makes text of anything", "want a string, not %s", k)
		}
	}
	return true
}

func (b *builder) schema(v *value, path string) *Schema {
	if v.kind != objectValue && v.kind != boolValue {
		b.fail(v, path, "write a JSON Schema, such as {type: object}", "want a JSON Schema, not %s", v.kind)
		return nil
	}
	s := newSchema(v.appendJSON(nil))
	if b.trusted {
		return s
	}
	if n := v.count(); n > maxSchemaValues || len(s.text) > maxSchema {
		b.fail(v, path, "describe less of the input", "the schema has %d values and %d bytes; at most %d and %d are allowed", n, len(s.text), maxSchemaValues, maxSchema)
		return s
	}
	if _, err := s.compile(); err != nil {
		for _, p := range schemaProblems(err) {
			at, path := v, path
			for _, name := range p.steps {
				next := at.child(name)
				if next == nil {
					break
				}
				if at.kind == listValue {
					path += "[" + name + "]"
				} else {
					path += step{name: name}.suffix()
				}
				at = next
			}
			b.fail(at, path, cmp.Or(p.fix, "write a JSON Schema, such as {type: object, properties: {name: {type: string}}}"), "not a valid JSON Schema: %s", p.message)
		}
	}
	return s
}

// count returns how many values v consists of.
func (v *value) count() int {
	n := 1
	for _, el := range v.list {
		n += el.count()
	}
	for _, f := range v.fields {
		n += f.value.count()
	}
	return n
}

// child returns a member by name, or an element by its decimal index.
func (v *value) child(name string) *value {
	if v.kind == listValue {
		for i, el := range v.list {
			if fmt.Sprint(i) == name {
				return el
			}
		}
		return nil
	}
	return v.get(name)
}
