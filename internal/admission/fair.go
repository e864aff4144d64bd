package admission

// turn is by how much the clock of a line goes on for one execution of weight 1. Weights up to 12 divide it.
const turn = 27720

const (
	arrivalBits = 20
	arrivals    = 1<<arrivalBits - 1
)

// Tag is the place of an execution in a line that is shared fairly: start-time fair queueing. clock is the tag of the last one that was
// admitted from the line, last what Tag returned as next for the same person before; both are 0 when the line was empty. Executions are
// admitted in the order of their tags, so that those who wait get slots by their weights, however many executions each has waiting.
func Tag(clock, last int64, weight int) (tag, next int64) {
	tag = max(clock, last)
	return tag, tag + turn/int64(max(weight, 1))
}

// FairTicket is the ticket of a tag. Executions of one person have
// different tags, so that they go in the order in which they came; those of several with the same tag go in any order.
func FairTicket(tag, arrival int64) int64 { return tag<<arrivalBits | arrival&arrivals }

// TagOf is the tag of a ticket that FairTicket made.
func TagOf(ticket int64) int64 { return ticket >> arrivalBits }
