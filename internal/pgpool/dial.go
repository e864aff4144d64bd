package pgpool

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// keepAlive asks the peer of an idle connection whether it is there, and gives it up after half a minute.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// bound gives connecting its limits: looking a host up has no other, and dialling none for what was sent afterwards.
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
