// Package language is the list of languages: the names that requests, definitions and configurations may use. It is pure,
// and the only such list; the worker knows what a language needs to run.
package language

import (
	"fmt"
	"slices"
	"strings"
)

// Name is a language with its proper name and its other names.
type Name struct {
	Name       string
	Aliases    []string
	Extensions []string // of its sources, without the dot
	Calls      bool     // a case may call a function of a program
}

// builtIn are the languages that need no configuration.
var builtIn = []Name{
	{"python", []string{"python3", "py", "py3"}, []string{"py"}, true},
	{"javascript", []string{"js", "node", "nodejs"}, []string{"js", "mjs", "cjs"}, false},
	{"typescript", []string{"ts"}, []string{"ts", "mts"}, false},
	{"bash", []string{"sh", "shell"}, []string{"sh", "bash"}, false},
	{"go", []string{"golang"}, []string{"go"}, false},
	{"c", []string{"gcc"}, []string{"c"}, false},
	{"c++", []string{"cpp", "cxx", "cplusplus", "g++"}, []string{"cpp", "cc", "cxx"}, false},
	{"rust", []string{"rs"}, []string{"rs"}, false},
	{"java", nil, []string{"java"}, false},
	{"ruby", []string{"rb"}, []string{"rb"}, false},
}

// BuiltIn are the languages that need no configuration.
func BuiltIn() Set { return Set{builtIn} }

// Set is a set of languages. The zero value is empty. It is immutable.
type Set struct{ all []Name }

// With is the set with more languages. A language replaces one with the same proper name.
func (s Set) With(more ...Name) Set {
	all := slices.Clone(s.all)
	for _, n := range more {
		if i := slices.IndexFunc(all, func(o Name) bool { return o.Name == n.Name }); i >= 0 {
			all[i] = n
		} else {
			all = append(all, n)
		}
	}
	return Set{all}
}

func (s Set) Names() []string {
	names := make([]string, len(s.all))
	for i, n := range s.all {
		names[i] = n.Name
	}
	return names
}

// Known lists the languages. Callers must not modify the result.
func (s Set) Known() []Name { return s.all }

// All lists every name that Resolve accepts, aliases included.
func (s Set) All() []string {
	var names []string
	for _, n := range s.all {
		names = append(append(names, n.Name), n.Aliases...)
	}
	return names
}

// Resolve is the proper name of a language for any of its names, in any case.
func (s Set) Resolve(name string) (string, bool) {
	name = strings.ToLower(name)
	for _, n := range s.all {
		if n.Name == name || slices.Contains(n.Aliases, name) {
			return n.Name, true
		}
	}
	return "", false
}

// implementations are names of implementations and dialects that users give for a language.
var implementations = map[string]string{"pypy": "python", "cpython": "python", "deno": "typescript", "bun": "typescript", "tsx": "typescript", "openjdk": "java", "jdk": "java", "zsh": "bash", "clang": "c", "clang++": "c++", "rustc": "rust"}

// Suggest suggests a language for an unknown name: one whose name is followed by a version, or of which it is an
// implementation. It is empty if there is none.
func (s Set) Suggest(name string) string {
	bare := strings.TrimRight(strings.ToLower(name), "0123456789._-")
	if other, ok := implementations[bare]; ok {
		bare = other
	}
	if bare == strings.ToLower(name) {
		return ""
	}
	proper, ok := s.Resolve(bare)
	switch {
	case !ok:
		return ""
	case (proper == "c" || proper == "c++") && strings.TrimLeft(name[len(name)-1:], "0123456789") == "":
		return fmt.Sprintf("write %q, and the standard in std", proper)
	}
	return fmt.Sprintf("write %q for the version that the worker has; a profile in the configuration adds another", proper)
}

// Calls reports whether a case may call a function of a program in the language, given by its proper name.
func (s Set) Calls(name string) bool {
	return slices.ContainsFunc(s.all, func(n Name) bool { return n.Name == name && n.Calls })
}

// OfExtension is the language of sources with the given extension, without its dot.
func (s Set) OfExtension(ext string) (string, bool) {
	for _, n := range s.all {
		if slices.Contains(n.Extensions, ext) {
			return n.Name, true
		}
	}
	return "", false
}

// longest bounds a name, in bytes.
const longest = 40

// CheckName returns an error, with the fix, if a word is not valid as the name of a language that an operator adds.
func CheckName(s string) error {
	if s == "" || len(s) > longest || s[0] < 'a' || s[0] > 'z' || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789+#._-") != "" {
		return fmt.Errorf(`%.60q is not a name of a language: write 1 to %d of a-z, 0-9, "+", "#", ".", "_" and "-", a letter first`, s,
			longest)
	}
	return nil
}
