package pgpool

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Parse parses a DSN, which is a URL, and sets limits for connecting. A DSN that can be read in two ways is refused before anything is
// looked up or logged: if the password has an unescaped "@" or "/", a part of it would be taken for the host, sent to a name server, and
// logged. The error contains no part of the DSN.
func Parse(dsn string, limits Limits) (*pgxpool.Config, error) {
	if err := certain(dsn); err != nil {
		return nil, unreadable(err.Error())
	}
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, unreadable("one of its parts is malformed") // the parser's own error contains the DSN, and with it the password
	}
	bound(&cfg.ConnConfig.Config, limits.Filled())
	return cfg, nil
}

func unreadable(why string) error {
	return fmt.Errorf("the DSN cannot be read: %s: it looks like postgres://user:password@host:5432/database?sslmode=require, "+
		"with special characters of the user and the password percent-encoded (@ as %%40, / as %%2F, ? as %%3F)", why)
}

var (
	schemes = regexp.MustCompile(`^postgres(ql)?://`)
	// userinfo matches what RFC 3986 allows before the "@".
	userinfo = regexp.MustCompile(`^([A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*$`)
	// hosts matches names, addresses, and directories of sockets ("/" as %2F), separated by commas, each with or without a port.
	hosts = regexp.MustCompile(`^((\[[0-9A-Fa-f:.]+(%25[A-Za-z0-9._~-]+)?\]|([A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})*)(:[0-9]{1,5})?(,|$))*$`)
)

// certain returns an error if a URL can be read in several ways.
func certain(dsn string) error {
	scheme := schemes.FindString(dsn)
	if scheme == "" {
		return errors.New("it does not begin with postgres://")
	}
	rest := dsn[len(scheme):]
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	user, host, named := strings.Cut(authority, "@")
	if !named {
		user, host = "", authority
	}
	switch n := strings.Count(rest, "@"); {
	case n > 1:
		return errors.New(`it has more than one "@"`)
	case n == 1 && !named:
		return errors.New(`there is a "/", "?" or "#" before its "@"`)
	case !userinfo.MatchString(user):
		return errors.New("its user or password has a character that must be percent-encoded")
	case !hosts.MatchString(host):
		return errors.New("its host or port is malformed")
	}
	return nil
}
