package api

import (
	"encoding/json"
	"strings"
)

// Container is a run of a container image: what a task of kind "container" has in `with`. [DecodeContainer] is strict.
// Its outcome is a [CodeResult].
type Container struct {
	Image string `json:"image"` // as registries know it: "alpine:3.20", "ghcr.io/owner/name@sha256:…"
	// Entrypoint and Command replace the image's own where they are given: the program, and its arguments.
	Entrypoint []string           `json:"entrypoint,omitempty"`
	Command    []string           `json:"command,omitempty"`
	Env        map[string]string  `json:"env,omitempty"`     // beside the image's
	Files      map[string]Content `json:"files,omitempty"`   // placed in /work/task, by relative path
	Stdin      Content            `json:"stdin,omitzero"`    // what the program reads; empty: end of file at once
	Collect    []string           `json:"collect,omitempty"` // files in /work/task to hand back: paths, directories or path.Match patterns
	// WorkDir is where the program starts: /work/task when there are files or the image has no directory of its own, unless
	// it is given.
	WorkDir string     `json:"workdir,omitempty"`
	User    string     `json:"user,omitempty"`    // "uid", "uid:gid" or names of the image; empty: the image's, or nobody where that is root
	Network string     `json:"network,omitempty"` // one that the worker's operator offers; empty: none
	Pull    string     `json:"pull,omitempty"`    // "missing", "always" or "never"; empty: the worker's own choice
	Limits  CodeLimits `json:"limits,omitzero"`
	// Runtime asks for a runtime by name; empty: any that runs containers.
	Runtime string `json:"runtime,omitempty"`
}

// Pulls are the values of Container.Pull.
var Pulls = []string{"missing", "always", "never"}

// DecodeContainer reads and checks a Container. The error is a [FieldErrors] with every fault.
func DecodeContainer(b []byte) (Container, error) {
	var c Container
	var d codeDecoder
	d.object("", b, map[string]func(string, json.RawMessage){
		"image":      func(p string, r json.RawMessage) { c.Image = d.text(p, r) },
		"entrypoint": func(p string, r json.RawMessage) { c.Entrypoint = d.list(p, r) },
		"command":    func(p string, r json.RawMessage) { c.Command = d.list(p, r) },
		"env":        func(p string, r json.RawMessage) { c.Env = d.env(p, r) },
		"files":      func(p string, r json.RawMessage) { c.Files = d.files(p, r) },
		"stdin":      func(p string, r json.RawMessage) { c.Stdin = d.content(p, r, false) },
		"collect":    func(p string, r json.RawMessage) { c.Collect = d.patterns(p, r) },
		"workdir":    func(p string, r json.RawMessage) { c.WorkDir = d.text(p, r) },
		"user":       func(p string, r json.RawMessage) { c.User = d.text(p, r) },
		"network":    func(p string, r json.RawMessage) { c.Network = d.text(p, r) },
		"pull":       func(p string, r json.RawMessage) { c.Pull = d.text(p, r) },
		"limits":     func(p string, r json.RawMessage) { c.Limits = d.limits(p, r) },
		"runtime":    func(p string, r json.RawMessage) { c.Runtime = d.text(p, r) },
	})
	if len(d.errs) == 0 {
		d.wholeContainer(&c)
	}
	if len(d.errs) > 0 {
		return Container{}, d.errs
	}
	return c, nil
}

// wholeContainer checks what no single field shows.
func (d *codeDecoder) wholeContainer(c *Container) {
	d.fits(c.Limits.Disk, 0, c.Files)
	if c.Image == "" {
		d.fault("image", nil, "it is missing or empty", `name one such as "alpine:3.20"`)
	} else if strings.TrimSpace(c.Image) != c.Image || len(c.Image) > 512 {
		d.fault("image", quote(c.Image), "it is not the name of an image", `name one such as "alpine:3.20"`)
	}
	if w := c.WorkDir; w != "" && (w[0] != '/' || w == "/" || !cleanPath(w[1:])) {
		d.fault("workdir", quote(w), "it is not a directory of the container", `write an absolute path such as "/app"`)
	}
	if p := c.Pull; p != "" && p != Pulls[0] && p != Pulls[1] && p != Pulls[2] {
		d.fault("pull", quote(p), "it is not a pull policy", "one of "+strings.Join(Pulls, ", "))
	}
}
