package problem

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Names are candidates for a misspelt name, prepared for many look-ups: a document may have 9,000 tasks and mention hundreds of others.
type Names struct {
	known   []string
	lower   []string // the same in lower case
	letters []uint64 // the letters of each, as bits
}

// NamesOf prepares names. Of equally near names the first is suggested.
func NamesOf(known []string) *Names {
	n := &Names{known: known, lower: make([]string, len(known)), letters: make([]uint64, len(known))}
	for i, k := range known {
		n.lower[i] = strings.ToLower(k)
		n.letters[i] = lettersOf(n.lower[i])
	}
	return n
}

// lettersOf has a bit for each byte of a text, taken modulo 64.
func lettersOf(s string) (set uint64) {
	for i := range len(s) {
		set |= 1 << (s[i] % 64)
	}
	return set
}

// Nearest suggests the closest of the names; it is empty if none is close.
func (n *Names) Nearest(name string) string {
	best, least := -1, 1+min(3, max(1, len(name)/3))
	name = strings.ToLower(name)
	letters := lettersOf(name)
	for i, k := range n.lower {
		// Replacing a letter removes one and adds one: a distance of d changes at most 2·d bits.
		if k == "" || bits.OnesCount64(letters^n.letters[i]) > 2*(least-1) {
			continue
		}
		if d := distance(name, k, least); d < least {
			best, least = i, d
		}
	}
	if best < 0 {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", n.known[best])
}

// NearestOr is Nearest, or lists the names after an introduction if none is close.
func (n *Names) NearestOr(name, intro string) string {
	if s := n.Nearest(name); s != "" || len(n.known) == 0 {
		return s
	}
	known := n.known
	if len(known) > mostListed {
		known = append(slices.Clone(known[:mostListed]), "…")
	}
	return intro + " " + strings.Join(known, ", ")
}

// Nearest is Names.Nearest for a single look-up.
func Nearest(name string, known []string) string { return NamesOf(known).Nearest(name) }

// NearestOr is Names.NearestOr for a single look-up.
func NearestOr(name string, known []string, intro string) string {
	return NamesOf(known).NearestOr(name, intro)
}

// mostListed is the number of names that a fix lists; people do not read a longer list.
const mostListed = 24

// OneOf lists choices.
func OneOf(names []string) string { return "one of " + strings.Join(names, ", ") }

// distance is the number of letters to insert, delete, replace or swap between a and b; if that is
// not below limit, it stops and returns limit.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit || len(a) > 64 || len(b) > 64 {
		return limit
	}
	var rows [3][66]int
	older, prev, cur := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		low := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, older[j-2]+1)
			}
			cur[j] = d
			low = min(low, d)
		}
		if low >= limit {
			return limit
		}
		older, prev, cur = prev, cur, older
	}
	return prev[len(b)]
}
