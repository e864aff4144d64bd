package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
)

// pawl is a server of Pawl on SQLite with one slot per processor, used over HTTP.
type pawl struct {
	*service
	warm bool
}

// Languages of the two servers. Both run Debian's Python, which may have numpy.
const (
	coldLanguages = `languages:
  python: {override: true, like: python, tools: [/usr/bin/python3]}
`
	warmLanguages = `languages:
  python: {override: true, like: python, tools: [/usr/bin/python3], warm: {}}
  numpy: {like: python, tools: [/usr/bin/python3], warm: {imports: [numpy]}}
`
)

func openPawl(ctx context.Context, warm bool) (peer, error) {
	dir, err := os.MkdirTemp("", "pawl")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // the server's program, which is running by then
	program := filepath.Join(dir, "pawl")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/pawl")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build pawl: %w: %s", err, out)
	}
	config, languages := filepath.Join(dir, "pawl.yaml"), coldLanguages
	if warm {
		languages = warmLanguages
	}
	if err := os.WriteFile(config, []byte(languages), 0o600); err != nil {
		return nil, err
	}
	s, err := start(ctx, "/readyz", program, func(address, state string) []string {
		return []string{"server", "--listen", address, "--state-dir", state, "--slots", strconv.Itoa(runtime.NumCPU()), "--config", config}
	})
	if err != nil {
		return nil, err
	}
	return &pawl{s, warm}, nil
}

type pawlRequest struct {
	Language string     `json:"language"`
	Source   string     `json:"source"`
	Cases    []pawlCase `json:"cases,omitempty"`
	Wait     string     `json:"wait"`
}

type pawlCase struct {
	Stdin  string `json:"stdin"`
	Expect string `json:"expect"`
}

type pawlAnswer struct {
	Output struct {
		Verdict string `json:"verdict"`
		Stdout  string `json:"stdout"`
	} `json:"output"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (p *pawl) evaluate(ctx context.Context, r pawlRequest) (pawlAnswer, error) {
	var a pawlAnswer
	r.Wait = "60s"
	if err := post(ctx, p.url+"/api/v1/evaluations", r, &a); err != nil {
		return a, err
	}
	if a.Output.Verdict != "ok" {
		return a, fmt.Errorf("pawl: verdict %q: %s", a.Output.Verdict, a.Error.Message)
	}
	return a, nil
}

func (p *pawl) run(ctx context.Context, program program) error {
	language := "python"
	if p.warm && program.imports != "" {
		language = program.imports
	}
	a, err := p.evaluate(ctx, pawlRequest{Language: language, Source: program.source})
	if err != nil {
		return err
	}
	return check(a.Output.Stdout, program.stdout)
}

func (p *pawl) cases(ctx context.Context, n int) error {
	r := pawlRequest{Language: "cpp", Source: sum, Cases: make([]pawlCase, n)}
	for i := range r.Cases {
		r.Cases[i].Stdin, r.Cases[i].Expect = sumInput(i)
	}
	_, err := p.evaluate(ctx, r)
	return err
}
