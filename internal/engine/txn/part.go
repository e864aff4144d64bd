package txn

// Parts has one value for each capability that has decided something in a transaction. Its zero value has none, so unused capabilities cost
// nothing.
type Parts struct{ all []any }

// Part is the state of a capability in a transaction; the capability has its own type T for it. It is made at the first call.
func Part[T any](t Tx) *T {
	if p := MadePart[T](t); p != nil {
		return p
	}
	p, parts := new(T), t.Parts()
	parts.all = append(parts.all, p)
	return p
}

// MadePart is Part if it has been made; nil if the capability has decided nothing.
func MadePart[T any](t Tx) *T {
	for _, p := range t.Parts().all {
		if p, ok := p.(*T); ok {
			return p
		}
	}
	return nil
}
