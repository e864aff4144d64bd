package judge0

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/language"
)

// numbers maps Judge0's ids to languages that Pawl has, or that profiles with these names add. Judge0 has an id for each version; here only
// the worker knows its version. Ids above 89 are from Judge0 1.14. Python 2 (70) and Clang (75, 76) are left out, since programs for these
// may behave differently under Python 3 and GCC.
var numbers = map[int64]string{
	46: "bash", 48: "c", 49: "c", 50: "c", 51: "csharp", 52: "c++", 53: "c++", 54: "c++", 60: "go", 61: "haskell", 62: "java", 63: "javascript",
	64: "lua", 68: "php", 71: "python", 72: "ruby", 73: "rust", 74: "typescript", 78: "kotlin", 80: "r", 81: "scala", 82: "sql", 83: "swift", 85: "perl",
	91: "java", 92: "python", 93: "javascript", 94: "typescript", 95: "go", 97: "javascript", 98: "php", 99: "r", 100: "python", 101: "typescript",
	102: "javascript", 103: "c", 105: "c++", 106: "go", 107: "go", 108: "rust", 109: "python", 111: "kotlin", 112: "scala", 113: "python",
}

type named struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// described is the answer for one language. Only the worker knows how it is run.
type described struct {
	named
	Archived   bool    `json:"is_archived"`
	SourceFile *string `json:"source_file"`
	CompileCmd *string `json:"compile_cmd"`
	RunCmd     *string `json:"run_cmd"`
}

// titles are the display names that are not just the capitalized name.
var titles = map[string]string{"c++": "C++", "csharp": "C#", "javascript": "JavaScript", "typescript": "TypeScript", "php": "PHP", "sql": "SQL"}

// offered returns the languages that the server knows.
func offered(known []language.Name) []named {
	all := []named{}
	for id, name := range numbers {
		if slices.ContainsFunc(known, func(n language.Name) bool { return n.Name == name }) {
			all = append(all, named{id, title(id)})
		}
	}
	slices.SortFunc(all, func(a, b named) int { return int(a.ID - b.ID) })
	return all
}

func (s *wire) known(id int64) (named, bool) {
	i := slices.IndexFunc(s.languages, func(n named) bool { return n.ID == id })
	if i < 0 {
		return named{}, false
	}
	return s.languages[i], true
}

func title(id int64) string {
	name := numbers[id]
	if t, ok := titles[name]; ok || name == "" {
		return t
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
