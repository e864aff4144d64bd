package server

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// digests reads the case digests of evaluations from the last event of each, if that has one. A digest has at most 1.2 KB, while the output
// also has everything that each case wrote.
func (c *call) digests(found []*flow.Execution) (map[flow.ID]*api.CaseDigest, error) {
	var ids []flow.ID
	for _, x := range found {
		if x.Kind == flow.KindCode && x.Outcome != nil {
			ids = append(ids, x.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	all, err := c.Engine.Reader().Documents(c.ctx(), store.EndDataOf, ids)
	if err != nil {
		return nil, fmt.Errorf("list executions: %w", err)
	}
	digests := map[flow.ID]*api.CaseDigest{}
	for i, data := range all {
		var said struct {
			Cases json.RawMessage `json:"cases"`
		}
		if len(data) > 0 && json.Unmarshal(data, &said) == nil {
			if d := digestOf(said.Cases); d != nil {
				digests[ids[i]] = d
			}
		}
	}
	return digests, nil
}

// digestOf decodes a digest, and returns nil for an invalid one. A worker or an archive may have written something else in its place.
func digestOf(text json.RawMessage) *api.CaseDigest {
	d := new(api.CaseDigest)
	if len(text) == 0 || json.Unmarshal(text, d) != nil || d.Total < 1 || d.Total > api.MaxCases || len(d.Cells) != d.Total {
		return nil
	}
	return d
}

// renderDigest is renderRun with the data of a digest.
func renderDigest(row *api.Execution, x *flow.Execution, d *api.CaseDigest) {
	renderRun(row, x, nil)
	row.WallMS, row.CPUMS, row.PeakMemoryBytes = d.WallMS, d.CPUMS, d.PeakMemoryBytes
	s := &api.CaseSummary{Total: d.Total, Passed: d.Passed, Skipped: strings.Count(d.Cells, string(api.CaseSkipped)), Uncompared: strings.Count(d.Cells, string(api.CaseUncompared))}
	s.Failed = s.Total - s.Passed - s.Skipped
	row.Summary = s
}
