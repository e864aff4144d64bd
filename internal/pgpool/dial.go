package pgpool

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// keepAlive probes the peer of an idle connection, and closes the connection after half a minute without an answer.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// bound sets limits for connecting: host look-ups have no other limit, and connections have none for bytes that are sent later.
func bound(cfg *pgconn.Config, l Limits) {
	cfg.ConnectTimeout = l.Connect
	d := &net.Dialer{KeepAliveConfig: keepAlive, Control: control(l.Unacknowledged)}
	cfg.DialFunc = d.DialContext
	look := cfg.LookupFunc
	cfg.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, l.Connect)
		defer cancel()
		return look(ctx, host)
	}
}
