package submit

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
)

// cacheFlags decide whether an execution may reuse a kept outcome, and whether its own is kept.
type cacheFlags struct {
	flags   *pflag.FlagSet
	ttl     time.Duration
	key     string
	without bool
}

// declare adds the flags. without is the help text of --no-cache.
func (o *cacheFlags) declare(f *pflag.FlagSet, without string) {
	o.flags = f
	app.DurationVar(f, &o.ttl, "cache",
		"reuse the result of an identical execution up to this old, for example 1h, or cache this one's (docs/cache.md)")
	f.StringVar(&o.key, "cache-key", "", "with --cache: cache key in place of the input, for inputs with irrelevant parts")
	f.BoolVar(&o.without, "no-cache", false, without)
}

// read converts the flags into the API's form. It leaves checks of values to the server.
func (o *cacheFlags) read() (*api.Cache, error) {
	keyed := o.flags.Changed("cache-key")
	if !o.flags.Changed("cache") {
		if keyed {
			return nil, exit.Usagef("--cache-key is about what --cache keeps: add it, as in --cache 1h")
		}
		return nil, nil
	}
	c := &api.Cache{TTL: api.Duration(o.ttl)}
	if keyed {
		c.Key = &o.key
	}
	return c, nil
}
