// Package web is the web page of pawl server: plain ES modules, a style sheet and one HTML document, embedded as they stand in the
// tree, and the handler that serves them. The page itself speaks to the public API only (docs/web.md).
package web

import "embed"

// Files are what a browser is given.
//
//go:embed index.html icon.svg app part screen css vendor/preact.js
var Files embed.FS
