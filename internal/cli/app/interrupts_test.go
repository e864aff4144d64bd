package app

import "testing"

// A Ctrl-C just before a command starts to count is the first one: a command that counts does not check the context.
func TestInterruptedBeforeItCounts(t *testing.T) {
	t.Parallel()
	ctx, stop := Interruptible(t.Context())
	defer stop()
	ctx.Value(interruptsKey{}).(*interrupts).Press()
	if ctx.Err() == nil {
		t.Error("the context goes on")
	}
	i := Interruptions(ctx)
	if len(i.Pressed) != 1 {
		t.Fatalf("it was pressed once, and %d are counted", len(i.Pressed))
	}
	if i.Press(); len(i.Pressed) != 2 {
		t.Errorf("it was pressed twice, and %d are counted", len(i.Pressed))
	}
	calm, stop := Interruptible(t.Context())
	defer stop()
	if i := Interruptions(calm); len(i.Pressed) != 0 {
		t.Error("nobody pressed it")
	}
}
