package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
)

// dialogue is a program and an interactor that talk to each other, each in its own sandbox. This process forwards what each writes to
// the other and keeps the transcript:
//
//	program  stdout ─► toInteractor ─► stdin  interactor
//	         stdin  ◄─ toProgram    ◄─ stdout
//
// Neither side waits until the other reads: a stream holds as much as its writer may write (limits.output), so a side that writes
// without end exceeds its limit whatever the other does.
type dialogue struct {
	mu                      sync.Mutex // guards what follows, and the streams
	toInteractor, toProgram stream
	transcript              transcript
	latest                  time.Time // when either last wrote

	opinion opinion       // of the interactor; to be read when both have ended
	quiet   time.Duration // how long neither side had written when the program ended
	first   bool          // the interactor ended its output before the program did, and did not accept: its opinion counts
}

// stream is one direction of a dialogue. Its Write and End are called by the writer's runtime, its Read by the reader's.
type stream struct {
	of     *dialogue
	by     string // who writes
	filled sync.Cond
	unread bytes.Buffer
	closed bool        // the writer has closed its side
	ended  bool        // the reader gets an end of file
	then   io.Writer   // gets a copy of what is written; may be nil
	onEnd  func() bool // called with of.mu held; whether the reader gets the end of file as soon as the writer has closed its side
}

func newDialogue() *dialogue {
	d := &dialogue{latest: time.Now()}
	always := func() bool { return true }
	d.toInteractor = stream{of: d, by: api.ByProgram, filled: sync.Cond{L: &d.mu}, onEnd: always}
	// A program that has closed stdout cannot answer any more. The interactor's end is not passed on to it until it is known whether that
	// end is a rejection; otherwise the verdict would depend on whether the program fails at the end of its input before it is killed.
	d.toProgram = stream{of: d, by: api.ByInteractor, filled: sync.Cond{L: &d.mu}, onEnd: func() bool { return !d.toInteractor.closed }}
	return d
}

// Write never waits for the reader.
func (s *stream) Write(p []byte) (int, error) {
	s.of.mu.Lock()
	s.of.latest = time.Now()
	s.of.transcript.add(s.by, p)
	s.unread.Write(p)
	s.filled.Signal()
	s.of.mu.Unlock()
	if s.then == nil {
		return len(p), nil
	}
	return s.then.Write(p)
}

func (s *stream) Read(p []byte) (int, error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for s.unread.Len() == 0 && !s.ended {
		s.filled.Wait()
	}
	return s.unread.Read(p)
}

// End is called when the writer has closed its side.
func (s *stream) End() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	if s.onEnd() {
		s.end()
	}
}

// end gives the reader an end of file; of.mu is held.
func (s *stream) end() {
	s.closed, s.ended = true, true
	s.filled.Signal()
}

// finish ends a stream whose writer has ended.
func (s *stream) finish() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.end()
}

// dyingTime bounds the wait for the end of a program that has closed stdout before the interactor did. A dying program closes stdout first;
// the host's cleanup takes milliseconds, and up to a second on a busy host.
const dyingTime = 3 * time.Second

// letDie waits for the end of a program that has closed its stdout, because it may have died: the interactor may have read the end of
// file and rejected before the runtime reports the death. over is closed when the program has ended.
func (d *dialogue) letDie(over <-chan struct{}) {
	d.mu.Lock()
	silent := d.toInteractor.closed && !d.toProgram.ended
	d.mu.Unlock()
	if !silent {
		return
	}
	select {
	case <-over:
	case <-time.After(dyingTime):
	}
}

// note records how long neither side has written.
func (d *dialogue) note() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.quiet = time.Since(d.latest)
}

// interactorFirst reports whether the interactor closed its stdout before the program did.
func (d *dialogue) interactorFirst() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.toProgram.closed && d.toProgram.ended
}

// converse runs the program and the interactor at the same time. The result is the program's; d.opinion is the interactor's. The
// program's own end counts if it comes first and is not "ok"; the interactor is then killed. An interactor that does not accept ends the
// program.
func (b *batch) converse(ctx context.Context, spec runtime.Spec, input, expected runtime.File) (*dialogue, runtime.Result, error) {
	d := newDialogue()
	judging, endJudge := context.WithCancelCause(ctx)
	defer endJudge(nil)
	running, endProgram := context.WithCancelCause(ctx)
	defer endProgram(nil)

	limits := b.judge.limits()
	limits.Wall += spec.Limits.EndWall() // the interactor waits for the program, whose own limit must be reached first
	over := make(chan struct{})
	judged := make(chan error, 1)
	go func() {
		var err error
		d.opinion, err = b.judge.ask(judging, runtime.Spec{Limits: limits, Stdin: &d.toInteractor, Stdout: &d.toProgram}, &head{}, input, expected)
		if err != nil || d.opinion.verdict != runtime.OK {
			d.letDie(over)
			endProgram(&Stop{Reason: "the interactor has ended"}) // the program gets no end of file: it is killed
		} else {
			d.toProgram.finish()
		}
		judged <- err
	}()

	d.toInteractor.then = spec.Stdout
	spec.Stdin, spec.Stdout = &d.toProgram, &d.toInteractor
	res, err := b.launch(running, spec)
	close(over)
	killed := res.Verdict == runtime.Killed
	if stop, ok := errors.AsType[*Stop](err); ok && ctx.Err() == nil { // the interactor ended before the program had started
		res, err, killed = runtime.Result{Verdict: runtime.Killed, Reason: stop.Reason}, nil, true
	}
	d.note()
	_, stopped := Stopped(ctx)
	d.first = killed && !stopped || d.interactorFirst()
	if err != nil || res.Verdict != runtime.OK && !d.first {
		endJudge(&Stop{Reason: "the program has ended"})
	}
	d.toInteractor.finish()
	d.toProgram.finish() // releases a goroutine that reads for a program that has ended
	asked := <-judged
	if err == nil && asked != nil && (d.first || res.Verdict == runtime.OK || stopped) {
		err = fmt.Errorf("run the interactor: %w", asked)
	}
	if stop, ok := errors.AsType[*Stop](asked); ok && stopped {
		err = stop
	}
	return d, res, err
}

// decide gives a case the interactor's opinion, unless the program's own end counts, which r contains already.
func (d *dialogue) decide(r *api.CaseResult, res runtime.Result) {
	o := &d.opinion
	switch {
	case o.verdict == runtime.OK || res.Verdict != runtime.OK && !d.first:
		if res.Verdict == runtime.OK {
			r.Message = o.message
		}
		if res.Verdict == runtime.Timeout {
			r.Message += d.silence(res)
		}
		return
	case o.died != "":
		o.message += ` (if what a program writes can do that, catch it, or give "reject": [1]: then an error rejects)`
	}
	r.Verdict, r.Message = string(o.verdict), o.message
}

// silence explains for a program that ran out of time whether it and the interactor waited for each other: neither wrote for longer than
// four times the time that the program has computed, or was ready to compute.
func (d *dialogue) silence(res runtime.Result) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if 4*(res.CPU+res.Starved) >= d.quiet {
		return ""
	}
	last := "neither wrote anything"
	if by := d.transcript.last(); by != "" {
		last = "the last to write was the " + by
	}
	return fmt.Sprintf("; the program and the interactor waited for each other for %s: %s (was it flushed, with its line break?)",
		d.quiet.Round(time.Millisecond), last)
}

// joinable refuses an interactor where the runtime cannot connect two runs.
func (b *batch) joinable() error {
	b.talks = b.code.Compare != nil && b.code.Compare.Interactor != nil
	if _, imaged := b.runtime.(runtime.Imaged); imaged && b.talks {
		return Errorf(flow.CodeInvalidInput, "compare.interactor: the runtime %s runs programs in containers, and cannot join a program and an interactor "+
			"(name another runtime, or send such work to a queue whose workers have the sandbox)", b.runtime.Name())
	}
	return nil
}
