package grade

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/problem"
)

// sample is one program to be graded.
type sample struct {
	at         string // file:line
	task       *task
	completion int    // its number among the task's samples, from 0
	key        string // equal for the same program of the same task, except for a number
	code       api.Code
}

// readSamples reads programs in the formats of HumanEval (completion), EvalPlus (solution), MBPP (code) and LiveCodeBench (code_list).
func readSamples(path string, problems map[string]*task, limits api.CodeLimits) ([]*sample, error) {
	var all []*sample
	completions, keys := map[string]int{}, map[string]int{}
	err := readLines(path, func(l line) error {
		id, err := l.task()
		if err != nil {
			return err
		}
		t := problems[id]
		if t == nil {
			hint := cmp.Or(problem.Nearest(id, slices.Sorted(maps.Keys(problems))), "is --problems the file of these samples?")
			return fmt.Errorf("%s: there is no task %q among the problems; %s", l.at, id, hint)
		}
		programs, err := programsOf(l, t)
		if err != nil {
			return err
		}
		for _, p := range programs {
			s := &sample{at: l.at, task: t, completion: completions[id], code: t.code(p, limits)}
			completions[id]++
			whole, err := json.Marshal(s.code)
			if err != nil {
				return fmt.Errorf("%s: %w", l.at, err)
			}
			sum := sha256.Sum256(append([]byte(id+"\x00"), whole...))
			s.key = hex.EncodeToString(sum[:12])
			keys[s.key]++
			s.key += fmt.Sprintf("-%d", keys[s.key])
			all = append(all, s)
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no samples", path)
	}
	return all, err
}

var programFields = []string{"completion", "solution", "code", "code_list"}

func programsOf(l line, t *task) (programs []string, err error) {
	name := l.first(programFields...)
	for _, other := range programFields {
		if other != name && l.first(other) != "" {
			return nil, fmt.Errorf("%s: there are both %s and %s: which is the program? leave the other out", l.at, name, other)
		}
	}
	switch name {
	case "":
		return nil, fmt.Errorf("%s: there is no program: give completion (what follows the prompt), solution or code (a whole program), or code_list", l.at)
	case "code_list":
		return programs, l.read(name, &programs)
	case "completion":
		text, err := l.text(name)
		return []string{t.prompt + text}, err
	default:
		text, err := l.text(name)
		return []string{text}, err
	}
}
