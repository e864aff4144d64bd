// Package crashloop keeps a stored row or document from ending the process after every start. A panic is recovered where it happens. A
// stack overflow, or a kill by the kernel for too much memory, cannot be recovered, and the process would read the same row after each
// start.
//
//	Begin   writes the name of the next evaluation into a slot of a file
//	        the process dies: the slot keeps the name, because the kernel has the file's pages
//	Open    of the next process counts each name that it finds in a slot
//	Begin   refuses a name that was counted Most times
//
// An evaluation that ends removes the name and its count, so that only deaths in a row count: a process that is killed by chance has a name
// in a slot as well. The file is never synced: when the host dies instead of the process, no row is at fault.
package crashloop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// Most is how many times in a row the process may end during an evaluation before the evaluation is refused. A server that is killed at
	// random moments, once in 5 s, is in the first evaluation after a start, which takes up to 20 ms, with a chance of 1 in 250: twice happens
	// once in 60,000 kills, and three times practically never.
	Most = 3
	// slots is how many simultaneous evaluations are recorded.
	slots = 64
	// slotSize is the size of a name; longer ones are cut.
	slotSize = 256
	// countedMost bounds the counted names. A crash adds at most slots of them.
	countedMost = 1000
	// turnWithin is how long a counted evaluation waits for other counted ones.
	turnWithin = 2 * time.Second
)

// Refused is the error of Begin for an evaluation that has ended the process Most times in a row.
type Refused struct {
	What  string
	Times int
}

func (r *Refused) Error() string {
	return fmt.Sprintf("the server's process ended %d times in a row while it evaluated %s, which is therefore left out: "+
		"another version of it, or of Pawl, is tried again", r.Times, r.What)
}

// Journal is the file. One process has it open at a time. A nil Journal records and refuses nothing. It is safe for concurrent use.
type Journal struct {
	log     *slog.Logger
	version string
	// turn is held by a counted evaluation, so that a second death is charged to its cause: after the first death, all evaluations that ran in
	// parallel have a count.
	turn chan struct{}

	mu     sync.Mutex
	file   *os.File
	free   []int // slots
	counts map[string]int
	failed bool // a write failed, and that was logged
	died   bool // the previous process, during an evaluation
}

// counted is the part of the file after the slots.
type counted struct {
	Version string         `json:"version"` // of Pawl: another version may have been fixed, and starts without counts
	Counts  map[string]int `json:"counts"`
}

// Open opens the file at a path, counts the evaluations during which the previous process died, and logs that. version is that of the
// program.
func Open(path, version string, log *slog.Logger) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the list of what is evaluated: %w; give another place with --state-dir", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	j := &Journal{log: log, version: version, file: f, turn: make(chan struct{}, 1)}
	j.counts, j.died = read(b, version)
	for what, n := range j.counts {
		log.Warn("the process before this one ended while it evaluated something", "what", what, "times", n, "left_out", n >= Most)
	}
	for n := range slots {
		j.free = append(j.free, n)
	}
	if err := j.clear(); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return j, nil
}

// read returns the counts of a file, plus one for each name in a slot, and whether there was any.
func read(b []byte, version string) (counts map[string]int, died bool) {
	var c counted
	if len(b) > slots*slotSize {
		if json.Unmarshal(bytes.TrimSpace(b[slots*slotSize:]), &c) != nil || c.Version != version {
			c.Counts = nil // a count cut off by a full disk is lost, and later deaths are counted
		}
	}
	if c.Counts == nil {
		c.Counts = map[string]int{}
	}
	for n := range min(slots, len(b)/slotSize) {
		name, _, _ := bytes.Cut(b[n*slotSize:(n+1)*slotSize], []byte{0})
		what := string(name)
		died = died || what != ""
		if what == "" || len(c.Counts) >= countedMost && c.Counts[what] == 0 {
			continue
		}
		c.Counts[what]++
	}
	return c.Counts, died
}

// clear empties all slots and writes the counts.
func (j *Journal) clear() error {
	if _, err := j.file.WriteAt(make([]byte, slots*slotSize), 0); err != nil {
		return err
	}
	return j.writeCounts()
}

func (j *Journal) writeCounts() error {
	b, err := json.Marshal(counted{j.version, j.counts})
	if err != nil {
		return err
	}
	if _, err := j.file.WriteAt(b, slots*slotSize); err != nil {
		return err
	}
	return j.file.Truncate(int64(slots*slotSize + len(b)))
}

// Begin records that an evaluation begins: a workflow's step, a rule. kind and name identify it, and document is the name of the user's
// document. The caller calls done when the evaluation has ended, also after an error or a panic. The error is Refused.
func (j *Journal) Begin(kind, name, document string) (done func(), err error) {
	if j == nil {
		return func() {}, nil
	}
	what := clipped(kind + " " + name)
	times, slot, err := j.note(what)
	if err != nil {
		return nil, err
	}
	mine := false
	if times > 0 {
		select {
		case j.turn <- struct{}{}:
			mine = true
		case <-time.After(turnWithin): // two of these may wait for each other's rows
		}
	}
	j.write(slot, what)
	failpoint.HitAbout(failpoint.Evaluating, document)
	return func() {
		j.ended(slot, what)
		if mine {
			<-j.turn
		}
	}, nil
}

// Died reports whether the previous process ended during an evaluation, to which the death is attributed.
func (j *Journal) Died() bool { return j != nil && j.died }

// Refuses returns the error that Begin would return.
func (j *Journal) Refuses(kind, name string) error {
	if j == nil {
		return nil
	}
	what := clipped(kind + " " + name)
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.refuses(what)
}

func (j *Journal) refuses(what string) error {
	if n := j.counts[what]; n >= Most {
		return &Refused{what, n}
	}
	return nil
}

func clipped(what string) string { return what[:min(len(what), slotSize)] }

// note reserves a slot for a name, -1 if none is free, and returns how often the process has ended during it.
func (j *Journal) note(what string) (times, slot int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.refuses(what); err != nil {
		return 0, -1, err
	}
	if times = j.counts[what]; len(j.free) == 0 {
		return times, -1, nil
	}
	slot = j.free[len(j.free)-1]
	j.free = j.free[:len(j.free)-1]
	return times, slot, nil
}

// write puts a name into a slot.
func (j *Journal) write(slot int, what string) {
	if slot < 0 {
		return
	}
	var b [slotSize]byte
	n := copy(b[:], what)
	_, err := j.file.WriteAt(b[:min(n+1, slotSize)], int64(slot)*slotSize) // a name ends with a NUL byte, or with its slot
	j.complain(err)
}

// ended empties a slot, and drops the count of its evaluation.
func (j *Journal) ended(slot int, what string) {
	if slot >= 0 {
		var empty [1]byte
		_, err := j.file.WriteAt(empty[:], int64(slot)*slotSize)
		j.complain(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if slot >= 0 {
		j.free = append(j.free, slot)
	}
	if j.counts[what] > 0 {
		delete(j.counts, what)
		j.complainLocked(j.writeCounts())
	}
}

func (j *Journal) complain(err error) {
	if err == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.complainLocked(err)
}

// complainLocked logs the first failed write: without the file a row may end the process after each start, but nothing else is lost.
func (j *Journal) complainLocked(err error) {
	if err == nil || j.failed {
		return
	}
	j.failed = true
	j.log.Warn("what is evaluated cannot be noted: should it end the process, it will be tried again",
		"file", j.file.Name(), telemetry.Err, err)
}

// Close closes the file. No evaluation may be running.
func (j *Journal) Close() error { return j.file.Close() }
