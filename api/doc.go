// Package api holds the words of Pawl's HTTP API: what requests and answers look like in JSON. Fields may be added to
// answers at any time, so readers should ignore what they do not know; requests with unknown fields are refused.
//
// Times are RFC 3339 in UTC. Ids are opaque texts.
package api
