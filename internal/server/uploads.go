package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/store"
)

// defaultUploadLimit is the most bytes of one upload, unless the options have another number.
const defaultUploadLimit = 1 << 30

func (c *call) sum() (blob.Sum, error) {
	text := c.r.PathValue("blob")
	sum, ok := blob.ParseSum(text)
	if !ok {
		return sum, refusal(http.StatusNotFound, api.ProblemNotFound,
			fmt.Sprintf("%.90q is not the name of an upload: write sha256: and the content's SHA-256 in 64 digits 0-9 and a-f", text))
	}
	return sum, nil
}

// head answers whether an upload exists.
func (c *call) head() error {
	sum, err := c.sum()
	if err != nil {
		return err
	}
	u, err := c.Engine.Uploads().Find(c.ctx(), sum)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", mediaFile)
	c.w.Header().Set("Content-Length", strconv.FormatInt(u.Size, 10))
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// upload stores the body, piece by piece as it arrives. If the content already exists, it is kept for longer, and a client that sends
// "Expect: 100-continue" need not send it.
func (c *call) upload() error {
	sum, err := c.sum()
	if err != nil {
		return err
	}
	if _, err := c.mediaType(mediaBytes); err != nil {
		return err
	}
	if c.r.ContentLength > c.UploadLimit {
		if c.r.ContentLength <= droppedMost && !c.waitsToBeAsked() {
			c.dropBody()
		}
		return c.uploadTooLarge()
	}
	u, err := c.Engine.Uploads().Keep(c.ctx(), sum)
	existed := err == nil
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("upload: %w", err)
	}
	if !existed || !c.waitsToBeAsked() {
		body := &uploadBody{call: c, from: http.MaxBytesReader(c.w, c.r.Body, c.UploadLimit)}
		if existed { // most clients send the whole body before they read the answer
			err = uploads.CheckSum(sum, body)
		} else {
			u, existed, err = c.Engine.Uploads().Put(c.ctx(), sum, body)
		}
		if err != nil {
			return c.refuseUpload(body.fault, err)
		}
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	}
	status := http.StatusCreated
	if existed {
		status = http.StatusOK
	}
	return c.json(status, api.Blob{Blob: blob.SumText(u.Sum), Size: u.Size, KeptUntil: u.Until})
}

func (c *call) waitsToBeAsked() bool {
	return strings.EqualFold(c.r.Header.Get("Expect"), "100-continue")
}

// refuseUpload returns why a body was not stored: an error in reading it, or the engine's error.
func (c *call) refuseUpload(fault, err error) error {
	var beyond *http.MaxBytesError
	switch {
	case errors.As(fault, &beyond):
		c.dropBody()
		return c.uploadTooLarge()
	case fault != nil:
		c.w.Header().Set("Connection", "close")
		return unreadable(api.FieldError{Message: "the body did not arrive: " + fault.Error(), Fix: "send it again"})
	case errors.Is(err, uploads.ErrWrongSum):
		return invalid(api.FieldError{Path: "body", Message: err.Error(), Fix: "send the bytes that the address names, or send these bytes to the address of their own sum"})
	case errors.Is(err, uploads.ErrNoBlobs):
		return refusal(http.StatusNotFound, api.ProblemNotFound, err.Error())
	}
	c.w.Header().Set("Connection", "close") // the rest of the body is not read
	return fmt.Errorf("upload: %w", err)
}

func (c *call) uploadTooLarge() error {
	c.w.Header().Set("Connection", "close")
	return refusal(http.StatusRequestEntityTooLarge, api.ProblemTooLarge,
		fmt.Sprintf("the content has more than the %d bytes that one upload may have: split it, or raise the server's setting upload_limit", c.UploadLimit))
}

// uploadBody reads a request's body, each piece of which may take bodyTimeout, and records its error.
type uploadBody struct {
	call  *call
	from  io.Reader
	fault error
}

func (b *uploadBody) Read(p []byte) (int, error) {
	_ = http.NewResponseController(b.call.w).SetReadDeadline(time.Now().Add(bodyTimeout))
	n, err := b.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.fault = err
	}
	return n, err
}
