package task

import (
	"cmp"
	"maps"

	"github.com/pawl-run/pawl/api"
)

// inherit fills in the fields that a profile leaves out, from the profile named by Like. It takes over the aliases only if it
// replaces that profile.
func (p *Profile) inherit(base *Profile) {
	if p.Name == base.Name {
		p.Aliases = either(p.Aliases, base.Aliases)
	}
	p.Extensions = either(p.Extensions, base.Extensions)
	p.Tools = either(p.Tools, base.Tools)
	p.Version = either(p.Version, base.Version)
	p.Compile = either(p.Compile, base.Compile)
	p.Built = either(p.Built, base.Built)
	p.Run = either(p.Run, base.Run)
	if p.CheckSource = either(p.CheckSource, base.CheckSource); p.compiled() {
		p.CheckSource = nil // the compile step finds syntax errors
	}
	p.Message = either(p.Message, base.Message)
	p.OutOfMemory = cmp.Or(p.OutOfMemory, base.OutOfMemory)
	p.Mounts = either(p.Mounts, base.Mounts)
	p.File, p.Uncaught, p.Install = cmp.Or(p.File, base.File), cmp.Or(p.Uncaught, base.Uncaught), cmp.Or(p.Install, base.Install)
	p.Files, p.Env = over(base.Files, p.Files), over(base.Env, p.Env)
	p.Limits = completed(p.Limits, base.Limits)
	if p.CompileLimits = completed(p.CompileLimits, base.CompileLimits); !p.compiled() {
		p.CompileLimits = api.CodeLimits{}
	}
	p.find, p.dialects, p.compiles, p.file, p.built, p.caller, p.forks = base.find, base.dialects, base.compiles, base.file, base.built, base.caller, base.forks
}

func either(own, base []string) []string {
	if len(own) > 0 {
		return own
	}
	return base
}

func over(base, own map[string]string) map[string]string {
	if len(base) == 0 {
		return own
	}
	all := maps.Clone(base)
	maps.Copy(all, own)
	return all
}
