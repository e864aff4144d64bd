package txn

// Parts has one value for each capability that has decided something in a transaction. Its zero value has none: a transaction pays only
// for the capabilities that it uses.
type Parts struct{ all []any }

// Part is what a capability, which has a type T for it, has decided in a transaction. It is made at the first call.
func Part[T any](t Tx) *T {
	if p := MadePart[T](t); p != nil {
		return p
	}
	p, parts := new(T), t.Parts()
	parts.all = append(parts.all, p)
	return p
}

// MadePart is Part where it has been made; nil where the capability has decided nothing.
func MadePart[T any](t Tx) *T {
	for _, p := range t.Parts().all {
		if p, ok := p.(*T); ok {
			return p
		}
	}
	return nil
}
