// Package payload defines the payloads of the built-in kinds of actions: their fields, how they are read and checked, and what a worker
// needs for them. Requests for evaluations, `with` in documents and the handlers of workers use it. It is pure.
package payload

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/duration"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// rules define how the types of package api and the payloads are read.
var rules = strictjson.Rules{
	Types: map[reflect.Type]func(*strictjson.Reader, reflect.Value){
		reflect.TypeFor[time.Time]():      readTime,
		reflect.TypeFor[api.Duration]():   readDuration,
		reflect.TypeFor[api.Size]():       readSize,
		reflect.TypeFor[api.Content]():    readContent,
		reflect.TypeFor[api.Comparison](): readComparison,
		reflect.TypeFor[[]api.Case]():     readCases,
		reflect.TypeFor[Statuses]():       strictjson.Own,
	},
	Checks: map[string]strictjson.Check{
		"language": checkLanguage, "source": checkSource, "env": checkEnv, "args": checkArgs, "files": checkFiles, "patterns": checkPatterns,
		"stdin": checkStdin, "base64": checkBase64, "mode": checkMode, "wall": checkWall, "cpu": checkWall,
		"memory": checkSize(api.MinMemory, api.MaxMemory), "output": checkSize(1, api.MaxOutput), "disk": checkSize(1, api.MaxDisk),
		"stack": checkSize(api.MinStack, api.MaxStack),
		"pids":  checkPids, "reruns": checkReruns, "cpus": checkCPUs, "cases": checkCases, "case_name": checkCaseName, "case_set": checkSet,
		"function": checkFunction, "compare_mode": checkCompareMode,
		"tolerance": checkTolerance, "exit_codes": checkExitCodes, "checker_style": checkCheckerStyle, "url": checkURL, "query": checkQuery, "method": checkMethod,
		"event": checkEvent, "model": checkModel, "title": checkTitle, "people": checkPeople, "trigger": checkTrigger, "positive": checkPositive, "filled": checkFilled,
	},
	Whole: map[reflect.Type]func(*strictjson.Reader, reflect.Value){
		reflect.TypeFor[api.Code](): func(r *strictjson.Reader, v reflect.Value) { wholeCode(r, v.Addr().Interface().(*api.Code)) },
		reflect.TypeFor[api.Evaluation](): func(r *strictjson.Reader, v reflect.Value) {
			wholeCode(r, &v.Addr().Interface().(*api.Evaluation).Code)
		},
		reflect.TypeFor[api.Checker](): func(r *strictjson.Reader, v reflect.Value) { wholeChecker(r, v.Addr().Interface().(*api.Checker)) },
		reflect.TypeFor[api.Interactor](): func(r *strictjson.Reader, v reflect.Value) {
			wholeChecker(r, (*api.Checker)(v.Addr().Interface().(*api.Interactor)))
		},
		reflect.TypeFor[api.Container](): func(r *strictjson.Reader, v reflect.Value) { wholeContainer(r, v.Addr().Interface().(*api.Container)) },
		reflect.TypeFor[Request]():       func(r *strictjson.Reader, v reflect.Value) { wholeRequest(r, v.Addr().Interface().(*Request)) },
		reflect.TypeFor[Notice]():        func(r *strictjson.Reader, v reflect.Value) { wholeNotice(r, v.Addr().Interface().(*Notice)) },
		reflect.TypeFor[Wait]():          func(r *strictjson.Reader, v reflect.Value) { wholeWait(r, v.Addr().Interface().(*Wait)) },
		reflect.TypeFor[Ask]():           func(r *strictjson.Reader, v reflect.Value) { wholeAsk(r, v.Addr().Interface().(*Ask)) },
		reflect.TypeFor[Chat]():          func(r *strictjson.Reader, v reflect.Value) { wholeChat(r, v.Addr().Interface().(*Chat)) },
	},
}

// Decode reads a request's body into what out points to, a struct of package api. file names the body in errors; it is empty for a text
// inside another one, where line numbers would be useless. The error is a *strictjson.Error.
func Decode(body []byte, file string, out any) error { return rules.Decode(body, file, out) }

func decode[T any](payload []byte) (T, error) {
	var v T
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	err := rules.Decode(payload, "", &v)
	return v, err
}

// checkPositive refuses an explicit zero for a field whose default applies if it is left out: with 0 attempts the caller would get one.
func checkPositive(r *strictjson.Reader, at string, v reflect.Value) {
	if v.IsZero() {
		r.ProblemAt(at, "", "it is 0", "leave it out for the default, or give more than 0")
	}
}

// checkFilled refuses an explicit empty text: an empty key would protect nothing.
func checkFilled(r *strictjson.Reader, at string, v reflect.Value) {
	if v.String() == "" {
		r.ProblemAt(at, "", "it is empty", "leave it out, or write a text")
	}
}

func readTime(r *strictjson.Reader, into reflect.Value) {
	if s, ok := r.Text(); ok {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			r.Problem("it is not a time", "write RFC 3339, as in 2026-11-21T08:00:00Z")
			return
		}
		if year := t.UTC().Year(); year < 1 || year > 9999 {
			r.Problem("in UTC its year has not four digits", "write a year from 0001 to 9999")
			return
		}
		into.Set(reflect.ValueOf(t))
	}
}

func readDuration(r *strictjson.Reader, into reflect.Value) {
	raw := r.Raw()
	if raw == nil {
		return
	}
	d := into.Addr().Interface().(*api.Duration)
	err := d.UnmarshalJSON(raw)
	switch {
	case errors.Is(err, duration.ErrNegative) || err == nil && *d < 0:
		r.Problem("it is negative", "leave it out, or give a time span of more than 0")
	case err != nil:
		r.Problem("it is not a duration", `write "1.5s", "1m30s" or "2d", or a number of seconds`)
	}
}

func readSize(r *strictjson.Reader, into reflect.Value) {
	raw := r.Raw()
	if raw != nil && into.Addr().Interface().(*api.Size).UnmarshalJSON(raw) != nil {
		r.Problem("it is not a size", `write "64MB", "64MiB" or a number of bytes`)
	}
}

// content is the object form of a file's bytes.
type content struct {
	Text   *string `json:"text,omitempty"`
	Base64 *string `json:"base64,omitempty" check:"base64"`
	Blob   *string `json:"blob,omitempty"`
	Mode   string  `json:"mode,omitempty" check:"mode"`
	// A file in a result can be used as a file of another evaluation.
	Content *string `json:"content,omitempty"`
	Path    *string `json:"path,omitempty"`
	Size    *int64  `json:"size,omitempty"`
}

func readContent(r *strictjson.Reader, into reflect.Value) {
	c := into.Addr().Interface().(*api.Content)
	switch r.Kind() {
	case '"':
		if s, ok := r.Text(); ok {
			*c = api.Text(s)
		}
		return
	case '{':
	default:
		r.Raw()
		r.Problem("it is neither a string nor an object", `write "…", {"base64": "…"} or {"blob": "…"}`)
		return
	}
	var o content
	if !r.Struct(reflect.ValueOf(&o).Elem()) {
		return
	}
	given := 0
	if o.Text != nil {
		c.Bytes, given = []byte(*o.Text), given+1
	}
	if o.Content != nil {
		c.Bytes, given = []byte(*o.Content), given+1
	}
	if o.Base64 != nil {
		c.Bytes, _ = decodeBase64(*o.Base64) // it was checked
		given++
	}
	if o.Blob != nil {
		c.Blob, given = *o.Blob, given+1
	}
	// Stdin has no mode, so the mode of a file object is ignored there.
	inStdin := o.Path != nil && !strings.Contains(r.Path(), "files")
	if o.Mode != "" && !inStdin {
		mode, _ := strconv.ParseUint(o.Mode, 8, 32) // it was checked
		c.Mode = uint32(mode)
	}
	if given != 1 {
		r.ProblemAt("", "", fmt.Sprintf("it gives its bytes %d times", given), `give exactly one of "text", "base64" and "blob"`)
	}
}

// decodeBase64 decodes standard base64 with or without padding.
func decodeBase64(s string) ([]byte, error) {
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
}

func checkBase64(r *strictjson.Reader, at string, v reflect.Value) {
	text := v.Elem().String()
	if _, err := decodeBase64(text); err != nil {
		r.ProblemAt(at, text, "it is not base64", "use the standard alphabet with + and /")
	}
}

func checkMode(r *strictjson.Reader, at string, v reflect.Value) {
	if m, err := strconv.ParseUint(v.String(), 8, 32); err != nil || m == 0 || m > 0o777 {
		r.ProblemAt(at, v.String(), "it is not a file mode", `write octal permission bits such as "0755"`)
	}
}

func checkStdin(r *strictjson.Reader, at string, v reflect.Value) {
	if c, ok := reflect.Indirect(v).Interface().(api.Content); ok && c.Mode != 0 {
		r.ProblemAt(beneath(at, "mode"), "", "there is no such field: only files have a mode", "leave it out")
	}
}

// beneath returns the path of a part of the value at a path, which may be empty.
func beneath(at, part string) string {
	if at == "" {
		return part
	}
	return at + "." + part
}

// checkLanguage replaces an alias by the proper name. Languages of profiles are checked by the servers and workers that have them.
func checkLanguage(r *strictjson.Reader, at string, v reflect.Value) {
	given := v.String()
	lower := strings.ToLower(given)
	if name, ok := api.LanguageName(given); ok {
		lower = name
	} else if given == "" {
		r.ProblemAt(at, "", "it is missing", "one of "+strings.Join(api.Languages(), ", "))
	} else if language.CheckName(lower) != nil {
		r.ProblemAt(at, strconv.Quote(given), "it is not the name of a language", "one of "+strings.Join(api.Languages(), ", "))
	}
	v.SetString(lower)
}

func checkSource(r *strictjson.Reader, at string, v reflect.Value) {
	if strings.TrimSpace(v.String()) == "" {
		r.ProblemAt(at, "", "it is missing or empty", "give the program's text")
	}
}

func checkEnv(r *strictjson.Reader, at string, v reflect.Value) {
	for _, name := range sortedKeys[string](v) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			r.ProblemAt(problem.Join(at, name), "", "it is not the name of a variable", `use a name without "=" and NUL`)
			continue
		}
		if size := len(name) + len("=") + len(v.MapIndex(reflect.ValueOf(name)).String()); size > longestArgument {
			r.ProblemAt(problem.Join(at, name), "", fmt.Sprintf("it has %d bytes with its name, and Linux takes %d in one variable at most", size, longestArgument),
				"give it as stdin, or as a file of files")
		}
	}
}

// longestArgument is the largest size in bytes of one argument or environment variable on Linux: 32 pages, including the terminating NUL.
const longestArgument = 32*4096 - 1

func checkArgs(r *strictjson.Reader, at string, v reflect.Value) {
	for i, arg := range v.Interface().([]string) {
		if len(arg) > longestArgument {
			r.ProblemAt(fmt.Sprintf("%s[%d]", at, i), "", fmt.Sprintf("it has %d bytes, and Linux takes %d in one argument at most", len(arg), longestArgument),
				"give it as stdin, or as a file of files")
		}
	}
}

func sortedKeys[V any](v reflect.Value) []string {
	return slices.Sorted(maps.Keys(v.Interface().(map[string]V)))
}

// maxFiles is the largest number of files of one evaluation.
const maxFiles = 10_000

func checkFiles(r *strictjson.Reader, at string, v reflect.Value) {
	files := v.Interface().(map[string]api.Content)
	if len(files) > maxFiles {
		r.ProblemAt(at, "", fmt.Sprintf("it has %d files", len(files)), fmt.Sprintf("at most %d; pack them into one", maxFiles))
		return
	}
	for _, name := range sortedKeys[api.Content](v) {
		if !cleanPath(name) {
			r.ProblemAt(problem.Join(at, name), "", "it is not a path beneath the working directory", `use a relative path such as "data/input.txt", without ".." or NUL`)
			continue
		}
		for part := range strings.SplitSeq(name, "/") {
			if len(part) > longestName {
				r.ProblemAt(problem.Join(at, name), "",
					fmt.Sprintf("a name in it has %d bytes, and Linux takes %d at most", len(part), longestName), "shorten it")
				break
			}
		}
		// A file that is also another file's directory cannot be placed.
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, both := files[dir]; both {
				r.ProblemAt(problem.Join(at, dir), "", fmt.Sprintf("it is a file and the directory of %q", name), "rename one of them")
			}
		}
	}
}

// longestName is the largest size in bytes of the name of a file or directory on Linux.
const longestName = 255

// Placed returns errors for files that conflict with those that Pawl places: they have the same name, or one is the other's directory.
func Placed(at string, files map[string]api.Content, places ...string) (list problem.List) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, place := range places {
			if name == place || strings.HasPrefix(name, place+"/") || strings.HasPrefix(place, name+"/") {
				list = append(list, problem.Problem{Path: problem.Join(at, name),
					Message: fmt.Sprintf("Pawl places the file %q itself", place), Fix: "use another name"})
				break
			}
		}
	}
	return list
}

func checkPlaced(r *strictjson.Reader, files map[string]api.Content, places ...string) {
	for _, p := range Placed("files", files, places...) {
		r.ProblemAt(p.Path, "", p.Message, p.Fix)
	}
}

func cleanPath(p string) bool {
	return p != "" && p != "." && len(p) < 4096 && !path.IsAbs(p) && path.Clean(p) == p &&
		p != ".." && !strings.HasPrefix(p, "../") && !strings.ContainsAny(p, "\x00")
}

func checkPatterns(r *strictjson.Reader, at string, v reflect.Value) {
	for i, p := range v.Interface().([]string) {
		if _, err := path.Match(p, ""); err != nil || !cleanPath(p) {
			r.ProblemAt(fmt.Sprintf("%s[%d]", at, i), strconv.Quote(p), "it is not a path or pattern beneath the working directory", `use one such as "out/*.csv"`)
		}
	}
}

// The checks of limits get only values that are present: no limit is required.

func checkWall(r *strictjson.Reader, _ string, v reflect.Value) {
	if d := api.Duration(v.Int()); d <= 0 || d > api.MaxWall {
		r.Problem("it is not a time limit", `write "10s", "500ms" or a number of seconds, more than 0 and at most 24h`)
	}
}

func checkSize(least, most api.Size) strictjson.Check {
	return func(r *strictjson.Reader, _ string, v reflect.Value) {
		if s := api.Size(v.Int()); s < least || s > most {
			r.Problem("it is not a size within the range", fmt.Sprintf(`write "64MB", "64MiB" or a number of bytes, from %s to %s`, least, most))
		}
	}
}

func checkPids(r *strictjson.Reader, _ string, v reflect.Value) {
	if n := v.Int(); n < 1 || n > api.MaxPids {
		r.Problem("it is not a number of processes", fmt.Sprintf("a whole number from 1 to %d", api.MaxPids))
	}
}

func checkCPUs(r *strictjson.Reader, _ string, v reflect.Value) {
	if n := v.Float(); n < api.MinCPUs || n > api.MaxCPUs {
		r.Problem("it is not a number of processors", fmt.Sprintf("a number from %g to %d, such as 1 or 0.5", api.MinCPUs, api.MaxCPUs))
	}
}

func checkReruns(r *strictjson.Reader, _ string, v reflect.Value) {
	if n := v.Int(); n < 0 || n > api.MaxReruns {
		r.ProblemAt("", strconv.FormatInt(n, 10), "it is not a number of further runs", fmt.Sprintf("a whole number from 0 to %d", api.MaxReruns))
	}
}
