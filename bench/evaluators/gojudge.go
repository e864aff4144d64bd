package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"
)

// goJudge is a server of go-judge, which runs programs in its own containers, used over HTTP.
type goJudge struct{ *service }

func openGoJudge(ctx context.Context, o options) (peer, error) {
	if o.goJudge == "" {
		return nil, errors.New("-go-judge names no program")
	}
	s, err := start(ctx, "/version", o.goJudge, func(address, dir string) []string {
		return []string{"-http-addr", address, "-dir", dir, "-parallelism", strconv.Itoa(runtime.NumCPU()), "-silent"}
	})
	if err != nil {
		return nil, err
	}
	return &goJudge{s}, nil
}

// judgeCommand is a command of go-judge. The entries of files are standard input, output and error, in this order.
type judgeCommand struct {
	Args          []string             `json:"args"`
	Env           []string             `json:"env"`
	Files         []judgeFile          `json:"files"`
	CPULimit      time.Duration        `json:"cpuLimit"`
	MemoryLimit   int                  `json:"memoryLimit"`
	ProcLimit     int                  `json:"procLimit"`
	CopyIn        map[string]judgeFile `json:"copyIn"`
	CopyOutCached []string             `json:"copyOutCached,omitempty"`
}

type judgeFile struct {
	Content *string `json:"content,omitempty"`
	FileID  string  `json:"fileId,omitempty"`
	Name    string  `json:"name,omitempty"`
	Max     int     `json:"max,omitempty"`
}

func content(text string) judgeFile { return judgeFile{Content: &text} }

// execute runs a command and returns its standard output and the requested files.
func (j *goJudge) execute(ctx context.Context, stdin string, c judgeCommand) (string, map[string]string, error) {
	c.Env = []string{"PATH=/usr/bin:/bin"}
	c.Files = []judgeFile{content(stdin), {Name: "stdout", Max: 1 << 20}, {Name: "stderr", Max: 1 << 20}}
	c.CPULimit, c.MemoryLimit, c.ProcLimit = 10*time.Second, 512<<20, 64
	var results []struct {
		Status  string            `json:"status"`
		Files   map[string]string `json:"files"`
		FileIDs map[string]string `json:"fileIds"`
	}
	if err := post(ctx, j.url+"/run", map[string]any{"cmd": []judgeCommand{c}}, &results); err != nil {
		return "", nil, err
	}
	if r := results[0]; r.Status != "Accepted" {
		return "", nil, fmt.Errorf("go-judge: %s: %.300s", r.Status, r.Files["stderr"])
	}
	return results[0].Files["stdout"], results[0].FileIDs, nil
}

func (j *goJudge) run(ctx context.Context, p program) error {
	stdout, _, err := j.execute(ctx, "", judgeCommand{
		Args: []string{"/usr/bin/python3", "main.py"}, CopyIn: map[string]judgeFile{"main.py": content(p.source)},
	})
	if err != nil {
		return err
	}
	return check(stdout, p.stdout)
}

func (j *goJudge) cases(ctx context.Context, n int) error {
	_, built, err := j.execute(ctx, "", judgeCommand{
		Args: []string{"/usr/bin/g++", "-O2", "-o", "main", "main.cpp"}, CopyIn: map[string]judgeFile{"main.cpp": content(sum)},
		CopyOutCached: []string{"main"},
	})
	if err != nil {
		return err
	}
	for i := range n {
		stdin, want := sumInput(i)
		stdout, _, err := j.execute(ctx, stdin, judgeCommand{
			Args: []string{"main"}, CopyIn: map[string]judgeFile{"main": {FileID: built["main"]}},
		})
		if err != nil {
			return err
		}
		if err := check(stdout, want); err != nil {
			return err
		}
	}
	return nil
}
