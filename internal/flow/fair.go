package flow

// Fair is who shares the slots of a concurrency key in turns while executions wait for it.
type Fair struct {
	By     string // a group, such as a customer: executions of one group wait in order, those of different groups take turns
	Weight int    // how many turns executions with this By have for one of weight 1; 0: the wait list is first come, first served
}

const MostWeight = 100
