package e2e

import (
	"testing"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/handler"
)

// A program that submits and one that serves handlers find the same server when neither is told where it is.
func TestDefaultServers(t *testing.T) {
	if client.DefaultServer != handler.DefaultServer {
		t.Errorf("clients look at %s and handlers at %s", client.DefaultServer, handler.DefaultServer)
	}
}
