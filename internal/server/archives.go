package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/engine/archives"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const mediaTar = "application/x-tar"

const (
	// archivesAtOnce is how many archives may be written at once, since each may hold some large rows in memory.
	archivesAtOnce = 4
	// exportedIDs is how many executions one request may name.
	exportedIDs = 1000
)

// exportExecutions streams an archive. A failure on the way cuts the stream off, and readers refuse an archive without its end.
func (c *call) exportExecutions() error {
	var q archives.Exporting
	for _, text := range c.query["id"] {
		id, err := flow.ParseID(flow.ExecutionPrefix, text)
		if err != nil {
			c.fault("id", text, err.Error(), "write it as the lists have it")
		}
		q.IDs = append(q.IDs, id)
	}
	f, err := c.filter()
	if err != nil {
		return err
	}
	q.Filter = f
	filtered := f.Action != "" || len(f.Labels) > 0 || len(f.Stages) > 0 || len(f.Verdicts) > 0 || !f.Since.IsZero() || !f.Until.IsZero() || !f.RerunOf.IsZero() || !f.RetryOf.IsZero()
	switch {
	case len(q.IDs) > exportedIDs:
		return invalid(api.FieldError{Path: "id", Value: fmt.Sprint(len(q.IDs)), Message: fmt.Sprintf("one archive has at most %d executions by their ids", exportedIDs), Fix: "select them by a label, or write several archives"})
	case len(q.IDs) > 0 && filtered:
		return invalid(api.FieldError{Path: "id", Message: "ids and filters do not go together", Fix: "leave out one of them"})
	case len(q.IDs) == 0 && !filtered:
		return invalid(api.FieldError{Path: "id", Message: "nothing says what to export", Fix: "name executions, or select them by label, action, status or time; ?since=1970-01-01T00:00:00Z selects all"})
	}
	done, err := c.archives.occupy(c, "archives are being written")
	if err != nil {
		return err
	}
	defer done()
	if err := c.Engine.Archives().CheckExport(c.ctx(), q.IDs); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	h := c.w.Header()
	h.Set("Content-Type", mediaTar)
	h.Set("Content-Disposition", `attachment; filename="`+archiveName(q.IDs)+`"`)
	inert(h)
	c.w.WriteHeader(http.StatusOK)
	ctx, stop := context.WithCancel(c.ctx())
	defer stop()
	defer context.AfterFunc(c.draining, stop)()
	to := &pieces{c, http.NewResponseController(c.w)}
	_ = to.rc.Flush() // a search for old executions may take a while before the first data
	err = c.Engine.Archives().Export(ctx, to, archive.Manifest{Pawl: c.Version, From: host, At: time.Now().UTC().Truncate(time.Microsecond)}, q)
	if err == nil {
		return nil
	}
	if !errors.Is(err, errGone) && c.ctx().Err() == nil {
		c.log.Warn("an export was cut off", telemetry.Err, err)
	}
	panic(http.ErrAbortHandler) // so that the truncated answer does not look complete
}

func archiveName(ids []flow.ID) string {
	if len(ids) == 1 {
		return ids[0].String() + ".pawl"
	}
	return "executions.pawl"
}

// pieces writes to a client that may be slow, and gives up on a client that does not read.
type pieces struct {
	call *call
	rc   *http.ResponseController
}

func (p *pieces) Write(b []byte) (int, error) {
	if err := p.call.writePieces(p.rc, b); err != nil {
		return 0, err
	}
	return len(b), nil
}
