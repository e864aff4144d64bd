//go:build linux

package pid1

import (
	"reflect"
	"testing"
)

func TestPlan(t *testing.T) {
	layout := []Step{{MakeDir, "", "usr", 0o755}, {BindReadOnly, "/usr", "usr", 0}}
	sent := Plan{Cover: "/tmp", Layout: EncodeSteps(layout), Filter: []byte{1, 0, 255}}
	encoded := sent.Encode()
	var got Plan
	if !got.decode(encoded[8:]) {
		t.Fatal("cannot be decoded")
	}
	if want := (Plan{Cover: "/tmp", Filter: sent.Filter, steps: layout}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for cut := range encoded[8:] {
		if new(Plan).decode(encoded[8 : 8+cut]) {
			t.Fatalf("decoded the first %d bytes of %d", cut, len(encoded)-8)
		}
	}
}

func TestConfig(t *testing.T) {
	sent := Config{
		Steps: []Step{{BindReadOnly, "/opt/x", "opt/x", 0}}, ScratchSize: 1 << 40, ScratchInodes: 3,
		TaskFDs: []int64{4, 5}, PressureFD: 6, Announce: true,
	}
	encoded := sent.Encode()
	var got Config
	if !got.decode(encoded[8:]) {
		t.Fatal("cannot be decoded")
	}
	if !reflect.DeepEqual(got, sent) {
		t.Errorf("got %+v, want %+v", got, sent)
	}
	for cut := range encoded[8:] {
		if new(Config).decode(encoded[8 : 8+cut]) {
			t.Fatalf("decoded the first %d bytes of %d", cut, len(encoded)-8)
		}
	}
}

// TestBirth decodes and answers a birth, which the zygote must do without allocations.
func TestBirth(t *testing.T) {
	sent := Birth{UID: 1_900_000_000, GID: 7, SetGroups: true, IntoCgroup: true, Template: true}
	encoded := sent.Encode()
	if len(encoded) != birthSize {
		t.Fatalf("%d bytes", len(encoded))
	}
	var got Birth
	if !got.decode(encoded) || got != sent {
		t.Errorf("got %+v, want %+v", got, sent)
	}
	for cut := range encoded {
		if new(Birth).decode(encoded[:cut]) {
			t.Fatalf("decoded the first %d bytes", cut)
		}
	}
	answer, born := make([]byte, 0, BornSize), Born{PID: 1 << 22, Errno: 1}
	if heard, ok := DecodeBorn(born.put(answer)); !ok || heard != born {
		t.Errorf("heard %+v, want %+v", heard, born)
	}
	if n := testing.AllocsPerRun(100, func() {
		got.decode(encoded)
		born.put(answer)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestOrder(t *testing.T) {
	sent := Order{
		Input: true, ScratchSize: 1 << 40, ScratchInodes: 3, Mounts: []string{"opt/x"},
		Rlimits: []Rlimit{{4, 0}, {7, ^uint64(0)}},
		Argv:    []string{"a", "", "c\xff"}, Env: []string{}, Files: []File{{"x/y", 0o755, 12}}, CPUs: []int64{0, 70},
		Template: true, Shared: 2, IntoCgroup: true, Trial: true,
	}
	encoded := sent.Encode()
	var got Order
	if !got.decode(encoded[8:]) {
		t.Fatal("cannot be decoded")
	}
	if !reflect.DeepEqual(got, sent) {
		t.Errorf("got %+v, want %+v", got, sent)
	}
	for cut := range encoded[8:] {
		if new(Order).decode(encoded[8 : 8+cut]) {
			t.Fatalf("decoded the first %d bytes of %d", cut, len(encoded)-8)
		}
	}
}

func TestMessages(t *testing.T) {
	first := Message{Kind: Failed, Stage: "bind", Detail: "/usr", Errno: 13, AtFault: true}
	second := Message{Kind: Exited, Status: 256, CPU: 5, MaxRSS: 6, Time: 7, Starved: 8, Warm: true}
	stream := append(first.encode(), second.encode()...)
	for cut := range len(first.encode()) {
		if _, _, ok := DecodeMessage(stream[:cut]); ok {
			t.Fatalf("decoded the first %d bytes", cut)
		}
	}
	got, rest, ok := DecodeMessage(stream)
	if !ok || got != first {
		t.Errorf("got %+v, want %+v", got, first)
	}
	got, rest, ok = DecodeMessage(rest)
	if !ok || got != second || len(rest) != 0 {
		t.Errorf("got %+v, want %+v, and nothing left but %d bytes", got, second, len(rest))
	}
}
