package server

import (
	"reflect"
	"slices"

	"github.com/pawl-run/pawl/api"
)

// Parameters that several routes share.
var (
	paramWait = param{name: "wait", kind: "string",
		doc: "How long the response may wait for the end of the execution, for example 30s; at most 60s"}
	paramLimit  = param{name: "limit", kind: "integer", doc: "Items per page, at most; a page also ends at 4 MB"}
	paramCursor = param{name: "cursor", kind: "string", begins: true, doc: "next_cursor of the previous page"}
	paramAfter  = param{name: "after", kind: "string", begins: true,
		doc: "Begin after this cursor; for streams, Last-Event-ID does the same"}
	paramStatus = param{name: "status", kind: "string", repeat: true, doc: "Executions with any of these statuses", choices: statusNames()}

	paramVerdict = param{name: "verdict", kind: "string", repeat: true,
		doc: "Executions that ended with any of these: ok, or an error code, for example timeout"}
	paramLabel   = param{name: "label", kind: "string", repeat: true, doc: "Executions with all of these labels, each as name=value"}
	paramSince   = param{name: "since", kind: "string", doc: "Created at or after this time (RFC 3339)"}
	paramUntil   = param{name: "until", kind: "string", doc: "Created before this time"}
	paramRerunOf = param{name: "rerun_of", kind: "string", doc: "Reruns of this execution"}
	paramRetryOf = param{name: "retry_of", kind: "string", doc: "Retries of this execution"}
	paramWhere   = param{name: "where", kind: "string",
		doc: "Condition, for example: label.team = docs and status = failed and created > -7d (docs/finding.md)"}
	paramOutputs = param{name: "outputs", kind: "boolean", doc: "Include the output of each execution"}
	paramDigest  = param{name: "digest", kind: "boolean", doc: "Include the result of each test case as one letter"}
	paramCases   = param{name: "cases", kind: "boolean", doc: "Include the verdict of each test case"}
	paramAll     = param{name: "wait", kind: "string",
		doc: "How long the response may wait for all matching executions to end, for example 30s; at most 60s"}

	idParams = []param{
		{name: "id", kind: "string", repeat: true, doc: "Executions with these IDs, at most 200; unknown IDs are ignored"},
		{name: "q", kind: "string", doc: "Executions whose ID begins with this text, for example ex_01kb"},
		{name: "after", kind: "string", begins: true, doc: "Created after this execution, oldest first: what is new since the last look"},
	}

	paramItems = param{name: "items", kind: "integer",
		doc: "Executions listed per task, 0 to 1000, default 100; at most 20,000 together. 0: only tasks with one execution list it"}

	paramTail = param{name: "tail", kind: "integer",
		doc: "Begin about this many bytes before the end, at the start of a chunk; ignored with after. A stream reports the gap"}
	paramSkip = param{name: "skip", kind: "boolean",
		doc: "Streams with a tail: when the client falls behind by more than the tail, skip ahead and report the gap"}

	outcomeParams = []param{
		{name: "label", kind: "string", required: true, doc: "Executions with this label, as name=value"},
		paramOutputs, paramAfter,
	}

	logParams = []param{
		{name: "stream", kind: "string", doc: "Only this stream", choices: streams},
		{name: "attempt", kind: "integer", doc: "Only this attempt"},
		{name: "offset", kind: "integer",
			doc: "Begin at this byte of the stream, as text/plain; with Accept: application/json, at the chunk that contains it"},
		paramAfter,
		{name: "before", kind: "string", doc: "Pages only: the part before this place; pass prev_cursor to read further back"},
		paramTail, paramSkip,
		{name: "limit", kind: "integer", doc: "Approximate bytes per page; with text/plain exact, default all"},
	}

	lineParams = []param{
		{name: "limit", kind: "integer", doc: "Places per line, 1 to 1000; default 100"},
		{name: "label", kind: "string", repeat: true,
			doc: "Only executions with all of these labels, as name=value, among the first 10,000 of each line"},
	}

	searchParams = []param{
		{name: "q", kind: "string", required: true, doc: "Text to find"},
		{name: "regexp", kind: "boolean", doc: "Treat q as a regular expression (RE2 syntax); (?i) at the start ignores case"},
		{name: "stream", kind: "string", doc: "Only this stream", choices: streams},
		{name: "attempt", kind: "integer", doc: "Only this attempt"},
		{name: "after", kind: "string", begins: true, doc: "next_cursor of the previous answer"},
		{name: "limit", kind: "integer", doc: "Lines in the answer, at most; 1 to 1000, default 100"},
	}

	typeStdin    = reflect.TypeFor[api.Stdin]()
	stdinAliases = []string{"/api/v1/evaluations/{id}/stdin", "/api/eval/{id}/stdin"}
	stdinParams  = []param{
		{name: "offset", kind: "integer",
			doc: "Offset of the body's first byte in stdin, so that a repeated request adds nothing; default: the end"},
		{name: "eof", kind: "boolean", doc: "The body is the last part: the program then reads end-of-file"},
	}
)

func statusNames() []string {
	var names []string
	for _, s := range api.Statuses() {
		names = append(names, string(s))
	}
	return names
}

// requiring returns the parameters with one of them required.
func requiring(name string, params []param) []param {
	params = slices.Clone(params)
	for i := range params {
		params[i].required = params[i].required || params[i].name == name
	}
	return params
}
