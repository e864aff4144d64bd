// Package web is the web page of pawl server: plain ES modules, a style sheet and one HTML document, embedded unchanged, and the handler
// that serves them. The page uses only the public API (docs/web.md).
package web

import "embed"

// Files are the files for the browser.
//
//go:embed index.html icon.svg app part screen css vendor/preact.js
var Files embed.FS
