package cli

import "testing"

// A Ctrl-C that comes just before a command begins to count is the first one: a command that counts does not look at the context.
func TestInterruptedBeforeItCounts(t *testing.T) {
	t.Parallel()
	ctx, stop := interruptible(t.Context())
	defer stop()
	ctx.Value(interruptsKey{}).(*interrupts).press()
	if ctx.Err() == nil {
		t.Error("the context goes on")
	}
	i := interruptions(ctx)
	if len(i.pressed) != 1 {
		t.Fatalf("it was pressed once, and %d are counted", len(i.pressed))
	}
	if i.press(); len(i.pressed) != 2 {
		t.Errorf("it was pressed twice, and %d are counted", len(i.pressed))
	}
	calm, stop := interruptible(t.Context())
	defer stop()
	if i := interruptions(calm); len(i.pressed) != 0 {
		t.Error("nobody pressed it")
	}
}
