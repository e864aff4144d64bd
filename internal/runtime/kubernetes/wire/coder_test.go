package wire

import (
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"time"
)

// messages are one of each kind with all of its fields set, and an empty one.
func messages() []Message {
	report := Report{Ending: ByDisk, Code: -1, Signal: "SIGSEGV", Wall: time.Hour, CPU: time.Nanosecond, Peak: 1 << 40, OOMKills: 2, HostFull: true, Enforcement: "cgroup-v2"}
	command := Command{Argv: []string{"sh", "", "a\x00b\xff"}, Env: []string{"A=b"}, Dir: "/d", Files: true, Stdin: true, Network: true, CountUser: true,
		Wall: time.Minute, CPU: math.MaxInt64, Pids: 7, Output: math.MinInt64, Disk: 9, Stack: 10}
	return []Message{
		&Greeting{Version: Version, Out: 1, Err: 2, Look: true}, &Greeting{Version: Version},
		&command, &Command{},
		&Launch{Command: command, Dir: "/work", Own: 5}, &Launch{},
		&FileHeader{Path: "a/b", Mode: math.MaxUint32, Size: 3}, &FileHeader{},
		&Wanted{Patterns: []string{"*", "b"}, Most: 4}, &Wanted{},
		&Refusals{Refused: []string{"c"}, Failure: "d"}, &Refusals{},
		&Failure{Spec: true, Text: "e"}, &Failure{},
		&State{Version: Version, Epoch: "1.2", Phase: Exited, Stdin: 3, Out: 4, Err: 5, Failure: &Failure{Spec: true, Text: "f"}, Report: &report}, &State{Version: Version},
		&report, &Report{},
	}
}

func zero(m Message) Message { return reflect.New(reflect.TypeOf(m).Elem()).Interface().(Message) }

// A message is received as it was sent, also into a message that had other content; every field is included.
func TestMessages(t *testing.T) {
	all := messages()
	for i, m := range all {
		f := Pack(Status, 7, m)
		for _, into := range []Message{zero(m), all[i^1]} {
			if reflect.TypeOf(into) != reflect.TypeOf(m) {
				t.Fatalf("%T follows %T", into, m)
			}
			if err := f.Decode(into); err != nil || !reflect.DeepEqual(into, m) {
				t.Errorf("%+v was read as %+v, %v", m, into, err)
			}
		}
		all = messages()
		if f.Kind != Status || f.Offset != 7 {
			t.Errorf("%+v", f)
		}
		if i%2 != 0 {
			continue
		}
		fields := reflect.ValueOf(m).Elem()
		for j := range fields.NumField() {
			if fields.Field(j).IsZero() {
				t.Errorf("%T: field %s is not tried", m, fields.Type().Field(j).Name)
			}
		}
	}
}

// A message that is cut, or has extra data, is an error.
func TestMessagesThatAreCut(t *testing.T) {
	for _, m := range messages() {
		whole := Pack(Status, 0, m).Data
		for size := range whole {
			if err := (Frame{Data: whole[:size]}).Decode(zero(m)); err == nil {
				t.Errorf("%T of %d bytes was read from %d", m, len(whole), size)
			}
		}
		if err := (Frame{Data: append(whole, 0)}).Decode(zero(m)); err == nil {
			t.Errorf("%T was read from more than its bytes", m)
		}
	}
}

// For a message of another version Decode reads only the version.
func TestVersions(t *testing.T) {
	var s State
	data := append(Pack(Status, 0, &State{Version: 77}).Data, "\x00\xff"...)
	if err := (Frame{Data: data}).Decode(&s); err != nil || s != (State{Version: 77}) {
		t.Errorf("%+v, %v", s, err)
	}
	for _, data := range []string{"", "\x02", string(Refusal().Data[:7]), string(Refusal().Data[:8])} {
		if err := (Frame{Data: []byte(data)}).Decode(new(State)); err == nil {
			t.Errorf("%q was read", data)
		}
	}
}

// Decode refuses or reads random data without a panic, and a length in it that is larger than the data allocates no memory for that length.
func FuzzMessages(f *testing.F) {
	for _, m := range messages() {
		f.Add(Pack(Status, 0, m).Data)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		m := messages()[random.IntN(len(messages()))]
		data := Pack(Status, 0, m).Data
		for range 1 + random.IntN(4) {
			data[random.IntN(len(data))] = byte(random.Uint32())
		}
		f.Add(data[:random.IntN(len(data)+1)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, read := messages(), []Message{}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, m := range all {
			if into := zero(m); (Frame{Data: data}).Decode(into) == nil {
				read = append(read, into)
			}
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(len(all)*4*len(data)+64<<10) {
			t.Errorf("%d bytes took %d", len(data), took)
		}
		for _, m := range read {
			again := zero(m)
			if err := Pack(Status, 0, m).Decode(again); err != nil || !reflect.DeepEqual(again, m) {
				t.Errorf("%+v was read again as %+v, %v", m, again, err)
			}
		}
	})
}
