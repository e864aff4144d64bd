package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
	"github.com/pawl-run/pawl/internal/programtest"
)

// Several are Redis servers: one leads, and another one replaces it when it is gone.
type Several struct {
	t     *testing.T
	url   string
	nodes []*Server
	// leads reports whether clients are sent to a server. Behind a sentinel it is not enough that a server calls itself a leader: until the
	// sentinel names it, the takeover can be given up, and then the old leader leads again when it is back.
	leads func(n *Server, key string) bool
}

// takeover bounds a change of the leader. A sentinel that got no processor for 2 s does nothing for the next 30 s,
// because it does not trust its clock, and begins again after 10 s; a second such gap fits.
const takeover = 2 * time.Minute

// Sentinel starts a leader, a follower and the sentinel that watches them.
func Sentinel(t *testing.T) *Several {
	t.Helper()
	leader := Start(t)
	follower := Start(t, "--replicaof", "127.0.0.1 "+leader.port)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "sentinel monitor leader 127.0.0.1 %s 1\n"+
		"sentinel down-after-milliseconds leader 1000\nsentinel failover-timeout leader 5000\n", leader.port), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := start(t, []string{conf}, "--sentinel")
	s := &Several{t: t, url: sentinel.URL() + "?master_set=leader", nodes: []*Server{leader, follower}, leads: func(n *Server, _ string) bool {
		return strings.Contains(sentinel.cli("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "leader")+"\n", "\n"+n.port+"\n")
	}}
	brokerrpctest.Await(t, takeover, func() error { // a sentinel that knows no follower cannot promote one
		if out := sentinel.cli("SENTINEL", "REPLICAS", "leader"); !strings.Contains(out, follower.port) ||
			!strings.Contains(out, "master-link-status\nok") {
			return fmt.Errorf("the sentinel knows of no follower: %s", out)
		}
		return nil
	})
	return s
}

// Cluster starts a cluster of three leaders, each with a follower.
func Cluster(t *testing.T) *Several {
	t.Helper()
	s := &Several{t: t, leads: func(n *Server, key string) bool {
		out := n.cli("EXISTS", key)
		return !strings.Contains(out, "MOVED") && !strings.Contains(out, "CLUSTERDOWN")
	}}
	words := []string{"--cluster", "create"}
	for range 6 {
		n := Start(t, "--cluster-enabled", "yes", "--cluster-port", programtest.FreePort(t), "--cluster-node-timeout", "2000")
		s.nodes = append(s.nodes, n)
		words = append(words, n.Addr())
	}
	s.url = s.nodes[0].URL() + "?addr=" + s.nodes[1].Addr() + "&addr=" + s.nodes[2].Addr()
	if out, err := exec.Command("redis-cli", append(words, "--cluster-replicas", "1", "--cluster-yes")...).CombinedOutput(); err != nil {
		t.Fatalf("make the cluster: %v\n%s", err, out)
	}
	brokerrpctest.Await(t, takeover, func() error {
		for _, n := range s.nodes {
			if out := n.cli("CLUSTER", "INFO"); !strings.Contains(out, "cluster_state:ok") || !strings.Contains(out, "cluster_known_nodes:6") {
				return fmt.Errorf("%s: %s", n.Addr(), out)
			}
			if out := n.cli("INFO", "replication"); strings.Contains(out, "role:slave") && !strings.Contains(out, "master_link_status:up") {
				return fmt.Errorf("%s follows no leader: %s", n.Addr(), out)
			}
		}
		return nil
	})
	return s
}

// URL is the URL of the broker.
func (s *Several) URL() string { return s.url }

// Leader is the server that has a key; nil if there is none.
func (s *Several) Leader(key string) *Server {
	for _, n := range s.nodes {
		if n.cmd != nil && strings.Contains(n.cli("INFO", "replication"), "role:master") && s.leads(n, key) {
			return n
		}
	}
	return nil
}

// Fail kills the server that has a key, waits until another has replaced it, starts it again and waits until one
// follows the other. It may lead once more: on a busy machine the new leader may not answer for a second, and the
// sentinel then considers it gone.
func (s *Several) Fail(key string) {
	s.t.Helper()
	old := s.Leader(key)
	if old == nil {
		s.t.Errorf("no server leads %s", key)
		return
	}
	old.Kill()
	if !s.eventually(func() bool { return s.Leader(key) != nil }) {
		s.t.Errorf("no server has taken the place of the leader of %s within %s", key, takeover)
	}
	old.Again()
	says := ""
	if !s.eventually(func() bool {
		says = old.cli("INFO", "replication")
		return strings.Contains(says, "master_link_status:up") || strings.Contains(says, "state=online") && s.Leader(key) == old
	}) {
		s.t.Errorf("the server that led %s neither follows nor is followed within %s: %s", key, takeover, says)
	}
}

func (s *Several) eventually(is func() bool) bool {
	for deadline := time.Now().Add(takeover); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return false
}

// cli is the output of redis-cli.
func (s *Server) cli(words ...string) string {
	// Its output says what fails.
	out, _ := exec.Command("redis-cli", append([]string{"-h", "127.0.0.1", "-p", s.port}, words...)...).CombinedOutput()
	return string(out)
}
