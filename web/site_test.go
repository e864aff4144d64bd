package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func get(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func site(t *testing.T) *Site {
	t.Helper()
	s, err := New(Files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDocument(t *testing.T) {
	t.Parallel()
	s := site(t)
	for path, base := range map[string]string{
		"/ui/":                              `<base href="./">`,
		"/ui/executions":                    `<base href="./">`,
		"/ui/executions/ex_1":               `<base href="./../">`,
		"/ui/executions/ex_1/logs?follow=1": `<base href="./../../">`,
		"/ui/definitions/a%2Fb":             `<base href="./../">`, // for a browser this is not another level
	} {
		w := get(s, path)
		h := w.Header()
		if w.Code != 200 || h.Get("Cache-Control") != "no-store" || h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, w.Code, h)
		}
		if !strings.Contains(w.Body.String(), base) || strings.Contains(w.Body.String(), "{{") {
			t.Errorf("%s: want %s and no placeholder in\n%s", path, base, w.Body)
		}
	}
}

// The headers that keep other sites away, and the page's permissions, byte for byte: on documents, on files and on missing ones.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := site(t)
	document := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; worker-src 'none'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
			"require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy": permissions,
	}
	redirect := maps.Clone(document)
	redirect["Permissions-Policy"] = ""
	file := map[string]string{
		"Content-Security-Policy": "sandbox; default-src 'none'", "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy": "", "Cross-Origin-Opener-Policy": "", "Permissions-Policy": "", // the browser reads them on documents
	}
	for path, headers := range map[string]map[string]string{
		"/ui/": document, "/ui/executions/ex_1": document, "/": redirect, "/ui/a/" + s.hash + "/app/boot.js": file, "/ui/a/" + s.hash + "/icon.svg": file, "/ui/a/" + s.hash + "/none.js": file,
	} {
		w := get(s, path)
		for name, want := range headers {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	for feature := range strings.SplitSeq(permissions, ", ") {
		if name, list, _ := strings.Cut(feature, "="); list != "()" || name != strings.ToLower(strings.TrimSpace(name)) {
			t.Errorf("Permissions-Policy has %q: only NAME=() takes a feature away", feature)
		}
	}
}

// A proxy that serves Pawl under another path removes the prefix: every address in the page must be relative.
func TestNothingIsNamedFromTheRoot(t *testing.T) {
	t.Parallel()
	s := site(t)
	for _, path := range []string{"/", "/ui"} {
		if w := get(s, path); w.Code != http.StatusFound || w.Header().Get("Location") != "ui/" {
			t.Errorf("%s answers %d %q", path, w.Code, w.Header().Get("Location"))
		}
	}
	if m := regexp.MustCompile(`(?:href|src)="(?:/|[a-z]+:)[^"]*"`).FindString(s.index); m != "" {
		t.Errorf("the document has %s", m)
	}
}

func TestAssets(t *testing.T) {
	t.Parallel()
	s := site(t)
	links := regexp.MustCompile(`(?:href|src)="(a/[^"]+)"`).FindAllStringSubmatch(s.index, -1)
	if len(links) < 4 {
		t.Fatalf("the document names %d assets", len(links))
	}
	for _, l := range links {
		w := get(s, Root+l[1])
		if w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", l[1], w.Code, w.Header())
		}
		z := get(s, Root+l[1], "Accept-Encoding", "br, gzip")
		if w.Body.Len() < worthZipping {
			continue
		}
		r, err := gzip.NewReader(z.Body)
		if err != nil || z.Header().Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: %v %v", l[1], err, z.Header())
		}
		if b, err := io.ReadAll(r); err != nil || !bytes.Equal(b, w.Body.Bytes()) {
			t.Errorf("%s unzips to something else: %v", l[1], err)
		}
	}
	for _, path := range []string{"/ui/a/0123456789abcdef/app/boot.js", "/ui/a/" + s.hash + "/app/none.js", "/ui/a/" + s.hash + "/index.html", "/ui/a/" + s.hash + "/../embed.go"} {
		if w := get(s, path); w.Code != http.StatusNotFound || strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
}

// The browser gets a list of every module that the first one needs.
func TestPreloads(t *testing.T) {
	t.Parallel()
	s, err := New(fstest.MapFS{
		"index.html":  {Data: []byte("{{preload}}")},
		"app/boot.js": {Data: []byte("import { a } from './a.js';\nimport {\n  b,\n} from \"../part/b.js\";\n")},
		"app/a.js":    {Data: []byte("import '../part/b.js';\n")},
		"part/b.js":   {Data: []byte("export * from './c.js';\nconst text = \"from './no.js'\";\n")},
		"part/c.js":   {Data: []byte("")},
		"part/no.js":  {Data: []byte("")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app/boot.js", "app/a.js", "part/b.js", "part/c.js"} {
		if !strings.Contains(s.index, s.hash+"/"+name) {
			t.Errorf("%s is not in\n%s", name, s.index)
		}
	}
	if strings.Contains(s.index, "no.js") {
		t.Errorf("what is not imported is preloaded:\n%s", s.index)
	}
}

func TestTakesGzip(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{"": false, "gzip": true, "br, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "deflate": false} {
		if got := takesGzip(header); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}

// Vendored files are byte for byte those that their README lists.
func TestVendoredFilesAreUnchanged(t *testing.T) {
	t.Parallel()
	sums, err := os.ReadFile("vendor/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		b, err := os.ReadFile("vendor/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(b)); got != sum {
			t.Errorf("vendor/%s has the checksum %s, SHA256SUMS has %s", name, got, sum)
		}
	}
}

// The first load stays small without a bundler; if it does not one day, the modules can be bundled unchanged.
func TestFirstLoad(t *testing.T) {
	t.Parallel()
	s := site(t)
	sum, requests := len(zipped([]byte(s.index))), 1
	for _, name := range append(s.graph("app/boot.js"), "css/pawl.css", "icon.svg") {
		sum += len(zipped(s.assets[name].plain))
		requests++
	}
	t.Logf("%d bytes in %d requests", sum, requests)
	if sum > 70_000 || requests > 30 {
		t.Errorf("the first load is %d bytes in %d requests", sum, requests)
	}
}
