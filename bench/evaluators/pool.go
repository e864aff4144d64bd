package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// pool starts processes, at most one per processor at a time, and isolates nothing: it is the upper bound for peers that isolate.
type pool struct {
	free chan struct{}
}

func openPool(context.Context, options) (peer, error) {
	p := &pool{make(chan struct{}, runtime.NumCPU())}
	for range cap(p.free) {
		p.free <- struct{}{}
	}
	return p, nil
}

func (p *pool) close() {}

// command runs a command in a directory and returns its output.
func command(ctx context.Context, dir, stdin, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	c.Dir, c.Stdin, c.Stdout, c.Stderr = dir, strings.NewReader(stdin), &stdout, &stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %.300s", name, err, stderr.String())
	}
	return stdout.String(), nil
}

func (p *pool) run(ctx context.Context, program program) error {
	<-p.free
	defer func() { p.free <- struct{}{} }()
	dir, err := os.MkdirTemp("", "pool")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "main.py"), []byte(program.source), 0o600); err != nil {
		return err
	}
	stdout, err := command(ctx, dir, "", "/usr/bin/python3", "main.py")
	if err != nil {
		return err
	}
	return check(stdout, program.stdout)
}

func (p *pool) cases(ctx context.Context, n int) error {
	dir, err := os.MkdirTemp("", "pool")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "main.cpp"), []byte(sum), 0o600); err != nil {
		return err
	}
	if _, err := command(ctx, dir, "", "g++", "-O2", "-o", "main", "main.cpp"); err != nil {
		return err
	}
	for i := range n {
		stdin, want := sumInput(i)
		stdout, err := command(ctx, dir, stdin, filepath.Join(dir, "main"))
		if err != nil {
			return err
		}
		if err := check(stdout, want); err != nil {
			return err
		}
	}
	return nil
}
