package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// counted is a content that counts the bytes read from it.
type counted struct {
	io.ReadSeeker
	read int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadSeeker.Read(p)
	c.read += n
	return n, err
}

// dropped returns the uploads whose bytes wait to be removed.
func dropped(t *testing.T, h *house) (ids []flow.ID) {
	t.Helper()
	err := h.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) (err error) {
		ids, err = tx.DroppedUploads(ctx, 10)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// A content is stored once, over the network and in the process; HEAD finds it, and sending it again extends its time.
func TestUpload(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	local := client.NewInProcess(h.Handler())
	remote, err := client.New(h.url)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []*client.Client{remote, local} {
		text := bytes.Repeat([]byte{byte(i), 'x'}, 3<<19)
		name := blob.SumText(sha256.Sum256(text))
		if res, _ := h.do(t, "HEAD", "/api/v1/blobs/"+name, ""); res.StatusCode != http.StatusNotFound {
			t.Errorf("HEAD before: %s", res.Status)
		}
		first := &counted{ReadSeeker: bytes.NewReader(text)}
		b, err := c.Upload(t.Context(), first)
		if err != nil || b.Blob != name || b.Size != int64(len(text)) {
			t.Fatalf("%+v, %v", b, err)
		}
		if res, _ := h.do(t, "HEAD", "/api/v1/blobs/"+name, ""); res.StatusCode != http.StatusOK || res.ContentLength != int64(len(text)) {
			t.Errorf("HEAD: %s, %d bytes", res.Status, res.ContentLength)
		}
		again := &counted{ReadSeeker: bytes.NewReader(text)}
		later, err := c.Upload(t.Context(), again)
		if err != nil || !later.KeptUntil.After(b.KeptUntil) {
			t.Errorf("again: %+v, %v", later, err)
		}
		if first.read != 2*len(text) || again.read != len(text) {
			t.Errorf("read %d and %d of %d bytes: to learn the sum, and to send what is not there", first.read, again.read, len(text))
		}
	}
	body := "as curl sends it"
	path := "/api/v1/blobs/" + blob.SumText(sha256.Sum256([]byte(body)))
	for i, want := range []int{http.StatusCreated, http.StatusOK} {
		if res, said := h.do(t, "PUT", path, body); res.StatusCode != want {
			t.Errorf("PUT %d: %s %s", i, res.Status, said)
		}
	}
	if ids := dropped(t, h); len(ids) > 0 {
		t.Errorf("what was there was stored again: %v", ids)
	}
	p := h.problem(t, 422, api.ProblemInvalid, "PUT", path, "other bytes")
	if !strings.Contains(p.Detail, blob.SumText(sha256.Sum256([]byte("other bytes")))) {
		t.Error(p.Detail)
	}
	empty := blob.SumText(blob.Sum{1})
	h.problem(t, 422, api.ProblemInvalid, "PUT", "/api/v1/blobs/"+empty, "x")
	if res, _ := h.do(t, "HEAD", "/api/v1/blobs/"+empty, ""); res.StatusCode != http.StatusNotFound {
		t.Errorf("bytes of another sum are there: %s", res.Status)
	}
	h.problem(t, 404, api.ProblemNotFound, "PUT", "/api/v1/blobs/sha256:ABC", "x")
}

// An upload above the limit is refused, with or without an announced length, and the message names the setting.
func TestUploadLimit(t *testing.T) {
	t.Parallel()
	h := start(t, Options{UploadLimit: 10})
	text := "eleven byte"
	path := "/api/v1/blobs/" + blob.SumText(sha256.Sum256([]byte(text)))
	for what, body := range map[string]io.Reader{"announced": strings.NewReader(text), "unannounced": struct{ io.Reader }{strings.NewReader(text)}} {
		req, err := http.NewRequestWithContext(t.Context(), "PUT", h.url+path, body)
		if err != nil {
			t.Fatal(err)
		}
		res, err := h.http.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var p api.Problem
		err = json.NewDecoder(res.Body).Decode(&p)
		res.Body.Close()
		if err != nil || res.StatusCode != 413 || !strings.Contains(p.Detail, "upload_limit") || !strings.Contains(p.Detail, "10 bytes") {
			t.Errorf("%s: %s %+v, %v", what, res.Status, p, err)
		}
	}
	if _, err := h.client.Upload(t.Context(), strings.NewReader(text[:10])); err != nil {
		t.Errorf("as much as is allowed: %v", err)
	}
	big := fmt.Sprintf(`{"language": "python", "source": %q}`, strings.Repeat("x", 17<<20))
	if p := h.problem(t, 413, api.ProblemTooLarge, "POST", "/api/v1/evaluations", big); !strings.Contains(p.Detail, "pawl upload") {
		t.Error(p.Detail)
	}
}

// An evaluation that names a missing upload is refused at once, with its place and its name.
func TestMissingUpload(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	name := blob.SumText(blob.Sum{1})
	p := h.problem(t, 422, api.ProblemInvalid, "POST", "/api/v1/evaluations",
		`{"language": "python", "source": "1", "files": {"d/x": {"blob": "`+name+`"}}, "cases": [{"stdin": {"blob": "`+name+`"}}]}`)
	if len(p.Errors) != 2 || p.Errors[0].Path != `files["d/x"].blob` || p.Errors[0].Value != name || p.Errors[1].Path != "cases[0].stdin.blob" {
		t.Errorf("%+v", p.Errors)
	}
	p = h.problem(t, 422, api.ProblemInvalid, "POST", "/api/v1/executions", `{"action": "code", "input": {"language": "python", "source": "1", "stdin": {"blob": "`+name+`"}}}`)
	if len(p.Errors) != 1 || p.Errors[0].Path != "input.stdin.blob" {
		t.Errorf("%+v", p.Errors)
	}
}

// A client whose transport does not wait for 100-continue sends the whole content although it exists, and gets an answer.
func TestUploadWithoutWaiting(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(h.url, client.WithHTTPClient(&http.Client{Transport: transport}), client.WithPatience(0))
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	for i := range 10 {
		if _, err := c.Upload(t.Context(), bytes.NewReader(text)); err != nil {
			t.Fatalf("upload %d: %v", i, err)
		}
	}
}
