package api

import "time"

// Blob is a content that was uploaded. A submission names it in place of bytes: {"blob": "sha256:9f86d0…"}.
type Blob struct {
	Blob string `json:"blob" doc:"What submissions name it by: sha256: and its SHA-256"`
	Size int64  `json:"size" doc:"Bytes"`
	// KeptUntil is when it is removed, unless an execution names it or it is uploaded again.
	KeptUntil time.Time `json:"kept_until" doc:"It is kept until then, and as long as an execution names it"`
}
