package brokerrpc

import (
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/wire"
)

// Occupy sets how many transfers a server counts as under way.
func (s *Server) Occupy(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transfers = n
}

// Transfers is how many are under way.
func (s *Server) Transfers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transfers
}

// The bounds of transfers.
const (
	MostTransfers = mostTransfers
	KeptTransfers = keptTransfers
)

// StrayIn gives the client a message as if it had come into its reply queue without a waiting call.
func (c *Client) StrayIn(message []byte) {
	if f, err := unpack(message); err == nil {
		c.correlator.deliver(f)
	}
}

// Forged is an answer, signed with a key.
func Forged(key, session, body string) []byte {
	return pack(head{ID: newID(), Kind: kindAnswer, Session: session}, []byte(body), []byte(key), byServer)
}

// SecretOf is the secret of a session for servers with a key.
func SecretOf(key string, session flow.ID) string {
	return wire.NewServer(nil, []byte(key), wire.Holds{}).Secret(session)
}
