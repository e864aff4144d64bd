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

	accepted = []answer{
		{http.StatusAccepted, "Accepted and stored durably", typeExecution, nil},
		{http.StatusOK, "The idempotency key was used before, or the execution ended during wait", typeExecution, nil},
	}
	ended = []answer{
		{http.StatusOK, "The execution has ended", typeExecution, nil},
		{http.StatusAccepted, "The worker was told to stop the execution", typeExecution, nil},
	}
)

func (s *Server) routes() []route {
	all := executionRoutes()
	all = append(all, evaluationRoutes()...)
	all = append(all, blobRoutes()...)
	all = append(all, definitionRoutes()...)
	all = append(all, scheduleRoutes()...)
	all = append(all, pausing("/api/v1/executions/{id}", "execution", tagExecutions,
		"a workflow: it starts no more tasks",
		ofNamed((*call).execution, (*call).pauseExecution), ofNamed((*call).execution, (*call).resumeExecution))...)
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
		{name: "action", kind: "string", doc: "Executions of this action"},
		{name: "workflow", kind: "string", doc: "Tasks of this workflow execution"},
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
			summary: "Submit up to 10,000 executions; each is accepted or refused by itself",
			headers: []string{"Idempotency-Key", "Pawl-Chain", "traceparent"},
			body:    reflect.TypeFor[api.Batch](), answers: []answer{ok(reflect.TypeFor[api.BatchResult]())},
			handle: withBody((*call).submitBatch)},
		{method: "POST", path: "/api/v1/executions:validate", name: "check-submission", tag: tagExecutions,
			summary: "Check a submission and report all its errors, without running it",
			body:    reflect.TypeFor[api.Submission](), answers: []answer{ok(reflect.TypeFor[api.SubmissionCheck]())},
			handle: (*call).checkSubmission},
		{method: "GET", path: "/api/v1/executions", name: "list-executions", tag: tagExecutions,
			summary: "List executions, newest first; as a stream, get a message when the list may have changed",
			params:  slices.Concat(listParams, idParams, []param{paramWhere, paramOutputs, paramCases, paramDigest, paramAll, paramLimit, paramCursor}),
			answers: []answer{ok(reflect.TypeFor[api.ExecutionPage](), mediaEvents)}, handle: (*call).listExecutions},
		{method: "GET", path: "/api/v1/executions:count", name: "count-executions", tag: tagExecutions, summary: "Count executions with a label, by status and verdict",
			params: append(requiring("label", listParams), paramAll), answers: []answer{ok(reflect.TypeFor[api.Counts]())}, handle: (*call).countExecutions},
		{method: "GET", path: "/api/v1/executions:outcomes", name: "execution-outcomes", tag: tagExecutions,
			summary: "Stream the executions with a label as they end, until all have ended",
			params:  outcomeParams, headers: []string{"Last-Event-ID"}, answers: []answer{ok(nil, mediaLines, mediaEvents)},
			handle: (*call).executionOutcomes},
		{method: "GET", path: "/api/v1/executions:export", name: "export-executions", tag: tagExecutions,
			summary: "Export ended executions as an archive, with tasks, histories, logs, blobs and definitions",
			params: append([]param{{name: "id", kind: "string", repeat: true,
				doc: "Executions to export, at most 1,000; if absent, the filters select"},
				paramRerunOf, paramRetryOf, {name: "action", kind: "string", doc: "Executions of this action"}},
				paramStatus, paramLabel, paramVerdict, paramSince, paramUntil),
			answers: []answer{ok(nil, mediaTar)}, handle: (*call).exportExecutions},
		{method: "GET", path: one, name: "get-execution", tag: tagExecutions, summary: "Get one execution",
			params: []param{paramWait}, headers: []string{"If-None-Match"},
			answers: []answer{ok(typeExecution), {http.StatusNotModified, "Not changed since the ETag in If-None-Match", nil, nil}},
			handle:  (*call).getExecution},
		{method: "GET", path: one + "/result", name: "get-result", tag: tagExecutions, summary: "Get its result",
			params: []param{paramWait}, answers: []answer{ok(reflect.TypeFor[api.Result]())}, handle: (*call).result},
		{method: "GET", path: one + "/events", name: "events", tag: tagExecutions, summary: "Read or follow its history",
			params: []param{paramAfter, paramLimit}, headers: []string{"Last-Event-ID"},
			answers: []answer{ok(reflect.TypeFor[api.EventPage](), "text/event-stream")}, handle: (*call).events},
		{method: "GET", path: one + "/logs", name: "logs", tag: tagExecutions, summary: "Read or follow its logs",
			params: logParams, headers: []string{"Last-Event-ID"},
			answers: []answer{ok(reflect.TypeFor[api.LogPage](), "text/event-stream", "text/plain")}, handle: (*call).logs},
		{method: "GET", path: one + "/logs/summary", name: "sum-logs", tag: tagExecutions,
			summary: "Get the number of bytes written, by attempt and stream",
			params:  []param{{name: "attempt", kind: "integer", doc: "Only this attempt"}},
			answers: []answer{ok(reflect.TypeFor[api.LogSummary]())}, handle: (*call).logSummary},
		{method: "GET", path: one + "/logs/search", name: "search-logs", tag: tagExecutions,
			summary: "Search the logs for lines; one call searches for about a second",
			params:  searchParams, answers: []answer{ok(reflect.TypeFor[api.LogMatches]())}, handle: (*call).searchLogs},
		{method: "GET", path: one + "/tasks", name: "tasks", tag: tagExecutions, summary: "Get or follow the tasks of a workflow",
			params: []param{paramItems, {name: "changes", kind: "boolean",
				doc: "Streams only: messages after the first contain only changed tasks"}},
			answers: []answer{ok(reflect.TypeFor[api.Tasks](), "text/event-stream")}, handle: (*call).tasks},
		{method: "GET", path: one + "/tasks/{task}/items", name: "task-items", tag: tagExecutions,
			summary: "List the executions of one workflow task by index, in a compact form",
			params: []param{paramStatus, {name: "limit", kind: "integer",
				doc: "Items per page, 1 to 10,000, default 1,000; a page examines at most 20,000"}, paramCursor},
			answers: []answer{ok(reflect.TypeFor[api.TaskItems]())}, handle: (*call).items},
		{method: "GET", path: one + "/stream", name: "stream", tag: tagExecutions,
			summary: "Follow tasks, history and logs on one connection",
			params: []param{{name: "of", kind: "string", doc: "Parts of the stream, for example tasks,events,logs; default: all"},
				paramItems, {name: "stream", kind: "string", doc: "Logs of this stream only", choices: streams},
				{name: "attempt", kind: "integer", doc: "Logs of this attempt only"}, paramTail, paramSkip, paramAfter},
			headers: []string{"Last-Event-ID"}, answers: []answer{ok(nil, mediaEvents)}, handle: (*call).stream},
		{method: "GET", path: one + "/timeline", name: "timeline", tag: tagExecutions,
			summary: "Get when each attempt waited and ran, and on which worker; for a workflow, also its tasks",
			params: []param{{name: "limit", kind: "integer",
				doc: "Executions per page, 1 to 1000, default 200; a page also ends after half a second of reading"}, paramCursor},
			answers: []answer{ok(reflect.TypeFor[api.Timeline]())}, handle: (*call).timeline},
		{method: "GET", path: one + "/files/{file...}", name: "file", tag: tagExecutions,
			summary: "Get a file that the execution returned, by its path in the output",
			answers: []answer{ok(nil, mediaFile)}, handle: (*call).file},
		{method: "GET", path: one + "/attempts/{attempt}", name: "attempt", tag: tagExecutions,
			summary: "Get what the worker received for an attempt, and how the attempt ended",
			answers: []answer{ok(reflect.TypeFor[api.Attempt]())}, handle: (*call).attempt},
		{method: "GET", path: one + "/given/{blob...}", name: "given", tag: tagExecutions,
			summary: "Get a blob that the input refers to, by its name",
			params:  []param{{name: "offset", kind: "integer", doc: "First byte to return"}}, answers: []answer{ok(nil, mediaFile)},
			handle: (*call).inputBlob},
		{method: "GET", path: one + "/why", name: "why", tag: tagExecutions, summary: "Explain what the execution is waiting for",
			answers: []answer{ok(reflect.TypeFor[api.Why]())}, handle: (*call).why},
		{method: "POST", path: "/api/v1/executions:why", name: "why-many", tag: tagExecutions,
			summary: "Explain what each of up to 100 executions is waiting for",
			body:    reflect.TypeFor[api.WhyRequest](), answers: []answer{ok(reflect.TypeFor[api.WhyResult]())},
			handle: withBody((*call).whyMany)},
		{method: "POST", path: one + "/cancel", name: "cancel", tag: tagExecutions,
			summary: "Cancel the execution; a second cancel also ends a workflow's clean-up",
			params:  []param{paramWait}, headers: []string{"Idempotency-Key"},
			body: reflect.TypeFor[api.CancelRequest](), optional: true, answers: ended, handle: (*call).cancel},
		{method: "POST", path: one + "/kill", name: "kill", tag: tagExecutions,
			summary: "Kill the execution without clean-up; it is cancelled once nothing of it runs",
			params:  []param{paramWait}, body: reflect.TypeFor[api.CancelRequest](), optional: true, answers: ended, handle: (*call).kill},
		{method: "GET", path: one + "/stdin", aliases: stdinAliases, name: "get-stdin", tag: tagExecutions,
			summary: "Get how many bytes of stdin an interactive evaluation has received",
			answers: []answer{ok(typeStdin)}, handle: (*call).stdin},
		{method: "GET", path: one + "/stdin/bytes", name: "read-stdin", tag: tagExecutions,
			summary: "Read the stdin that an interactive evaluation has received",
			answers: []answer{ok(nil, mediaFile)}, handle: (*call).typed},
		{method: "POST", path: one + "/stdin", aliases: stdinAliases, name: "send-stdin", tag: tagExecutions, summary: "Send stdin to an interactive evaluation while it runs",
			params: stdinParams, raw: true, answers: []answer{ok(typeStdin)}, handle: (*call).feed},
		{method: "POST", path: one + "/retry", name: "retry", tag: tagExecutions,
			summary: "Submit the request of a finished execution again",
			headers: []string{"Idempotency-Key"}, answers: []answer{{http.StatusAccepted, "The new execution", typeExecution, nil},
				{http.StatusOK, "The idempotency key was used before for the same call", typeExecution, nil}}, handle: (*call).retry},
		{method: "POST", path: one + "/rerun", name: "rerun", tag: tagExecutions,
			summary: "Rerun a finished execution; of a workflow, only failed tasks and those after them",
			headers: []string{"Idempotency-Key"}, body: reflect.TypeFor[api.RerunRequest](), optional: true, answers: []answer{{http.StatusAccepted, "The new execution", typeExecution, nil},
				{http.StatusOK, "The idempotency key was used before for the same call", typeExecution, nil}},
			handle: ofNamed((*call).execution, (*call).rerun)},
		{method: "POST", path: one + "/rerun/plan", name: "plan-rerun", tag: tagExecutions,
			summary: "Plan a rerun: what would be reused, what would run, and why; nothing runs",
			body:    reflect.TypeFor[api.RerunRequest](), optional: true, answers: []answer{ok(reflect.TypeFor[api.RerunPlan]())},
			handle: ofNamed((*call).execution, (*call).planRerun)},
		{method: "GET", path: one + "/replay", name: "replay", tag: tagExecutions,
			summary: "Replay the history by the rules of the engine and report differences; nothing is changed",
			params:  []param{{name: "at", kind: "integer", doc: "Replay up to the event with this number; default: all events"}},
			answers: []answer{ok(reflect.TypeFor[api.Replay]())}, handle: (*call).replay},
		{method: "POST", path: one + "/replay", name: "compare-replay", tag: tagExecutions,
			summary: "Compare a run of a workflow with another definition: which decisions would differ; nothing runs",
			body:    reflect.TypeFor[api.ReplayRequest](), answers: []answer{ok(reflect.TypeFor[api.ReplayComparison]())},
			handle: ofNamed((*call).execution, (*call).compareReplay)},
		{method: "POST", path: "/api/v1/executions:cancel", name: "cancel-many", tag: tagExecutions,
			summary: "Cancel up to 1,000 executions: those listed, or the newest unfinished ones that match",
			params:  bulkParams, headers: []string{"Idempotency-Key"},
			body: reflect.TypeFor[api.BulkRequest](), optional: true, answers: []answer{ok(reflect.TypeFor[api.BulkResult]())}, handle: withBody((*call).cancelMany)},
		{method: "POST", path: "/api/v1/executions:retry", name: "retry-many", tag: tagExecutions,
			summary: "Retry up to 1,000 finished executions: those listed, or the newest matching ones that did not complete",
			params:  bulkParams, headers: []string{"Idempotency-Key"},
			body: reflect.TypeFor[api.BulkRequest](), optional: true, answers: []answer{ok(reflect.TypeFor[api.BulkResult]())}, handle: withBody((*call).retryMany)},
	}
}

func evaluationRoutes() []route {
	const one, short = "/api/v1/evaluations/{id}", "/api/eval/{id}"
	selectParams := []param{paramStatus, paramVerdict, paramLabel, paramSince, paramUntil}
	return []route{
		{method: "POST", path: "/api/v1/evaluations", aliases: []string{"/api/eval"}, name: "evaluate", tag: tagEvaluations,
			summary: "Run a program", headers: []string{"Idempotency-Key", "Pawl-Chain", "traceparent"},
			params: []param{paramWait}, body: reflect.TypeFor[api.Evaluation](), answers: accepted, handle: (*call).evaluate},
		{method: "GET", path: "/api/v1/evaluations", aliases: []string{"/api/evaluations"}, name: "list-evaluations", tag: tagEvaluations,
			summary: "List evaluations, newest first; as a stream, get a message when the list may have changed",
			params:  slices.Concat(selectParams, idParams, []param{paramWhere, paramOutputs, paramCases, paramDigest, paramAll, paramLimit, paramCursor}),
			answers: []answer{ok(reflect.TypeFor[api.ExecutionPage](), mediaEvents)}, handle: (*call).listEvaluations},
		{method: "POST", path: "/api/v1/evaluations:validate", name: "check-evaluation", tag: tagEvaluations,
			summary: "Check an evaluation and report all its errors, without running it",
			body:    reflect.TypeFor[api.Evaluation](), answers: []answer{ok(reflect.TypeFor[api.SubmissionCheck]())},
			handle: (*call).checkEvaluation},
		{method: "POST", path: "/api/v1/evaluations:batch", name: "evaluate-batch", tag: tagEvaluations,
			summary: "Run up to 10,000 programs; each is accepted or refused by itself",
			headers: []string{"Idempotency-Key", "Pawl-Chain", "traceparent"},
			body:    reflect.TypeFor[api.EvaluationBatch](), answers: []answer{ok(reflect.TypeFor[api.BatchResult]())},
			handle: (*call).evaluateBatch},
		{method: "GET", path: "/api/v1/evaluations:count", name: "count-evaluations", tag: tagEvaluations, summary: "Count evaluations with a label, by status and verdict",
			params: append(requiring("label", selectParams), paramAll), answers: []answer{ok(reflect.TypeFor[api.Counts]())}, handle: (*call).countEvaluations},
		{method: "GET", path: "/api/v1/evaluations:scores", name: "score-evaluations", tag: tagEvaluations,
			summary: "Accuracy and pass@k of evaluations with a label, by the values of other labels",
			params:  scoreParams, answers: []answer{ok(reflect.TypeFor[api.Scores]())}, handle: (*call).scores},
		{method: "GET", path: "/api/v1/evaluations:outcomes", name: "evaluation-outcomes", tag: tagEvaluations,
			summary: "Stream the evaluations with a label as they end, until all have ended",
			params:  outcomeParams, headers: []string{"Last-Event-ID"}, answers: []answer{ok(nil, mediaLines, mediaEvents)},
			handle: (*call).evaluationOutcomes},
		{method: "GET", path: one, aliases: []string{short}, name: "get-evaluation", tag: tagEvaluations, summary: "Get one evaluation",
			params: []param{paramWait}, headers: []string{"If-None-Match"},
			answers: []answer{ok(typeExecution), {http.StatusNotModified, "Not changed since the ETag in If-None-Match", nil, nil}},
			handle:  evaluation((*call).getExecution)},
		{method: "GET", path: one + "/result", aliases: []string{short + "/result"}, name: "evaluation-result", tag: tagEvaluations, summary: "Get its result",
			params: []param{paramWait}, answers: []answer{ok(reflect.TypeFor[api.Result]())}, handle: evaluation((*call).result)},
		{method: "GET", path: one + "/logs", aliases: []string{short + "/logs"}, name: "evaluation-logs", tag: tagEvaluations,
			summary: "Read or follow its logs", params: logParams, headers: []string{"Last-Event-ID"},
			answers: []answer{ok(reflect.TypeFor[api.LogPage](), "text/event-stream", "text/plain")}, handle: evaluation((*call).logs)},
		{method: "POST", path: one + "/kill", aliases: []string{short + "/kill"}, name: "kill-evaluation", tag: tagEvaluations,
			summary: "Kill the evaluation; it is cancelled once nothing of it runs", params: []param{paramWait},
			body: reflect.TypeFor[api.CancelRequest](), optional: true, answers: ended, handle: evaluation((*call).kill)},
		{method: "GET", path: one + "/running", aliases: []string{short + "/running"}, name: "evaluation-running", tag: tagEvaluations,
			summary: "Ask whether it has ended", answers: []answer{ok(reflect.TypeFor[api.RunningState]())},
			handle: evaluation((*call).running)},
	}
}

func blobRoutes() []route {
	const one = "/api/v1/blobs/{blob}"
	typeBlob := reflect.TypeFor[api.Blob]()
	return []route{
		{method: "PUT", path: one, name: "upload", tag: tagBlobs, summary: "Upload content that submissions then refer to by its SHA-256",
			raw: true,
			answers: []answer{{http.StatusCreated, "Stored; kept for a day, and as long as an execution refers to it", typeBlob, nil},
				{http.StatusOK, "Stored already; kept for another day", typeBlob, nil}}, handle: (*call).upload},
		{method: "HEAD", path: one, name: "uploaded", tag: tagBlobs, summary: "Ask whether a blob is stored",
			answers: []answer{{http.StatusOK, "The blob is stored; Content-Length is its size", nil, []string{mediaFile}}},
			handle:  (*call).head},
	}
}

func definitionRoutes() []route {
	file := []param{{name: "file", kind: "string", doc: "Name of the document, for error messages"}}
	return []route{
		{method: "POST", path: "/api/v1/definitions", name: "define", tag: tagDefinitions, summary: "Register definitions, all of them or none",
			params: append(slices.Clip(file), param{name: "alias", kind: "string",
				doc: "Alias to move to the registered versions; the name without @ keeps its version"},
				param{name: "by", kind: "string", doc: "Who moves the alias, for the history"}),
			document: true, answers: []answer{ok(reflect.TypeFor[api.Defined]())}, handle: (*call).define},
		{method: "POST", path: "/api/v1/definitions:validate", name: "validate", tag: tagDefinitions,
			summary: "Check definitions without storing them",
			params:  file, document: true, answers: []answer{ok(reflect.TypeFor[api.Validation]())}, handle: (*call).validate},
		{method: "GET", path: "/api/v1/definitions", name: "list-definitions", tag: tagDefinitions,
			summary: "List the latest version of each definition, by name",
			params:  []param{paramLimit, paramCursor}, answers: []answer{ok(reflect.TypeFor[api.DefinitionPage]())},
			handle: (*call).definitions},
		{method: "GET", path: "/api/v1/definitions/{name}", name: "get-definition", tag: tagDefinitions, summary: "Get one definition",
			params:  []param{{name: "version", kind: "integer", doc: "Version; default: the latest"}},
			answers: []answer{ok(reflect.TypeFor[api.Definition]())}, handle: (*call).definition},
		{method: "GET", path: "/api/v1/definitions/{name}/versions", name: "list-versions", tag: tagDefinitions, summary: "List the versions of a definition, newest first, without their documents",
			params: []param{paramLimit, paramCursor}, answers: []answer{ok(reflect.TypeFor[api.DefinitionPage]())}, handle: (*call).versions},
		{method: "POST", path: "/api/v1/definitions/{name}/retire", name: "retire", tag: tagDefinitions,
			summary: "Retire a definition, so that new submissions are refused, or bring it back",
			body:    reflect.TypeFor[api.RetireOrder](), answers: []answer{ok(reflect.TypeFor[api.Definition]())}, handle: (*call).retire},
		{method: "GET", path: "/api/v1/definitions/{name}/aliases", name: "list-aliases", tag: tagDefinitions,
			summary: "List the aliases of a definition and their versions",
			answers: []answer{ok(reflect.TypeFor[api.AliasPage]())}, handle: (*call).aliases},
		{method: "GET", path: "/api/v1/definitions/{name}/aliases/{alias}", name: "list-moves", tag: tagDefinitions,
			summary: "List the moves of an alias, newest first",
			params:  []param{paramLimit, paramCursor}, answers: []answer{ok(reflect.TypeFor[api.AliasPage]())}, handle: (*call).aliasMoves},
		{method: "PUT", path: "/api/v1/definitions/{name}/aliases/{alias}", name: "move-alias", tag: tagDefinitions,
			summary: "Move an alias to other versions, or remove it",
			body:    reflect.TypeFor[api.AliasOrder](), answers: []answer{ok(reflect.TypeFor[api.Alias]())},
			handle: withBody((*call).moveAlias)},
		{method: "GET", path: "/api/v1/definitions/{name}/graph", name: "get-graph", tag: tagDefinitions, summary: "Get the tasks of a workflow laid out as a graph",
			params: []param{{name: "version", kind: "integer",
				doc: "Version; default: the latest. Answers for a given version never change"},
				{name: "since", kind: "integer",
					doc: "Older version to compare with: the graph then marks what was added, changed and removed"}},
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
		{method: "POST", path: "/api/v1/schedules:preview", name: "preview-schedules", tag: tagSchedules,
			summary: "Preview the next times of schedules and the effect of clock changes; nothing is stored",
			params: []param{{name: "file", kind: "string", doc: "Name of the document, for error messages"}, {name: "from", kind: "string",
				doc: "Times after this one (RFC 3339); default: now"},
				{name: "count", kind: "integer", doc: "Number of times, 1 to 1000; default 10"}},
			document: true, answers: []answer{ok(reflect.TypeFor[api.SchedulePreviews]())}, handle: (*call).previewSchedules},
		{method: "GET", path: one + "/why", name: "why-schedule", tag: tagSchedules,
			summary: "Explain the state of a schedule, its last times, and what would let it continue",
			answers: []answer{ok(reflect.TypeFor[api.ScheduleWhy]())}, handle: (*call).whySchedule},
		{method: "GET", path: one + "/ticks", name: "ticks", tag: tagSchedules, summary: "List past times and their results, newest first",
			params: []param{paramLimit, paramCursor}, answers: []answer{ok(reflect.TypeFor[api.TickPage]())}, handle: (*call).ticks},
		{method: "POST", path: one + "/pause", name: "pause-schedule", tag: tagSchedules, summary: "Pause a schedule until it is resumed",
			body: reflect.TypeFor[api.PauseRequest](), optional: true, answers: []answer{ok(typeSchedule)}, handle: withBody((*call).pauseSchedule)},
		{method: "POST", path: one + "/resume", name: "resume-schedule", tag: tagSchedules, summary: "Resume a schedule",
			body: reflect.TypeFor[api.ResumeRequest](), optional: true, answers: []answer{ok(typeSchedule)}, handle: withBody((*call).resumeSchedule)},
		{method: "POST", path: one + "/backfill", name: "backfill-schedule", tag: tagSchedules,
			summary: "Start executions for past times, once each; up to 100 per request",
			body:    reflect.TypeFor[api.BackfillRequest](), answers: []answer{ok(reflect.TypeFor[api.Backfilled]())},
			handle: withBody((*call).backfillSchedule)},
		{method: "POST", path: one + "/fire", name: "fire-schedule", tag: tagSchedules, summary: "Start an execution now, as a tick would",
			answers: []answer{{http.StatusAccepted, "Accepted and stored durably", reflect.TypeFor[api.FiredSchedule](), nil}},
			handle:  (*call).fireSchedule},
	}
}

func signalRoutes() []route {
	typeEmitted := reflect.TypeFor[api.Emitted]()
	return []route{
		{method: "POST", path: "/api/v1/signals", name: "emit", tag: tagSignals, headers: []string{engine.ChainHeader},
			summary: "Emit a signal",
			body:    reflect.TypeFor[api.Emission](),
			answers: []answer{{http.StatusAccepted, "Accepted and stored durably", typeEmitted, nil},
				{http.StatusOK, "The same signal was emitted before with this trigger and key", typeEmitted, nil}},
			handle: withBody((*call).emit)},
		{method: "POST", path: "/api/v1/executions/{id}/signals", name: "emit-to", tag: tagSignals, headers: []string{engine.ChainHeader},
			summary: "Emit a signal to an unfinished execution, whose tasks may wait for it",
			body:    reflect.TypeFor[api.Emission](),
			answers: []answer{{http.StatusAccepted, "Accepted and stored durably", typeEmitted, nil},
				{http.StatusOK, "The same signal was emitted before with this trigger and key", typeEmitted, nil}},
			handle: ofNamed((*call).execution, (*call).emitTo)},
		{method: "POST", path: "/api/v1/signals:batch", name: "emit-batch", tag: tagSignals, headers: []string{engine.ChainHeader},
			summary: "Emit up to 10,000 signals; each is accepted or refused by itself",
			body:    reflect.TypeFor[api.EmissionBatch](), answers: []answer{ok(reflect.TypeFor[api.BatchResult]())},
			handle: withBody((*call).emitBatch)},
		{method: "GET", path: "/api/v1/signals", name: "list-signals", tag: tagSignals, summary: "List signals, newest first",
			params: []param{
				{name: "trigger", kind: "string", doc: "Signals of this trigger"},
				{name: "subject", kind: "string", doc: "Signals with this subject"},
				{name: "source", kind: "string", doc: "Signals from this source, for example api"},
				{name: "since", kind: "string", doc: "Accepted at or after this time (RFC 3339)"},
				paramLimit, paramCursor,
			}, answers: []answer{ok(reflect.TypeFor[api.SignalPage](), mediaEvents)}, handle: (*call).signals},
		{method: "GET", path: "/api/v1/signals/{id}", name: "get-signal", tag: tagSignals, summary: "Get one signal",
			answers: []answer{ok(reflect.TypeFor[api.Signal]())}, handle: (*call).signal},
		{method: "GET", path: "/api/v1/signals/{id}/why", name: "signal-why", tag: tagSignals,
			summary: "Explain why rules did or did not start something for the signal",
			params:  []param{{name: "rule", kind: "string", doc: "Only this rule, even if it listens to other triggers"}},
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
		{method: "GET", path: one + "/why", name: "rule-why", tag: tagRules,
			summary: "Explain the state of a rule and its decisions on the latest signals",
			answers: []answer{ok(reflect.TypeFor[api.RuleState]())}, handle: (*call).ruleWhy},
		{method: "POST", path: "/api/v1/rules:test", name: "test-rules", tag: tagRules,
			summary: "Test rules on past signals; nothing is started",
			body:    reflect.TypeFor[api.RulesTest](), answers: []answer{ok(reflect.TypeFor[api.RulesTested]())},
			handle: withBody((*call).testRules)},
		{method: "POST", path: one + "/replay", name: "replay-rule", tag: tagRules,
			summary: "Run a rule on past signals that it has not processed, once each",
			body:    reflect.TypeFor[api.RuleReplay](), optional: true, answers: []answer{ok(reflect.TypeFor[api.RulePast]())},
			handle: withBody((*call).replayRule)},
		{method: "POST", path: one + "/pause", name: "pause-rule", tag: tagRules,
			summary: "Pause a rule: it starts nothing until it is resumed",
			body:    reflect.TypeFor[api.PauseRequest](), optional: true, answers: []answer{ok(typeRule)},
			handle: withBody((*call).pauseRule)},
		{method: "POST", path: one + "/resume", name: "resume-rule", tag: tagRules,
			summary: "Resume a rule for signals that come from now on",
			answers: []answer{ok(typeRule)}, handle: (*call).resumeRule},
		{method: "GET", path: "/api/v1/enforcements", name: "list-enforcements", tag: tagRules,
			summary: "List the decisions of rules on signals, newest signals first",
			params: []param{
				{name: "rule", kind: "string", doc: "Decisions of this rule"},
				{name: "state", kind: "string", doc: "Decisions in this state", choices: flow.EnforcementStates()},
				{name: "signal", kind: "string", doc: "Decisions on this signal"},
				paramLimit, paramCursor,
			}, answers: []answer{ok(reflect.TypeFor[api.EnforcementPage](), mediaEvents)}, handle: (*call).enforcements},
		{method: "POST", path: "/api/v1/enforcements/{signal}/{rule}/retry", name: "retry-enforcement", tag: tagRules,
			summary: "Run the rule again on a signal that failed or was refused",
			answers: []answer{ok(reflect.TypeFor[api.Enforcement]())}, handle: (*call).retryEnforcement},
	}
}

func pausing(path, name, tag, what string, pause, resume func(*call) error) []route {
	done := []answer{ok(reflect.TypeFor[api.Pause]())}
	return []route{
		{method: "POST", path: path + "/pause", name: "pause-" + name, tag: tag,
			summary: "Pause " + what + ", until resumed or for a given time",
			body:    reflect.TypeFor[api.PauseOrder](), optional: true, answers: done, handle: pause},
		{method: "POST", path: path + "/resume", name: "resume-" + name, tag: tag, summary: "Resume it: the " + name + " continues",
			body: reflect.TypeFor[api.ResumeOrder](), optional: true, answers: done, handle: resume},
	}
}

// pausingWork returns the two routes for a queue, an action or a worker.
func pausingWork(path string, of store.PauseKind, what string) []route {
	return pausing(path, of.String(), tagCluster, what,
		withBody(func(c *call, in *api.PauseOrder) error { return c.pauseWork(of, in) }),
		withBody(func(c *call, in *api.ResumeOrder) error { return c.resumeWork(of, in) }))
}

func serverRoutes() []route {
	return slices.Concat(
		pausingWork("/api/v1/queues/{name}", store.PausedQueue, "a queue: workers take nothing from it"),
		pausingWork("/api/v1/actions/{name}", store.PausedAction, "an action or workflow: no execution of it begins"),
		pausingWork("/api/v1/workers/{name}", store.PausedWorker, "the workers with a name: they take nothing"),
		[]route{
			{method: "GET", path: "/api/v1/queues", name: "queues", tag: tagCluster, summary: "List queues", params: []param{paramLimit,
				paramCursor},
				answers: []answer{ok(reflect.TypeFor[api.Queues]())}, handle: (*call).queues},
			{method: "GET", path: "/api/v1/pauses", name: "list-pauses", tag: tagCluster, summary: "List what is paused now, or what was paused and resumed",
				params: []param{{name: "history", kind: "boolean", doc: "Return the history of pauses and resumes instead, newest first"},
					paramLimit, paramCursor},
				answers: []answer{ok(reflect.TypeFor[api.PauseList]())}, handle: (*call).pauses},
			{method: "GET", path: "/api/v1/keys", name: "keys", tag: tagCluster, summary: "List the concurrency keys in use",
				params: []param{paramLimit}, answers: []answer{ok(reflect.TypeFor[api.Keys]())}, handle: (*call).keys},
			{method: "GET", path: "/api/v1/queues/{name}/line", name: "queue-line", tag: tagCluster,
				summary: "List the executions that wait in a queue, in order",
				params:  lineParams, answers: []answer{ok(reflect.TypeFor[api.QueueLine]())}, handle: (*call).queueLine},
			{method: "GET", path: "/api/v1/keys:line", name: "key-line", tag: tagCluster,
				summary: "List the executions that hold a concurrency key, and those that wait for it, in order",
				params:  append([]param{{name: "key", kind: "string", required: true, doc: "The key"}}, lineParams...),
				answers: []answer{ok(reflect.TypeFor[api.KeyLine]())}, handle: (*call).keyLine},
			{method: "GET", path: "/api/v1/workers", name: "workers", tag: tagCluster, summary: "List live workers",
				params: []param{paramLimit, paramCursor, {name: "executions", kind: "boolean",
					doc: "Include the executions that each worker holds"}, {name: "lost", kind: "boolean",
					doc: "Include sessions that were lost recently"}},
				answers: []answer{ok(reflect.TypeFor[api.Workers]())}, handle: (*call).workers},
			{method: "GET", path: "/api/v1/stats", name: "stats", tag: tagCluster, summary: "Get totals of the server",
				answers: []answer{ok(reflect.TypeFor[api.Stats]())}, handle: (*call).stats},
			{method: "GET", path: "/api/v1/activity", name: "activity", tag: tagCluster,
				summary: "Get what this server did, minute by minute, within the last day",
				params: []param{{name: "step", kind: "duration", doc: "Length of a step in whole minutes; default 1m"},
					{name: "limit", kind: "integer", doc: "Number of steps; default 60"}},
				answers: []answer{ok(reflect.TypeFor[api.Activity]())}, handle: (*call).activity},
			{method: "GET", path: verifyPath, name: "verify", tag: tagCluster,
				summary: "Check every row of the store against the documented invariants",
				params: []param{{name: "replay", kind: "boolean", doc: "Also replay every history"},
					{name: "last", kind: "boolean",
						doc: "Return this server's last result instead of checking; 404 if there is none since its start"}},
				answers: []answer{ok(reflect.TypeFor[api.Verification]())}, handle: (*call).verify},
			{method: "GET", path: sessionPath, name: "get-session", tag: tagServer, summary: "Ask whether a browser has to log in",
				answers: []answer{ok(reflect.TypeFor[api.Session]())}, handle: (*call).session},
			{method: "POST", path: sessionPath, name: "log-in", tag: tagServer,
				summary: "Log a browser in: sets a cookie that is valid for 12 hours",
				body:    reflect.TypeFor[api.Login](), answers: []answer{ok(reflect.TypeFor[api.Session]())}, handle: (*call).logIn},
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
