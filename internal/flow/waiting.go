package flow

// WaitsFor is what an execution waits for, by its own row; empty: it has ended. The words are those of pawl why, which reads other rows as
// well: it may say "worker" or "paused" where this says "queue".
func (x *Execution) WaitsFor() string {
	switch {
	case x.Stage.Terminal():
		return ""
	case x.Aside != nil:
		return "aside"
	case x.State.Cancel != nil:
		return "cancel"
	case x.State.Pause != nil && x.Place == Held, x.StandsStill() && x.Place == Delayed && !x.WaitsForSlot():
		return "paused"
	}
	switch x.Place {
	case Delayed:
		switch {
		case x.Attempt > 1:
			return "retry"
		case x.WaitsForSlot():
			return "rate"
		}
		return "time"
	case Waiting:
		return "key"
	case Ready:
		return "queue"
	case Held:
		return x.goesOn()
	}
	return "" // a new submission has no place yet
}

// goesOn is what a held execution waits for: its worker or, by its kind, an event that the engine awaits.
func (x *Execution) goesOn() string {
	switch x.Kind {
	case KindWorkflow:
		return "children"
	case KindSleep:
		return "sleep"
	case KindAsk:
		return "answer"
	case KindWait:
		return "signal"
	}
	return "worker"
}
