package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
)

// NeedsOf names the runtime that a payload of a built-in kind cannot do without, as Offers names it, and the language that
// not every worker has (as flow.OfferLanguage writes it); empty: the worker's own choice will do.
func NeedsOf(kind flow.Kind, payload []byte) (needs []string) {
	switch kind {
	case flow.KindCode:
		if name := askedRuntime(payload); name != "" {
			needs = append(needs, name)
		}
		if offer := addedLanguage(payload); offer != "" {
			needs = append(needs, offer)
		}
	case flow.KindContainer:
		needs = append(needs, cmp.Or(askedRuntime(payload), AnyContainer))
	}
	return needs
}

// askedRuntime reads one field. Most payloads do not have it, and then nothing is decoded.
func askedRuntime(payload []byte) string {
	if !bytes.Contains(payload, []byte(`"runtime"`)) {
		return ""
	}
	var asked struct {
		Runtime string `json:"runtime"`
	}
	if json.Unmarshal(payload, &asked) != nil {
		return "" // the handler says what is wrong with it
	}
	return asked.Runtime
}

// languageField is what the field looks like; other objects in a payload may have one of that name.
var languageField = regexp.MustCompile(`"language"\s*:\s*"([^"\\]*)"`)

// addedLanguage is the language's offer when it is not built in. Where every language that is mentioned is, nothing is
// decoded.
func addedLanguage(payload []byte) string {
	const key = `"language"`
	for rest := payload; ; {
		i := bytes.Index(rest, []byte(key))
		if i < 0 {
			return ""
		}
		rest = rest[i:]
		if m := languageField.FindSubmatch(rest[:min(len(rest), 200)]); m != nil {
			if _, builtIn := api.LanguageName(string(m[1])); !builtIn {
				break
			}
		}
		rest = rest[len(key):]
	}
	var code struct {
		Language string `json:"language"`
	}
	if json.Unmarshal(payload, &code) != nil || code.Language == "" {
		return "" // the handler says what is wrong with it
	}
	if _, builtIn := api.LanguageName(code.Language); builtIn {
		return ""
	}
	return flow.OfferLanguage(strings.ToLower(code.Language))
}
