package output

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// WriteYAML writes JSON as YAML, its members in their order. The text is parsed as JSON and not as YAML: YAML has no escaped
// surrogates, with which many programs write an emoji. Numbers keep their digits.
func WriteYAML(w io.Writer, raw []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	doc, err := yamlNode(dec)
	if err != nil {
		return fmt.Errorf("write as YAML: %w", err)
	}
	b, err := yaml.Dump(doc, yaml.WithIndent(2))
	if err != nil {
		return fmt.Errorf("write as YAML: %w", err)
	}
	_, err = w.Write(escaped(b, `\U%08X`))
	return err
}

func yamlNode(dec *jsontext.Decoder) (*yaml.Node, error) {
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case '{':
		return yamlNodes(dec, &yaml.Node{Kind: yaml.MappingNode}, '}')
	case '[':
		return yamlNodes(dec, &yaml.Node{Kind: yaml.SequenceNode}, ']')
	case '"':
		return yamlText(tok.String()), nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: tok.String()}, nil
}

// yamlNodes reads the content of an object or a list, up to its closing bracket.
func yamlNodes(dec *jsontext.Decoder, n *yaml.Node, closing jsontext.Kind) (*yaml.Node, error) {
	for dec.PeekKind() != closing {
		el, err := yamlNode(dec)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, el)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	_, err := dec.ReadToken()
	return n, err
}

// yamlText writes text as a block of lines where a block preserves it, and in quotes where plain text would be read as another type.
func yamlText(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case strings.ContainsFunc(s, inBlocks), strings.Trim(s, " \n") == "":
		n.Style = yaml.DoubleQuotedStyle
	case strings.Contains(s, "\n") && !strings.HasPrefix(s, " ") && !strings.HasPrefix(s, "\n"):
		n.Style = yaml.LiteralStyle
	case wantsQuotes(s):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// inBlocks reports whether a block of lines does not preserve a character: there YAML reads other line ends as \n, and no control
// characters.
func inBlocks(r rune) bool {
	return r != '\n' && (unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || hides(r) || r == 0xFFFE || r == 0xFFFF)
}

// inYAML11 matches texts that readers of YAML 1.1, such as PyYAML, read as booleans or as numbers of base 60.
var inYAML11 = regexp.MustCompile(`^(?i:yes|no|on|off)$|^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)

// wantsQuotes reports whether a string without quotes would be read as another type.
func wantsQuotes(s string) bool {
	if inYAML11.MatchString(s) {
		return true
	}
	var v any
	if err := yaml.Load([]byte(s), &v); err != nil {
		return true
	}
	text, ok := v.(string)
	return !ok || text != s
}
