package task_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
)

var givenCode = regexp.MustCompile(`(?:[^.a-z](?:task\.)?Errorf\("|\bCode[A-Z][A-Za-z]* +(?:Verdict )?= "|\b[A-Z][A-Za-z]+ +Verdict = "|\b(?:CompileError|SyntaxError|WrongAnswer|CheckerError) += ")([a-z0-9_%]+)"`)

// The table of error codes contains every code of the engine, the runtimes and the built-in handlers.
func TestEveryCodeIsInTheTable(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"*.go", "outgoing/*.go", "../flow/event.go", "../flow/code.go", "../runtime/runtime.go", "../../api/code.go", "../../api/case.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	given := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range givenCode.FindAllStringSubmatch(string(text), -1) {
			given[strings.Replace(m[1], "http_%d", "http_503", 1)] = true
		}
	}
	given["http_503"] = true // made by Sprintf
	delete(given, "ok")      // the verdict of completed attempts
	if len(given) < 30 {
		t.Fatalf("only %d codes were found: %v", len(given), given)
	}
	for code := range given {
		if _, known := flow.ErrorCodeOf(code); !known {
			t.Errorf("%s is not in the table of codes (internal/flow/code.go)", code)
		}
	}
	for _, c := range flow.ErrorCodes() {
		if c.Code != flow.CodeHTTP && !given[c.Code] {
			t.Errorf("nothing gives %s", c.Code)
		}
	}
}
