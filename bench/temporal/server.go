package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	v12 "go.temporal.io/server/schema/postgresql/v12"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
	"go.temporal.io/server/tools/common/schema"
	toolsql "go.temporal.io/server/tools/sql"
)

const (
	host      = "127.0.0.1"
	namespace = "bench"
	cluster0  = "active"
	shards    = 4  // as in its example for one machine
	maxConns  = 20 // the same
)

// startServer prepares the databases and starts all services; address is the frontend's.
func startServer(ctx context.Context, dsn string) (_ temporal.Server, address string, err error) {
	main, visibility, err := databases(ctx, dsn)
	if err != nil {
		return nil, "", err
	}
	quiet := log.NewNoopLogger()
	for _, d := range []struct {
		sql           *config.SQL
		name, version string
	}{
		{main, "postgresql/v12/temporal", v12.Version},
		{visibility, "postgresql/v12/visibility", v12.VisibilityVersion},
	} {
		if err := setUp(d.sql, d.name, d.version, quiet); err != nil {
			return nil, "", fmt.Errorf("set up %s: %w", d.name, err)
		}
	}
	ns, err := sqlite.NewNamespaceConfig(cluster0, namespace, false, nil)
	if err == nil {
		// The package is named after another database, but works with any.
		err = sqlite.CreateNamespaces(main, ns)
	}
	if err != nil {
		return nil, "", fmt.Errorf("create the namespace: %w", err)
	}
	cfg, address, err := configuration(main, visibility)
	if err != nil {
		return nil, "", err
	}
	s, err := temporal.NewServer(temporal.WithConfig(cfg), temporal.ForServices(temporal.DefaultServices), temporal.WithLogger(quiet),
		temporal.WithDynamicConfigClient(dynamicconfig.StaticClient{}))
	if err != nil {
		return nil, "", fmt.Errorf("make the server: %w", err)
	}
	if err := s.Start(); err != nil {
		return nil, "", fmt.Errorf("start the server: %w", err)
	}
	return s, address, nil
}

// databases creates the second database that Temporal needs and describes both.
func databases(ctx context.Context, dsn string) (main, visibility *config.SQL, err error) {
	parsed, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, nil, err
	}
	second := parsed.Database + trialVisibility
	c, err := pgx.ConnectConfig(ctx, parsed)
	if err != nil {
		return nil, nil, err
	}
	_, err = c.Exec(ctx, `CREATE DATABASE `+pgx.Identifier{second}.Sanitize())
	_ = c.Close(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("make the second database: %w", err)
	}
	of := func(name string, conns int) *config.SQL {
		return &config.SQL{
			PluginName: postgresql.PluginNamePGX, DatabaseName: name, User: parsed.User, Password: parsed.Password, ConnectProtocol: "tcp",
			ConnectAddr: net.JoinHostPort(parsed.Host, strconv.Itoa(int(parsed.Port))), MaxConns: conns, MaxIdleConns: conns, MaxConnLifetime: time.Hour,
		}
	}
	return of(parsed.Database, maxConns), of(second, maxConns), nil
}

func setUp(cfg *config.SQL, name, version string, l log.Logger) error {
	c, err := toolsql.NewConnection(cfg, l)
	if err != nil {
		return err
	}
	defer c.Close()
	return schema.NewSetupSchemaTask(c, &schema.SetupConfig{SchemaName: name, InitialVersion: version}, l).Run()
}

func configuration(main, visibility *config.SQL) (*config.Config, string, error) {
	ports, err := freePorts(8)
	if err != nil {
		return nil, "", err
	}
	address := net.JoinHostPort(host, strconv.Itoa(ports[0]))
	services := map[string]config.Service{}
	for i, name := range []string{"frontend", "history", "matching", "worker"} {
		services[name] = config.Service{RPC: config.RPC{GRPCPort: ports[i], MembershipPort: ports[4+i], BindOnLocalHost: true}}
	}
	return &config.Config{
		Global: config.Global{Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: host}},
		Persistence: config.Persistence{
			DefaultStore: "main", VisibilityStore: "visibility", NumHistoryShards: shards,
			DataStores: map[string]config.DataStore{"main": {SQL: main}, "visibility": {SQL: visibility}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: cluster0, CurrentClusterName: cluster0,
			ClusterInformation: map[string]cluster.ClusterInformation{cluster0: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            services,
		Archival:            config.Archival{History: config.HistoryArchival{State: "disabled"}, Visibility: config.VisibilityArchival{State: "disabled"}},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History: config.HistoryArchivalNamespaceDefaults{State: "disabled"}, Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
		PublicClient: config.PublicClient{HostPort: address},
	}, address, nil
}

// freePorts finds ports without a listener, below those that the system assigns to clients: Temporal stores ports in 16 bits with a sign.
func freePorts(n int) ([]int, error) {
	const first, beyond, tries = 10_000, 32_000, 1000
	var free []int
	for range tries {
		port := first + rand.IntN(beyond-first)
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
		if free = append(free, port); len(free) == n {
			return free, nil
		}
	}
	return nil, fmt.Errorf("found no %d free ports from %d to %d", n, first, beyond)
}
