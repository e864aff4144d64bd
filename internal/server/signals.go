package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func emission(in *api.Emission, chain []string) engine.Emission {
	return engine.Emission{Rules: chain, Trigger: in.Trigger, Data: in.Data, Key: in.Key, Subject: in.Subject, Source: flow.SourceAPI}
}

// chain reads the chain of rules that led to the request.
func (c *call) chain() ([]string, error) {
	return c.Engine.Chain(c.ctx(), strings.Join(c.r.Header.Values(engine.ChainHeader), ","))
}

func (c *call) emit(in *api.Emission) error {
	chain, err := c.chain()
	if err != nil {
		return err
	}
	all, err := c.Engine.Emit(c.ctx(), []engine.Emission{emission(in, chain)})
	if err != nil {
		return fmt.Errorf("emit: %w", err)
	}
	return c.emitted(all[0], all[0].Err)
}

func (c *call) emitted(v engine.Emitted, err error) error {
	if err != nil {
		return fmt.Errorf("emit: %w", err)
	}
	id := v.Signal.Text(flow.SignalPrefix)
	c.w.Header().Set("Location", "/api/v1/signals/"+id)
	status := http.StatusAccepted
	if v.Existing {
		status = http.StatusOK
	}
	return c.json(status, api.Emitted{Signal: id, Existing: v.Existing, Enforcements: renderEnforcements(v.Enforcements)})
}

func (c *call) emitTo(id flow.ID, in *api.Emission) error {
	if in.Subject != "" {
		return invalid(api.FieldError{Path: "subject", Value: in.Subject, Message: "it is the execution here", Fix: "leave it out, or emit it by /api/v1/signals"})
	}
	chain, err := c.chain()
	if err != nil {
		return err
	}
	return c.emitted(c.Engine.EmitTo(c.ctx(), id, emission(in, chain)))
}

func (c *call) emitBatch(in *api.EmissionBatch) error {
	if err := checkBatch("signals", len(in.Signals)); err != nil {
		return err
	}
	chain, err := c.chain()
	if err != nil {
		return err
	}
	ms := make([]engine.Emission, len(in.Signals))
	for i := range in.Signals {
		ms[i] = emission(&in.Signals[i], chain)
	}
	verdicts, err := c.Engine.Emit(c.ctx(), ms)
	if err != nil {
		return fmt.Errorf("emit batch: %w", err)
	}
	out := api.BatchResult{Results: make([]api.BatchEntry, len(verdicts))}
	for i, v := range verdicts {
		if v.Err != nil {
			out.Refused++
			out.Results[i].Problem = batchProblem(fmt.Sprintf("signals[%d]", i), v.Err)
			continue
		}
		out.Accepted++
		out.Results[i] = api.BatchEntry{ID: v.Signal.Text(flow.SignalPrefix), Existing: v.Existing}
	}
	return c.json(http.StatusOK, out)
}

func renderSignal(s *flow.Signal) api.Signal {
	if !json.Valid(s.Data) { // a damaged row must not hide the others of a list
		s.Data, _ = json.Marshal(string(s.Data))
	}
	return api.Signal{ID: s.ID.Text(flow.SignalPrefix), Trigger: s.Trigger, Key: s.Key, Subject: s.Subject, Source: s.Source, At: s.At, State: s.State.String(),
		Data: s.Data, Headers: s.Headers, Cause: s.Cause.String(), Rules: s.Rules, Replayed: s.Replayed}
}

func (c *call) loadSignal() (flow.Signal, error) {
	id, err := idNamed("signal", flow.SignalPrefix, c.r.PathValue("id"))
	if err != nil {
		return flow.Signal{}, err
	}
	s, err := c.Engine.Reader().Signal(c.ctx(), id)
	if errors.Is(err, store.ErrNotFound) {
		return s, refusal(http.StatusNotFound, api.ProblemNotFound,
			fmt.Sprintf("there is no signal %s here: there never was, or retention has removed it", id.Text(flow.SignalPrefix)))
	}
	return s, err
}

func (c *call) signal() error {
	s, err := c.loadSignal()
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, renderSignal(&s))
}

func (c *call) signals() error {
	f := store.SignalFilter{Trigger: c.query.Get("trigger"), Subject: c.query.Get("subject"), Source: c.query.Get("source"), Since: c.time("since"),
		Limit: int(c.number("limit", 100, 1, 1000))}
	if text := c.query.Get("cursor"); text != "" {
		f.Before = c.signalPlace(text)
	}
	if err := c.checked(); err != nil {
		return err
	}
	if c.wantsStream() {
		first := f
		return watchList(c, api.StreamSignal, func(s *api.Signal) string { return s.ID }, func() { f = first }, func() ([]api.Signal, error) {
			rows, err := c.Engine.Reader().Signals(c.ctx(), f)
			if err != nil {
				return nil, fmt.Errorf("list signals: %w", err)
			}
			all := make([]api.Signal, len(rows))
			for i := range rows {
				f.Before, all[i] = store.PlaceOf(&rows[i]), renderSignal(&rows[i])
			}
			return all, nil
		})
	}
	limit := f.Limit
	f.Limit++ // one more, to see whether there is another page
	rows, err := c.Engine.Reader().Signals(c.ctx(), f)
	if err != nil {
		return fmt.Errorf("list signals: %w", err)
	}
	more := len(rows) > limit
	rows = rows[:min(len(rows), limit)]
	var size store.Page
	page := api.SignalPage{Signals: make([]api.Signal, len(rows))}
	for i := range rows {
		size.Signal(&rows[i])
		page.Signals[i] = renderSignal(&rows[i])
	}
	if more || size.Full() { // the next page may be empty
		last := store.PlaceOf(&rows[len(rows)-1])
		page.NextCursor = fmt.Sprintf("%d.%d", last.At.UnixMicro(), last.Number)
	}
	return c.json(http.StatusOK, page)
}

func (c *call) signalPlace(text string) store.SignalPlace {
	at, number, _ := strings.Cut(text, ".")
	micros, err := strconv.ParseInt(at, 10, 64)
	n, bad := strconv.ParseInt(number, 10, 64)
	if err != nil || bad != nil {
		c.noPlace()
	}
	return store.SignalPlace{At: time.UnixMicro(micros).UTC(), Number: n}
}
