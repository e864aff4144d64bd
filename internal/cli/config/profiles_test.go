package config

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

func TestWarmProfiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"python: {override: true, like: python, warm: {}}":                                     "",
		"sci: {like: python, warm: {imports: [numpy, os.path]}}":                               "",
		"sci: {like: python, warm: numpy}":                                                     "languages.sci.warm: want what they import",
		"sci: {like: python, warm: {import: [numpy]}}":                                         "languages.sci.warm: import: it is not a field of warm",
		"sci: {like: python, warm: {imports: numpy}}":                                          "languages.sci.warm: imports: want a list",
		"sci: {like: python, warm: {imports: [numpy, \"os; x\"]}}":                             "languages.sci.warm.imports[1]: it is not a module's name",
		"js: {like: javascript, warm: {}}":                                                     "languages.js.warm: only interpreters of Python can be forked",
		"awk: {tools: [awk], run: [\"{tool}\", \"-f\", \"{file}\"], warm: {imports: [numpy]}}": "languages.awk.warm: only interpreters of Python can be forked",
	} {
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		_, err := readProfiles("pawl.yaml", document.Content[0])
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
