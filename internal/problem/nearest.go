package problem

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Names are names of which one may have been meant, prepared for many questions: a document may have 9,000 tasks and name hundreds of
// others.
type Names struct {
	known   []string
	lower   []string // the same in lower case
	letters []uint64 // the letters of each, a bit for each
}

// NamesOf prepares names. Of several that are equally near the first is offered.
func NamesOf(known []string) *Names {
	n := &Names{known: known, lower: make([]string, len(known)), letters: make([]uint64, len(known))}
	for i, k := range known {
		n.lower[i] = strings.ToLower(k)
		n.letters[i] = lettersOf(n.lower[i])
	}
	return n
}

// lettersOf has a bit for each byte of a text, of 64 by which bytes are told apart.
func lettersOf(s string) (set uint64) {
	for i := range len(s) {
		set |= 1 << (s[i] % 64)
	}
	return set
}

// Nearest asks whether the closest of the names was meant; it is empty when none is close.
func (n *Names) Nearest(name string) string {
	best, least := -1, 1+min(3, max(1, len(name)/3))
	name = strings.ToLower(name)
	letters := lettersOf(name)
	for i, k := range n.lower {
		// Replacing a letter takes one away and adds one: a distance of d changes 2·d bits at the most.
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

// NearestOr is Nearest, and lists the names behind an introduction when none is close.
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

// Nearest is Nearest of names that are asked once.
func Nearest(name string, known []string) string { return NamesOf(known).Nearest(name) }

// NearestOr is NearestOr of names that are asked once.
func NearestOr(name string, known []string, intro string) string {
	return NamesOf(known).NearestOr(name, intro)
}

// mostListed is how many names a fix lists; a longer list is not read.
const mostListed = 24

// OneOf lists choices.
func OneOf(names []string) string { return "one of " + strings.Join(names, ", ") }

// distance is the number of letters to insert, delete, replace or swap between
// a and b; it gives up, returning limit, when it is not below limit.
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
