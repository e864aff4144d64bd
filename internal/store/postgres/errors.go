package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-run/pawl/internal/store"
)

// Codes of errors that the store's own statements raise.
const (
	codeConflict = "PW409" // rows have changed since the decision read them
	codeOrphan   = "PW404" // a row refers to another one that does not exist
	codeRemoved  = "PW410" // a row to copy does not exist any more
)

// isRetryable reports whether the database asks to run the same transaction again.
func isRetryable(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case "40001", "40P01", // serialisation failure, deadlock
		"55P03": // waited too long for a lock
		return true
	}
	return false
}

// damaged is the error of a row that cannot be decoded. The connection stays usable.
type damaged struct{ error }

func (e damaged) Unwrap() error { return e.error }

// unfit is the error of a server, database or schema that answers but cannot be used, so waiting does not help.
type unfit struct{ error }

func (e unfit) Unwrap() error { return e.error }

func unfitf(format string, args ...any) error { return unfit{fmt.Errorf(format, args...)} }

// translate converts a statement's error to an error of the store port: bad values, a conflict, or an unusable database.
func translate(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[damaged](err); ok {
		return err
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return translateServer(e, err)
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

func translateServer(e *pgconn.PgError, err error) error {
	switch e.Code {
	case "23505":
		return fmt.Errorf("%w: it exists already: %s", store.ErrConflict, e.Detail)
	case codeConflict:
		return fmt.Errorf("%w: %s", store.ErrConflict, e.Message)
	case codeRemoved:
		return fmt.Errorf("%w: %s", store.ErrNotFound, e.Message)
	case codeOrphan:
		return errors.New(e.Message)
	case "53100":
		return fmt.Errorf("%w: the database's disk is full: free some space on the server (%s)", store.ErrUnavailable, e.Message)
	case "53300":
		return fmt.Errorf("%w: the server has too few connections: raise its max_connections, lower the pool sizes, or put pgbouncer before it (%s)",
			store.ErrUnavailable, e.Message)
	case "25006":
		return fmt.Errorf("%w: the server is a read-only standby, or read-only by its settings: name the primary (%s)", store.ErrUnavailable, e.Message)
	case "42501":
		return fmt.Errorf("%w: the database's user lacks a right: grant it, or let the owner of the schema run `pawl migrate up` (%s)",
			store.ErrUnavailable, e.Message)
	case "57014":
		return fmt.Errorf("%w: a statement took longer than its timeout (%s)", store.ErrUnavailable, e.Message)
	case "42P01", "3F000", "42883", "42703":
		return fmt.Errorf("%w: the schema is not as this program left it: was it dropped or changed by hand? (%s)", store.ErrUnavailable, e.Message)
	}
	switch e.Code[:2] {
	case "22", "23", "54": // bad values, constraints, limits of size
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// explain says why a store could not be opened, and how to fix it. A cause that may pass by itself is store.ErrUnavailable.
func explain(err error) error {
	var no unfit
	if errors.As(err, &no) {
		return err
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch e.Code {
		case "28P01", "28000":
			return fmt.Errorf("the server refused the user: check the user and the password in the DSN, and pg_hba.conf (%w)", err)
		case "3D000":
			return fmt.Errorf("there is no such database: create it, or correct the DSN (%w)", err)
		case "42501":
			return fmt.Errorf("the user lacks a right: GRANT CREATE ON DATABASE to it, or create the schema for it (%w)", err)
		case "08P01":
			return fmt.Errorf("the server refuses the settings of a connection, as pgbouncer does: add default_query_exec_mode=exec to the store's DSN, and name PostgreSQL itself in store_notify (%w)", err)
		case "53300", "53100", "25006":
			return translateServer(e, err)
		case "57P03":
			return fmt.Errorf("%w: the server is starting up or shutting down (%w)", store.ErrUnavailable, err)
		}
	}
	var connecting *pgconn.ConnectError
	if errors.As(err, &connecting) && e != nil {
		return fmt.Errorf("%w: the server answers and refuses every connection: its log says why; a full disk can show like this (%s)", store.ErrUnavailable, plain(err))
	}
	if errors.As(err, &connecting) {
		return fmt.Errorf("%w: cannot reach the server: check host and port in the DSN, and that it runs (%s)", store.ErrUnavailable, plain(err))
	}
	return translate(err)
}

// plain returns an error's text on one line.
func plain(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
