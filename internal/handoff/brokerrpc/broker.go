package brokerrpc

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

// Broker is a Transport with connections of its own, which every backend opens by a URL.
type Broker interface {
	Transport
	// Health reads the broker's state.
	Health(ctx context.Context) (Health, error)
	// Close ends the connections. Reply queues must be closed before, by their owners.
	Close()
}

// Health is what pawl doctor shows of a broker.
type Health struct {
	Product string // and its version
	Lines   map[Line]Depth
	Dead    int64
	Concern string // a fault in how the broker is set up; empty: none
	Remedy  string // how to mend it
}

// ParseURL reads a broker's URL with one of the schemes, and takes the namespace out of it. Its errors do not show the URL,
// which may hold a password; they show example.
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

// OtherInstallation is the error of a server in whose namespace servers of another database are registered; remove says how to
// undo that when they are gone.
func OtherInstallation(namespace, remove string) error {
	return fmt.Errorf("another installation of Pawl has the namespace %q of the broker, with another database: add ?namespace=NAME to the broker's URL of one of them, and of its workers (or, if the other is gone, %s)", namespace, remove)
}

// Explained adds advice to an error of a broker. login and rights are parts of the texts with which the broker refuses a user,
// or an operation of the user.
func Explained(err error, login, rights []string) error {
	is := func(part string) bool { return strings.Contains(err.Error(), part) }
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("the broker's certificate is signed by an unknown authority: name a file with the certificate of its authority in the environment variable SSL_CERT_FILE: %w", err)
	case slices.ContainsFunc(login, is):
		return fmt.Errorf("the broker refuses the user or password of the broker's URL: %w", err)
	case slices.ContainsFunc(rights, is):
		return fmt.Errorf("the broker does not let the user of the broker's URL do that; docs/brokers.md lists what it needs: %w", err)
	}
	return err
}

// Rehearse makes a reply queue, sends a message to it, reads the message and deletes the reply queue, as servers and workers do all the
// time. Its error says what the broker or its access rules forbid.
func Rehearse(ctx context.Context, transport Transport) error {
	ctx, cancel := context.WithTimeout(ctx, rehearseWithin)
	defer cancel()
	replyQueue, err := transport.ReplyQueue(ctx)
	if err != nil {
		return err
	}
	defer replyQueue.Close()
	if err := transport.Put(ctx, replyQueue.Name(), []byte("rehearsal")); err != nil {
		return err
	}
	if _, err = replyQueue.Next(ctx); errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: a message to a reply queue has not come within %s", ErrUnavailable, rehearseWithin)
	}
	return err
}

const rehearseWithin = 10 * time.Second

// Pause waits, at most until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
