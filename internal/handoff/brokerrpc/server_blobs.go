package brokerrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/wire"
)

// blob answers a call that puts or gets a blob.
func (s *Server) blob(ctx context.Context, f *frame, session flow.ID, r *reply) error {
	carrier := s.wire.Carrier()
	if carrier == nil {
		return r.fail(ctx, fmt.Errorf("%w: this server carries no blobs", handoff.ErrBlobRefused))
	}
	var in blobCall
	if err := json.Unmarshal(f.body, &in); err != nil {
		return r.fail(ctx, fmt.Errorf("%w: %w", handoff.ErrBadCall, err))
	}
	if err := s.transfer(mostTransfers - keptTransfers); err != nil {
		return r.fail(ctx, err)
	}
	defer s.transferred()
	if f.Kind == kindGet {
		from, err := carrier.GetBlob(ctx, session, handoff.BlobQuery(in))
		if err != nil {
			return r.fail(ctx, err)
		}
		defer from.Close()
		if err := r.transmit(ctx, head{}, from); err != nil && !errors.Is(err, ErrNoReplyQueue) && !errors.Is(err, errStopped) {
			s.log.Debug("a blob on its way to a worker broke off; the worker asks for the rest", "err", err)
		}
		return nil
	}
	from := s.correlator.receive(ctx, f.Pipe, f.To, r.key, byServer, byWorker)
	defer from.Close()
	if errors.Is(from.over, errTwice) {
		return r.fail(ctx, from.over)
	}
	size, err := carrier.PutBlob(ctx, session, handoff.BlobQuery(in), from)
	if err != nil {
		return r.fail(ctx, err)
	}
	_ = r.give(ctx, wire.Stored{Size: size}) // a caller that gets no answer puts the blob again
	return nil
}
