package problem

import (
	"fmt"
	"slices"
	"strings"
)

// Nearest asks whether the closest of the known names was meant; it is empty when none is close.
func Nearest(name string, known []string) string {
	best, least := "", 1+min(3, max(1, len(name)/3))
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k), least); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// NearestOr is Nearest, and lists the known names behind an introduction when none is close.
func NearestOr(name string, known []string, intro string) string {
	if s := Nearest(name, known); s != "" || len(known) == 0 {
		return s
	}
	if len(known) > mostListed {
		known = append(slices.Clone(known[:mostListed]), "…")
	}
	return intro + " " + strings.Join(known, ", ")
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
