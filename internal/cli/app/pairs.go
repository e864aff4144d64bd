package app

import (
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// PairVar adds a repeatable flag for one pair, as in NAME=value: everything after the first = is the value.
func PairVar(flags *pflag.FlagSet, into *map[string]string, name, doc string) {
	flags.Var(&pairs{into: into}, name, doc)
}

// PairsVar is PairVar for a flag that also takes several pairs, as in team=grading,run=17. A value that contains commas and = is
// quoted as in CSV: --label '"q=a=1,b=2"'. The value of into is the default.
func PairsVar(flags *pflag.FlagSet, into *map[string]string, name, doc string) {
	flags.Var(&pairs{into: into, several: true}, name, doc)
}

type pairs struct {
	into    *map[string]string
	several bool
	given   bool // into holds given values, and not the default
}

// Type is the form of a value in the help.
func (p *pairs) Type() string { return "name=value" }

func (p *pairs) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*p.into)) {
		all = append(all, name+"="+(*p.into)[name])
	}
	return strings.Join(all, ",")
}

func (p *pairs) Set(text string) error {
	all := []string{text}
	if p.several && strings.Count(text, "=") > 1 {
		r := csv.NewReader(strings.NewReader(text))
		var err error
		if all, err = r.Read(); err != nil {
			return fmt.Errorf("%w: several pairs are written as in CSV: a=1,b=2", err)
		}
		if r.InputOffset() < int64(len(text)) {
			return fmt.Errorf("%q has several lines: give each pair by a flag of its own", text)
		}
	}
	if !p.given {
		p.given, *p.into = true, map[string]string{}
	}
	for _, pair := range all {
		name, value, ok := strings.Cut(pair, "=")
		switch _, twice := (*p.into)[name]; {
		case !ok || name == "":
			return fmt.Errorf("%q is not a pair: write name=value", pair)
		case twice:
			return fmt.Errorf("%s is given twice: leave one of them out", name)
		}
		(*p.into)[name] = value
	}
	return nil
}
