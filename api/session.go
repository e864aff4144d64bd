package api

import "time"

// Login asks for a session: a browser sends its cookie instead of a token.
type Login struct {
	Token string `json:"token" doc:"One of the server's tokens"`
}

// Session says whether the sender of the request may use the API.
type Session struct {
	Tokens    bool      `json:"tokens" doc:"Whether the server requires a token"`
	Open      bool      `json:"open" doc:"Whether this request may use the API"`
	ExpiresAt time.Time `json:"expires_at,omitzero" doc:"When the cookie expires; absent without a cookie"`
	// Version is the server's version; absent if the request may not use the API.
	Version string   `json:"version,omitempty" doc:"Version of the server"`
	Archive *Archive `json:"archive,omitempty" doc:"Archive that the server shows; absent on a normal server"`
}
