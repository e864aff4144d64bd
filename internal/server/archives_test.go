package server

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/archive"
)

// Archives are sent over the network; an export that is not possible is refused with its fix.
func TestArchives(t *testing.T) {
	t.Parallel()
	from := start(t, Options{Version: "v1"})
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
	if res, _ := from.do(t, "GET", "/api/v1/executions:export?id="+id, ""); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("while all places are taken: %s", res.Status)
	}
	from.do(t, "POST", "/api/v1/executions/"+open+"/kill", "")
}
