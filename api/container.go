package api

// Container is a run of a container image: what a task of kind "container" has in `with`.
// Its outcome is a [CodeResult].
type Container struct {
	Image string `json:"image"` // as registries know it: "alpine:3.20", "ghcr.io/owner/name@sha256:…"
	// Entrypoint and Command replace the image's own where they are given: the program, and its arguments.
	Entrypoint []string           `json:"entrypoint,omitempty"`
	Command    []string           `json:"command,omitempty"`
	Env        map[string]string  `json:"env,omitempty" check:"env"`          // beside the image's
	Files      map[string]Content `json:"files,omitempty" check:"files"`      // placed in /work/task, by relative path
	Stdin      Content            `json:"stdin,omitzero" check:"stdin"`       // what the program reads; empty: end of file at once
	Collect    []string           `json:"collect,omitempty" check:"patterns"` // files in /work/task to hand back: paths, directories or path.Match patterns
	// WorkDir is where the program starts: /work/task when there are files or the image has no directory of its own, unless
	// it is given.
	WorkDir string     `json:"workdir,omitempty"`
	User    string     `json:"user,omitempty"`                             // "uid", "uid:gid" or names of the image; empty: the image's, or user 65534 (nobody) where the image says root
	Network string     `json:"network,omitempty"`                          // one that the worker's operator offers; empty: none
	Pull    string     `json:"pull,omitempty" enum:"missing,always,never"` // "missing", "always" or "never"; empty: the worker's own choice
	Limits  CodeLimits `json:"limits,omitzero"`
	// Runtime asks for a runtime by name; empty: any that runs containers.
	Runtime string `json:"runtime,omitempty"`
}
