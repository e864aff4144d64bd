package txn

import "testing"

// someTx is a transaction of which only Parts is used.
type someTx struct {
	Tx
	parts Parts
}

func (t *someTx) Parts() *Parts { return &t.parts }

func TestPart(t *testing.T) {
	type questions struct{ n int }
	type waits struct{ n int }
	tx := &someTx{}
	if p := MadePart[questions](tx); p != nil {
		t.Errorf("a transaction without decisions has the part %+v", p)
	}
	Part[questions](tx).n++
	Part[waits](tx).n = 7
	Part[questions](tx).n++
	if q, w := MadePart[questions](tx), MadePart[waits](tx); q == nil || w == nil || q.n != 2 || w.n != 7 {
		t.Errorf("the parts are %+v and %+v, not {2} and {7}", q, w)
	}
}

// A transaction that does not use a capability still looks for its part at each hook.
func TestMadePartAllocatesNothing(t *testing.T) {
	type questions struct{}
	tx := &someTx{}
	if n := testing.AllocsPerRun(100, func() { _ = MadePart[questions](tx) }); n != 0 {
		t.Errorf("a look for a part that is not there allocates %v times", n)
	}
}
