package brokerrpc

import (
	"cmp"
	"errors"
	"os"
)

// Connect opens a transport at a URL (or at $PAWL_BROKER if that is empty), and makes the worker's side of it. token is the token of the
// servers, or empty. hangUp closes both.
func Connect[O interface {
	Transport
	Close()
}](url, token string, open func(url string) (O, error)) (c *Client, hangUp func(), err error) {
	url = cmp.Or(url, os.Getenv("PAWL_BROKER"))
	if url == "" {
		return nil, nil, errors.New("no broker: give its URL, or set PAWL_BROKER")
	}
	transport, err := open(url)
	if err != nil {
		return nil, nil, err
	}
	c = NewClient(transport, token)
	return c, func() {
		c.Stop()
		transport.Close()
	}, nil
}
