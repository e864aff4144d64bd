// Package rabbitmqtest gives tests a RabbitMQ.
package rabbitmqtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
	"github.com/pawl-run/pawl/internal/programtest"
)

// Variable names the RabbitMQ that tests share.
const Variable = "PAWL_TEST_RABBITMQ"

// URL is a broker's URL with a namespace of the test's own, whose queues are deleted when the test ends. Reply queues expire.
func URL(t *testing.T) string {
	t.Helper()
	url := brokerrpctest.URL(t, Variable)
	t.Cleanup(func() { Flush(t, url) })
	return url
}

// Flush deletes the queues in the URL's namespace, and these reply queues.
func Flush(t *testing.T, url string, replyQueues ...string) {
	t.Helper()
	base, namespace, _ := strings.Cut(url, "?namespace=")
	c, err := amqp.Dial(base)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ch, err := c.Channel()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"owner", "ask", "tell", "log", "dead"}
	for _, b := range replyQueues {
		names = append(names, "to."+b)
	}
	for _, name := range names {
		if _, err := ch.QueueDelete("pawl."+namespace+"."+name, false, false, false); err != nil {
			t.Fatal(err)
		}
	}
}

// Server is a RabbitMQ of the test's own, which the test can kill and start again.
type Server struct {
	t                *testing.T
	dir, node        string
	port, dist, epmd string
	cmd              *exec.Cmd
}

// The programs themselves: Debian's wrappers change into the package's directory and to its user.
const programs = "/usr/lib/rabbitmq/bin/"

// Start starts a server, which takes some seconds; conf are lines of its configuration beside those for its place.
func Start(t *testing.T, conf ...string) *Server {
	t.Helper()
	return startNode(t, "pawl-test@localhost", programtest.FreePort(t), conf...)
}

// startNode starts a node that others find by its name through the port mapper at epmd.
func startNode(t *testing.T, node string, epmd string, conf ...string) *Server {
	t.Helper()
	if _, err := os.Stat(programs + "rabbitmq-server"); err != nil {
		brokerrpctest.Missing(t, "there is no "+programs+"rabbitmq-server (Debian's package rabbitmq-server has it)")
	}
	// Not below t.TempDir: Erlang's programs use deep paths of their own, and leave files while the test's are deleted.
	dir, err := os.MkdirTemp("", "pawl-rabbitmq-")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, dir: dir, node: node, port: programtest.FreePort(t), dist: programtest.FreePort(t), epmd: epmd}
	s.write("plugins", "[].\n")
	s.write(".erlang.cookie", "pawl")
	s.write("rabbitmq.conf", fmt.Sprintf(`listeners.tcp.default = 127.0.0.1:%s
log.file.level = warning
vm_memory_high_watermark.absolute = 1GB
raft.wal_max_size_bytes = 64000000
`, s.port)+strings.Join(conf, "\n"))
	t.Cleanup(func() {
		s.Kill()
		for range 50 { // the port mapper that the node has started refuses until it has noticed the node's end
			out, _ := exec.Command("epmd", "-port", s.epmd, "-kill").CombinedOutput() // there may be no port mapper
			if !strings.Contains(string(out), "not allowed") {
				break
			}
			<-time.After(50 * time.Millisecond)
		}
		_ = os.RemoveAll(dir)
	})
	s.Again()
	return s
}

func (s *Server) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// program prepares one of RabbitMQ's programs. All paths point into the server's directory.
func (s *Server) program(name string, args ...string) *exec.Cmd {
	c := exec.Command(programs+name, args...)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "HOME="+s.dir, "RABBITMQ_NODENAME="+s.node, "ERL_EPMD_PORT="+s.epmd, "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_DIST_PORT="+s.dist, "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+sbwt none -kernel inet_dist_use_interface {127,0,0,1}")
	for variable, name := range map[string]string{"RABBITMQ_MNESIA_BASE": "data", "RABBITMQ_LOG_BASE": "log", "RABBITMQ_LOGS": "log/log", "RABBITMQ_CONFIG_FILE": "rabbitmq.conf",
		"RABBITMQ_GENERATED_CONFIG_DIR": "config", "RABBITMQ_CONF_ENV_FILE": "none", "RABBITMQ_ENABLED_PLUGINS_FILE": "plugins", "RABBITMQ_PID_FILE": "pid"} {
		c.Env = append(c.Env, variable+"="+filepath.Join(s.dir, name))
	}
	return c
}

// Addr is the address of the server.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", s.port) }

// URL is the URL of the broker.
func (s *Server) URL() string { return "amqp://" + s.Addr() }

// Again starts it with the contents of its disk.
func (s *Server) Again() {
	s.t.Helper()
	out := filepath.Join(s.dir, "out")
	f, err := os.Create(out)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	s.cmd = s.program("rabbitmq-server")
	s.cmd.Stdout, s.cmd.Stderr = f, f
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	defer func() {
		if s.t.Failed() {
			said, _ := os.ReadFile(out) // the failure has been reported
			s.t.Logf("what %s has said:\n%s", s.node, said)
		}
	}()
	brokerrpctest.Await(s.t, 3*time.Minute, func() error {
		c, err := amqp.DialConfig(s.URL(), amqp.Config{Dial: amqp.DefaultDial(time.Second)})
		if err == nil {
			_ = c.Close()
		}
		return err
	})
}

// Kill kills it with SIGKILL.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	s.Signal(syscall.SIGKILL)
	_ = s.cmd.Wait() // it was killed
	s.cmd = nil
}

// Signal sends its processes a signal, such as SIGSTOP.
func (s *Server) Signal(sig os.Signal) {
	_ = syscall.Kill(-s.cmd.Process.Pid, sig.(syscall.Signal)) // they may have ended
}

// Ctl runs a command of rabbitmqctl, such as close_all_connections, and returns its output.
func (s *Server) Ctl(words ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c := s.program("rabbitmqctl", append([]string{"--quiet"}, words...)...)
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	defer stop()
	out, err := c.CombinedOutput()
	if err != nil {
		s.t.Fatalf("rabbitmqctl %v: %v\n%s", words, err, out)
	}
	return string(out)
}

// Queues are the names of its queues with a prefix.
func (s *Server) Queues(prefix string) (names []string) {
	s.t.Helper()
	for line := range strings.Lines(s.Ctl("list_queues", "--no-table-headers", "name")) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}

// Delete deletes the queues with a prefix.
func (s *Server) Delete(prefix string) {
	s.t.Helper()
	c, err := amqp.Dial(s.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	ch, err := c.Channel()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range s.Queues(prefix) {
		if _, err := ch.QueueDelete(name, false, false, false); err != nil {
			s.t.Fatal(err)
		}
	}
}
