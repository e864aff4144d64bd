package api

// Container is a run of a container image: what a task of kind "container" has in `with`.
// Its outcome is a [CodeResult].
type Container struct {
	Image string `json:"image"` // as registries write it: "alpine:3.20", "ghcr.io/owner/name@sha256:…"
	// Entrypoint and Command replace the program of the image and its arguments.
	Entrypoint []string           `json:"entrypoint,omitempty"`
	Command    []string           `json:"command,omitempty"`
	Env        map[string]string  `json:"env,omitempty" check:"env"`          // in addition to the image's
	Files      map[string]Content `json:"files,omitempty" check:"files"`      // placed in /work/task, by relative path
	Stdin      Content            `json:"stdin,omitzero" check:"stdin"`       // standard input; empty: end of file at once
	Collect    []string           `json:"collect,omitempty" check:"patterns"` // files to return: paths, directories or path.Match patterns
	// WorkDir is the directory in which the program starts. The default is /work/task if there are files or the image names no directory, else
	// the image's directory.
	WorkDir string `json:"workdir,omitempty"`
	// User is "uid", "uid:gid", or a user name of the image. Default: the image's user, but 65534 (nobody) instead of root.
	User    string     `json:"user,omitempty"`
	Network string     `json:"network,omitempty"`                          // one that the worker's operator offers; default: none
	Pull    string     `json:"pull,omitempty" enum:"missing,always,never"` // "missing", "always" or "never"; default: the worker chooses
	Limits  CodeLimits `json:"limits,omitzero"`
	// Runtime selects a runtime by name; default: any that runs containers.
	Runtime string `json:"runtime,omitempty"`
}
