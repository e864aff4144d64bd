package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/problem"
)

// bodiesInFlight is how many bytes of large bodies may be in memory at once. A request that would exceed it gets 429 and Retry-After.
const bodiesInFlight = 64 << 20

// hookBodiesInFlight is the same for webhooks. They need no token, so they have their own budget and cannot use up the API's.
const hookBodiesInFlight = 32 << 20

const (
	// smallBody is the size up to which a body of the API is not counted.
	smallBody = 256 << 10
	// hookFirst is how many bytes of a webhook's body are counted and read first. Each part after it is twice as large, up to hookPart. All
	// bytes count, because a client without a secret can send many small bodies slowly, one on each connection; a connection without data
	// counts as 1 KB.
	hookFirst = 1 << 10
	hookPart  = 16 << 10
)

type budget struct {
	limit int64
	first int64 // size of the first part in which a body is read
	part  int64 // size of the largest part
	free  bool  // the first part is not counted
	used  atomic.Int64
}

func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

// body reads the request's body, which must have one of the media types ("" means no type is given), and passes it to use. Memory grows
// with the bytes received, not with the announced length.
func (c *call) body(media []string, use func(body []byte, media string) error) error {
	kind, err := c.mediaType(media)
	if err != nil {
		return err
	}
	return c.bytes(&c.bodies, c.BodyLimit, c.tooLarge, func(body []byte) error { return use(body, kind) })
}

// bytes reads a body of up to limit bytes, counts them in a budget, and passes them to use.
func (c *call) bytes(among *budget, limit int64, tooLarge func() error, use func(body []byte) error) error {
	if c.r.ContentLength > limit {
		if c.r.ContentLength <= droppedMost && !c.waitsToBeAsked() {
			c.dropBody()
		}
		return tooLarge()
	}
	counted := int64(0)
	defer func() { among.used.Add(-counted) }()
	part := among.first
	if c.r.ContentLength >= 0 {
		part = min(part, c.r.ContentLength)
	}
	take := func(n int64) error {
		if !among.take(n) {
			c.w.Header().Set("Connection", "close") // the rest of the body is not read
			return fmt.Errorf("%w: the large bodies under way take all of the memory set aside for them", engine.ErrOverloaded)
		}
		counted += n
		return nil
	}
	if !among.free {
		if err := take(part); err != nil {
			return err
		}
	}
	rc := http.NewResponseController(c.w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
	var buf bytes.Buffer
	if c.r.ContentLength >= 0 {
		buf.Grow(int(part) + bytes.MinRead)
	}
	from := http.MaxBytesReader(c.w, c.r.Body, limit)
	for {
		_, err := io.CopyN(&buf, from, part+1) // one byte more, so that the end is found together with the last part
		var beyond *http.MaxBytesError
		switch {
		case errors.Is(err, io.EOF):
			_ = rc.SetReadDeadline(time.Time{})
			return use(buf.Bytes())
		case errors.As(err, &beyond):
			c.dropBody()
			return tooLarge()
		case err != nil:
			return unreadable(api.FieldError{Message: "the body did not arrive: " + err.Error(), Fix: "send it again"})
		}
		part = min(2*part, among.part)
		if err := take(part); err != nil {
			return err
		}
	}
}

// A body that is too large is read and dropped, up to these bounds, before it is refused. Many clients read no answer before they have sent
// the whole body, and would only see a closed connection.
const (
	droppedMost = 64 << 20
	droppedFor  = 10 * time.Second
)

func (c *call) dropBody() {
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(droppedFor))
	_, _ = io.CopyN(io.Discard, c.r.Body, droppedMost) // the answer is 413 even if this fails
}

func (c *call) tooLarge() error {
	c.w.Header().Set("Connection", "close")
	return refusal(http.StatusRequestEntityTooLarge, api.ProblemTooLarge,
		fmt.Sprintf("the body has more than the %d bytes that a request may have: upload what is large (pawl upload, or PUT /api/v1/blobs/sha256:…) and name it by its sum, or split it", c.BodyLimit))
}

func (c *call) mediaType(allowed []string) (string, error) {
	header := c.r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(header)
	if header == "" {
		kind, err = "", nil
	}
	if err != nil || !slices.Contains(allowed, kind) {
		return "", refusal(http.StatusUnsupportedMediaType, api.ProblemUnsupportedMedia,
			fmt.Sprintf("the content type %.60q is not supported here: send %s", header, problem.OneOf(slices.DeleteFunc(slices.Clone(allowed), func(s string) bool { return s == "" }))))
	}
	return kind, nil
}

// mediaJSON includes the type that curl sends by default.
var mediaJSON = []string{"application/json", "", "application/x-www-form-urlencoded"}

// decode reads a JSON body into out, which points to a struct of package api.
func (c *call) decode(out any) error {
	return c.body(mediaJSON, func(body []byte, _ string) error { return payload.Decode(body, "body", out) })
}

// decodeOptional is decode for an optional body.
func (c *call) decodeOptional(out any) error {
	return c.body(mediaJSON, func(body []byte, _ string) error {
		if len(bytes.TrimSpace(body)) == 0 {
			return nil
		}
		return payload.Decode(body, "body", out)
	})
}

// ofNamed makes a handler that reads an id in the path, and then the body of its request, before anything else.
func ofNamed[T any](id func(*call) (flow.ID, error), handle func(*call, flow.ID, *T) error) func(*call) error {
	return func(c *call) error {
		of, err := id(c)
		if err != nil {
			return err
		}
		return withBody(func(c *call, in *T) error { return handle(c, of, in) })(c)
	}
}

// withBody makes a handler that reads the body of its request before anything else.
func withBody[T any](handle func(*call, *T) error) func(*call) error {
	return func(c *call) error {
		in, decode := new(T), c.decode
		if c.route.optional {
			decode = c.decodeOptional
		}
		if err := decode(in); err != nil {
			return err
		}
		return handle(c, in)
	}
}
