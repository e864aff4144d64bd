//go:build linux

package pid1

import (
	"reflect"
	"testing"
)

func TestWire(t *testing.T) {
	layout := []Step{{MakeDir, "", "usr", 0o755}, {BindReadOnly, "/usr", "usr", 0}}
	extra := []Step{{BindReadOnly, "/opt/x", "opt/x", 0}}
	sent := Config{
		Cover: "/tmp", Layout: EncodeSteps(layout), Steps: extra, ScratchSize: 1 << 40, ScratchInodes: 3,
		TaskFDs: []int64{4, 5}, PressureFD: 6, SpareThreads: 3, Filter: []byte{1, 0, 255}, Announce: true,
	}
	encoded := sent.Encode()
	var got Config
	if !got.decode(encoded[8:]) {
		t.Fatal("cannot be decoded")
	}
	want := sent
	want.Layout, want.Steps = nil, append(layout, extra...)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for cut := range encoded[8:] {
		if new(Config).decode(encoded[8 : 8+cut]) {
			t.Fatalf("decoded the first %d bytes of %d", cut, len(encoded)-8)
		}
	}
}

func TestOrder(t *testing.T) {
	sent := Order{
		Input: true, ScratchSize: 1 << 40, ScratchInodes: 3, Mounts: []string{"opt/x"},
		Rlimits: []Rlimit{{4, 0}, {7, ^uint64(0)}},
		Argv:    []string{"a", "", "c\xff"}, Env: []string{}, Files: []File{{"x/y", 0o755, 12}}, CPUs: []int64{0, 70},
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
	second := Message{Kind: Exited, Status: 256, CPU: 5, MaxRSS: 6, Time: 7, Starved: 8}
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
