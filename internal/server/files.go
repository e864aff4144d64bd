package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
)

// mediaFile is the media type of files, whose content is unknown.
const mediaFile = "application/octet-stream"

// file answers with the bytes of a result file, from the output or from the blob store.
func (c *call) file() error {
	x, err := c.get()
	if err != nil {
		return err
	}
	if !x.Stage.Terminal() {
		return refusal(http.StatusConflict, api.ProblemNotFinished, fmt.Sprintf("the execution is %s, and its files are collected when it ends", x.Stage))
	}
	name := c.r.PathValue("file")
	all := collected(x)
	i := slices.IndexFunc(all, func(f api.ResultFile) bool { return f.Path == name })
	if i < 0 {
		return refusal(http.StatusNotFound, api.ProblemNotFound, fmt.Sprintf("the execution left no file %.100q: %s", name, namesOf(all)))
	}
	from, err := c.open(x.ID, &all[i])
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	h := c.w.Header()
	h.Set("Content-Type", mediaFile)
	h.Set("Content-Length", strconv.FormatInt(all[i].Size, 10))
	h.Set("Content-Disposition", "attachment; filename*=UTF-8''"+escapeFilename(path.Base(name)))
	inert(h)
	c.w.WriteHeader(http.StatusOK)
	c.pass(from)
	return nil
}

// pass copies the bytes of a blob or of a file to the client.
func (c *call) pass(from io.Reader) {
	rc := http.NewResponseController(c.w)
	buf := make([]byte, pieceSize)
	for {
		n, err := from.Read(buf)
		if gone := c.writePieces(rc, buf[:n]); gone != nil {
			return // the client has disconnected
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // so that the truncated answer does not look complete
		}
	}
}

// inert marks an answer as untrusted bytes: a browser runs no script in it, and no other site can embed it.
func inert(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

func collected(x *flow.Execution) []api.ResultFile {
	var output struct{ Files []api.ResultFile }
	if x.Outcome == nil || json.Unmarshal(x.Outcome.Output, &output) != nil {
		return nil // the output of another kind
	}
	return output.Files
}

// namesOf lists the names of some files for an error message.
func namesOf(all []api.ResultFile) string {
	if len(all) == 0 {
		return "it collected none (collect names what to keep)"
	}
	const most = 10
	var names []string
	for _, f := range all[:min(len(all), most)] {
		names = append(names, strconv.Quote(f.Path))
	}
	if len(all) > most {
		names = append(names, fmt.Sprintf("and %d more", len(all)-most))
	}
	return "it left " + strings.Join(names, ", ")
}

// open opens a file. It refuses the blob of another execution even if the output names it, because a program can write any name into its
// output.
func (c *call) open(id flow.ID, f *api.ResultFile) (io.ReadCloser, error) {
	switch {
	case f.Content != nil:
		f.Size = int64(len(*f.Content))
		return io.NopCloser(strings.NewReader(*f.Content)), nil
	case f.Blob == "":
		f.Size = int64(len(f.Base64))
		return io.NopCloser(bytes.NewReader(f.Base64)), nil
	}
	err := error(blob.ErrNotFound)
	var from io.ReadCloser
	if blobs := c.Engine.Blobs(); blobs != nil && strings.HasPrefix(f.Blob, "files/"+id.String()+"/") {
		from, err = blobs.Get(c.ctx(), f.Blob, 0)
	}
	if errors.Is(err, blob.ErrNotFound) {
		return nil, refusal(http.StatusNotFound, api.ProblemNotFound, fmt.Sprintf("the file %.100q is no longer kept, or this server cannot reach where it is kept", f.Path))
	}
	if err != nil {
		return nil, fmt.Errorf("open file %.100q: %w", f.Path, err)
	}
	return from, nil
}

// escapeFilename encodes a name as in RFC 8187.
func escapeFilename(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("!#$&+-.^_`|~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
