package api

import "time"

// Login asks for a session, which lets a browser in by a cookie.
type Login struct {
	Token string `json:"token"`
}

// Session says whether the sender of the request may use the API.
type Session struct {
	// Tokens reports whether this server asks for a token at all.
	Tokens bool `json:"tokens"`
	// Open reports whether this request would be let in.
	Open bool `json:"open"`
	// ExpiresAt is when the session's cookie ends; absent without one.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Version is the server's; absent for those who are not let in.
	Version string `json:"version,omitempty"`
}
