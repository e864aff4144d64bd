package drain

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

func TestPumpsShareABudget(t *testing.T) {
	for limit, over := range map[int64]bool{0: true, 99: true, 199_999: true, 200_000: false, 1 << 40: false} {
		calls := 0
		b := NewBudget(limit, func() { calls++ })
		var out, errs bytes.Buffer
		var kept [2]int64
		var pumps sync.WaitGroup
		pumps.Go(func() { kept[0] = Pump(strings.NewReader(strings.Repeat("o", 100_000)), &out, b) })
		pumps.Go(func() {
			kept[1] = Pump(iotest.OneByteReader(strings.NewReader(strings.Repeat("e", 100_000))), &errs, b)
		})
		pumps.Wait()
		if total := kept[0] + kept[1]; total != min(limit, 200_000) || total != int64(out.Len()+errs.Len()) {
			t.Errorf("limit %d: kept %v, wrote %d and %d", limit, kept, out.Len(), errs.Len())
		}
		if b.Exceeded() != over || (calls == 1) != over || calls > 1 {
			t.Errorf("limit %d: exceeded is %v after %d calls", limit, b.Exceeded(), calls)
		}
	}
}

type brokenWriter struct{ calls int }

func (w *brokenWriter) Write([]byte) (int, error) { w.calls++; return 0, errors.New("broken") }

func TestPumpReadsOn(t *testing.T) {
	w := &brokenWriter{}
	b := NewBudget(1<<20, func() { t.Error("exceeded") })
	r := strings.NewReader(strings.Repeat("x", 200_000))
	if kept := Pump(r, w, b); kept != 200_000 || w.calls != 1 || r.Len() != 0 {
		t.Errorf("kept %d, %d calls, %d unread", kept, w.calls, r.Len())
	}
}

type endedWriter struct {
	bytes.Buffer
	ends int
}

func (w *endedWriter) End() { w.ends++ }

func TestPumpTellsTheEnd(t *testing.T) {
	var w endedWriter
	if kept := Pump(strings.NewReader("text"), &w, NewBudget(1<<20, func() {})); kept != 4 || w.ends != 1 || w.String() != "text" {
		t.Errorf("kept %d bytes, %q, ended %d times", kept, w.String(), w.ends)
	}
}
