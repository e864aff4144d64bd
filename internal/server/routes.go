package server

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const (
	tagExecutions  = "executions"
	tagEvaluations = "evaluations"
	tagBlobs       = "blobs"
	tagDefinitions = "definitions"
	tagSchedules   = "schedules"
	tagWebhooks    = "webhooks"
	tagInquiries   = "inquiries"
	tagSignals     = "signals"
	tagRules       = "rules"
	tagCluster     = "cluster"
	tagServer      = "server"
)

var (
	typeExecution = reflect.TypeFor[api.Execution]()

	paramWait   = param{name: "wait", kind: "string", doc: "How long the answer may be held back for the end, such as 30s; at most 60s"}
	paramLimit  = param{name: "limit", kind: "integer", doc: "Most items of the page, which ends earlier when it has 4 MB"}
	paramCursor = param{name: "cursor", kind: "string", begins: true, doc: "next_cursor of the page before"}
	paramAfter  = param{name: "after", kind: "string", begins: true, doc: "Begin after this cursor; Last-Event-ID does the same for streams"}
	paramStatus = param{name: "status", kind: "string", repeat: true, doc: "With any of these statuses", choices: statusNames()}

	paramVerdict = param{name: "verdict", kind: "string", repeat: true, doc: "Ended with any of these: ok, or the code of the error, such as timeout"}
	paramLabel   = param{name: "label", kind: "string", repeat: true, doc: "With all of these labels, each as name=value"}
	paramSince   = param{name: "since", kind: "string", doc: "Created at this time (RFC 3339) or later"}
	paramUntil   = param{name: "until", kind: "string", doc: "Created before this time"}
	paramRerunOf = param{name: "rerun_of", kind: "string", doc: "Reruns of this execution"}
	paramRetryOf = param{name: "retry_of", kind: "string", doc: "Retries of this execution"}
	paramWhere   = param{name: "where", kind: "string", doc: "Meeting this condition, as in label.team = docs and status = failed and created > -7d (docs/finding.md)"}
	paramOutputs = param{name: "outputs", kind: "boolean", doc: "Include the output of each"}
	paramDigest  = param{name: "digest", kind: "boolean", doc: "With how each case of code has ended, by one letter for each"}
	paramCases   = param{name: "cases", kind: "boolean", doc: "Include the verdict of each case of code"}
	paramAll     = param{name: "wait", kind: "string", doc: "How long the answer may be held back until everything with the labels has ended, such as 30s; at most 60s"}

	idParams = []param{
		{name: "id", kind: "string", repeat: true, doc: "Any of these, at most 200; ids that do not exist are left out"},
		{name: "q", kind: "string", doc: "With ids that begin with this text, such as ex_01kb"},
		{name: "after", kind: "string", begins: true, doc: "Created after this execution, the oldest first: what is new since it was the newest"},
	}

	paramItems = param{name: "items", kind: "integer",
		doc: "How many executions of one task are listed, 0 to 1000, 100 by default; fewer where those of all foreach tasks together would be more than 20,000, and with 0 only those of tasks that have one"}

	paramTail = param{name: "tail", kind: "integer", doc: "Begin about so many bytes before the end, at the start of a chunk; ignored with after. A stream tells what it leaves out (gap)"}
	paramSkip = param{name: "skip", kind: "boolean", doc: "For a stream with a tail: whenever the client is further behind than the tail, skip to the tail and say so (gap)"}

	outcomeParams = []param{{name: "label", kind: "string", required: true, doc: "Executions with this label, as name=value"}, paramOutputs, paramAfter}

	logParams = []param{
		{name: "stream", kind: "string", doc: "Only this stream", choices: streams},
		{name: "attempt", kind: "integer", doc: "Only this attempt"},
		{name: "offset", kind: "integer", doc: "From this byte of the stream on, as text/plain; with Accept: application/json a page that begins with the chunk that has it"},
		paramAfter,
		{name: "before", kind: "string", doc: "For a page: the part that ends before this place; pass prev_cursor to go further back"},
		paramTail, paramSkip,
		{name: "limit", kind: "integer", doc: "Bytes of the page, approximately; for text/plain exactly, and by default all"},
	}

	lineParams = []param{
		{name: "limit", kind: "integer", doc: "How many places of each line, 1 to 1000, 100 by default"},
		{name: "label", kind: "string", repeat: true, doc: "Only those with all of these labels, each as name=value, among the first 10,000 of each line"},
	}

	searchParams = []param{
		{name: "q", kind: "string", required: true, doc: "The text to find"},
		{name: "regexp", kind: "boolean", doc: "q is a regular expression in the syntax of RE2; (?i) at its start ignores case"},
		{name: "stream", kind: "string", doc: "In this stream only", choices: streams},
		{name: "attempt", kind: "integer", doc: "In this attempt only"},
		{name: "after", kind: "string", begins: true, doc: "next_cursor of the answer before"},
		{name: "limit", kind: "integer", doc: "Most lines in the answer, 1 to 1000, 100 by default"},
	}

	typeStdin    = reflect.TypeFor[api.Stdin]()
	stdinAliases = []string{"/api/v1/evaluations/{id}/stdin", "/api/eval/{id}/stdin"}
	stdinParams  = []param{
		{name: "offset", kind: "integer", doc: "Offset of the body's first byte in the whole stdin, so that bytes sent twice are taken once; by default the end"},
		{name: "eof", kind: "boolean", doc: "Nothing follows the body: the program reads an end of file"},
	}

	accepted = []answer{
		{http.StatusAccepted, "Accepted, and durable", typeExecution, nil},
		{http.StatusOK, "It exists already under this idempotency key, or it has ended within the wait", typeExecution, nil},
	}
	ended = []answer{
		{http.StatusOK, "It has ended", typeExecution, nil},
		{http.StatusAccepted, "Its worker has been ordered to end it", typeExecution, nil},
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

// routes is the whole API.
func (s *Server) routes() []route {
	all := executionRoutes()
	all = append(all, evaluationRoutes()...)
	all = append(all, blobRoutes()...)
	all = append(all, definitionRoutes()...)
	all = append(all, scheduleRoutes()...)
	all = append(all, pausing("/api/v1/executions/{id}", "execution", tagExecutions, "a workflow start no more tasks", (*call).pauseExecution, (*call).resumeExecution)...)
	all = append(all, webhookRoutes()...)
	all = append(all, inquiryRoutes()...)
	all = append(all, signalRoutes()...)
	all = append(all, ruleRoutes()...)
	return append(all, serverRoutes()...)
}

func executionRoutes() []route {
	const one = "/api/v1/executions/{id}"
	listParams := []param{
		paramStatus,
		{name: "action", kind: "string", doc: "Of this action"},
		{name: "workflow", kind: "string", doc: "Tasks of this execution"},
		paramRerunOf, paramRetryOf,
		paramLabel, paramVerdict, paramSince, paramUntil,
		{name: "top_level", kind: "boolean", doc: "Leave out tasks of workflows"},
	}
	bulkParams := append(slices.Clip(listParams), paramWhere, paramLimit, paramCursor)
	return []route{
		{method: "POST", path: "/api/v1/executions", name: "submit", tag: tagExecutions, summary: "Submit one execution",
			params: []param{paramWait}, headers: []string{"Idempotency-Key", "Pawl-Chain", "traceparent"},
			body: reflect.TypeFor[api.Submission](), answers: accepted, handle: (*call).submit},
		{method: "POST", path: "/api/v1/executions:batch", name: "submit-batch", tag: tagExecutions,
			summary: "Submit up to 10,000 executions, each with its own verdict", headers: []string{"Idempotency-Key", "Pawl-Chain", "traceparent"},
			body: reflect.TypeFor[api.Batch](), answers: []answer{ok(reflect.TypeFor[api.BatchResult]())}, handle: withBody((*call).submitBatch)},
		{method: "POST", path: "/api/v1/executions:validate", name: "check-submission", tag: tagExecutions, summary: "Check what a submission would be accepted as, and say everything that is wrong with it; nothing happens",
			body: reflect.TypeFor[api.Submission](), answers: []answer{ok(reflect.TypeFor[api.SubmissionCheck]())}, handle: (*call).checkSubmission},
		{method: "GET", path: "/api/v1/executions", name: "list-executions", tag: tagExecutions, summary: "List executions, newest first; as a stream: be told when they may have changed",
			params:  slices.Concat(listParams, idParams, []param{paramWhere, paramOutputs, paramCases, paramDigest, paramAll, paramLimit, paramCursor}),
			answers: []answer{ok(reflect.TypeFor[api.ExecutionPage](), mediaEvents)}, handle: (*call).listExecutions},
		{method: "GET", path: "/api/v1/executions:count", name: "count-executions", tag: tagExecutions, summary: "Count executions with a label, by status and verdict",
			params: append(requiring("label", listParams), paramAll), answers: []answer{ok(reflect.TypeFor[api.Counts]())}, handle: (*call).countExecutions},
		{method: "GET", path: "/api/v1/executions:outcomes", name: "execution-outcomes", tag: tagExecutions, summary: "Follow the executions with a label: a message for each that has ended, until all have",
			params: outcomeParams, headers: []string{"Last-Event-ID"}, answers: []answer{ok(nil, mediaLines, mediaEvents)}, handle: (*call).executionOutcomes},
		{method: "GET", path: "/api/v1/executions:export", name: "export-executions", tag: tagExecutions,
			summary: "Get an archive of executions that have ended, with their tasks, histories, logs, blobs and definitions: those named, or those that the filters select",
			params: append([]param{{name: "id", kind: "string", repeat: true, doc: "These executions, at most 1,000; none: by the filters"},
				paramRerunOf, paramRetryOf, {name: "action", kind: "string", doc: "Of this action"}}, paramStatus, paramLabel, paramVerdict, paramSince, paramUntil),
			answers: []answer{ok(nil, mediaTar)}, handle: (*call).exportExecutions},
		{method: "GET", path: one, name: "get-execution", tag: tagExecutions, summary: "Get one execution",
			params: []param{paramWait}, headers: []string{"If-None-Match"},
			answers: []answer{ok(typeExecution), {http.StatusNotModified, "As the ETag says", nil, nil}}, handle: (*call).getExecution},
		{method: "GET", path: one + "/result", name: "get-result", tag: tagExecutions, summary: "Get its result",
			params: []param{paramWait}, answers: []answer{ok(reflect.TypeFor[api.Result]())}, handle: (*call).result},
		{method: "GET", path: one + "/events", name: "events", tag: tagExecutions, summary: "Read or follow its history",
			params: []param{paramAfter, paramLimit}, headers: []string{"Last-Event-ID"},
			answers: []answer{ok(reflect.TypeFor[api.EventPage](), "text/event-stream")}, handle: (*call).events},
		{method: "GET", path: one + "/logs", name: "logs", tag: tagExecutions, summary: "Read or follow its logs",
			params: logParams, headers: []string{"Last-Event-ID"},
			answers: []answer{ok(reflect.TypeFor[api.LogPage](), "text/event-stream", "text/plain")}, handle: (*call).logs},
		{method: "GET", path: one + "/logs/summary", name: "sum-logs", tag: tagExecutions, summary: "See how many bytes it wrote, by attempt and stream",
			params: []param{{name: "attempt", kind: "integer", doc: "Only this attempt"}}, answers: []answer{ok(reflect.TypeFor[api.LogSummary]())}, handle: (*call).logSummary},
		{method: "GET", path: one + "/logs/search", name: "search-logs", tag: tagExecutions, summary: "Find lines in its logs; one call searches for about a second",
			params: searchParams, answers: []answer{ok(reflect.TypeFor[api.LogMatches]())}, handle: (*call).searchLogs},
		{method: "GET", path: one + "/tasks", name: "tasks", tag: tagExecutions, summary: "See or follow the tasks of a workflow",
			params:  []param{paramItems, {name: "changes", kind: "boolean", doc: "For a stream: messages after the first have only the tasks that have changed"}},
			answers: []answer{ok(reflect.TypeFor[api.Tasks](), "text/event-stream")}, handle: (*call).tasks},
		{method: "GET", path: one + "/tasks/{task}/items", name: "task-items", tag: tagExecutions, summary: "List the executions of one task of a workflow in few bytes, by index",
			params:  []param{paramStatus, {name: "limit", kind: "integer", doc: "Most items of the page, 1 to 10,000, 1,000 by default; it looks at 20,000 at most"}, paramCursor},
			answers: []answer{ok(reflect.TypeFor[api.TaskItems]())}, handle: (*call).items},
		{method: "GET", path: one + "/stream", name: "stream", tag: tagExecutions, summary: "Follow its tasks, its history and what it writes on one connection",
			params: []param{{name: "of", kind: "string", doc: "Parts of the stream, as in tasks,events,logs; all by default"}, paramItems, {name: "stream", kind: "string", doc: "Logs of this stream only", choices: streams},
				{name: "attempt", kind: "integer", doc: "Logs of this attempt only"}, paramTail, paramSkip, paramAfter},
			headers: []string{"Last-Event-ID"}, answers: []answer{ok(nil, mediaEvents)}, handle: (*call).stream},
		{method: "GET", path: one + "/timeline", name: "timeline", tag: tagExecutions, summary: "See when attempts waited and ran, and which worker had each: of a workflow those of its tasks",
			params:  []param{{name: "limit", kind: "integer", doc: "Most executions of the page, 1 to 1000, 200 by default; it ends earlier when reading their histories takes half a second"}, paramCursor},
			answers: []answer{ok(reflect.TypeFor[api.Timeline]())}, handle: (*call).timeline},
		{method: "GET", path: one + "/files/{file...}", name: "file", tag: tagExecutions, summary: "Get a file that it left, by its path in the output's files",
			answers: []answer{ok(nil, mediaFile)}, handle: (*call).file},
		{method: "GET", path: one + "/attempts/{attempt}", name: "attempt", tag: tagExecutions, summary: "See what the worker of one attempt was given, and how the attempt ended",
			answers: []answer{ok(reflect.TypeFor[api.Attempt]())}, handle: (*call).attempt},
		{method: "GET", path: one + "/given/{blob...}", name: "given", tag: tagExecutions, summary: "Get a blob that its input names, by that name",
			params: []param{{name: "offset", kind: "integer", doc: "From this byte on"}}, answers: []answer{ok(nil, mediaFile)}, handle: (*call).givenBlob},
		{method: "GET", path: one + "/why", name: "why", tag: tagExecutions, summary: "Ask what it is waiting for",
			answers: []answer{ok(reflect.TypeFor[api.Why]())}, handle: (*call).why},
		{method: "POST", path: "/api/v1/executions:why", name: "why-many", tag: tagExecutions, summary: "Ask of up to 100 executions what each is waiting for",
			body: reflect.TypeFor[api.WhyRequest](), answers: []answer{ok(reflect.TypeFor[api.WhyResult]())}, handle: withBody((*call).whyMany)},
		{method: "POST", path: one + "/cancel", name: "cancel", tag: tagExecutions, summary: "Cancel it; of a workflow that cleans up after a cancel, end that",
			params: []param{paramWait}, body: reflect.TypeFor[api.CancelRequest](), optional: true, answers: ended, handle: (*call).cancel},
		{method: "POST", path: one + "/kill", name: "kill", tag: tagExecutions, summary: "Kill it: cancelled once nothing is left running, without clean-up",
			params: []param{paramWait}, body: reflect.TypeFor[api.CancelRequest](), optional: true, answers: ended, handle: (*call).kill},
		{method: "GET", path: one + "/stdin", aliases: stdinAliases, name: "get-stdin", tag: tagExecutions, summary: "See how many bytes of stdin an interactive evaluation has been given",
			answers: []answer{ok(typeStdin)}, handle: (*call).stdin},
		{method: "GET", path: one + "/stdin/bytes", name: "read-stdin", tag: tagExecutions, summary: "Read the stdin that an interactive evaluation has been given",
			answers: []answer{ok(nil, mediaFile)}, handle: (*call).typed},
		{method: "POST", path: one + "/stdin", aliases: stdinAliases, name: "send-stdin", tag: tagExecutions, summary: "Send stdin to an interactive evaluation while it runs",
			params: stdinParams, raw: true, answers: []answer{ok(typeStdin)}, handle: (*call).feed},
		{method: "POST", path: one + "/retry", name: "retry", tag: tagExecutions, summary: "Submit the request of a finished execution anew",
			headers: []string{"Idempotency-Key"}, answers: []answer{{http.StatusAccepted, "The new execution", typeExecution, nil},
				{http.StatusOK, "The same call has made it before, under this idempotency key", typeExecution, nil}}, handle: (*call).retry},
		{method: "POST", path: one + "/rerun", name: "rerun", tag: tagExecutions, summary: "Run a finished execution again: of a workflow, what did not complete and what comes after it",
			headers: []string{"Idempotency-Key"}, body: reflect.TypeFor[api.RerunRequest](), optional: true, answers: []answer{{http.StatusAccepted, "The new execution", typeExecution, nil},
				{http.StatusOK, "The same call has made it before, under this idempotency key", typeExecution, nil}}, handle: (*call).rerun},
		{method: "POST", path: one + "/rerun/plan", name: "plan-rerun", tag: tagExecutions, summary: "See what a rerun would reuse and what would run, and why; nothing happens",
			body: reflect.TypeFor[api.RerunRequest](), optional: true, answers: []answer{ok(reflect.TypeFor[api.RerunPlan]())}, handle: (*call).planRerun},
		{method: "GET", path: one + "/replay", name: "replay", tag: tagExecutions, summary: "Decide its history again by the rules, and see what in it does not follow from them; changes nothing",
			params:  []param{{name: "at", kind: "integer", doc: "Replay up to the event with this number, and see the state there; all of it by default"}},
			answers: []answer{ok(reflect.TypeFor[api.Replay]())}, handle: (*call).replay},
		{method: "POST", path: one + "/replay", name: "compare-replay", tag: tagExecutions, summary: "See where a run of a workflow would have gone another way under another definition; nothing happens",
			body: reflect.TypeFor[api.ReplayRequest](), answers: []answer{ok(reflect.TypeFor[api.ReplayComparison]())}, handle: (*call).compareReplay},
		{method: "POST", path: "/api/v1/executions:cancel", name: "cancel-many", tag: tagExecutions,
			summary: "Cancel up to 1,000 executions: those that are named, or the newest unfinished ones that the parameters select", params: bulkParams,
			body: reflect.TypeFor[api.BulkRequest](), optional: true, answers: []answer{ok(reflect.TypeFor[api.BulkResult]())}, handle: withBody((*call).cancelMany)},
		{method: "POST", path: "/api/v1/executions:retry", name: "retry-many", tag: tagExecutions,
			summary: "Submit the requests of up to 1,000 finished executions anew: of those that are named, or of the newest that the parameters select and that have not completed",
			params:  bulkParams, headers: []string{"Idempotency-Key"},
			body: reflect.TypeFor[api.BulkRequest](), optional: true, answers: []answer{ok(reflect.TypeFor[api.BulkResult]())}, handle: withBody((*call).retryMany)},
		{method: "POST", path: "/api/v1/executions:rerun", name: "rerun-many", tag: tagExecutions,
			summary: "Run up to 10,000 finished executions again, a few at a time, in an execution of its own; or plan that: those that are named, or the newest that the parameters select and that have not completed",
			params:  bulkParams, headers: []string{"Idempotency-Key"}, body: reflect.TypeFor[api.RerunManyRequest](), optional: true,
			answers: []answer{{http.StatusAccepted, "The execution that runs them again", reflect.TypeFor[api.RerunMany](), nil},
				{http.StatusOK, "A plan, or nothing is selected, or the same call has started it before, under this idempotency key", reflect.TypeFor[api.RerunMany](), nil}}, handle: withBody((*call).rerunMany)},
	}
}

func evaluationRoutes() []route {
	const one, short = "/api/v1/evaluations/{id}", "/api/eval/{id}"
	selectParams := []param{paramStatus, paramVerdict, paramLabel, paramSince, paramUntil}
	return []route{
		{method: "POST", path: "/api/v1/evaluations", aliases: []string{"/api/eval"}, name: "evaluate", tag: tagEvaluations,
			summary: "Run a piece of code", headers: []string{"Idempotency-Key", "Pawl-Chain", "traceparent"},
			params: []param{paramWait}, body: reflect.TypeFor[api.Evaluation](), answers: accepted, handle: (*call).evaluate},
		{method: "GET", path: "/api/v1/evaluations", aliases: []string{"/api/evaluations"}, name: "list-evaluations", tag: tagEvaluations,
			summary: "List evaluations, newest first; as a stream: be told when executions may have changed",
			params:  slices.Concat(selectParams, idParams, []param{paramWhere, paramOutputs, paramCases, paramDigest, paramAll, paramLimit, paramCursor}),
			answers: []answer{ok(reflect.TypeFor[api.ExecutionPage](), mediaEvents)}, handle: (*call).listEvaluations},
		{method: "POST", path: "/api/v1/evaluations:validate", name: "check-evaluation", tag: tagEvaluations, summary: "Check an evaluation, and say everything that is wrong with it; nothing happens",
			body: reflect.TypeFor[api.Evaluation](), answers: []answer{ok(reflect.TypeFor[api.SubmissionCheck]())}, handle: (*call).checkEvaluation},
		{method: "POST", path: "/api/v1/evaluations:batch", name: "evaluate-batch", tag: tagEvaluations,
			summary: "Run up to 10,000 pieces of code, each with its own verdict of acceptance", headers: []string{"Idempotency-Key", "Pawl-Chain", "traceparent"},
			body: reflect.TypeFor[api.EvaluationBatch](), answers: []answer{ok(reflect.TypeFor[api.BatchResult]())}, handle: (*call).evaluateBatch},
		{method: "GET", path: "/api/v1/evaluations:count", name: "count-evaluations", tag: tagEvaluations, summary: "Count evaluations with a label, by status and verdict",
			params: append(requiring("label", selectParams), paramAll), answers: []answer{ok(reflect.TypeFor[api.Counts]())}, handle: (*call).countEvaluations},
		{method: "GET", path: "/api/v1/evaluations:outcomes", name: "evaluation-outcomes", tag: tagEvaluations, summary: "Follow the evaluations with a label: a message for each that has ended, until all have",
			params: outcomeParams, headers: []string{"Last-Event-ID"}, answers: []answer{ok(nil, mediaLines, mediaEvents)}, handle: (*call).evaluationOutcomes},
		{method: "GET", path: one, aliases: []string{short}, name: "get-evaluation", tag: tagEvaluations, summary: "Get one evaluation",
			params: []param{paramWait}, headers: []string{"If-None-Match"},
			answers: []answer{ok(typeExecution), {http.StatusNotModified, "As the ETag says", nil, nil}}, handle: evaluation((*call).getExecution)},
		{method: "GET", path: one + "/result", aliases: []string{short + "/result"}, name: "evaluation-result", tag: tagEvaluations, summary: "Get its result",
			params: []param{paramWait}, answers: []answer{ok(reflect.TypeFor[api.Result]())}, handle: evaluation((*call).result)},
		{method: "GET", path: one + "/logs", aliases: []string{short + "/logs"}, name: "evaluation-logs", tag: tagEvaluations,
			summary: "Read or follow its logs", params: logParams, headers: []string{"Last-Event-ID"},
			answers: []answer{ok(reflect.TypeFor[api.LogPage](), "text/event-stream", "text/plain")}, handle: evaluation((*call).logs)},
		{method: "POST", path: one + "/kill", aliases: []string{short + "/kill"}, name: "kill-evaluation", tag: tagEvaluations,
			summary: "Kill it: cancelled once nothing is left running", params: []param{paramWait},
			body: reflect.TypeFor[api.CancelRequest](), optional: true, answers: ended, handle: evaluation((*call).cancel)},
		{method: "GET", path: one + "/running", aliases: []string{short + "/running"}, name: "evaluation-running", tag: tagEvaluations,
			summary: "Ask whether it is still under way", answers: []answer{ok(reflect.TypeFor[api.RunningState]())}, handle: evaluation((*call).running)},
	}
}

func blobRoutes() []route {
	const one = "/api/v1/blobs/{blob}"
	typeBlob := reflect.TypeFor[api.Blob]()
	return []route{
		{method: "PUT", path: one, name: "upload", tag: tagBlobs, summary: "Send a content ahead of the submissions that name it by its SHA-256",
			raw: true, answers: []answer{{http.StatusCreated, "It is there, and kept for a day and as long as an execution names it", typeBlob, nil},
				{http.StatusOK, "It was there before, and is kept for another day", typeBlob, nil}}, handle: (*call).upload},
		{method: "HEAD", path: one, name: "uploaded", tag: tagBlobs, summary: "Ask whether a content was uploaded and is kept",
			answers: []answer{{http.StatusOK, "It is; Content-Length is its size", nil, []string{mediaFile}}}, handle: (*call).head},
	}
}

func definitionRoutes() []route {
	file := []param{{name: "file", kind: "string", doc: "Name of the document in problems"}}
	return []route{
		{method: "POST", path: "/api/v1/definitions", name: "define", tag: tagDefinitions, summary: "Register definitions, all of them or none",
			params: append(slices.Clip(file), param{name: "alias", kind: "string", doc: "Alias to move to the registered versions; a name without @ still stands for the same version"},
				param{name: "by", kind: "string", doc: "Who moves the alias, for its history"}),
			document: true, answers: []answer{ok(reflect.TypeFor[api.Defined]())}, handle: (*call).define},
		{method: "POST", path: "/api/v1/definitions:validate", name: "validate", tag: tagDefinitions, summary: "Check definitions and store nothing",
			params: file, document: true, answers: []answer{ok(reflect.TypeFor[api.Validation]())}, handle: (*call).validate},
		{method: "GET", path: "/api/v1/definitions", name: "list-definitions", tag: tagDefinitions, summary: "List the latest versions, by name",
			params: []param{paramLimit, paramCursor}, answers: []answer{ok(reflect.TypeFor[api.DefinitionPage]())}, handle: (*call).definitions},
		{method: "GET", path: "/api/v1/definitions/{name}", name: "get-definition", tag: tagDefinitions, summary: "Get one definition",
			params:  []param{{name: "version", kind: "integer", doc: "The latest by default"}},
			answers: []answer{ok(reflect.TypeFor[api.Definition]())}, handle: (*call).definition},
		{method: "GET", path: "/api/v1/definitions/{name}/versions", name: "list-versions", tag: tagDefinitions, summary: "List the versions of a definition, newest first, without their documents",
			params: []param{paramLimit, paramCursor}, answers: []answer{ok(reflect.TypeFor[api.DefinitionPage]())}, handle: (*call).versions},
		{method: "POST", path: "/api/v1/definitions/{name}/retire", name: "retire", tag: tagDefinitions, summary: "Accept nothing new of a definition, or bring it back",
			body: reflect.TypeFor[api.RetireOrder](), answers: []answer{ok(reflect.TypeFor[api.Definition]())}, handle: (*call).retire},
		{method: "GET", path: "/api/v1/definitions/{name}/aliases", name: "list-aliases", tag: tagDefinitions, summary: "See which versions the aliases of a definition stand for",
			answers: []answer{ok(reflect.TypeFor[api.AliasPage]())}, handle: (*call).aliases},
		{method: "GET", path: "/api/v1/definitions/{name}/aliases/{alias}", name: "list-moves", tag: tagDefinitions, summary: "List the moves of an alias, the last one first",
			params: []param{paramLimit, paramCursor}, answers: []answer{ok(reflect.TypeFor[api.AliasPage]())}, handle: (*call).aliasMoves},
		{method: "PUT", path: "/api/v1/definitions/{name}/aliases/{alias}", name: "move-alias", tag: tagDefinitions, summary: "Let an alias stand for other versions, or remove it",
			body: reflect.TypeFor[api.AliasOrder](), answers: []answer{ok(reflect.TypeFor[api.Alias]())}, handle: withBody((*call).moveAlias)},
		{method: "GET", path: "/api/v1/definitions/{name}/graph", name: "get-graph", tag: tagDefinitions, summary: "Get the tasks of a workflow laid out as a graph",
			params: []param{{name: "version", kind: "integer", doc: "The latest by default; an answer for a named version may be kept for good"},
				{name: "since", kind: "integer", doc: "Another version: the graph has its tasks and needs as well, and says what was added, changed and removed since"}},
			answers: []answer{ok(reflect.TypeFor[api.Graph]())}, handle: (*call).graph},
	}
}

func scheduleRoutes() []route {
	const one = "/api/v1/schedules/{name}"
	typeSchedule := reflect.TypeFor[api.Schedule]()
	return []route{
		{method: "GET", path: "/api/v1/schedules", name: "list-schedules", tag: tagSchedules, summary: "List schedules, by name",
			params: []param{paramLimit, paramCursor}, answers: []answer{ok(reflect.TypeFor[api.SchedulePage]())}, handle: (*call).schedules},
		{method: "GET", path: one, name: "get-schedule", tag: tagSchedules, summary: "Get one schedule",
			answers: []answer{ok(typeSchedule)}, handle: (*call).schedule},
		{method: "POST", path: "/api/v1/schedules:preview", name: "preview-schedules", tag: tagSchedules, summary: "See when schedules would come next, and what they make of clock changes; nothing is stored",
			params: []param{{name: "file", kind: "string", doc: "Name of the document in problems"}, {name: "from", kind: "string", doc: "After this time (RFC 3339); now by default"},
				{name: "count", kind: "integer", doc: "How many times, 1 to 1000; 10 by default"}},
			document: true, answers: []answer{ok(reflect.TypeFor[api.SchedulePreviews]())}, handle: (*call).previewSchedules},
		{method: "GET", path: one + "/why", name: "why-schedule", tag: tagSchedules, summary: "Ask how it stands, what became of its last times and what would let it go on",
			answers: []answer{ok(reflect.TypeFor[api.ScheduleWhy]())}, handle: (*call).whySchedule},
		{method: "GET", path: one + "/ticks", name: "ticks", tag: tagSchedules, summary: "List what became of its times, the latest first",
			params: []param{paramLimit, paramCursor}, answers: []answer{ok(reflect.TypeFor[api.TickPage]())}, handle: (*call).ticks},
		{method: "POST", path: one + "/pause", name: "pause-schedule", tag: tagSchedules, summary: "Stop it from firing until it is resumed",
			body: reflect.TypeFor[api.PauseRequest](), optional: true, answers: []answer{ok(typeSchedule)}, handle: withBody((*call).pauseSchedule)},
		{method: "POST", path: one + "/resume", name: "resume-schedule", tag: tagSchedules, summary: "Let it fire again",
			body: reflect.TypeFor[api.ResumeRequest](), optional: true, answers: []answer{ok(typeSchedule)}, handle: withBody((*call).resumeSchedule)},
		{method: "POST", path: one + "/backfill", name: "backfill-schedule", tag: tagSchedules, summary: "Start executions for times that have passed, each once; up to 100 at a time",
			body: reflect.TypeFor[api.BackfillRequest](), answers: []answer{ok(reflect.TypeFor[api.Backfilled]())}, handle: withBody((*call).backfillSchedule)},
		{method: "POST", path: one + "/fire", name: "fire-schedule", tag: tagSchedules, summary: "Start an execution as a tick of now would",
			answers: []answer{{http.StatusAccepted, "Accepted, and durable", reflect.TypeFor[api.FiredSchedule](), nil}}, handle: (*call).fireSchedule},
	}
}

func signalRoutes() []route {
	typeEmitted := reflect.TypeFor[api.Emitted]()
	return []route{
		{method: "POST", path: "/api/v1/signals", name: "emit", tag: tagSignals, headers: []string{engine.ChainHeader}, summary: "Say that something has happened",
			body: reflect.TypeFor[api.Emission](), answers: []answer{{http.StatusAccepted, "Accepted, and durable", typeEmitted, nil},
				{http.StatusOK, "The same was emitted before under this trigger and key", typeEmitted, nil}}, handle: withBody((*call).emit)},
		{method: "POST", path: "/api/v1/executions/{id}/signals", name: "emit-to", tag: tagSignals, headers: []string{engine.ChainHeader}, summary: "Emit a signal about an execution that has not ended, whose tasks may wait for it",
			body: reflect.TypeFor[api.Emission](), answers: []answer{{http.StatusAccepted, "Accepted, and durable", typeEmitted, nil},
				{http.StatusOK, "The same was emitted before under this trigger and key", typeEmitted, nil}}, handle: (*call).emitTo},
		{method: "POST", path: "/api/v1/signals:batch", name: "emit-batch", tag: tagSignals, headers: []string{engine.ChainHeader}, summary: "Emit up to 10,000 signals, each with its own verdict",
			body: reflect.TypeFor[api.EmissionBatch](), answers: []answer{ok(reflect.TypeFor[api.BatchResult]())}, handle: withBody((*call).emitBatch)},
		{method: "GET", path: "/api/v1/signals", name: "list-signals", tag: tagSignals, summary: "List signals, the latest first",
			params: []param{
				{name: "trigger", kind: "string", doc: "Of this trigger"},
				{name: "subject", kind: "string", doc: "About this subject"},
				{name: "source", kind: "string", doc: "From this source, such as api"},
				{name: "since", kind: "string", doc: "Accepted at this time (RFC 3339) or later"},
				paramLimit, paramCursor,
			}, answers: []answer{ok(reflect.TypeFor[api.SignalPage](), mediaEvents)}, handle: (*call).signals},
		{method: "GET", path: "/api/v1/signals/{id}", name: "get-signal", tag: tagSignals, summary: "Get one signal",
			answers: []answer{ok(reflect.TypeFor[api.Signal]())}, handle: (*call).signal},
		{method: "GET", path: "/api/v1/signals/{id}/why", name: "signal-why", tag: tagSignals, summary: "Ask why rules have started something for it or not",
			params:  []param{{name: "rule", kind: "string", doc: "About this rule only, whatever it listens to"}},
			answers: []answer{ok(reflect.TypeFor[api.SignalWhy]())}, handle: (*call).signalWhy},
	}
}

func ruleRoutes() []route {
	const one = "/api/v1/rules/{name}"
	typeRule := reflect.TypeFor[api.Rule]()
	return []route{
		{method: "GET", path: "/api/v1/rules", name: "list-rules", tag: tagRules, summary: "List the rules in force, by name",
			answers: []answer{ok(reflect.TypeFor[api.RuleList]())}, handle: (*call).rules},
		{method: "GET", path: one, name: "get-rule", tag: tagRules, summary: "Get one rule", answers: []answer{ok(typeRule)}, handle: (*call).rule},
		{method: "GET", path: one + "/why", name: "rule-why", tag: tagRules, summary: "Ask how it stands, and what became of the latest signals that it listens to",
			answers: []answer{ok(reflect.TypeFor[api.RuleState]())}, handle: (*call).ruleWhy},
		{method: "POST", path: "/api/v1/rules:test", name: "test-rules", tag: tagRules, summary: "Ask what rules would have made of the signals of the past",
			body: reflect.TypeFor[api.RulesTest](), answers: []answer{ok(reflect.TypeFor[api.RulesTested]())}, handle: withBody((*call).testRules)},
		{method: "POST", path: one + "/replay", name: "replay-rule", tag: tagRules, summary: "Ask it about signals of the past of which it has no enforcement, once each",
			body: reflect.TypeFor[api.RuleReplay](), optional: true, answers: []answer{ok(reflect.TypeFor[api.RulePast]())}, handle: withBody((*call).replayRule)},
		{method: "POST", path: one + "/pause", name: "pause-rule", tag: tagRules, summary: "Let it start nothing until it is resumed",
			body: reflect.TypeFor[api.PauseRequest](), optional: true, answers: []answer{ok(typeRule)}, handle: withBody((*call).pauseRule)},
		{method: "POST", path: one + "/resume", name: "resume-rule", tag: tagRules, summary: "Let it start executions again, for the signals that come from now on",
			answers: []answer{ok(typeRule)}, handle: (*call).resumeRule},
		{method: "GET", path: "/api/v1/enforcements", name: "list-enforcements", tag: tagRules, summary: "List what rules have made of signals, those of the latest signals first",
			params: []param{
				{name: "rule", kind: "string", doc: "Of this rule"},
				{name: "state", kind: "string", doc: "In this state", choices: flow.EnforcementStates()},
				{name: "signal", kind: "string", doc: "Of this signal"},
				paramLimit, paramCursor,
			}, answers: []answer{ok(reflect.TypeFor[api.EnforcementPage](), mediaEvents)}, handle: (*call).enforcements},
		{method: "POST", path: "/api/v1/enforcements/{signal}/{rule}/retry", name: "retry-enforcement", tag: tagRules, summary: "Ask the rule in force once more about a signal of which it has started nothing because it failed or was refused",
			answers: []answer{ok(reflect.TypeFor[api.Enforcement]())}, handle: (*call).retryEnforcement},
	}
}

// pausing are the routes that pause and resume something.
func pausing(path, name, tag, what string, pause, resume func(*call) error) []route {
	done := []answer{ok(reflect.TypeFor[api.Pause]())}
	return []route{
		{method: "POST", path: path + "/pause", name: "pause-" + name, tag: tag, summary: "Let " + what + " until it is resumed, or for a while",
			body: reflect.TypeFor[api.PauseOrder](), optional: true, answers: done, handle: pause},
		{method: "POST", path: path + "/resume", name: "resume-" + name, tag: tag, summary: "Let it go on",
			body: reflect.TypeFor[api.ResumeOrder](), optional: true, answers: done, handle: resume},
	}
}

// pausingWork are the two for a queue, an action or a worker.
func pausingWork(path string, of store.PauseKind, what string) []route {
	return pausing(path, of.String(), tagCluster, what,
		withBody(func(c *call, in *api.PauseOrder) error { return c.pauseWork(of, in) }),
		withBody(func(c *call, in *api.ResumeOrder) error { return c.resumeWork(of, in) }))
}

func serverRoutes() []route {
	return slices.Concat(
		pausingWork("/api/v1/queues/{name}", store.PausedQueue, "no worker take anything from a queue"),
		pausingWork("/api/v1/actions/{name}", store.PausedAction, "no execution of an action or workflow begin"),
		pausingWork("/api/v1/workers/{name}", store.PausedWorker, "the workers of a name take nothing"),
		[]route{
			{method: "GET", path: "/api/v1/queues", name: "queues", tag: tagCluster, summary: "See the queues", params: []param{paramLimit, paramCursor},
				answers: []answer{ok(reflect.TypeFor[api.Queues]())}, handle: (*call).queues},
			{method: "GET", path: "/api/v1/pauses", name: "list-pauses", tag: tagCluster, summary: "List what is paused now, or what was paused and resumed",
				params:  []param{{name: "history", kind: "boolean", doc: "All that was paused and resumed, the latest first"}, paramLimit, paramCursor},
				answers: []answer{ok(reflect.TypeFor[api.PauseList]())}, handle: (*call).pauses},
			{method: "GET", path: "/api/v1/keys", name: "keys", tag: tagCluster, summary: "See the concurrency keys in use",
				params: []param{paramLimit}, answers: []answer{ok(reflect.TypeFor[api.Keys]())}, handle: (*call).keys},
			{method: "GET", path: "/api/v1/queues/{name}/line", name: "queue-line", tag: tagCluster, summary: "See which executions wait in a queue, in the order in which they go",
				params: lineParams, answers: []answer{ok(reflect.TypeFor[api.QueueLine]())}, handle: (*call).queueLine},
			{method: "GET", path: "/api/v1/keys:line", name: "key-line", tag: tagCluster, summary: "See which executions hold a concurrency key, and which wait for it, in the order in which they go",
				params: append([]param{{name: "key", kind: "string", required: true, doc: "The key"}}, lineParams...), answers: []answer{ok(reflect.TypeFor[api.KeyLine]())}, handle: (*call).keyLine},
			{method: "GET", path: "/api/v1/workers", name: "workers", tag: tagCluster, summary: "See the live workers",
				params:  []param{paramLimit, paramCursor, {name: "executions", kind: "boolean", doc: "With what each holds"}, {name: "lost", kind: "boolean", doc: "With the sessions that were lost lately"}},
				answers: []answer{ok(reflect.TypeFor[api.Workers]())}, handle: (*call).workers},
			{method: "GET", path: "/api/v1/stats", name: "stats", tag: tagCluster, summary: "See the server's totals",
				answers: []answer{ok(reflect.TypeFor[api.Stats]())}, handle: (*call).stats},
			{method: "GET", path: "/api/v1/activity", name: "activity", tag: tagCluster, summary: "See what this server has done lately, minute by minute, within the last day",
				params: []param{{name: "step", kind: "duration", doc: "How long each step is: whole minutes, 1m by default"},
					{name: "limit", kind: "integer", doc: "How many steps, 60 by default"}},
				answers: []answer{ok(reflect.TypeFor[api.Activity]())}, handle: (*call).activity},
			{method: "GET", path: verifyPath, name: "verify", tag: tagCluster, summary: "Check every row of the store against what Pawl promises",
				params: []param{{name: "replay", kind: "boolean", doc: "Also decide every history again by the rules"},
					{name: "last", kind: "boolean", doc: "Check nothing, and answer with this server's last result; 404 if it has not checked since it started"}},
				answers: []answer{ok(reflect.TypeFor[api.Verification]())}, handle: (*call).verify},
			{method: "GET", path: sessionPath, name: "get-session", tag: tagServer, summary: "Ask whether a browser has to log in",
				answers: []answer{ok(reflect.TypeFor[api.Session]())}, handle: (*call).session},
			{method: "POST", path: sessionPath, name: "log-in", tag: tagServer, summary: "Log a browser in: the answer sets a cookie that is good for 12 hours",
				body: reflect.TypeFor[api.Login](), answers: []answer{ok(reflect.TypeFor[api.Session]())}, handle: (*call).logIn},
			{method: "DELETE", path: sessionPath, name: "log-out", tag: tagServer, summary: "Log a browser out",
				answers: []answer{ok(reflect.TypeFor[api.Session]())}, handle: (*call).logOut},
			{method: "GET", path: "/healthz", name: "healthz", tag: tagServer, summary: "Ask whether the process is alive",
				answers: []answer{ok(reflect.TypeFor[api.Health]())}, handle: (*call).healthz},
			{method: "GET", path: "/readyz", name: "readyz", tag: tagServer, summary: "Ask whether the server is ready to take work",
				answers: []answer{ok(reflect.TypeFor[api.Health]())}, handle: (*call).readyz},
			{method: "GET", path: "/metrics", name: "metrics", tag: tagServer, summary: "Metrics for Prometheus",
				answers: []answer{ok(nil, "text/plain")}, handle: (*call).metricsPage},
			{method: "GET", path: "/openapi.json", name: "openapi", tag: tagServer, summary: "This document",
				answers: []answer{ok(nil, mediaOpenAPI)}, handle: (*call).openAPI},
		})
}
