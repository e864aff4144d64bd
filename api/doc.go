// Package api holds the types of Pawl's HTTP API: requests and responses in JSON. Fields may be added to responses at any time, so readers
// should ignore unknown fields; requests with unknown fields are refused.
//
// Times are RFC 3339 in UTC. IDs are opaque strings.
package api
