package pgpool

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Parse reads a DSN, which is a URL, and gives connecting its limits. One that could be read in two ways is refused before
// anything is looked up or said: where the password has an unescaped "@" or "/", a part of it would be taken for the host,
// be asked of a name server, and stand in the log. The error repeats nothing of the DSN.
func Parse(dsn string, limits Limits) (*pgxpool.Config, error) {
	if err := certain(dsn); err != nil {
		return nil, unreadable(err.Error())
	}
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, unreadable("one of its parts is malformed") // the parser's own error repeats the DSN, and with it the password
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
	// userinfo is what RFC 3986 allows before the "@".
	userinfo = regexp.MustCompile(`^([A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*$`)
	// hosts are names, addresses, and directories of sockets ("/" as %2F), by commas, each with a port or without.
	hosts = regexp.MustCompile(`^((\[[0-9A-Fa-f:.]+(%25[A-Za-z0-9._~-]+)?\]|([A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})*)(:[0-9]{1,5})?(,|$))*$`)
)

// certain reports why a URL may be read in several ways; nil when there is one only.
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
