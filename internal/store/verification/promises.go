package verification

import "github.com/pawl-run/pawl/internal/store"

// By is the component that checks an invariant.
type By int

const (
	Rows   By = iota // the store itself, in Check
	Engine           // an engine, which knows the rules and forms
	Replay           // a replay of every history
)

// Promise is an invariant that a verification checks.
type Promise struct {
	Number   int    // in docs/invariants.md
	Says     string // text of the invariant, as in that document
	LookedAt string
	By       By
}

// Promises are the invariants that some verification checks, by number.
var Promises = []Promise{
	{1, "A history is a walk along the lifecycle's table: within an attempt the stage never goes back, and attempts count up.", "every event of every execution", Rows},
	{2, "An end is final: status, outcome and finish time are written once.", "every execution", Rows},
	{3, "An attempt has at most one owner, and none before the hand-off or after the end.", "every execution", Rows},
	{4, "No write is accepted for an attempt that is over.", "every event of every execution", Rows},
	{6, "The applied events of an execution are numbered 1, 2, … n without a hole.", "every event of every execution", Rows},
	{12, "A key has at most as many holders as its limit; lowering the limit takes no slot away.", "every holder of every key", Rows},
	{13, "A slot is held exactly while an execution is scheduled, provisioning or running.", "every execution", Rows},
	{16, "An execution is in one place: in one queue, or in one line, or held, or over.", "every execution, and its place in its queue", Rows},
	{17, "An item of a task is one execution, and a child is one item.", "every item of every task", Rows},
	{19, "The items of a task are numbered from 0 without a hole; their outputs keep that order.", "every item of every task", Rows},
	{20, "A workflow that is over has no child that is not.", "every item of every task", Rows},
	{22, "No execution has more attempts than its policy allows.", "every execution", Rows},
	{24, "No execution times out, and no sleep ends, before its deadline on the database's clock; a pause that stops timers moves deadlines by its length.", "every execution", Rows},
	{25, "One idempotency key, one body, one execution; another body is refused. Of a batch: one key, one list of bodies, one list of executions.", "every idempotency key", Rows},
	{26, "A schedule decides once about a nominal time: it is fired or missed, and each execution that it started belongs to one tick.", "every schedule and its times", Rows},
	{28, "The number of events that wait for a gap to close is bounded.", "every execution that has not ended", Rows},
	{32, "A row that cannot be stored, read or decided about harms no other: neither the request that it follows from, nor the other rows of a loop.", "every wait and the latest signals", Rows},
	{33, "Derived values equal those computed from their sources.", "every row that is derived from others, and the indexes", Rows},
	{37, "Times do not run backwards within a history, and the claim, start and finish of an execution have the times of its events. Histories from before this was kept may break it.", "every event of every execution", Rows},
	{38, "An uploaded content that was there when an execution naming it was accepted stays as long as the execution.", "every upload that an execution names", Rows},
	{39, "A rule starts one execution for a signal, which names both; an execution of the same rule covers a folded signal.", "every enforcement", Rows},
	{40, "A signal that was evaluated has an enforcement of every rule that matched it.", "the latest 10,000 signals", Engine},
	{41, "No signal stays new.", "the latest 10,000 signals", Engine},
	{42, "A wait takes one signal, of its trigger and subject and not from before its time; a signal serves one wait of an attempt of a workflow.", "every wait", Rows},
	{43, "No wait that has looked has a stored signal that fits, is not taken, and has met the open waits.", "every wait", Rows},
	{44, "An inquiry, and a wait, is open exactly while its execution waits for it; an answer is the output of the execution.", "every question and wait, and the latest 10,000 answers", Rows},
	{46, "No inquiry expires before it is due or is answered after that, and none ends twice.", "every question", Rows},
	{47, "An execution that the engine runs itself has no owner and is in no queue, unless it waits there because its action is paused.", "every execution", Rows},
	{48, "A window stands exactly while signals are held in it, and counts them and the bytes of their data.", "every window of every rule", Rows},
	{51, "No rule runs on a signal that it has led to itself, unless it allows that, or at the end of a longer chain than it allows.", "the latest 10,000 signals and what rules made of them", Engine},
	{52, "In any span no more executions of a key with a rate begin than its limit and burst allow, and each that has begun has had its slot.", "every key with a rate", Rows},
	{58, "No attempt begins in a paused queue, or of a paused action, after the pause's commit.", "every first attempt, beside the pauses", Rows},
	{59, "An execution that reused an outcome did nothing else, and the outcome is that of an execution that completed and either ran or was given it. An execution that was given an output did nothing else.", "every execution that reused an outcome or was given one", Rows},
	{60, "Outcomes are stored for a rerun only until it ends; if an item ended with one, no task before it ran.", "every outcome that is kept for a rerun", Rows},
	{61, "A recorded history follows from the rules: at its times and with its outcomes they give the recorded decisions.", "every history, decided once more by the rules", Replay},
	{67, "An execution that ended out of the cache has the outcome of an identical execution that completed and itself ran; the outcome was not older than the task or the submission allows. A stored outcome equals the output of its origin.", "every outcome in the cache, and what ended with one", Rows},
}

// The states of a promise. They are part of the API.
const (
	Kept    = "kept"
	Broken  = "broken"
	Unknown = "unknown"
)

// Standing is the result of a verification for one promise.
type Standing struct {
	Promise
	State string
	Times int // number of its violations
}

// Report returns for each checked promise whether it is kept. If there were so many violations that Check stopped early, promises without a
// violation so far are unknown.
func Report(broken []store.Violation, checkedBy ...By) (all []Standing) {
	times := map[int]int{}
	for _, b := range broken {
		times[b.Invariant]++
	}
	done := [3]bool{Rows: true}
	for _, by := range checkedBy {
		done[by] = true
	}
	for _, p := range Promises {
		if !done[p.By] {
			continue
		}
		state := Kept
		switch {
		case times[p.Number] > 0:
			state = Broken
		case p.By == Rows && len(broken) >= Most:
			state = Unknown
		}
		all = append(all, Standing{p, state, times[p.Number]})
	}
	return all
}
