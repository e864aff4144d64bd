package admission

// turn is by how much the clock of a wait list goes on for one execution of weight 1. 27,720 is the least common multiple of
// 1 to 12, so these weights divide it. For larger ones turn/weight is rounded down, by less than 0.4 % up to
// flow.MostWeight (100).
const turn = 27720

const (
	// arrivalBits are the low bits of a ticket, which tell executions with one tag apart. Chosen: a million tickets are
	// drawn before they repeat, and the 43 bits that are left for tags are enough for 317 million turns of weight 1 in a
	// wait list that never empties.
	arrivalBits = 20
	arrivals    = 1<<arrivalBits - 1
)

// Tag is the place of an execution in a wait list that is shared fairly: start-time fair queueing. clock is the tag of the
// last one that was admitted from the wait list, last what Tag returned as next for the same value of fair_by before (a
// customer, say); both are 0 when the wait list was empty. Executions are admitted in the order of their tags, so that the
// values get slots by their weights, however many executions of each wait.
func Tag(clock, last int64, weight int) (tag, next int64) {
	tag = max(clock, last)
	return tag, tag + turn/int64(max(weight, 1))
}

// FairTicket is the ticket of a tag. Executions with one value of fair_by have
// different tags, so that they go in the order in which they came; those of several values with the same tag go in any order.
func FairTicket(tag, arrival int64) int64 { return tag<<arrivalBits | arrival&arrivals }

// TagOf is the tag of a ticket that FairTicket made.
func TagOf(ticket int64) int64 { return ticket >> arrivalBits }
