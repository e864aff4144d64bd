package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// sample returns an execution with every field set.
func sample(id byte) *flow.Execution {
	return &flow.Execution{ID: flow.ID{id}, Request: flow.Request{
		Parent: flow.ID{9}, ParentAttempt: 1, Task: "t", Index: 2, Depth: 1, Action: "a", Version: 3, Alias: "stable", Kind: flow.KindCode, Queue: "q", Priority: 4,
		Key: "k", KeyLimit: 5, WhenFull: flow.WhenFullCancelNew, Fair: flow.Fair{By: "who", Weight: 6}, Rate: flow.Rate{Key: "r", Limit: 7, Per: time.Second, Burst: 8, Over: "drop"},
		Settings: flow.Settings{Timeout: time.Second, QueueTimeout: time.Minute, TotalTimeout: time.Hour}, Retry: flow.Retry{MaxAttempts: 9, Backoff: flow.Constant, Delay: 1, MaxDelay: 2, Jitter: 0.5, On: []string{"oom"}},
		Input: json.RawMessage("{ \"spaces\":\n\"<&>\u2028\" }"), With: json.RawMessage(`{"html":"<&>` + "\u2028" + `","null":null}`),
		Labels: map[string]string{"a": "b", "c": "d"}, IdempotencyKey: "i", Traceparent: "p", CreatedAt: at, NotBefore: at.Add(1e6),
		Signal: flow.ID{7}, Rules: []string{"rule"}, RerunOf: flow.ID{5}, Rerun: &flow.Rerun{First: flow.ID{4}, Only: []string{"x"}, LeftOut: []string{"y"},
			Beneath: []flow.Beneath{{Path: "deploy[0]", Of: flow.ID{31}, First: flow.ID{32}, Version: 3, Work: [32]byte{1, 2}, Only: []string{"a"}, LeftOut: []string{"b"}, Outputs: []flow.OutputOverride{{Task: "c", Index: 1, Output: json.RawMessage(`{"v":2}`)}}, OverriddenBy: "ada"}}, KeptWith: flow.ID{33}, KeptAs: "outer[1]", RetryOf: flow.ID{34},
			Outputs: []flow.OutputOverride{{Task: "g", Index: 1, Output: json.RawMessage("null")}}, OverriddenBy: "ada"}, ReusedOf: flow.ID{3},
		Cache: &flow.Cache{Hash: sha256.Sum256([]byte("a")), TTL: time.Hour}, NoCache: true,
	}, State: flow.State{Stage: flow.Failed, Attempt: 2, NextSeq: 3, Place: flow.Finished, HandedBack: 1, QueuedAt: at, ClaimedAt: at, StartedAt: at, FinishedAt: at.Add(1e9), SlotAt: at, PausedFor: &flow.PausedFor{All: 9e8, Here: 5e8}},
		Outcome: &flow.Outcome{Output: json.RawMessage(`{"$bytes":"no"}`), Error: &flow.Error{Code: "c", Message: "m", Details: json.RawMessage("no json")}}}
}

// Executions are read from rows as they were written, byte for byte.
func TestExecution(t *testing.T) {
	t.Parallel()
	x := sample(1)
	for _, v := range []reflect.Value{reflect.ValueOf(x.Request), reflect.ValueOf(x.State)} {
		for i := range v.NumField() {
			switch name := v.Type().Field(i).Name; name {
			case "Owner", "Ticket", "WakeAt", "EventAt", "Cancel", "Aside", "Pause", "Inbox", "GapSince": // only for live executions
			default:
				if v.Field(i).IsZero() {
					t.Errorf("the sample has no %s: an archive may lose it", name)
				}
			}
		}
	}
	for _, x := range []*flow.Execution{x, {ID: flow.ID{2}, Request: flow.Request{Action: "noop", Kind: "noop", Queue: "default", CreatedAt: at},
		State: flow.State{Stage: flow.Completed, Attempt: 1, NextSeq: 6, Place: flow.Finished, FinishedAt: at}, Outcome: &flow.Outcome{}}} {
		line, err := (&Row{Execution: ExecutionOf(x, "hash")}).Appended(nil)
		if err != nil {
			t.Fatal(err)
		}
		var row Row
		if err := decode(line, &row); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		got, err := row.Execution.Flow()
		if err != nil || !reflect.DeepEqual(got, x) {
			t.Errorf("%s\n got %+v\nwant %+v, %v", line, got, x, err)
		}
		if row.Execution.Definition != "hash" || bytes.Count(line, []byte("\n")) != 1 {
			t.Errorf("the row %s", line)
		}
	}
}

// written returns an archive of two trees, with a definition and blobs.
func written(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Manifest{Pawl: "v1", From: "here", At: at})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.Definition(DefinitionName("a", 3, strings.Repeat("0", 64)), []byte(`{"name":"a"}`)))
	for i := byte(1); i < 3; i++ {
		x := sample(i)
		must(w.Row(&Row{Tree: x.ID}))
		must(w.Row(&Row{Execution: ExecutionOf(x, "hash")}))
		must(w.Row(&Row{Events: EventsOf([]flow.Event{{Seq: 1, Attempt: 1, Type: flow.EvRequested, At: at}, {Seq: 2, Attempt: 1, Type: "failed", At: at, Data: json.RawMessage(`{"a": 1}`)}})}))
		must(w.Row(&Row{Mark: &Mark{Attempt: 1, Task: "t", State: "skipped", Error: &Error{Code: "c"}}}))
		must(w.Row(&Row{Input: &Input{Data: []byte{0xff}, Last: true}}))
		must(w.Row(&Row{Log: &flow.LogChunk{Execution: x.ID, Attempt: 1, Seq: 1, Stream: "stdout", At: at, Data: []byte("hello\n"), Size: 6}}))
		row, err := w.Blob(fmt.Sprintf("files/%s/1/0", x.ID), 700, bytes.NewReader(bytes.Repeat([]byte("b"), 700)))
		must(err)
		must(w.Row(&Row{Blob: row}))
		must(w.Row(&Row{End: &End{Executions: 1}}))
	}
	must(w.Row(&Row{LeftOut: &LeftOut{Execution: flow.ID{8}, Why: "it runs"}}))
	must(w.Close())
	return b.Bytes()
}

func TestArchive(t *testing.T) {
	t.Parallel()
	whole := written(t)
	var got []string
	err := Read(bytes.NewReader(whole), Contents{
		Manifest:   func(m *Manifest) error { got = append(got, "from "+m.From); return nil },
		Definition: func(name string, doc []byte) error { got = append(got, name[:14], string(doc)); return nil },
		Blob: func(name string, size int64, content io.Reader) error {
			_, err := io.ReadFull(content, make([]byte, 3)) // it need not be read completely
			got = append(got, fmt.Sprint(name[:9], " ", size))
			return err
		},
		Row: func(r *Row, line []byte) error { got = append(got, string(line[:8])); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{"from here", "definitions/a@", `{"name":"a"}`, "files/ex_ 700", "files/ex_ 700"}, "\n")
	if n := len(got); n != 5+17 || strings.Join(got[:5], "\n") != want {
		t.Errorf("read %d: %s", n, strings.Join(got, "\n"))
	}
	// Other programs can read it.
	r := tar.NewReader(bytes.NewReader(whole))
	var names []string
	for h, err := r.Next(); err == nil; h, err = r.Next() {
		names = append(names, h.Name)
	}
	if len(names) != 7 || names[0] != manifestName || names[6] != sealName {
		t.Errorf("members %q", names)
	}
}

// No byte of an archive can be changed, and none can be missing. Each run checks a different fifth of the bytes: all of them took a minute
// with the race detector.
func TestEveryByteCounts(t *testing.T) {
	t.Parallel()
	const part = 5
	whole := written(t)
	for i := rand.IntN(part); i < len(whole); i += part {
		bit := []byte{1, 0x20, 0x80, 0xff}[i%4]
		whole[i] ^= bit
		if err := Read(bytes.NewReader(whole), Contents{}); !errors.Is(err, ErrBroken) {
			t.Fatalf("byte %d of %d changed by %#x: %v", i, len(whole), bit, err)
		}
		whole[i] ^= bit
		if err := Read(bytes.NewReader(whole[:i]), Contents{}); !errors.Is(err, ErrBroken) {
			t.Fatalf("cut off at byte %d of %d: %v", i, len(whole), err)
		}
	}
	if err := Read(bytes.NewReader(append(slices.Clone(whole), 0)), Contents{}); !errors.Is(err, ErrBroken) {
		t.Errorf("with a byte more: %v", err)
	}
}

// The end of a compressed archive is a part of it: the checksum of gzip lies behind the seal.
func TestEndOfTheCompression(t *testing.T) {
	t.Parallel()
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	if _, err := z.Write(written(t)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for cut := range 9 {
		from, err := gzip.NewReader(bytes.NewReader(compressed.Bytes()[:compressed.Len()-cut]))
		if err != nil {
			t.Fatal(err)
		}
		if err := Read(from, Contents{}); errors.Is(err, ErrBroken) != (cut > 0) {
			t.Errorf("without its last %d bytes: %v", cut, err)
		}
	}
}

// A file of another kind is reported as such, and not as a truncated archive.
func TestReadsNoArchive(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "kind: workflow\n", strings.Repeat("{}\n", 1000), "\x89PNG\r\n\x1a\n", strings.Repeat("\x00", 2048)} {
		if err := Read(strings.NewReader(content), Contents{}); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "not an archive of pawl export") {
			t.Errorf("%.20q: %v", content, err)
		}
	}
}

// A broken connection is not reported as a broken archive.
func TestReadingFails(t *testing.T) {
	t.Parallel()
	whole, gone := written(t), errors.New("connection reset")
	for _, at := range []int{0, 100, 600, 3000, len(whole) - 600, len(whole) - 1} {
		err := Read(io.MultiReader(bytes.NewReader(whole[:at]), failing{gone}), Contents{})
		if !errors.Is(err, gone) || errors.Is(err, ErrBroken) {
			t.Errorf("the connection breaks at %d: %v", at, err)
		}
	}
	stop := errors.New("enough")
	for name, c := range map[string]Contents{
		"manifest":   {Manifest: func(*Manifest) error { return stop }},
		"definition": {Definition: func(string, []byte) error { return stop }},
		"blob":       {Blob: func(string, int64, io.Reader) error { return stop }},
		"row":        {Row: func(*Row, []byte) error { return stop }},
	} {
		if err := Read(bytes.NewReader(whole), c); !errors.Is(err, stop) {
			t.Errorf("an error of %s: %v", name, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Hand-made archives with correct checksums.
func TestForged(t *testing.T) {
	t.Parallel()
	member := func(name string, content string) func(*Writer) error {
		return func(w *Writer) error { return w.member(name, []byte(content)) }
	}
	row := func(r Row) func(*Writer) error { return func(w *Writer) error { return w.Row(&r) } }
	id := flow.ID{1}
	long := func(n int) func(*Writer) error { // in the format of GNU tar: the others refuse a name that does not fit
		return func(w *Writer) error {
			name := "files/" + strings.Repeat("x", n-len("files/"))
			h := header(name, 0)
			h.Format = tar.FormatGNU
			return errors.Join(w.tar.WriteHeader(h), w.checked(sha256.Sum256(nil), name))
		}
	}
	tree, one := row(Row{Tree: id}), row(Row{Execution: &Execution{ID: id, CreatedAt: at, FinishedAt: at, Status: flow.Completed}})
	end := func(n int) func(*Writer) error { return row(Row{End: &End{Executions: n}}) }
	for name, c := range map[string]struct {
		say  string
		make []func(*Writer) error
	}{
		"a member of another kind":   {"does not belong", []func(*Writer) error{member("etc/passwd", "x")}},
		"a name that climbs":         {"does not belong", []func(*Writer) error{member("files/../../x", "x")}},
		"a blob without a row":       {"have no rows", []func(*Writer) error{member("files/x/1/0", "x")}},
		"a row without a blob":       {"no member", []func(*Writer) error{tree, one, row(Row{Blob: &Blob{Name: "files/x/1/0", Size: 1}})}},
		"a tree without an end":      {"has no end", []func(*Writer) error{tree, one}},
		"a tree within a tree":       {"has no end", []func(*Writer) error{tree, one, tree}},
		"a tree of nothing":          {"should have 0", []func(*Writer) error{tree, end(0)}},
		"fewer than there should be": {"should have 2", []func(*Writer) error{tree, one, end(2)}},
		"another at the top":         {"begins with", []func(*Writer) error{tree, row(Row{Execution: &Execution{ID: flow.ID{2}, Status: flow.Completed}})}},
		"its top twice":              {"begins with", []func(*Writer) error{tree, one, one}},
		"events first":               {"and not with its execution", []func(*Writer) error{tree, row(Row{Events: EventsOf([]flow.Event{{Seq: 1, At: at}})})}},
		"a mark first":               {"and not with its execution", []func(*Writer) error{tree, row(Row{Mark: &Mark{Attempt: 1, Task: "t"}})}},
		"input first":                {"and not with its execution", []func(*Writer) error{tree, row(Row{Input: &Input{Last: true}})}},
		"a log first":                {"and not with its execution", []func(*Writer) error{tree, row(Row{Log: &flow.LogChunk{Execution: id}})}},
		"a blob first":               {"and not with its execution", []func(*Writer) error{member("files/x/1/0", "x"), tree, row(Row{Blob: &Blob{Name: "files/x/1/0", Size: 1}})}},
		"a missing blob first":       {"and not with its execution", []func(*Writer) error{tree, row(Row{Blob: &Blob{Name: "files/x/1/0", Missing: true}})}},
		"a long name":                {"has a name of 1025 bytes", []func(*Writer) error{long(mostName + 1)}},
		"a name of this length":      {"have no rows", []func(*Writer) error{long(mostName)}},
		"a row of nothing":           {"not one thing", []func(*Writer) error{row(Row{})}},
		"a row of no tree":           {"in no tree", []func(*Writer) error{one}},
		"a row of a later version":   {"there is no member", []func(*Writer) error{member("executions/000001.jsonl", `{"color":"red"}`+"\n")}},
		"half a row":                 {"cut off", []func(*Writer) error{member("executions/000001.jsonl", `{"tree":`)}},
		"a part twice":               {"where part 2", []func(*Writer) error{member("executions/000001.jsonl", ""), member("executions/000001.jsonl", "")}},
		"a large definition":         {"at most", []func(*Writer) error{member("definitions/x", strings.Repeat(" ", mostDefinition+1))}},
		"wrong checksums":            {"has not the checksum", []func(*Writer) error{func(w *Writer) error { return w.checked([sha256.Size]byte{}, "files/x") }, member("files/x", "x")}},
	} {
		var b bytes.Buffer
		w, err := NewWriter(&b, Manifest{})
		for _, step := range c.make {
			if err == nil {
				err = step(w)
			}
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := Read(&b, Contents{}); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, want %q", name, err, c.say)
		}
	}
	var later bytes.Buffer
	w := &Writer{sum: sha256.New(), to: &later}
	w.tar = tar.NewWriter(&later)
	if err := w.put(manifestName, []byte(`{"format":"pawl-archive","version":2,"pawl":"v9"}`)); err != nil {
		t.Fatal(err)
	}
	if err := Read(&later, Contents{}); err == nil || !strings.Contains(err.Error(), "version 2") || !strings.Contains(err.Error(), "v9") {
		t.Errorf("a later version: %v", err)
	}
}

// The reader reads everything that the writer writes, for names of definitions of any length: names from 29 bytes on do not fit into tar's
// own field.
func TestLongNames(t *testing.T) {
	t.Parallel()
	for _, n := range []int{20, 28, 29, 100} {
		var b bytes.Buffer
		w, err := NewWriter(&b, Manifest{})
		if err == nil {
			err = errors.Join(w.Definition(DefinitionName(strings.Repeat("n", n), 3, strings.Repeat("0", 64)), []byte("{}")), w.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := Read(&b, Contents{}); err != nil {
			t.Errorf("a name of %d bytes: %v", n, err)
		}
	}
}

// A content whose size differs from the announced one ends the writing.
func TestBlobOfAnotherSize(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"short", "much too long"} {
		w, err := NewWriter(io.Discard, Manifest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Blob("files/x", 9, strings.NewReader(content)); err == nil || !strings.Contains(err.Error(), "should have 9") {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// Rows in many parts, and members in many lists.
func TestParts(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w, err := NewWriter(&b, Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	big := sample(1)
	big.Input = json.RawMessage(`"` + strings.Repeat("x", partSize) + `"`)
	for range 3 {
		for _, r := range []*Row{{Tree: big.ID}, {Execution: ExecutionOf(big, "")}, {End: &End{Executions: 1}}} {
			if err := w.Row(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Row(&Row{Tree: big.ID}), w.Row(&Row{Execution: ExecutionOf(big, "")})); err != nil {
		t.Fatal(err)
	}
	for i := range checkedAtOnce + 5 {
		row, err := w.Blob(fmt.Sprintf("files/%d", i), 1, strings.NewReader("x"))
		if err == nil {
			err = w.Row(&Row{Blob: row})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Row(&Row{End: &End{Executions: 1}}), w.Close()); err != nil {
		t.Fatal(err)
	}
	rows := 0
	if err := Read(&b, Contents{Row: func(*Row, []byte) error { rows++; return nil }}); err != nil || rows != 3*3+2+checkedAtOnce+5+1 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if w.parts < 4 || w.lists != 2 {
		t.Errorf("%d parts and %d lists", w.parts, w.lists)
	}
}

// No input makes the reader crash, hang or use more memory than a row has; what it accepts, it reads in the same way twice.
func FuzzRead(f *testing.F) {
	whole := written(f)
	f.Add(whole)
	f.Add(whole[:len(whole)-1024])
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, b []byte) {
		first := Read(bytes.NewReader(b), Contents{Blob: func(_ string, _ int64, r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }})
		if first != nil && !errors.Is(first, ErrBroken) {
			t.Errorf("refused with another error: %v", first)
		}
		if second := Read(bytes.NewReader(b), Contents{}); (first == nil) != (second == nil) {
			t.Errorf("read twice: %v and %v", first, second)
		}
	})
}

// A row has only one spelling: everything that a JSON reader accepts silently is refused, except in values of users.
func TestExactRows(t *testing.T) {
	t.Parallel()
	id := flow.ID{1}.Text(flow.ExecutionPrefix)
	row := func(more string) string {
		return `{"execution":{"id":"` + id + `","action":"a"` + more + `}}`
	}
	for text, want := range map[string]string{
		row(`,"input":{"a":1,"a":2,"A":3},"output":[{"b":1,"b":2}],"labels":{"a":"1","A":"2"}`): "",
		row(`,"action":"b"`): `"action" is given twice`, row(`,"Action":"b"`): `no member "Action"`, row(`,"QUEUE":"q"`): `no member "QUEUE"`,
		row(`,"labels":{"a":"1","a":"2"}`): `"a" is given twice`, row(`,"retry":{"On":["x"]}`): `no member "On"`,
		row(`,"outputs":[{"task":"t","task":"u","output":1}]`): `"task" is given twice`, row(`,"error":{"code":"a","Code":"b"}`): `no member "Code"`,
		row(`,"queue":"\ud800"`): "not UTF-8", row(",\"queue\":\"\xff\""): "not UTF-8",
		row("") + `{"tree":"` + id + `"}`: "something follows", `{"events":[{"seq":1,"seq":2}]}`: `"seq" is given twice`, `{"end":{"executions":1,"Executions":2}}`: `no member "Executions"`,
	} {
		_, err := ParseRow([]byte(text + "\n"))
		if got := fmt.Sprint(err); (want == "") != (err == nil) || !strings.Contains(got, want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}
