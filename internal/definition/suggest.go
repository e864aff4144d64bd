package definition

import (
	"fmt"
	"slices"
	"strings"
)

// Suggest names the closest of the known names, as a question ("did you mean \"resize\"?"). It is "" when none is near.
func Suggest(name string, known []string) string {
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

// offerName suggests the closest name, or else lists them all.
func offerName(name string, known []string, intro string) string {
	if s := Suggest(name, known); s != "" {
		return s
	}
	if len(known) == 0 {
		return ""
	}
	names := slices.Sorted(slices.Values(known))
	if len(names) > 20 {
		names = append(names[:20:20], "…")
	}
	return intro + " " + strings.Join(names, ", ")
}

// elsewhere is how fields of other systems' workflows are called here.
var elsewhere = map[string]string{
	"depends_on": "needs", "dependsOn": "needs", "depends": "needs", "dependencies": "needs", "after": "needs",
	"uses": "action", "type": "action", "when": "if", "condition": "if",
	"loop": "foreach", "with_items": "foreach", "withItems": "foreach", "matrix": "foreach", "map": "foreach",
	"retries": "retry", "allow_failure": "continue_on_error", "continue-on-error": "continue_on_error",
	"parallelism": "concurrency", "max_parallel": "concurrency", "tags": "worker_labels", "runs-on": "worker_labels",
	"jobs": "tasks", "steps": "tasks", "stages": "tasks", "params": "input", "inputs": "input", "parameters": "input",
	"environment": "env", "variables": "env",
}

// offerField suggests the field that another system's is here, or else the closest name, or lists them all but wait_for, which
// is known only to say that there is no such thing.
func offerField(name string, known []string) string {
	if here := elsewhere[name]; slices.Contains(known, here) {
		return fmt.Sprintf("did you mean %q?", here)
	}
	known = slices.DeleteFunc(slices.Clone(known), func(s string) bool { return s == "wait_for" })
	return offerName(name, known, "the fields here are")
}

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
