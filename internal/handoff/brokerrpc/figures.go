package brokerrpc

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Figures are a server's figures of its broker: the lines as of a few seconds ago, and counts of the messages of this server.
type Figures struct {
	Up          bool
	Lines       map[Line]Depth
	Messages    map[Line]int64 // delivered
	Redelivered int64          // of these, not delivered for the first time
	Dead        int64          // dead-lettered by this server
	Rebuilt     int64          // reply queues of this server that were replaced
}

// gauge keeps a server's figures.
type gauge struct {
	mu      sync.Mutex
	figures Figures
	met     map[flow.ID]time.Time // sessions whose calls came through the broker, and when the last call came
}

func newGauge() *gauge {
	return &gauge{figures: Figures{Up: true, Lines: map[Line]Depth{}, Messages: map[Line]int64{Asks: 0, Tells: 0, Logs: 0}},
		met: map[flow.ID]time.Time{}}
}

const (
	lookEvery  = 5 * time.Second
	lookWithin = 3 * time.Second
)

// watch reads the broker's figures periodically, until ctx ends.
func (s *Server) watch(ctx context.Context) {
	for {
		asking, cancel := context.WithTimeout(ctx, lookWithin)
		lines, err := s.transport.Backlog(asking)
		cancel()
		if ctx.Err() != nil {
			return
		}
		s.gauge.observed(lines, err, time.Now().Add(-2*s.wire.Lease()))
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return
		}
	}
}

// observed records the figures of the broker, or that it did not answer. If it answers, sessions that have sent nothing for long are
// forgotten.
func (g *gauge) observed(lines map[Line]Depth, err error, before time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.figures.Up = err == nil; err != nil {
		return
	}
	g.figures.Lines = lines
	maps.DeleteFunc(g.met, func(_ flow.ID, at time.Time) bool { return at.Before(before) })
}

func (g *gauge) delivered(line Line, l Message) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.figures.Messages[line]++
	if l.Tries > 1 {
		g.figures.Redelivered++
	}
}

func (g *gauge) countDead() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.figures.Dead++
}

func (g *gauge) heard(session flow.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.met[session] = time.Now()
}

func (s *Server) Figures() Figures {
	s.gauge.mu.Lock()
	defer s.gauge.mu.Unlock()
	f := s.gauge.figures
	f.Lines, f.Messages = maps.Clone(f.Lines), maps.Clone(f.Messages)
	if s.correlator != nil {
		f.Rebuilt = s.correlator.made() - 1
	}
	return f
}

// Unreachable reports whether the broker does not answer and a session's worker is behind it.
func (s *Server) Unreachable(session flow.ID) bool {
	s.gauge.mu.Lock()
	defer s.gauge.mu.Unlock()
	_, met := s.gauge.met[session]
	return met && !s.gauge.figures.Up
}
