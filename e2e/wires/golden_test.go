package wires

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the answers in testdata anew")

// Parts of answers that differ from run to run.
var (
	times = regexp.MustCompile(`("execution_time":)[0-9.e-]+`)
	spans = regexp.MustCompile(`("runtimes":)\[([^]]*)\]`)
	ids   = regexp.MustCompile(`ex_[0-9a-z]{26}`)
	span  = regexp.MustCompile(`[0-9]\.[0-9]+`)
	// The compiler's messages and the list of languages do not come from these wires.
	compiler  = regexp.MustCompile(`main\.cpp:[^"]*`)
	languages = regexp.MustCompile(`one of python, [^;]*;`)
	runtimes  = regexp.MustCompile(`^200 \[{"language":"python",.*\]$`)
	versions  = regexp.MustCompile(`("version":|has )"?[0-9][0-9.]*"?`)
	figures   = regexp.MustCompile(`("(?:cpu_time|wall_time|memory)":)[0-9]+`)
	decimals  = regexp.MustCompile(`("(?:time|wall_time)":)"[0-9]+\.[0-9]{3}"`)
	judges    = regexp.MustCompile(`^200 \[{"id":46,"name":"Bash"},.*{"id":71,"name":"Python"},.*\]$`)
)

func masked(s string) string {
	s = judges.ReplaceAllString(decimals.ReplaceAllString(s, "${1}SECONDS"), "200 [LANGUAGES]")
	s = times.ReplaceAllString(ids.ReplaceAllString(s, "EXECUTION"), "${1}SECONDS")
	s = figures.ReplaceAllString(versions.ReplaceAllString(runtimes.ReplaceAllString(s, "200 [RUNTIMES]"), "${1}VERSION"), "${1}FIGURE")
	s = languages.ReplaceAllString(compiler.ReplaceAllString(s, "COMPILER"), "one of LANGUAGES;")
	return spans.ReplaceAllStringFunc(s, func(m string) string { return span.ReplaceAllString(m, "SECONDS") })
}

// Each file in testdata has requests and the answers to them:
//
//	== what it shows
//	POST /compat/run_code/run_code
//	{"code": "print(1)"}
//	-- 200
//	{"status": …}
func TestRequestsAndAnswers(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	s := serve(t, t.TempDir())
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var now strings.Builder
			for _, block := range strings.SplitAfter(string(text), "\n\n") {
				head, want, _ := strings.Cut(block, "\n-- ")
				lines := strings.SplitN(strings.TrimSpace(head), "\n", 3)
				if len(lines) < 2 {
					continue
				}
				method, path, _ := strings.Cut(lines[1], " ")
				body := ""
				if len(lines) == 3 {
					body = lines[2]
				}
				req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				got := s.send(req)
				if got.err != nil {
					t.Fatal(got.err)
				}
				answer := masked(got.String())
				status, rest, _ := strings.Cut(answer, " ")
				now.WriteString(strings.TrimSpace(head) + "\n-- " + status + "\n" + rest + "\n\n")
				if got := status + "\n" + rest; !*update && got != strings.TrimSpace(want) {
					t.Errorf("%s\n got %s\nwant %s", head, got, strings.TrimSpace(want))
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(now.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
