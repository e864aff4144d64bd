// Package testprogram serves the protocol with which open-instruct tests programs: POST /test_program, POST /test_program_stdio and GET
// /health. docs/leave-open-instruct.md lists what is supported and what is not.
package testprogram

import (
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/server/compat"
)

// Name is the wire's name in settings, paths and metrics.
const Name = "test_program"

func New(o compat.Options) http.Handler {
	s := &wire{o.Shell(Name, map[string]string{
		"files": "program", "source": "program", "limits.wall": "max_execution_time", "cases": "tests",
	})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /test_program", func(w http.ResponseWriter, r *http.Request) { s.test(w, r, asserted) })
	mux.HandleFunc("POST /test_program_stdio", func(w http.ResponseWriter, r *http.Request) { s.test(w, r, compared) })
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		compat.Answer(w, http.StatusOK, map[string]string{"status": "healthy"})
	})
	mux.HandleFunc("/", compat.NoSuch)
	return mux
}

type wire struct{ compat.Shell }

type request struct {
	Program string `json:"program"`
	// Tests are a list, or a string that contains one.
	Tests            json.RawMessage `json:"tests"`
	MaxExecutionTime *float64        `json:"max_execution_time,omitempty"`
}

type answer struct {
	Results  []int     `json:"results"`  // 1: passed
	Runtimes []float64 `json:"runtimes"` // in seconds; -1 for a test that did not pass
}

func (s *wire) test(w http.ResponseWriter, r *http.Request, form func(*request, *api.Evaluation) error) {
	var in request
	if err := s.Read(r, &in); err != nil {
		compat.FastAPI(w, err)
		return
	}
	e, within, err := in.evaluation(form)
	if s.Counted(err) != nil {
		compat.FastAPI(w, err)
		return
	}
	out := answer{make([]int, len(e.Cases)), make([]float64, len(e.Cases))}
	if len(e.Cases) == 0 {
		compat.Answer(w, http.StatusOK, out)
		return
	}
	done, err := s.Run(r.Context(), e, within)
	if err != nil {
		compat.FastAPI(w, err)
		return
	}
	for i, c := range done.Cases {
		if out.Runtimes[i] = -1; c.Verdict == "ok" {
			out.Results[i], out.Runtimes[i] = 1, c.WallMS/1000
		}
	}
	compat.Answer(w, http.StatusOK, out)
}

// evaluation converts the request, and returns how long its client waits.
func (in *request) evaluation(form func(*request, *api.Evaluation) error) (e api.Evaluation, within time.Duration, err error) {
	most := 1.0
	if in.MaxExecutionTime != nil {
		most = *in.MaxExecutionTime
	}
	wall, ok := compat.Seconds(most)
	if !ok {
		return e, 0, compat.Refuse("max_execution_time", fmt.Sprint(most), "it is not a time limit", "give seconds, more than 0 and at most 86400")
	}
	e.Language, e.Limits.Wall = "python", wall
	e.Limits.CPU = min(64*wall, api.MaxWall) // only wall time is limited; a program may have up to 64 threads
	if err := form(in, &e); err != nil {
		return e, 0, err
	}
	// open-instruct waits for ten times the limit, at least 30 s and at most 300 s. The answer leaves a second before that.
	return e, min(max(10*time.Duration(wall), 30*time.Second), 300*time.Second) - time.Second, nil
}

// tests decodes the tests. They may be inside a string, as in the data sets.
func (in *request) tests(into any) error {
	raw := in.Tests
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if raw = json.RawMessage(text); !json.Valid(raw) {
			return compat.Refuse("tests", "", "it is a text that is not JSON: a compressed pickle may run code of its own when it is read, and is not read here", "send the tests as a list")
		}
	}
	var wrapped struct {
		Tests json.RawMessage `json:"tests"`
	}
	wrapped.Tests = raw
	body, err := json.Marshal(wrapped)
	if err != nil {
		return compat.Refuse("tests", "", err.Error(), "send the tests as a list")
	}
	return compat.Decode(body, into)
}

// driver runs the program and then one test, and writes the given token when both have finished. Without the token, a program that exits
// early, for example by sys.exit(0), would pass.
//
//go:embed driver.py
var driver string

// asserted runs each test after the program.
func asserted(in *request, e *api.Evaluation) error {
	var list struct {
		Tests []string `json:"tests"`
	}
	if err := in.tests(&list); err != nil {
		return err
	}
	e.Source, e.Files = driver, map[string]api.Content{"tested.py": api.Text(in.Program)}
	for _, test := range list.Tests {
		token := rand.Text()
		expect := api.Text(token)
		e.Cases = append(e.Cases, api.Case{Stdin: api.Text(token + "\n" + test), Expect: &expect})
	}
	return nil
}

// compared runs the program with each test's input, and compares its output.
func compared(in *request, e *api.Evaluation) error {
	var list struct {
		Tests []struct {
			Input  string `json:"input"`
			Output string `json:"output"`
		} `json:"tests"`
	}
	if err := in.tests(&list); err != nil {
		return err
	}
	if e.Source = in.Program; strings.TrimSpace(in.Program) == "" {
		e.Source = "#" // it writes nothing, and some tests expect no output
	}
	// open-instruct rounds the limit of these programs up to whole seconds, and compares 1.0 as equal to 1.
	e.Limits.Wall = api.Duration(math.Ceil(time.Duration(e.Limits.Wall).Seconds()) * float64(time.Second))
	e.Compare = &api.Comparison{Mode: "numeric", Absolute: new(float64), Relative: new(float64)}
	for _, test := range list.Tests {
		expect := api.Text(test.Output)
		e.Cases = append(e.Cases, api.Case{Stdin: api.Text(test.Input), Expect: &expect})
	}
	return nil
}
