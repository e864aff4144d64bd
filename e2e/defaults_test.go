package e2e

import (
	"testing"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/handler"
)

// A program that submits and one that serves handlers use the same server by default.
func TestDefaultServers(t *testing.T) {
	if client.DefaultServer != handler.DefaultServer {
		t.Errorf("clients look at %s and handlers at %s", client.DefaultServer, handler.DefaultServer)
	}
}
