package store

import (
	"testing"
	"testing/synctest"
	"time"
)

// A row that was deleted, or whose execution was ended by hand, is not read again: it is no longer counted after unreadableFor, or else its
// count would stay until the process ends.
func TestUnreadableRowsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u Unreadable[int]
		counted := func(when string, want int) {
			t.Helper()
			if n := u.Count(); n != want {
				t.Errorf("%s %d rows are counted, want %d", when, n, want)
			}
		}
		counted("at first", 0)
		u.Add(1)
		time.Sleep(unreadableFor / 2)
		u.Add(2)
		counted("with a second row", 2)
		time.Sleep(unreadableFor/2 + time.Second)
		counted("after the time of the first row", 1)
		if u.Has(1) || !u.Has(2) {
			t.Errorf("passed over: the first %t, the second %t", u.Has(1), u.Has(2))
		}
		u.Add(2)
		time.Sleep(unreadableFor - time.Second)
		counted("with the second row met again", 1)
		time.Sleep(2 * time.Second)
		counted("in the end", 0)
	})
}
