package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Root is the path of the page. Everything in the page has a relative address, so that a proxy may serve it under another path.
const Root = "/ui/"

// policy is the Content-Security-Policy of the page: nothing inline, nothing from other hosts, no framing, and no way to turn a string into
// markup or code, because executions write their output and their labels themselves.
const policy = "default-src 'none'; script-src 'self'; worker-src 'none'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'"

// permissions denies the page every feature of the browser that asks the user or reads a device, except copying to the clipboard, for which
// the page has buttons. The header cannot name all of them at once.
const permissions = "accelerometer=(), ambient-light-sensor=(), autoplay=(), bluetooth=(), camera=(), clipboard-read=(), display-capture=(), " +
	"encrypted-media=(), fullscreen=(), gamepad=(), geolocation=(), gyroscope=(), hid=(), idle-detection=(), keyboard-map=(), local-fonts=(), magnetometer=(), " +
	"microphone=(), midi=(), payment=(), picture-in-picture=(), publickey-credentials-create=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), storage-access=(), usb=(), " +
	"web-share=(), window-management=(), xr-spatial-tracking=()"

// Site serves the page. It is safe for concurrent use.
type Site struct {
	hash   string // over all files: part of the path of every asset, so that assets are immutable
	index  string // the document, with all placeholders replaced except the base
	assets map[string]*asset
}

// asset is one file, and its gzip form once a browser has requested that.
type asset struct {
	kind   string // media type
	plain  []byte
	zip    sync.Once
	zipped []byte
}

// mediaTypes are the media types by file extension; a file with another extension is not served.
var mediaTypes = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// New prepares the page in files.
func New(files fs.FS) (*Site, error) {
	s := &Site{assets: map[string]*asset{}}
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		kind := mediaTypes[path.Ext(name)]
		if kind == "" || strings.HasPrefix(name, "test/") || strings.Contains(name, "node_modules/") {
			return nil
		}
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(b))
		sum.Write(b)
		s.assets[name] = &asset{kind: kind, plain: b}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	s.hash = hex.EncodeToString(sum.Sum(nil))[:16]
	at := "a/" + s.hash + "/"
	var preload strings.Builder
	for _, name := range s.graph("app/boot.js") {
		fmt.Fprintf(&preload, "<link rel=\"modulepreload\" href=\"%s\">\n", at+name)
	}
	s.index = strings.NewReplacer("{{assets}}", at, "{{preload}}", preload.String()).Replace(string(index))
	return s, nil
}

// imports matches the modules that a module imports.
var imports = regexp.MustCompile(`(?m)^(?:import|export)\b[^"';]*\bfrom ['"](\.[^'"]+)['"]|^import ['"](\.[^'"]+)['"]`)

// graph lists the modules that start needs, including itself: a browser that knows all of them loads them in parallel, and not level by
// level.
func (s *Site) graph(start string) []string {
	all := []string{start}
	for i := 0; i < len(all); i++ {
		a := s.assets[all[i]]
		if a == nil {
			continue
		}
		for _, m := range imports.FindAllSubmatch(a.plain, -1) {
			name := path.Join(path.Dir(all[i]), string(m[1])+string(m[2]))
			if s.assets[name] != nil && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// ServeHTTP serves the paths beneath Root: an asset by its path with the hash, and the document for every other path, which the page's
// router reads; any other path ("/" and "/ui") is redirected to Root.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	name, beneath := strings.CutPrefix(r.URL.Path, Root)
	rest, file := strings.CutPrefix(name, "a/")
	if beneath && file {
		s.file(w, r, rest)
		return
	}
	// These headers are only on documents: with them on every file the first load had 78,123 bytes instead of 67,553 (permissions) and 68,068
	// instead of 62,448 (the others).
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if !beneath {
		// The address is relative, because a proxy may have removed a prefix.
		h.Set("Location", strings.TrimPrefix(Root, "/"))
		h.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusFound)
		return
	}
	h.Set("Permissions-Policy", permissions)
	h.Set("Cache-Control", "no-store")
	send(w, r, &asset{kind: "text/html; charset=utf-8", plain: []byte(s.document(strings.TrimPrefix(r.URL.EscapedPath(), Root)))})
}

// file serves an asset. Its policy is that of every file of the server: a browser that opens one as a document runs nothing.
func (s *Site) file(w http.ResponseWriter, r *http.Request, path string) {
	h := w.Header()
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	hash, name, _ := strings.Cut(path, "/")
	a := s.assets[name]
	if hash != s.hash || a == nil {
		h.Set("Cache-Control", "no-store")
		http.Error(w, "this server has no such file; it may have been replaced by another version: load the page again", http.StatusNotFound)
		return
	}
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	send(w, r, a)
}

// document is the HTML for a path beneath Root, as the browser sent it. Its base is relative, one level up for each level of the path.
func (s *Site) document(name string) string {
	base := "./" + strings.Repeat("../", strings.Count(name, "/"))
	return strings.Replace(s.index, "{{base}}", html.EscapeString(base), 1)
}

// worthZipping is the number of bytes from which gzip is useful.
const worthZipping = 1024

// send sends an asset, in its gzip form if the browser accepts that.
func send(w http.ResponseWriter, r *http.Request, a *asset) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Vary", "Accept-Encoding")
	body := a.plain
	if len(body) >= worthZipping && takesGzip(r.Header.Get("Accept-Encoding")) {
		a.zip.Do(func() { a.zipped = zipped(a.plain) })
		body = a.zipped
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client has gone if it fails
	}
}

func takesGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			return !strings.HasPrefix(strings.ReplaceAll(q, " ", ""), "q=0") || strings.ContainsAny(q, "123456789")
		}
	}
	return false
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level exists
	_, _ = z.Write(b)                                       // a buffer takes everything
	_ = z.Close()
	return out.Bytes()
}

// Directory serves the page from a directory instead of the binary, and rereads it at each request for its document: for work on the page.
func Directory(files fs.FS) (http.Handler, error) {
	site, err := New(files)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if !strings.HasPrefix(r.URL.Path, Root+"a/") {
			next, err := New(files)
			if err != nil {
				mu.Unlock()
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			site = next
		}
		now := site
		mu.Unlock()
		now.ServeHTTP(w, r)
	}), nil
}
