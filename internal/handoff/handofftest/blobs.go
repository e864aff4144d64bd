package handofftest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// carrier is the hand-off, if it carries blobs.
func (b *bench) carrier(t *testing.T) handoff.BlobCarrier {
	t.Helper()
	c, ok := b.Handoff.(handoff.BlobCarrier)
	if !ok {
		t.Skip("it carries no blobs")
	}
	return c
}

// naming submits and takes an execution whose input names a blob.
func (b *bench) naming(t *testing.T, session flow.ID, name string) handoff.Assignment {
	t.Helper()
	input, err := json.Marshal(map[string]any{"files": map[string]any{"in.bin": map[string]string{"blob": name}}})
	if err != nil {
		t.Fatal(err)
	}
	b.Submit(t, flow.KindNoop, input)
	return b.take(t, session)
}

func own(a handoff.Assignment, n int) handoff.BlobQuery {
	return handoff.BlobQuery{Execution: a.Execution, Attempt: a.Attempt, Name: fmt.Sprintf("files/%s/%d/%d", a.Execution, a.Attempt, n)}
}

func get(ctx context.Context, c handoff.BlobCarrier, session flow.ID, q handoff.BlobQuery) ([]byte, error) {
	r, err := c.GetBlob(ctx, session, q)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(r)
	return all, errors.Join(err, r.Close())
}

// blobs checks that a blob put by an attempt can be read, byte for byte, by the attempt and by executions whose input names it.
func blobs(t *testing.T, b *bench) {
	c := b.carrier(t)
	session, a := b.held(t)
	large := make([]byte, 5<<20+3)
	for i := range large {
		large[i] = byte(i>>7) ^ byte(i*11)
	}
	for i, content := range [][]byte{{}, []byte("x"), large[:256<<10], large[:256<<10+1], large} {
		q := own(a, i)
		if n, err := c.PutBlob(b.ctx(t), session, q, iotest.HalfReader(bytes.NewReader(content))); err != nil || n != int64(len(content)) {
			t.Fatalf("put %d bytes: %d, %v", len(content), n, err)
		}
		for _, from := range []int{0, len(content) / 3, len(content)} {
			q.From = int64(from)
			if got, err := get(b.ctx(t), c, session, q); err != nil || !bytes.Equal(got, content[from:]) {
				t.Errorf("of %d bytes from %d: %d, or others: %v", len(content), from, len(got), err)
			}
		}
	}
	later := b.naming(t, session, own(a, 4).Name)
	q := own(later, 0)
	q.Name = own(a, 4).Name
	if got, err := get(b.ctx(t), c, session, q); err != nil || !bytes.Equal(got, large) {
		t.Errorf("what the input names: %d bytes, %v", len(got), err)
	}
	if _, err := get(b.ctx(t), c, session, own(later, 7)); !errors.Is(err, handoff.ErrNoBlob) {
		t.Errorf("a blob that nobody put: %v", err)
	}
}

// blobsOfOthers checks that only the holder of an attempt can write its blobs, and read them and those that its input names.
func blobsOfOthers(t *testing.T, b *bench) {
	c := b.carrier(t)
	session, a := b.held(t)
	if _, err := c.PutBlob(b.ctx(t), session, own(a, 0), strings.NewReader("a secret")); err != nil {
		t.Fatal(err)
	}
	other := b.open(t)
	theirs := b.naming(t, other, "files/"+a.Execution.String())
	alien := own(a, 0)
	alien.Execution = theirs.Execution // another's name
	late, nowhere, bad := own(a, 0), own(a, 0), own(a, 0)
	late.Attempt++
	nowhere.Name = "elsewhere/a"
	bad.Name = "files/" + a.Execution.String() + "/1/../../x"
	for say, ask := range map[string]struct {
		session flow.ID
		q       handoff.BlobQuery
		want    error
	}{
		"of an attempt that another session holds": {other, own(a, 0), handoff.ErrNotHeld},
		"of another execution":                     {other, alien, handoff.ErrBlobRefused},
		"of another attempt":                       {session, late, handoff.ErrNotHeld},
		"of no execution":                          {session, nowhere, handoff.ErrBlobRefused},
		"with a bad name":                          {session, bad, handoff.ErrBlobRefused},
		"by a session that is none":                {flow.ID{9, 9}, own(a, 0), handoff.ErrSessionLost},
	} {
		if got, err := get(b.ctx(t), c, ask.session, ask.q); !errors.Is(err, ask.want) {
			t.Errorf("get a blob %s: %q, %v; want %v", say, got, err, ask.want)
		}
		if _, err := c.PutBlob(b.ctx(t), ask.session, ask.q, strings.NewReader("forged")); !errors.Is(err, ask.want) {
			t.Errorf("put a blob %s: %v; want %v", say, err, ask.want)
		}
	}
	if got, err := get(b.ctx(t), c, session, own(a, 0)); err != nil || string(got) != "a secret" {
		t.Errorf("the blob is %q now, %v", got, err)
	}
}

// blobsInTime checks that a failed put stores nothing, nor one whose attempt is taken back meanwhile.
func blobsInTime(t *testing.T, b *bench) {
	c := b.carrier(t)
	session, a := b.held(t)
	start := bytes.NewReader(make([]byte, 1<<20))
	for _, broken := range []error{errors.New("the disk broke"), io.ErrUnexpectedEOF} {
		start.Reset(make([]byte, 1<<20))
		if _, err := c.PutBlob(b.ctx(t), session, own(a, 0), io.MultiReader(start, iotest.ErrReader(broken))); !errors.Is(err, broken) {
			t.Errorf("put returned %v, want the reader's error %v", err, broken)
		}
	}
	if got, err := get(b.ctx(t), c, session, own(a, 0)); !errors.Is(err, handoff.ErrNoBlob) {
		t.Errorf("after a put that failed: %d bytes, %v", len(got), err)
	}
	lost := readerFunc(func([]byte) (int, error) {
		if err := b.Handoff.Close(b.ctx(t), session); err != nil {
			t.Errorf("close: %v", err)
		}
		return 0, io.EOF
	})
	start.Reset(make([]byte, 1<<20))
	if _, err := c.PutBlob(b.ctx(t), session, own(a, 1), io.MultiReader(start, lost)); !errors.Is(err, handoff.ErrNotHeld) && !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("put by who lost the attempt meanwhile: %v", err)
	}
	later := b.open(t)
	again := b.take(t, later)
	q := own(again, 0)
	q.Name = own(a, 1).Name
	if got, err := get(b.ctx(t), c, later, q); again.Attempt != 2 || !errors.Is(err, handoff.ErrNoBlob) {
		t.Errorf("attempt %d sees of the one before: %d bytes, %v", again.Attempt, len(got), err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
