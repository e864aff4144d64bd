package definition

import (
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/problem"
)

// offerName suggests the closest name, or lists all names.
func offerName(name string, known []string, intro string) string {
	return problem.NearestOr(name, slices.Sorted(slices.Values(known)), intro)
}

// elsewhere maps field names of other systems, or of other documents of Pawl, to the names here. If there are several, offerField suggests
// the first one that the object may have.
var elsewhere = map[string][]string{
	"depends_on": {"needs"}, "dependsOn": {"needs"}, "depends": {"needs"}, "dependencies": {"needs"}, "after": {"needs"},
	"uses": {"action"}, "type": {"action"}, "when": {"if"}, "condition": {"if"},
	"loop": {"foreach"}, "with_items": {"foreach"}, "withItems": {"foreach"}, "matrix": {"foreach"}, "map": {"foreach"},
	"retries": {"retry"}, "allow_failure": {"continue_on_error"}, "continue-on-error": {"continue_on_error"},
	"parallelism": {"concurrency"}, "max_parallel": {"concurrency"}, "tags": {"worker_labels"}, "runs-on": {"worker_labels"},
	"jobs": {"tasks"}, "steps": {"tasks"}, "stages": {"tasks"}, "params": {"input", "with"}, "inputs": {"input", "with"}, "parameters": {"input", "with"}, "input": {"with"}, "args": {"with"}, "with": {"input"},
	"environment": {"env"}, "variables": {"env"}, "strategy": {"foreach"}, "group": {"key"}, "timeout-minutes": {"timeout"}, "timeoutSeconds": {"timeout"},
	"run": {"with"}, "script": {"with"}, "cmd": {"with"}, "retry_policy": {"retry"}, "retryPolicy": {"retry"}, "backoffLimit": {"retry"},
	"trigger": {"on"}, "secret": {"secret_env"}, "assignee": {"assignees"}, "approvers": {"assignees"}, "people": {"assignees"},
}

// otherwise maps fields of other systems to their expression here, if that is more than the name of a field.
var otherwise = map[string]string{
	"cancel-in-progress": "when_full: cancel_oldest cancels the execution that holds the key",
	"cancel_in_progress": "when_full: cancel_oldest cancels the execution that holds the key",
	"strategy":           "foreach: [{os: linux}, {os: mac}] makes an execution for each of a list; ${{ item.os }} is its element",
	"matrix":             "foreach: [{os: linux}, {os: mac}] makes an execution for each of a list; ${{ item.os }} is its element",
	"timeout-minutes":    "write timeout: 10m",
}

// offerField suggests the field from elsewhere, or the closest name, or lists all names.
func offerField(name string, known []string) string {
	if fix := otherwise[name]; fix != "" {
		return fix
	}
	for _, here := range elsewhere[name] {
		if slices.Contains(known, here) {
			return fmt.Sprintf("did you mean %q?", here)
		}
	}
	return offerName(name, known, "the fields here are")
}
