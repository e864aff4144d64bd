package flow

import (
	"encoding/json"
	"time"
)

// Wait is what an execution of KindWait waits for: the oldest fitting signal since a moment that no other wait of the same attempt of its
// workflow has taken.
type Wait struct {
	Execution ID
	Workflow  ID  // the workflow of the task, or an execution outside workflows itself
	Attempt   int // of the workflow
	Trigger   string
	Subject   string
	Since     time.Time
	Scanned   bool  // the signals that existed when it began have been scanned
	Signal    int64 // number of the signal that it took; 0: it waits
	WaitDetail
	// Damage is why the row cannot be decoded; then WaitDetail is empty. "": it can.
	Damage string
}

// WaitDetail are the fields of a wait that are not used for look-ups. Stores keep them as JSON.
type WaitDetail struct {
	If   string          `json:"if,omitempty"` // an expression over the signal and Vars; "": every signal fits. It stands first: Check looks for it there
	Vars json.RawMessage `json:"vars,omitempty"`
	// Null means that the timeout completes the execution with null; otherwise it times out.
	Null    bool          `json:"null,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"` // 0: none
}
