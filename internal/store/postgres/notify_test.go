package postgres

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/pgpool"
)

// Heard distinguishes a DSN whose connections receive notifications from one whose connections do not.
func TestHeard(t *testing.T) {
	t.Parallel()
	dsn := server(t)
	for name, c := range map[string]struct {
		store, notify, say string
		ping               time.Duration
	}{
		"the server":                        {dsn, "", "", time.Minute},
		"a pooler and the server":           {pooler(t), dsn, "", time.Minute},
		"a pooler alone":                    {pooler(t), "", "passes no notifications on", 0},
		"connections without notifications": {dsn, withoutNotifications(t, dsn), "not heard", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(t.Context(), c.store, Options{Schema: emptySchema(t), NotifyDSN: c.notify, Limits: pgpool.Limits{Ping: c.ping}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			err = s.Heard(t.Context())
			if (err == nil) != (c.say == "") || err != nil && !strings.Contains(err.Error(), c.say) {
				t.Errorf("heard: %v; want %q", err, c.say)
			}
		})
	}
}

// withoutNotifications returns a DSN for a proxy to the server that passes no notifications on, like poolers in transaction mode.
func withoutNotifications(t *testing.T, dsn string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	to := u.Host
	serving.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer near.Close()
				far, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer far.Close()
				serving.Go(func() {
					defer far.Close()
					_, _ = io.Copy(far, near)
				})
				for { // a message is its type, its length including these four bytes, and the rest
					head := make([]byte, 5)
					if _, err := io.ReadFull(far, head); err != nil {
						return
					}
					rest := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
					if _, err := io.ReadFull(far, rest); err != nil {
						return
					}
					if head[0] == 'A' {
						continue
					}
					if _, err := near.Write(append(head, rest...)); err != nil {
						return
					}
				}
			})
		}
	})
	return with(t, dsn, func(u *url.URL) { u.Host = l.Addr().String() })
}

// A listener decodes the same executions that the sender encoded.
func TestNotificationsNameExecutions(t *testing.T) {
	t.Parallel()
	var n news
	for i := range byte(mostNamed) {
		n.executions = append(n.executions, flow.ID{i, 15: 1})
	}
	text, err := n.encode("P")
	var heard note
	if err == nil {
		err = json.Unmarshal([]byte(text), &heard)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := heard.notification(); got.All || !slices.Equal(got.Executions, n.executions) {
		t.Errorf("heard %+v of %s", got, text)
	}
}

// A process recognises its own notifications by their first bytes and does not decode them. So each notification begins with the name of
// its process.
func TestOwnNotifications(t *testing.T) {
	t.Parallel()
	for _, n := range []news{{}, {queues: map[string]bool{"default": true}}, {executions: []flow.ID{{1}}, pauses: true}, {all: true}} {
		text, err := n.encode("THISPROCESS")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(text, from("THISPROCESS")) || strings.HasPrefix(text, from("THISPROC")) {
			t.Errorf("the notification %s does not begin with the process", text)
		}
	}
}
