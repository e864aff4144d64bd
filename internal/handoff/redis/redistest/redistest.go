// Package redistest gives tests a Redis.
package redistest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
	"github.com/pawl-run/pawl/internal/programtest"
)

// Variable names the Redis that tests share.
const Variable = "PAWL_TEST_REDIS"

// URL is a broker's URL with a namespace of the test's own, which is emptied when the test ends.
func URL(t *testing.T) string {
	t.Helper()
	url := brokerrpctest.URL(t, Variable)
	t.Cleanup(func() { Flush(t, url) })
	return url
}

// Flush deletes everything in the URL's namespace.
func Flush(t *testing.T, url string) {
	t.Helper()
	eval(t, url, `for _, k in ipairs(redis.call('KEYS', ARGV[1]..'*')) do redis.call('DEL', k) end`)
}

// Replace puts lists in the places of all keys of the URL's namespace.
func Replace(t *testing.T, url string, replyQueues ...string) {
	t.Helper()
	keys := []string{"ask", "tell", "log", "dead", "bytes", "meta"}
	for _, name := range replyQueues {
		keys = append(keys, "to:"+name)
	}
	eval(t, url, `for i = 2, #ARGV do
	redis.call('DEL', ARGV[1]..ARGV[i])
	redis.call('RPUSH', ARGV[1]..ARGV[i], 'theirs')
end`, keys...)
}

// eval runs a script whose first argument is the beginning of all keys of the URL's namespace.
func eval(t *testing.T, url, script string, args ...string) {
	t.Helper()
	base, namespace, _ := strings.Cut(url, "?namespace=")
	o, err := rueidis.ParseURL(base)
	if err != nil {
		t.Fatal(err)
	}
	o.DisableCache = true
	c, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Do(context.Background(), c.B().Eval().Script(script).Numkeys(0).Arg("pawl:{"+namespace+"}:").Arg(args...).Build()).Error()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatal(err)
	}
}

// Server is a Redis of the test's own, which the test can kill and start again.
type Server struct {
	t    *testing.T
	dir  string
	port string
	cmd  *exec.Cmd
	conf []string // its configuration file, if it has one
	args []string
}

// Start starts a server; args are options of redis-server beside those for its place, for example "--appendonly", "yes".
func Start(t *testing.T, args ...string) *Server {
	t.Helper()
	return start(t, nil, append([]string{"--save", ""}, args...)...)
}

func start(t *testing.T, conf []string, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		brokerrpctest.Missing(t, "there is no redis-server (Debian's package redis-server has it)")
	}
	s := &Server{t: t, dir: t.TempDir(), port: programtest.FreePort(t), conf: conf, args: args}
	s.Again()
	t.Cleanup(s.Kill)
	return s
}

// Addr is the address of the server.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", s.port) }

// URL is the URL of the broker.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Again starts it with the contents of its disk.
func (s *Server) Again() {
	s.t.Helper()
	place := []string{"--port", s.port, "--bind", "127.0.0.1", "--dir", s.dir}
	s.cmd = exec.Command("redis-server", slices.Concat(s.conf, place, s.args)...)
	s.cmd.Dir = s.dir
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	brokerrpctest.Await(s.t, 20*time.Second, func() error {
		c, err := net.Dial("tcp", s.Addr())
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
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()         // it was killed
	s.cmd = nil
}

// Signal sends its process a signal, such as SIGSTOP.
func (s *Server) Signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Forget deletes the contents of its disk, while it does not run.
func (s *Server) Forget() {
	s.t.Helper()
	for _, name := range []string{"appendonlydir", "dump.rdb"} {
		if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Do runs a command, such as FLUSHALL.
func (s *Server) Do(words ...string) {
	s.t.Helper()
	if err := s.Try(words...); err != nil {
		s.t.Fatal(err)
	}
}

// word is a word of a command line, which may be in quotes.
var word = regexp.MustCompile(`'[^']*'|\S+`)

// Rights creates the users of docs/brokers.md, with the rights that are written there: servers and plant, a worker's, whose password is
// sesame. Their rights cover the namespace prod. The calling test must be in a package beneath internal/handoff.
func (s *Server) Rights() {
	s.t.Helper()
	text, err := os.ReadFile("../../../docs/brokers.md")
	if err != nil {
		s.t.Fatal(err)
	}
	_, rules, _ := strings.Cut(string(text), "# rights in Redis\n")
	rules, _, ok := strings.Cut(rules, "```")
	if !ok {
		s.t.Fatal("docs/brokers.md has no access rules")
	}
	for line := range strings.Lines(rules) {
		words := word.FindAllString(line, -1)
		if len(words) < 3 || words[0] != "redis-cli" {
			s.t.Fatalf("access rules: %q", line)
		}
		for i := range words {
			words[i] = strings.Trim(words[i], "'")
		}
		s.Do(words[1:]...)
	}
}

// As is the URL of a broker for a user of Rights, and the namespace prod.
func (s *Server) As(user string) string {
	return "redis://" + user + ":sesame@" + s.Addr() + "?namespace=prod"
}

// Try runs a command that may be refused. Redis's nil is not an error.
func (s *Server) Try(words ...string) error { return s.TryAs("", words...) }

// TryAs is Try as a user of Rights.
func (s *Server) TryAs(user string, words ...string) error {
	s.t.Helper()
	o := rueidis.ClientOption{InitAddress: []string{s.Addr()}, DisableCache: true}
	if user != "" {
		o.Username, o.Password = user, "sesame"
	}
	c, err := rueidis.NewClient(o)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	if err = c.Do(context.Background(), c.B().Arbitrary(words...).Build()).Error(); rueidis.IsRedisNil(err) {
		return nil
	}
	return err
}
