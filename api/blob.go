package api

import "time"

// Blob is an uploaded content. A submission refers to it instead of carrying the bytes: {"blob": "sha256:9f86d0…"}.
type Blob struct {
	Blob      string    `json:"blob" doc:"Reference for submissions: sha256: followed by the SHA-256 in hex"`
	Size      int64     `json:"size" doc:"Size in bytes"`
	KeptUntil time.Time `json:"kept_until" doc:"Earliest removal; a blob stays as long as an execution refers to it"`
}
