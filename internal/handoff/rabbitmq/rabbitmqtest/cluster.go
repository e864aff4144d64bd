package rabbitmqtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
	"github.com/pawl-run/pawl/internal/programtest"
)

// Nodes are a cluster of three RabbitMQ nodes, any two of which keep the quorum queues.
type Nodes struct {
	t   *testing.T
	all []*Server
}

// takeover is how long another node may take to lead a queue.
const takeover = 2 * time.Minute

// Cluster starts a cluster, which takes about half a minute.
func Cluster(t *testing.T) *Nodes {
	t.Helper()
	c, epmd := &Nodes{t: t}, programtest.FreePort(t)
	var conf []string
	for i := range 3 {
		node := fmt.Sprintf("pawl-%d@localhost", i)
		c.all = append(c.all, startNode(t, node, epmd, conf...))
		if i == 0 {
			conf = append(conf, "cluster_formation.peer_discovery_backend = classic_config", "cluster_formation.classic_config.nodes.1 = "+node)
		}
	}
	return c
}

// URL is the URL of the broker, with all nodes.
func (c *Nodes) URL() string {
	return c.all[0].URL() + "?addr=" + c.all[1].Addr() + "&addr=" + c.all[2].Addr()
}

// leader is the node that leads a quorum queue; nil if none does.
func (c *Nodes) leader(queue string) *Server {
	c.t.Helper()
	living := slices.DeleteFunc(slices.Clone(c.all), func(n *Server) bool { return n.cmd == nil })
	for line := range strings.Lines(living[0].Ctl("list_queues", "--no-table-headers", "name", "leader")) {
		name, node, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if at := slices.IndexFunc(living, func(n *Server) bool { return n.node == node }); name == queue && at >= 0 {
			return living[at]
		}
	}
	return nil
}

// Fail kills the node that leads a quorum queue, waits until another does, and starts it again.
func (c *Nodes) Fail(queue string) {
	c.t.Helper()
	old := c.leader(queue)
	if old == nil {
		c.t.Errorf("no node leads %s", queue)
		return
	}
	old.Kill()
	brokerrpctest.Await(c.t, takeover, func() error {
		if c.leader(queue) == nil {
			return fmt.Errorf("no node has taken the place of %s, which led %s", old.node, queue)
		}
		return nil
	})
	old.Again()
}
