package admission

// turn is how far the clock of a wait list advances for one execution of weight 1. 27,720 is the least common multiple of 1 to 12, so these
// weights divide it. For larger ones turn/weight is rounded down, by less than 0.4 % up to flow.MostWeight (100).
const turn = 27720

const (
	// arrivalBits are the low bits of a ticket, which distinguish executions with one tag. Chosen: a million tickets are
	// drawn before they repeat, and the other 43 bits are enough for 317 million turns of weight 1 in a wait list that
	// never empties.
	arrivalBits = 20
	arrivals    = 1<<arrivalBits - 1
)

// Tag is the place of an execution in a fairly shared wait list: start-time fair queueing. clock is the tag of the last admitted execution,
// last the previous result next for the same value of fair_by (for example a customer); both are 0 if the wait list was empty. Executions
// are admitted in the order of their tags, so that the values get slots by their weights, however many executions of each wait.
func Tag(clock, last int64, weight int) (tag, next int64) {
	tag = max(clock, last)
	return tag, tag + turn/int64(max(weight, 1))
}

// FairTicket is the ticket of a tag. Executions with one value of fair_by have different tags, so they keep their order; those of different
// values with the same tag go in any order.
func FairTicket(tag, arrival int64) int64 { return tag<<arrivalBits | arrival&arrivals }

// TagOf is the tag of a ticket that FairTicket made.
func TagOf(ticket int64) int64 { return ticket >> arrivalBits }
