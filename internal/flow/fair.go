package flow

// Fair says between whom the slots of a concurrency key are shared while executions wait for it.
type Fair struct {
	By     string // whose the execution is: those of one By wait behind one another, and the Bys take turns
	Weight int    // how many turns By has for one of weight 1; 0: the line is first come, first served
}

// MostWeight bounds Weight.
const MostWeight = 100
