package brokerrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/handoff/wire"
)

// reply is the destination of a call's answer.
type reply struct {
	s    *Server
	call *frame
	key  []byte
}

// give answers a call. An error means that the caller does not get the answer.
func (r *reply) give(ctx context.Context, a any) error {
	body, err := wire.Encode(a)
	if err != nil {
		err = fmt.Errorf("the answer has no JSON form: %w", err)
		_ = r.fail(ctx, err)
		return err
	}
	return r.send(ctx, head{}, body)
}

// send answers with a body, as a transfer if the body is too large for a message.
func (r *reply) send(ctx context.Context, h head, body []byte) error {
	if len(body) <= MaxMessage {
		return r.put(ctx, h, body)
	}
	most := mostTransfers - keptTransfers
	if k := r.call.Kind; k == wire.Take || k == wire.Missed || k == wire.Resume {
		most = mostTransfers
	}
	if err := r.s.transfer(most); err != nil {
		_ = r.fail(ctx, err)
		return err
	}
	defer r.s.transferred()
	return r.transmit(ctx, h, bytes.NewReader(body))
}

// transmit answers with a transfer, and returns when the transfer has ended.
func (r *reply) transmit(ctx context.Context, h head, content io.Reader) error {
	m, err := r.s.correlator.at(ctx)
	if err != nil {
		return err
	}
	pipe := newID()
	acks := r.s.correlator.awaitAcks(pipe, r.key, byWorker)
	defer r.s.correlator.forget(pipe)
	sent := make(chan error, 1)
	sending, stop := context.WithCancel(ctx)
	defer stop()
	go func() { sent <- r.s.correlator.transmit(sending, acks, pipe, r.key, byServer, content) }()
	h.Pipe, h.To = pipe, m.Name()
	if err := r.put(ctx, h, nil); err != nil {
		stop()
		<-sent
		return err
	}
	return <-sent
}

// fail answers that a call has failed. It returns nil, because the call is finished.
func (r *reply) fail(ctx context.Context, err error) error {
	if errors.Is(err, errTwice) {
		return nil // another delivery of the same message is answered
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_ = r.put(ctx, head{Code: codeFor(err), Say: err.Error()}, nil) // a caller that gets no answer asks again
	return nil
}

// tryPut is how long it tries to deliver an answer while the broker does not answer. After that the worker asks for the work in it with
// Missed.
const tryPut = 5 * time.Second

// put puts an answer into the caller's reply queue.
func (r *reply) put(ctx context.Context, h head, body []byte) error {
	h.ID, h.Kind, h.Session = r.call.ID, kindAnswer, r.call.Session
	message := pack(h, body, r.key, byServer)
	failpoint.Hit(failpoint.BeforeAnswer)
	defer failpoint.Hit(failpoint.AfterPut)
	// A worker repeats reports and logs until it has the receipts. With more tries, a line would be emptied at 13 messages a second while
	// the broker takes no messages in, because each of mostTells takes would last for tryPut.
	once := r.call.Kind == wire.Report || r.call.Kind == wire.Log
	trying, cancel := context.WithTimeout(ctx, tryPut)
	defer cancel()
	for pause := 20 * time.Millisecond; ; pause *= 2 {
		err := r.s.transport.Put(trying, r.call.To, message)
		if err == nil || !errors.Is(err, ErrUnavailable) || once {
			return err
		}
		select {
		case <-time.After(pause):
		case <-trying.Done():
			return err
		}
	}
}
