package wire

import (
	"sync"

	"github.com/pawl-run/pawl/internal/flow"
)

// Secrets holds the secrets of a worker's sessions. The zero value is empty. It is safe for concurrent use.
type Secrets struct{ known sync.Map }

// Secret proves that a call comes from the worker that opened the session. A process needs it to resume the session.
func (s *Secrets) Secret(session flow.ID) string {
	found, _ := s.known.Load(session)
	secret, _ := found.(string)
	return secret
}

// Recall stores the secret of a session, which another process may have opened.
func (s *Secrets) Recall(session flow.ID, secret string) { s.known.Store(session, secret) }

func (s *Secrets) Forget(session flow.ID) { s.known.Delete(session) }
