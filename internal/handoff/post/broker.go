package post

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Broker is an Office with connections of its own, which every backend opens by a URL.
type Broker interface {
	Office
	// Health looks at the broker.
	Health(ctx context.Context) (Health, error)
	// Close ends the connections. Mailboxes are closed by their owners before.
	Close()
}

// Health is what pawl doctor shows of a broker.
type Health struct {
	Product string // and its version
	Lines   map[Line]Depth
	Dead    int64
	Concern string // what is wrong with how the broker is set up; empty: nothing
	Remedy  string // what to do about it
}

// ParseURL reads a broker's URL, of one of these schemes, and takes the namespace out of it. Its errors do not have the URL in them, which may
// hold a password; example is a URL that they show.
func ParseURL(text, example string, schemes ...string) (*url.URL, string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		return nil, "", errors.New("not a URL such as " + example)
	}
	q := u.Query()
	namespace := "default"
	if q.Has("namespace") {
		namespace = q.Get("namespace")
	}
	if !namespaces.MatchString(namespace) {
		return nil, "", fmt.Errorf("namespace %.40q: use up to 64 letters, digits, dots, dashes and underscores", namespace)
	}
	q.Del("namespace")
	u.RawQuery = q.Encode()
	return u, namespace, nil
}

var namespaces = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// OtherInstallation is the error of a server in whose namespace the servers of another database are; remove says how that is undone when they
// are gone.
func OtherInstallation(namespace, remove string) error {
	return fmt.Errorf("another installation of Pawl has the namespace %q of the broker, with another database: add ?namespace=NAME to the broker's URL of one of them, and of its workers (or, if the other is gone, %s)", namespace, remove)
}

// Explained says what to do about what a broker refuses; text is how it says that. login and rights are parts of the texts with which it refuses
// a user, and what a user does.
func Explained(err error, login, rights []string) error {
	is := func(part string) bool { return strings.Contains(err.Error(), part) }
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("nothing vouches for the broker's certificate: name a file with the certificate of its authority in the environment variable SSL_CERT_FILE: %w", err)
	case slices.ContainsFunc(login, is):
		return fmt.Errorf("the broker refuses the user or password of the broker's URL: %w", err)
	case slices.ContainsFunc(rights, is):
		return fmt.Errorf("the broker does not let the user of the broker's URL do that; docs/brokers.md lists what it needs: %w", err)
	}
	return err
}

// Rehearse does once what servers and workers do all the time: it makes a mailbox, puts a message into it, reads it and deletes the mailbox. Its
// error says what the broker, or its access rules, forbid.
func Rehearse(ctx context.Context, office Office) error {
	ctx, cancel := context.WithTimeout(ctx, rehearseWithin)
	defer cancel()
	box, err := office.Box(ctx)
	if err != nil {
		return err
	}
	defer box.Close()
	if err := office.Put(ctx, box.Name(), []byte("rehearsal")); err != nil {
		return err
	}
	if _, err = box.Next(ctx); errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: a message to a mailbox has not come within %s", ErrUnavailable, rehearseWithin)
	}
	return err
}

const rehearseWithin = 10 * time.Second

// Pause waits, at most until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
