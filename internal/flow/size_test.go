package flow

import (
	"testing"
	"unsafe"
)

// Executions are loaded and copied wherever something is decided, and few use more than some of their fields. What only
// few use stands behind a pointer: 8 bytes more, and each execution would be allocated in 1,024 bytes instead of 896,
// the allocator's word for itself included.
func TestExecutionsAreSmall(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(Execution{}); size > 896-8 {
		t.Errorf("an Execution has %d bytes: put the new field behind a pointer, as Rerun and Cache are", size)
	}
	if size := unsafe.Sizeof(Draft{}); size > 352 {
		t.Errorf("a Draft has %d bytes, and is allocated in more than 352", size)
	}
}
