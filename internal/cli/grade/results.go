package grade

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/score"
)

type entry struct {
	Run        string `json:"run,omitempty"` // only in the first line: the prefix of the idempotency keys
	Task       string `json:"task_id,omitempty"`
	Completion int    `json:"completion_id"`
	Key        string `json:"key,omitempty"`
	Passed     *bool  `json:"passed"` // null: no verdict
	Verdict    string `json:"verdict,omitempty"`
	Message    string `json:"message,omitempty"`
	Execution  string `json:"execution,omitempty"`
}

// results is the results file: its present content, and the open file for more.
type results struct {
	path  string
	file  *os.File
	run   string
	known map[string]entry // by key: those with a verdict
	tries map[string]int   // by key: the number of results without a verdict
}

// openResults opens the file of an earlier call, or creates one. It removes an incomplete line that a killed call has left.
func openResults(path string, samples []*sample) (*results, error) {
	r := &results{path: path, known: map[string]entry{}, tries: map[string]int{}}
	var err error
	if r.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if err := r.read(samples); err != nil {
		return nil, errors.Join(err, r.file.Close())
	}
	return r, nil
}

// read locks the file, so that two calls do not overwrite each other's lines, and reads its content.
func (r *results) read(samples []*sample) error {
	switch err := unix.Flock(int(r.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return fmt.Errorf("another pawl grade is writing to %s: wait for its end, or name another file with --results", r.path)
	case err != nil:
		return fmt.Errorf("lock %s: %w", r.path, err)
	}
	text, err := io.ReadAll(r.file)
	if err != nil {
		return err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	mine := map[string]bool{}
	for _, s := range samples {
		mine[s.key] = true
	}
	for i, l := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		var e entry
		switch err := json.Unmarshal(l, &e); {
		case len(text) == 0:
		case err != nil || i == 0 && e.Run == "" || i > 0 && e.Key == "":
			return fmt.Errorf("%s:%d is not a result of pawl grade: name another file with --results", r.path, i+1)
		case i == 0:
			r.run = e.Run
		case !mine[e.Key]:
			return fmt.Errorf("%s:%d has a result of another program, task or limit (%s): name another file with --results", r.path, i+1, e.Task)
		case e.Passed == nil:
			r.tries[e.Key]++
		default:
			r.known[e.Key] = e
		}
	}
	if err := r.file.Truncate(int64(len(text))); err != nil {
		return err
	}
	if _, err := r.file.Seek(int64(len(text)), io.SeekStart); err != nil {
		return err
	}
	if r.run == "" {
		r.run = rand.Text()
		return r.write(entry{Run: r.run})
	}
	return nil
}

func (r *results) add(e entry) error {
	if e.Passed == nil {
		r.tries[e.Key]++
	} else {
		r.known[e.Key] = e
	}
	return r.write(e)
}

func (r *results) write(e entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := r.file.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write %s: %w", r.path, err)
	}
	return nil
}

// scores estimates pass@k over the tasks that have samples. It omits a k if a task has fewer samples.
func (r *results) scores(samples []*sample, ks []int) []api.PassAt {
	tasks := map[string]score.Tally{}
	for _, s := range samples {
		t := tasks[s.task.id]
		t.Total++
		if *r.known[s.key].Passed {
			t.Passed++
		}
		tasks[s.task.id] = t
	}
	var out []api.PassAt
	for _, k := range ks {
		if value, ok := score.PassAt(k, tasks); ok {
			out = append(out, api.PassAt{K: k, Value: value})
		}
	}
	return out
}
