// Package migration reads the steps that create the schema of a store, and compares them with the steps that a database has applied. The
// backend runs them.
package migration

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Step is one step of a schema.
type Step struct {
	Version int64
	Name    string // "0026_checks"
	Script  string
	Sum     string // SHA-256 of the script, in hex
}

// Steps reads the files schema/<prefix><version>_<what>.sql, in order of their versions.
func Steps(files fs.FS, prefix string) ([]Step, error) {
	paths, err := fs.Glob(files, "schema/"+prefix+"*.sql")
	if err != nil {
		return nil, err
	}
	all := make([]Step, 0, len(paths))
	for _, path := range paths {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "schema/"+prefix), ".sql")
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s: its name does not begin with a version", path)
		}
		script, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(script)
		all = append(all, Step{version, name, string(script), hex.EncodeToString(sum[:])})
	}
	slices.SortFunc(all, func(a, b Step) int { return cmp.Compare(a.Version, b.Version) })
	return all, nil
}

// Compare refuses a database that has applied other steps, by their versions and sums.
func Compare(steps []Step, had map[int64]string) error {
	latest := steps[len(steps)-1].Version
	for _, s := range steps {
		if sum, ok := had[s.Version]; ok && sum != s.Sum {
			return fmt.Errorf("migration %s is not the one that this schema was made with: a pawl from before the first release "+
				"made it, or a changed build. Nothing was changed. Use that program, or name an empty database", s.Name)
		}
	}
	for version := range had {
		if !slices.ContainsFunc(steps, func(s Step) bool { return s.Version == version }) {
			return fmt.Errorf("the schema has version %d and this program knows versions up to %d: use a newer pawl", version, latest)
		}
	}
	return nil
}
