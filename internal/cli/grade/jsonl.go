package grade

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// longestLine bounds a line: the test cases of one LiveCodeBench problem take some megabytes.
const longestLine = 64 << 20

// line is one object of a JSON Lines file.
type line struct {
	at     string // file:line
	fields map[string]json.RawMessage
}

// readLines calls do with each line that is not empty.
func readLines(path string, do func(line) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		text, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s: %w", path, err)
		}
		at := fmt.Sprintf("%s:%d", path, n)
		if len(text) > longestLine {
			return fmt.Errorf("%s: the line has %d MB; 64 MB are the most", at, len(text)>>20)
		}
		if n == 1 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF"))
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			if !utf8.Valid(text) {
				return fmt.Errorf("%s: the line is not UTF-8: write the file as UTF-8", at)
			}
			l := line{at: at}
			if err := json.Unmarshal(text, &l.fields); err != nil {
				return fmt.Errorf("%s: the line is not an object of JSON: %w; write one object on each line", at, err)
			}
			if err := do(l); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// first returns the first of the names that the line has as a field; "" if it has none.
func (l line) first(names ...string) string {
	for _, name := range names {
		if v, ok := l.fields[name]; ok && string(v) != "null" {
			return name
		}
	}
	return ""
}

// read decodes a field; if it is missing, into is unchanged.
func (l line) read(name string, into any) error {
	raw, ok := l.fields[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %s: %w (got %s)", l.at, name, err, problem.Clip(string(raw), 80))
	}
	if strictjson.HoldsNUL(raw) {
		return fmt.Errorf("%s: %s holds a NUL character (\\u0000), which no program and no text here may have: remove it in the file", l.at, name)
	}
	// The decoder replaces half of a surrogate pair with U+FFFD, so another program would be graded.
	if again, err := json.Marshal(into); err == nil && bytes.Count(again, []byte("\uFFFD")) > bytes.Count(raw, []byte("\uFFFD"))+strings.Count(strings.ToLower(string(raw)), `\ufffd`) {
		return fmt.Errorf("%s: %s has half of a surrogate pair, which no text has: replace it in the file", l.at, name)
	}
	return nil
}

func (l line) text(name string) (s string, err error) { return s, l.read(name, &s) }

// task is the id of a line's task: a string or a number.
func (l line) task() (string, error) {
	name := l.first("task_id", "question_id")
	if name == "" {
		return "", fmt.Errorf("%s: there is no task_id (nor question_id): say which task the line is about", l.at)
	}
	var n json.Number
	if err := json.Unmarshal(l.fields[name], &n); err == nil {
		return n.String(), nil
	}
	return l.text(name)
}
