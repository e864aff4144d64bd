package server

import (
	"fmt"
	"strings"
)

func commaSeparated(s string) []string { return strings.Split(s, ",") }

// closest says which of the known names was probably meant, or lists them.
func closest(name string, known []string) string {
	best, least := "", max(2, len(name)/3+1)
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return oneOf(known)
}

// editDistance counts the letters to insert, delete or replace between two short names; a long one is far from everything.
func editDistance(a, b string) int {
	const longest = 48
	if len(a) > longest || len(b) > longest {
		return longest
	}
	var row [longest + 1]int
	for j := range len(b) + 1 {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
