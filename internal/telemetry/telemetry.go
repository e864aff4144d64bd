// Package telemetry holds the names in Pawl's telemetry (keys of log lines, spans, metrics), and the thin types for spans and
// distributions. Logs, traces and metrics use the same word for the same thing. Package otlp decides where spans go.
package telemetry

// Keys of log lines and of spans' attributes. An execution's id is in every log line about a fault of it; it is never a
// label of a metric.
const (
	Execution  = "execution"
	Executions = "executions" // the first few of a batch
	Attempt    = "attempt"
	Workflow   = "workflow" // the parent's id
	Task       = "task"     // name of the workflow's task
	Index      = "index"    // of the task's item
	Action     = "action"
	Kind       = "kind"
	Queue      = "queue"
	Queues     = "queues"
	Slots      = "slots"
	Session    = "session"
	Worker     = "worker" // name, for people
	Verdict    = "verdict"
	Why        = "why"
	Runtime    = "runtime"
	Requests   = "requests"
	Reports    = "reports"
	Missed     = "missed"   // ticks, how many
	Schedule   = "schedule" // its name
	Document   = "document" // the name of a definition
	Signal     = "signal"
	Webhook    = "webhook"     // its name
	Row        = "row"         // id of a signal, or of an execution that waits for one
	Lost       = "lost"        // how many
	HandedBack = "handed_back" // how many
	RequestID  = "request_id"
	Method     = "method"
	Path       = "path"
	Err        = "err"
	Panic      = "panic"
	Stack      = "stack"
	Outcome    = "outcome"
	Code       = "code"
	Invariant  = "invariant"
	Remote     = "remote" // address of a caller
	Status     = "status"
	From       = "from"  // the server that wrote an archive
	Count      = "count" // of executions
)

// Names of spans. The spans of one execution are in the trace of the request that submitted it: the submission, and beneath it, for each
// attempt, the wait in the queue and the attempt, which contains the handler's run and the report of the end.
const (
	SpanSubmit  = "pawl.submit"  // server: from the request to the commit that makes it durable
	SpanQueue   = "pawl.queue"   // server: from the moment an attempt was due to its hand-off
	SpanAttempt = "pawl.attempt" // worker: from the hand-off to the acknowledged end
	SpanRun     = "pawl.run"     // worker: the handler
	SpanRuntime = "pawl.runtime" // worker: the program in its runtime
	SpanReport  = "pawl.report"  // worker: from the end to its acknowledgement, that is, the engine's commit
)

const MetricPrefix = "pawl_"

// attributePrefix is the prefix of a span's attributes: pawl.execution, pawl.queue.
const attributePrefix = "pawl."
