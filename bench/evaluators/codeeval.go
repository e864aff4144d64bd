package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
)

// harness runs HumanEval's check_correctness in as many threads as its argument says.
//
//go:embed harness.py
var harness string

// codeEval is HumanEval's harness, which Hugging Face's code_eval uses too. The harness forks its own Python process for each check.
type codeEval struct {
	command *exec.Cmd
	stdin   io.WriteCloser

	mu      sync.Mutex // guards last, waiting and writes to stdin
	last    int
	waiting map[int]chan string // by number: the result of a check
}

func openCodeEval(_ context.Context, o options) (peer, error) {
	if o.humanEval == "" {
		return nil, errors.New("-human-eval names no directory")
	}
	c := exec.Command("/usr/bin/python3", "-c", harness, strconv.Itoa(runtime.NumCPU()))
	c.Env, c.Stderr = append(os.Environ(), "PYTHONPATH="+o.humanEval), os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	e := &codeEval{command: c, stdin: stdin, waiting: map[int]chan string{}}
	go e.read(stdout)
	return e, nil
}

// read forwards the harness's answers, and ends all calls that wait when the harness has ended.
func (e *codeEval) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var a struct {
			Number int    `json:"number"`
			Result string `json:"result"`
		}
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			break
		}
		e.mu.Lock()
		answer := e.waiting[a.Number]
		delete(e.waiting, a.Number)
		e.mu.Unlock()
		answer <- a.Result
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, answer := range e.waiting {
		answer <- "the harness has ended"
	}
}

func (e *codeEval) close() {
	_ = e.stdin.Close() // ends the harness
	_ = e.command.Wait()
}

func (e *codeEval) run(ctx context.Context, p program) error {
	if p.imports != "" {
		return errors.ErrUnsupported // the harness imports modules once for all its forks
	}
	request := map[string]any{"prompt": p.source, "completion": "", "test": "check = print", "entry_point": "None"}
	if p.problem != nil {
		q := p.problem
		request = map[string]any{"prompt": q.Prompt, "completion": q.Solution, "test": q.Test, "entry_point": q.EntryPoint}
	}
	answer := make(chan string, 1)
	e.mu.Lock()
	e.last++
	e.waiting[e.last], request["number"] = answer, e.last
	err := json.NewEncoder(e.stdin).Encode(request)
	e.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case result := <-answer:
		if result != "passed" {
			return fmt.Errorf("code_eval: %s", result)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *codeEval) cases(context.Context, int) error { return errors.ErrUnsupported }
