package flow

import (
	"testing"
	"unsafe"
)

// Executions are loaded and copied by every decision, and few use all their fields. Rarely used fields are behind a pointer: with 8 bytes
// more, each execution would be allocated in 1,024 bytes instead of 896, including a word of the allocator.
func TestExecutionsAreSmall(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(Execution{}); size > 896-8 {
		t.Errorf("an Execution has %d bytes: put the new field behind a pointer, as Rerun and Cache are", size)
	}
	if size := unsafe.Sizeof(Draft{}); size > 352 {
		t.Errorf("a Draft has %d bytes, and is allocated in more than 352", size)
	}
}
