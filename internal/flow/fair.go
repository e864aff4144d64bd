package flow

// Fair says between whom the slots of a concurrency key are shared while executions wait for it.
type Fair struct {
	By     string // the owner of the execution: those of one owner wait behind one another, and the owners take turns
	Weight int    // how many turns the owner has for one of weight 1; 0: the line is first come, first served
}

// MostWeight bounds Weight.
const MostWeight = 100
