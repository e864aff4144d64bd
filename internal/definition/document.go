package definition

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/problem"
)

const (
	maxDocument  = 4 << 20 // bytes
	maxValues    = 400_000 // with aliases expanded
	maxDocuments = 1000
	maxNesting   = 100
)

// The error for a document with more than maxNesting levels, and its fix.
var deeper, lessDeep = fmt.Sprintf("nested deeper than %d levels", maxNesting), "flatten the document"

type valueKind uint8

const (
	nullValue valueKind = iota
	boolValue
	numberValue
	textValue
	listValue
	objectValue
)

var kindNames = [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}

func (k valueKind) String() string { return kindNames[k] }

// value is a node of a YAML or JSON document, with its position.
type value struct {
	kind valueKind
	text string // of a string, or of a number or boolean in JSON's spelling
	// written is a number or boolean as it is written in YAML, if JSON writes it differently. misread says why it has to be quoted: YAML
	// readers disagree about its value. Such a value is a text, and is refused unless a text is expected.
	written, misread string
	list             []*value
	fields           []field
	line             int // from 1, 0 if unknown
	column           int // from 1, in characters
}

type field struct {
	name         string
	line, column int
	value        *value
}

func (v *value) get(name string) *value {
	for i := range v.fields {
		if v.fields[i].name == name {
			return v.fields[i].value
		}
	}
	return nil
}

func (v *value) ordered() []field {
	return slices.SortedFunc(slices.Values(v.fields), func(a, b field) int { return strings.Compare(a.name, b.name) })
}

// appendJSON writes v with sorted object keys.
func (v *value) appendJSON(b []byte) []byte { return v.appendOrdered(b, "") }

// appendOrdered is appendJSON, but leaves the members of the member called asWritten in the order of the document.
func (v *value) appendOrdered(b []byte, asWritten string) []byte {
	switch v.kind {
	case nullValue:
		return append(b, "null"...)
	case textValue:
		return jsonvalue.AppendText(b, v.text)
	case listValue:
		b = append(b, '[')
		for i, el := range v.list {
			if i > 0 {
				b = append(b, ',')
			}
			b = el.appendJSON(b)
		}
		return append(b, ']')
	case objectValue:
		b = append(b, '{')
		for i, f := range v.ordered() {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(jsonvalue.AppendText(b, f.name), ':')
			if asWritten != "" && f.name == asWritten && f.value.kind == objectValue {
				b = f.value.appendAsWritten(b)
			} else {
				b = f.value.appendJSON(b)
			}
		}
		return append(b, '}')
	}
	return append(b, v.text...)
}

func (v *value) appendAsWritten(b []byte) []byte {
	b = append(b, '{')
	for i, f := range v.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = f.value.appendJSON(append(jsonvalue.AppendText(b, f.name), ':'))
	}
	return append(b, '}')
}

// reading collects errors while a file is converted to values.
type reading struct {
	file     string
	src      []byte
	problems Problems
	values   int
	stop     bool // reading cannot continue
}

func (r *reading) fail(line, column int, fix, format string, args ...any) {
	if len(r.problems) >= maxProblems {
		r.stop = true
		return
	}
	r.problems = append(r.problems, Problem{File: r.file, Line: line, Column: column, Message: fmt.Sprintf(format, args...), Fix: fix})
}

func (r *reading) tooDeep(line, column int) {
	r.fail(line, column, lessDeep, "%s", deeper)
}

// read parses a file into its documents.
func read(file string, src []byte) ([]*value, Problems) {
	r := &reading{file: file, src: src}
	if !r.readable() {
		return nil, r.problems
	}
	body := bytes.TrimLeft(src, " \t\r\n")
	if len(body) > 0 && (body[0] == '{' || body[0] == '[') {
		j := r.jsonReader()
		v, err := j.file()
		if err == nil {
			return []*value{v}, r.problems
		}
		if strings.HasSuffix(file, ".json") || errors.Is(err, jsonvalue.ErrTooDeep) {
			r.problems = append(r.problems, j.problem(err))
			return nil, r.problems
		}
		r.problems, r.values, r.stop = nil, 0, false
	}
	return r.yaml(), r.problems
}

// readable checks the file before a parser sees it.
func (r *reading) readable() bool {
	if len(r.src) > maxDocument {
		r.fail(0, 0, "split it into several files, or load large data in a task",
			"the file has %d bytes; at most %d are read", len(r.src), maxDocument)
		return false
	}
	line, start := 1, 0
	for i := 0; i < len(r.src); {
		switch b := r.src[i]; {
		case b == 0:
			r.fail(line, utf8.RuneCount(r.src[start:i])+1, "remove it: the file may be binary or UTF-16", "the file has a NUL byte")
			return false
		case b == '\n':
			line, start = line+1, i+1
			i++
		case b < utf8.RuneSelf:
			i++
		default:
			c, n := utf8.DecodeRune(r.src[i:])
			if c == utf8.RuneError && n == 1 {
				r.fail(line, utf8.RuneCount(r.src[start:i])+1, "save the file as UTF-8", "the byte %#02x is not valid UTF-8", b)
				return false
			}
			i += n
		}
	}
	// Every value needs a comma or a line of its own; a tree of them takes a hundred times as much memory as the text.
	if n := bytes.Count(r.src, []byte(",")) + bytes.Count(r.src, []byte("\n")); n > maxValues {
		r.fail(0, 0, "split the file, or load large data in a task", "the file has %d commas and line ends; at most %d are read", n, maxValues)
		return false
	}
	return true
}

// yaml reads all documents of a YAML file.
func (r *reading) yaml() []*value {
	if at := bytes.IndexFunc(r.src, oldBreak); at >= 0 {
		c, _ := utf8.DecodeRune(r.src[at:])
		before := r.src[:at]
		r.fail(1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[1+bytes.LastIndexByte(before, '\n'):]), fmt.Sprintf(`write it as \u%04X, in double quotes`, c),
			"the character U+%04X is a line break in YAML 1.1 and none in YAML 1.2", c)
		return nil
	}
	deep := false
	tooDeep := func(depth int, _ *loaderlimits.DepthContext) error {
		// This check runs while the parser reads, before it has built a tree. It counts flow and block levels separately; node, which also
		// follows aliases, checks their sum.
		if deep = depth > maxNesting; deep {
			return jsonvalue.ErrTooDeep
		}
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(versionless(r.src)), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthFunc(tooDeep))))
	if err != nil {
		r.fail(0, 0, "", "%v", err)
		return nil
	}
	var docs []*value
	for !r.stop {
		var n yaml.Node
		err := loader.Load(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.syntax(err, deep)
			break
		}
		if len(docs) >= maxDocuments {
			r.fail(n.Line, n.Column, "split the file", "the file has more than %d documents", maxDocuments)
			break
		}
		if v := r.node(&n, 0); v != nil && v.kind != nullValue {
			docs = append(docs, v)
		}
	}
	return docs
}

// yamlPlace matches the start of the parser's messages: a position, or the first and the last of a range, of which the last is the error's.
// In a range on one line, the last has only a column, as in L1.C398-C401.
var yamlPlace = regexp.MustCompile(`^go-yaml load error in [a-z]+ (?:\([^)]*\) )?at (?:(?:L(\d+)[.:]C?\d+|<unknown position>)-)?(?:L(\d+)[.:])?C?(\d+): `)

// syntax reports an error of the YAML parser at its position. deep means that it is the error of maxNesting.
func (r *reading) syntax(err error, deep bool) {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line, column := 0, 0
	if m := yamlPlace.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(cmp.Or(m[2], m[1])) // digits, so there is no error
		column, _ = strconv.Atoi(m[3])
		msg = strings.TrimPrefix(msg, m[0])
	}
	if deep {
		r.tooDeep(line, column)
		return
	}
	fix := ""
	switch {
	case strings.Contains(msg, "tab character"):
		fix = "indent with spaces"
	case strings.Contains(msg, "cannot start any token") && r.tabbed(line):
		msg, fix = "a tab begins the text of the line", "indent with spaces"
	case strings.Contains(msg, "cannot start any token"):
		fix = "quote text that begins with a special character"
	case r.expressionOn(line):
		fix = `quote the expression: if: "${{ … }}"; without quotes YAML reads its braces, colons and quotes`
	case strings.Contains(msg, "unknown anchor"):
		fix = "define the anchor with &name before the alias, or quote text that begins with *"
	}
	r.fail(line, column, fix, "not valid YAML: %s", problem.Clip(strings.TrimSpace(msg), 300))
}

// expressionOn reports whether a line, or the one before it, where the cause of the error may be, has an expression that does not follow a
// quote.
func (r *reading) expressionOn(line int) bool {
	lines := bytes.Split(r.src, []byte("\n"))
	for n := max(line-2, 0); n < min(line, len(lines)); n++ {
		if i := bytes.Index(lines[n], []byte(opening)); i >= 0 && !bytes.ContainsAny(lines[n][max(i-1, 0):i], "\"'") {
			return true
		}
	}
	return false
}

// tabbed reports whether the indentation of a line has a tab.
func (r *reading) tabbed(line int) bool {
	lines := bytes.SplitN(r.src, []byte("\n"), max(line, 0)+1)
	if line < 1 || line > len(lines) {
		return false
	}
	text := lines[line-1]
	return bytes.ContainsRune(text[:len(text)-len(bytes.TrimLeft(text, " \t"))], '\t')
}

// node converts a YAML node, following aliases; it returns nil if an error leaves nothing to continue with.
func (r *reading) node(n *yaml.Node, depth int) *value {
	if r.stop {
		return nil
	}
	if r.values++; r.values > maxValues {
		r.fail(n.Line, n.Column, "use fewer or smaller aliases", "the file has more than %d values once its aliases are followed", maxValues)
		r.stop = true
		return nil
	}
	if depth > maxNesting {
		r.tooDeep(n.Line, n.Column)
		r.stop = true
		return nil
	}
	if tag := n.ShortTag(); n.Style&yaml.TaggedStyle != 0 && (n.Kind == yaml.SequenceNode && tag != "!!seq" || n.Kind == yaml.MappingNode && tag != "!!map") {
		r.fail(n.Line, n.Column, "remove the tag", "the tag %s is not supported", problem.Clip(n.Tag, 60))
		return nil
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil
		}
		return r.node(n.Content[0], depth)
	case yaml.AliasNode:
		if n.Alias == nil {
			r.fail(n.Line, n.Column, "", "the alias *%s names nothing", n.Value)
			return nil
		}
		return r.node(n.Alias, depth+1)
	case yaml.SequenceNode:
		v := &value{kind: listValue, line: n.Line, column: n.Column}
		for _, c := range n.Content {
			if el := r.node(c, depth+1); el != nil {
				v.list = append(v.list, el)
			}
		}
		return v
	case yaml.MappingNode:
		return r.mapping(n, depth)
	}
	return r.scalar(n)
}

func (r *reading) mapping(n *yaml.Node, depth int) *value {
	v := &value{kind: objectValue, line: n.Line, column: n.Column}
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content) && !r.stop; i += 2 {
		k, c := n.Content[i], n.Content[i+1]
		for k.Kind == yaml.AliasNode && k.Alias != nil {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			r.fail(k.Line, k.Column, "use a plain name", "a key is a list or an object")
			continue
		}
		if k.Tag == "!!merge" || k.Value == "<<" && k.Style == 0 {
			merges = append(merges, c)
			continue
		}
		if k.Style&yaml.TaggedStyle != 0 && k.ShortTag() != "!!str" {
			r.fail(k.Line, k.Column, "remove the tag", "the tag %s of a key is not supported", problem.Clip(k.Tag, 60))
			continue
		}
		r.withoutNUL(k.Value, k.Line, k.Column)
		if first := seen[k.Value]; first != nil {
			r.fail(k.Line, k.Column, "remove one of them", "the key %q is here twice; it was first used on line %d", problem.Clip(k.Value, 60), first.Line)
			continue
		}
		seen[k.Value] = k
		if el := r.node(c, depth+1); el != nil {
			v.fields = append(v.fields, field{k.Value, k.Line, k.Column, el})
		}
	}
	for _, m := range merges {
		r.merge(v, m, depth+1)
	}
	return v
}

// merge adds the fields of `<<: *base` that v itself does not have.
func (r *reading) merge(v *value, n *yaml.Node, depth int) {
	from := r.node(n, depth)
	if from == nil {
		return
	}
	bases := from.list
	if from.kind == objectValue {
		bases = []*value{from}
	}
	for _, base := range bases {
		if base.kind != objectValue {
			r.fail(n.Line, n.Column, "write <<: *anchor, of an object", "<< merges %s, not an object", base.kind)
			return
		}
		have := make(map[string]bool, len(v.fields))
		for _, f := range v.fields {
			have[f.name] = true
		}
		for _, f := range base.fields {
			if !have[f.name] {
				v.fields = append(v.fields, f)
			}
		}
	}
	if from.kind != objectValue && from.kind != listValue {
		r.fail(n.Line, n.Column, "write <<: *anchor, of an object", "<< merges %s, not an object", from.kind)
	}
}

func (r *reading) scalar(n *yaml.Node) *value {
	v := &value{kind: textValue, text: n.Value, line: n.Line, column: n.Column}
	r.withoutNUL(n.Value, n.Line, n.Column)
	tag := n.ShortTag()
	if n.Style&yaml.TaggedStyle == 0 {
		if n.Style != 0 {
			return v // quoted, or a block scalar
		}
		if tag, v.misread = coreTag(n.Value); v.misread != "" {
			v.written = n.Value
			return v
		}
	}
	switch tag {
	case "!!null":
		if core, _ := coreTag(n.Value); core != tag {
			r.fail(n.Line, n.Column, "write null, or remove the tag", "%s is not null", problem.Clip(n.Value, 60))
			return nil
		}
		v.kind, v.text = nullValue, ""
	case "!!bool":
		v.kind, v.text, v.written = boolValue, strings.ToLower(n.Value), n.Value
		if v.text != "true" && v.text != "false" {
			r.fail(n.Line, n.Column, "write true or false", "%s is not a boolean", problem.Clip(n.Value, 60))
			return nil
		}
	case "!!int", "!!float":
		v.kind, v.written = numberValue, n.Value
		text, fits := jsonNumber(n.Value)
		if _, why := coreTag(n.Value); why != "" || !fits {
			r.fail(n.Line, n.Column, "write a plain decimal number, or quote it to make it text", "the number %s cannot be kept: %s", problem.Clip(n.Value, 60),
				cmp.Or(why, "JSON has no such number"))
			return nil
		}
		v.text = text
	case "!!str":
	default:
		r.fail(n.Line, n.Column, "remove the tag", "the tag %s is not supported", problem.Clip(n.Tag, 60))
		return nil
	}
	return v
}

// withoutNUL reports a NUL in a text, "a\0b" in YAML. Inputs, outputs and labels cannot have one, so each use of the text would fail.
func (r *reading) withoutNUL(text string, line, column int) {
	if strings.ContainsRune(text, 0) {
		r.fail(line, column, "remove it", "the text has a NUL character")
	}
}

// asWritten turns a number or boolean into a text where a text is expected: 0012345670, 1_000 and 0x1F keep their digits.
func (v *value) asWritten() {
	if v.written != "" && (v.misread != "" || v.written != v.text) {
		v.kind, v.text, v.misread = textValue, v.written, ""
	}
}

// misreadings reports values that have to be quoted.
func (b *builder) misreadings(v *value, path string) {
	if v.misread != "" {
		b.fail(v, path, fmt.Sprintf("quote it to make it text: %q; or write the number in decimal digits", v.written), "%s is ambiguous: %s", problem.Clip(v.written, 60), v.misread)
	}
	for _, el := range v.list {
		b.misreadings(el, path)
	}
	for _, f := range v.fields {
		b.misreadings(f.value, problem.Join(path, f.name))
	}
}
