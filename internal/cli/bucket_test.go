package cli

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/pawl-run/pawl/internal/blob/s3/s3test"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/blobs.md work as documented.
func TestBlobCommands(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	place := s3test.URL(t)
	key := place.User.Username()
	secret, _ := place.User.Password()
	bare := *place
	bare.User = nil
	blocks := documented(t, "blobs.md", "", 2)
	scratch := t.TempDir()
	commands := strings.NewReplacer("s3://pawl/prod?endpoint=http://127.0.0.1:9000&path_style=true", bare.String(),
		"AWS_ACCESS_KEY_ID=pawltest ", "AWS_ACCESS_KEY_ID="+key+" ", "=pawltestsecret", "="+secret).Replace(blocks[0])
	out := followed(t, commands, scratch, programtest.FreePort(t))
	for _, want := range []string{"ok   blobs: s3://pawl/", "removed a key in", "the clocks agree within", "\n20000000\n"} {
		if !strings.Contains("\n"+out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	c, bucket, prefix := s3test.Client(t, place)
	kept := int64(0)
	for o := range c.Client.ListObjects(t.Context(), bucket, minio.ListObjectsOptions{Prefix: prefix + "files/", Recursive: true}) {
		kept += o.Size
	}
	if kept != 20_000_000 {
		t.Errorf("the bucket has %d bytes of files", kept)
	}
	if out := followed(t, blocks[1], scratch, programtest.FreePort(t)); !strings.Contains(out, ", "+scratch+"/pawl-blobs") {
		t.Errorf("the setting is printed as %s", out)
	}
}

// Blobs in the database or a directory are found after the setting changes to a bucket, and back.
func TestBlobsMoveToBucket(t *testing.T) {
	t.Parallel()
	place, state, dir := s3test.URL(t).String(), t.TempDir(), filepath.Join(t.TempDir(), "shared")
	dsn := emptyDatabase(t)
	settings := func(store, blobs string) map[string]string {
		return map[string]string{"state_dir": state, "store": store, "blobs": blobs}
	}
	openAs(t, "x/state", settings("sqlite", config.InStore))
	openAs(t, "x/dir", settings("sqlite", dir))
	openAs(t, "x/db", settings(dsn, config.InStore))
	h := openAs(t, "x/bucket", settings(dsn, place+","+dir))
	if !h.InlineLogs {
		t.Error("each chunk of a log would be a request to the bucket")
	}
	allRead(t, h, "x/state", "x/dir", "x/db", "x/bucket")
	back := openAs(t, "x/back", settings(dsn, config.InStore+", "+place+", "+dir))
	allRead(t, back, "x/state", "x/dir", "x/db", "x/bucket", "x/back")
	only := openAs(t, "y", settings("sqlite", place))
	if got := readBlob(t, only, "x/back"); !strings.Contains(got, "not found") {
		t.Errorf("what was put into the database is in the bucket: %q", got)
	}
	if err := back.Remove(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x/state", "x/dir", "x/db", "x/bucket", "x/back"} {
		if got := readBlob(t, h, name); !strings.Contains(got, "not found") {
			t.Errorf("%s after the removal: %q", name, got)
		}
	}
}

// Wrong settings of a bucket are reported at the start, with the fix.
func TestBucketSettings(t *testing.T) {
	t.Parallel()
	place := s3test.URL(t)
	changed := func(change func(*url.URL)) string {
		u := *place
		change(&u)
		return u.String()
	}
	env := environment(t)
	for _, c := range []struct {
		blobs string
		code  int
		say   string
	}{
		{changed(func(u *url.URL) { u.Host = "no-such-bucket" }), 2, "there is no bucket no-such-bucket: make it"},
		{changed(func(u *url.URL) { u.User = url.UserPassword("nobody", "wr0ng") }), 2, "check AWS_ACCESS_KEY_ID"},
		{changed(func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "wr0ng") }), 2, "check AWS_ACCESS_KEY_ID"},
		{s3test.With(place, "region", "eu-west-9").String(), 2, "in another region: write region="},
		{s3test.With(place, "endpoint", "http://127.0.0.1:"+programtest.FreePort(t)).String(), 1, "check endpoint="},
		{s3test.With(place, "endpoint", "ftp://h").String(), 2, "endpoint=ftp://h is not the address of a service"},
		{s3test.With(place, "endpont", "h").String(), 2, "is not a parameter"},
		{"bucket", 2, "nor s3://BUCKET"},
	} {
		out, stderr, code := pawl(t, env, "server", "--listen", "127.0.0.1:0", "--state-dir", t.TempDir(), "--blobs", c.blobs)
		if code != c.code || !strings.Contains(out+stderr, c.say) || strings.Contains(out+stderr, "wr0ng") {
			t.Errorf("server with %s: %d %s%s, want %d and %q", c.blobs, code, out, stderr, c.code, c.say)
		}
		if out, stderr, code := pawl(t, env, "doctor", "--state-dir", t.TempDir(), "--blobs", c.blobs); code == 0 || !strings.Contains(out+stderr, c.say) {
			t.Errorf("doctor with %s: %d %s%s, want %q", c.blobs, code, out, stderr, c.say)
		}
	}
	if out, _, code := pawl(t, env, "config", "print", "--blobs", place.String()); code != 0 || strings.Contains(out, "pawltestsecret") {
		t.Errorf("printed: %d %s", code, out)
	}
}

// Doctor reports by how much the clocks differ. The test cannot change the service's clock, but the date of its responses.
func TestDoctorSkew(t *testing.T) {
	t.Parallel()
	place := s3test.URL(t)
	service, err := url.Parse(place.Query().Get("endpoint"))
	if err != nil {
		t.Fatal(err)
	}
	ahead := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = service.Scheme, service.Host },
		ModifyResponse: func(r *http.Response) error {
			r.Header.Set("Date", time.Now().Add(10*time.Minute).UTC().Format(http.TimeFormat))
			return nil
		},
	})
	t.Cleanup(ahead.Close)
	out, stderr, _ := pawl(t, environment(t), "doctor", "--state-dir", t.TempDir(), "--blobs", s3test.With(place, "endpoint", ahead.URL).String())
	if !strings.Contains(out, "clock differs by 10m") || !strings.Contains(out, "as by NTP") {
		t.Errorf("%s%s", out, stderr)
	}
}
