package submit

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
)

// cacheFlags say whether an execution may end with an outcome that is kept, and whether its own is kept.
type cacheFlags struct {
	flags   *pflag.FlagSet
	ttl     time.Duration
	key     string
	without bool
}

// declare adds the flags. without is the help text of --no-cache.
func (o *cacheFlags) declare(f *pflag.FlagSet, without string) {
	o.flags = f
	app.DurationVar(f, &o.ttl, "cache", "end with the outcome of what had the same to do and completed at most so long ago, as in 1h, and keep its own for others (docs/cache.md)")
	f.StringVar(&o.key, "cache-key", "", "with --cache: text that stands for what it is given, for where the input has parts that do not matter")
	f.BoolVar(&o.without, "no-cache", false, without)
}

// read makes the API's form of the flags. Values that the server checks are not checked here.
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
