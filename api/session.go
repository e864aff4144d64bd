package api

import "time"

// Login asks for a session, which lets a browser in by a cookie.
type Login struct {
	Token string `json:"token" doc:"One of the server's tokens"`
}

// Session says whether the sender of the request may use the API.
type Session struct {
	// Tokens reports whether this server asks for a token at all.
	Tokens bool `json:"tokens" doc:"Whether the server requires a token"`
	// Open reports whether this request would be let in.
	Open bool `json:"open" doc:"Whether this request may use the API"`
	// ExpiresAt is when the session's cookie ends; absent without one.
	ExpiresAt time.Time `json:"expires_at,omitzero" doc:"When the cookie expires; absent without a cookie"`
	// Version is the server's; absent for those who are not let in.
	Version string `json:"version,omitempty" doc:"Version of the server"`
	// Archive is set where the server shows an archive, and only to those who are let in.
	Archive *Archive `json:"archive,omitempty" doc:"Archive that the server shows; absent on a normal server"`
}
