package server

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/archive"
)

// Archives go over the network and within a process alike, and what cannot be exported or imported is refused with what to do.
func TestArchives(t *testing.T) {
	t.Parallel()
	from, to := start(t, Options{Version: "v1"}), start(t, Options{})
	id, open := from.code(t, "3"), from.code(t, "hang")
	if _, err := from.client.Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	res, whole := from.do(t, "GET", "/api/v1/executions:export?id="+id, "")
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != mediaTar || res.Header.Get("Content-Disposition") != `attachment; filename="`+id+`.pawl"` {
		t.Fatalf("export: %s %v", res.Status, res.Header)
	}
	err := archive.Read(bytes.NewReader(whole), archive.Contents{Manifest: func(m *archive.Manifest) error {
		if m.Pawl != "v1" || m.From == "" || m.At.IsZero() {
			t.Errorf("the manifest says %+v", m)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	remote, err := client.New(to.url)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []*client.Client{remote, client.NewInProcess(to.Handler())} {
		out, err := c.Import(t.Context(), bytes.NewReader(whole))
		if err != nil || out.Trees != 1-i || out.Already != i || len(out.Refusals) != 0 {
			t.Errorf("import %d: %+v, %v", i, out, err)
		}
		x, err := c.Get(t.Context(), id)
		if err != nil || x.Imported == nil || x.Imported.From == "" {
			t.Errorf("imported: %+v, %v", x, err)
		}
		again, err := c.Export(t.Context(), []string{id}, client.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if err := archive.Read(again, archive.Contents{}); err != nil {
			t.Errorf("exported again: %v", err)
		}
		_ = again.Close()
		if _, err := c.Import(t.Context(), io.LimitReader(bytes.NewReader(whole), int64(len(whole)-1))); err == nil || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("an archive that was cut off: %v", err)
		}
	}
	if res, _ := to.do(t, "POST", "/api/v1/executions/"+id+"/cancel", `{}`); res.StatusCode != http.StatusConflict {
		t.Errorf("cancel: %s", res.Status)
	}
	for query, want := range map[string]string{
		"":                                  "422 nothing says what to export",
		"?id=x":                             "400 is not an id",
		"?id=" + id + "&label=a=b":          "422 do not go together",
		"?id=" + open:                       "422 pawl events " + open,
		"?id=ex_0000000000000000000000000g": "404 ",
		"?label=a":                          "400 name=value",
	} {
		res, body := from.do(t, "GET", "/api/v1/executions:export"+query, "")
		if got := fmt.Sprintf("%d %s", res.StatusCode, body); got[:4] != want[:4] || !strings.Contains(got, want[4:]) {
			t.Errorf("export%s: %s, want %s", query, got, want)
		}
	}
	if res, body := from.do(t, "GET", "/api/v1/executions:export?status=running", ""); res.StatusCode != http.StatusOK || !strings.Contains(string(body), `{"left_out":{"execution":"`+open) {
		t.Errorf("what runs: %s\n%s", res.Status, body)
	}
	for range archivesAtOnce {
		from.archives.free <- struct{}{}
	}
	for _, call := range [][2]string{{"GET", "/api/v1/executions:export?id=" + id}, {"POST", "/api/v1/executions:import"}} {
		if res, _ := from.do(t, call[0], call[1], ""); res.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%s while all places are taken: %s", call, res.Status)
		}
	}
	from.do(t, "POST", "/api/v1/executions/"+open+"/kill", "")
}

// An import takes no content that is larger than an upload may be.
func TestImportKeepsTheUploadLimit(t *testing.T) {
	t.Parallel()
	h := start(t, Options{UploadLimit: 4})
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, archive.Manifest{})
	if err == nil {
		_, err = w.Blob(archive.UploadName(sha256.Sum256([]byte("large"))), 5, strings.NewReader("large"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if res, body := h.do(t, "POST", "/api/v1/executions:import", b.String()); res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(body), "upload_limit") {
		t.Errorf("%s: %s", res.Status, body)
	}
}
