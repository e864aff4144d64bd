package flow

import (
	"slices"
	"time"
)

// Kind is what runs an execution: a built-in kind, or else the name of a custom handler.
type Kind string

const (
	KindCode      Kind = "code"
	KindContainer Kind = "container"
	KindHTTP      Kind = "http"
	KindLLM       Kind = "llm"
	KindWebhook   Kind = "webhook"
	KindInput     Kind = "input"
	KindOutput    Kind = "output"
	KindWorkflow  Kind = "workflow"
	KindSleep     Kind = "sleep"
	KindAsk       Kind = "ask"
	KindWait      Kind = "wait"
	KindNoop      Kind = "noop"
)

// builtIn is what the engine, the routing keys and the definitions know of a built-in kind. Its payload is in package payload, its handler
// in package task.
type builtIn struct {
	kind Kind
	// everywhere: every worker with built-in kinds runs it; it needs no runtime that only some workers have. A container needs one, named in
	// its routing key.
	everywhere bool
	// byEngine: the engine runs it itself, and workers never get it.
	byEngine bool
	// notCacheable: its outcome depends on the time, and is not kept for others.
	notCacheable bool
	// runsCode: it runs a program, which has an environment and files from the blob store.
	runsCode bool
	// retry is the policy of executions without another one.
	retry Retry
}

// deliveries is for receivers that are down for a day of a weekend: 10 attempts, 5, 10, 20 … minutes apart, over 34 to 43 hours.
var deliveries = Retry{MaxAttempts: 10, Delay: 5 * time.Minute, MaxDelay: 24 * time.Hour, Jitter: 0.2}

// builtIns are in the order in which messages and documents list them.
var builtIns = []builtIn{
	{kind: KindCode, everywhere: true, runsCode: true},
	{kind: KindContainer, runsCode: true},
	{kind: KindHTTP, everywhere: true},
	{kind: KindLLM, everywhere: true},
	{kind: KindWebhook, everywhere: true, retry: deliveries},
	{kind: KindInput, everywhere: true},
	{kind: KindOutput, everywhere: true},
	{kind: KindWorkflow, byEngine: true},
	{kind: KindSleep, byEngine: true, notCacheable: true},
	{kind: KindAsk, byEngine: true, notCacheable: true},
	{kind: KindWait, byEngine: true, notCacheable: true},
	{kind: KindNoop, everywhere: true},
}

// row is the row of a kind; empty for a custom one. It is called twenty times for each execution, so it neither copies nor searches rows: a
// search from code to noop takes five times as long as the switch.
func (k Kind) row() *builtIn {
	switch k {
	case KindCode:
		return &builtIns[0]
	case KindContainer:
		return &builtIns[1]
	case KindHTTP:
		return &builtIns[2]
	case KindLLM:
		return &builtIns[3]
	case KindWebhook:
		return &builtIns[4]
	case KindInput:
		return &builtIns[5]
	case KindOutput:
		return &builtIns[6]
	case KindWorkflow:
		return &builtIns[7]
	case KindSleep:
		return &builtIns[8]
	case KindAsk:
		return &builtIns[9]
	case KindWait:
		return &builtIns[10]
	case KindNoop:
		return &builtIns[11]
	}
	return &custom
}

var custom builtIn

func kindsWith(has func(builtIn) bool) (kinds []Kind) {
	for _, b := range builtIns {
		if has(b) {
			kinds = append(kinds, b.kind)
		}
	}
	return kinds
}

func BuiltIns() []Kind { return kindsWith(func(builtIn) bool { return true }) }

var standard = kindsWith(func(b builtIn) bool { return b.everywhere })

// Standard are the kinds that every worker of built-in kinds runs.
func Standard() []Kind { return slices.Clone(standard) }

// BuiltIn reports whether Pawl itself runs executions of the kind. Other kinds are names of custom handlers.
func (k Kind) BuiltIn() bool { return k.row().kind != "" }

// ByEngine reports whether the engine owns executions of this kind: they hold no worker slot, and their state is in rows, so nothing is
// lost when a replica dies.
func (k Kind) ByEngine() bool { return k.row().byEngine }

// NotCacheable reports whether outcomes of this kind depend on the time and are not kept for others.
func (k Kind) NotCacheable() bool { return k.row().notCacheable }

// AdHoc reports whether the kind may be submitted without a definition. A workflow may not: its tasks are in the definition.
func (k Kind) AdHoc() bool { return k.BuiltIn() && k != KindWorkflow }

// Retry is the policy of the kind's executions unless a definition, a task or a submission sets one.
func (k Kind) Retry() Retry { return k.row().retry }

// RunsCode reports whether the kind runs a program, which has an environment and may have files in the blob store.
func (k Kind) RunsCode() bool { return k.row().runsCode }
