package engine

import (
	"context"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/schedule"
)

// plannedStart is the request of an execution that a tick of a schedule, a rule or a closing window starts. It is made before the
// transaction that submits it.
type plannedStart struct {
	fire    schedule.Fire // zero if no tick starts it
	id      flow.ID
	request flow.Request
	sums    []blob.Sum
	err     error // why there is no request
}

// missingUploads locks the uploads that an execution names until the transaction ends. If some do not exist, there is no execution: refusal
// names them.
func (t *transaction) missingUploads(ctx context.Context, s *plannedStart) (refusal, err error) {
	if len(s.sums) == 0 {
		return nil, nil
	}
	if err := t.lockUploads(ctx, s.sums); err != nil {
		return nil, err
	}
	return uploads.Missing(&s.request, t.loaded.uploads), nil
}

func (t *transaction) submitPlanned(ctx context.Context, s *plannedStart) error {
	r := s.request
	r.CreatedAt = t.now
	d := flow.Submit(s.id, r)
	t.add(d)
	t.referenceUploads(s.id, s.sums)
	return t.admit(ctx, []*flow.Draft{d})
}
