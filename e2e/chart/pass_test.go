package chart

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime/kubernetes/kubernetestest"
)

// nodeAddress is where pods reach this host.
func nodeAddress(t *testing.T) string {
	t.Helper()
	var nodes struct {
		Items []struct {
			Status struct {
				Addresses []struct{ Type, Address string }
			}
		}
	}
	kubernetestest.Do(t, "GET", "/api/v1/nodes", nil, &nodes)
	for _, n := range nodes.Items {
		for _, a := range n.Status.Addresses {
			if a.Type == "InternalIP" {
				return a.Address
			}
		}
	}
	t.Fatal("the node has no address")
	return ""
}

// pass listens at the node's address and forwards each connection to the address that to returns at that time. It returns host and port.
func pass(t *testing.T, node string, to func() string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(node, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go passOne(from, to())
		}
	}()
	return l.Addr().String()
}

func passOne(from net.Conn, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, err := io.Copy(to, from)
		if tcp, ok := to.(*net.TCPConn); ok && !errors.Is(err, net.ErrClosed) {
			_ = tcp.CloseWrite()
		}
	}()
	_, _ = io.Copy(from, to)
}

// readyServer returns the address of a ready server, another one each time, as a Service does.
func (i *installation) readyServer(cluster *http.Client, host string) func() string {
	var turns atomic.Int64
	return func() string {
		var pods struct {
			Items []struct {
				Metadata struct{ DeletionTimestamp string }
				Status   struct {
					PodIP      string
					Conditions []struct{ Type, Status string }
				}
			}
		}
		response, err := cluster.Get(host + "/api/v1/namespaces/" + i.namespace + "/pods?labelSelector=app.kubernetes.io/component=server")
		if err != nil {
			return nowhere
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(&pods); err != nil {
			return nowhere
		}
		var ready []string
		for _, p := range pods.Items {
			for _, c := range p.Status.Conditions {
				if c.Type == "Ready" && c.Status == "True" && p.Metadata.DeletionTimestamp == "" {
					ready = append(ready, p.Status.PodIP+":7411")
				}
			}
		}
		if len(ready) == 0 {
			return nowhere
		}
		return ready[turns.Add(1)%int64(len(ready))]
	}
}

// nowhere refuses connections.
const nowhere = "127.0.0.1:1"
