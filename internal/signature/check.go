package signature

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

type Fault struct {
	Field   string // in documents: signed, timestamp
	Message string
	Fix     string
}

// mostTolerance bounds Tolerance: a request can be replayed for as long as its time is accepted.
const mostTolerance = 24 * time.Hour

func (h *Hook) Check() (faults []Fault) {
	fault := func(field, message, fix string) { faults = append(faults, Fault{field, message, fix}) }
	if h.Tolerance < 0 || h.Tolerance > mostTolerance {
		fault("tolerance", h.Tolerance.String()+" is out of range", "write more than nothing and at most 24h; 5m is usual")
	}
	for _, f := range []struct{ name, value string }{{"header", h.Header}, {"timestamp", h.Timestamp}, {"id", h.ID}} {
		if f.value != "" && !headerName(f.value) {
			fault(f.name, "it is not the name of a header", "write a name such as x-signature")
		}
	}
	taken := taken[h.Scheme]
	for _, f := range []struct{ name, value string }{
		{"header", h.Header}, {"encoding", h.Encoding}, {"prefix", h.Prefix}, {"signed", h.Signed}, {"timestamp", h.Timestamp}, {"id", h.ID},
	} {
		switch {
		case f.value == "" || slices.Contains(taken, f.name):
		case h.Scheme.Shared():
			fault(f.name, "a request of scheme "+string(h.Scheme)+" has the secret itself and no signature", "remove it, or write scheme: hmac")
		default:
			fault(f.name, "scheme "+string(h.Scheme)+" says that itself", "remove it, or write scheme: hmac")
		}
	}
	if h.User != "" && !slices.Contains(taken, "user") {
		fault("user", "a request of scheme "+string(h.Scheme)+" has no user", "remove it, or write scheme: basic")
	}
	if strings.Contains(h.User, ":") {
		fault("user", "a colon ends the user in a request of scheme basic", "write a user without one")
	}
	if h.Tolerance != 0 && (h.Scheme == GitHub || !h.Scheme.Signs()) {
		fault("tolerance", "scheme "+string(h.Scheme)+" signs no time", "remove it; replay says how long a body is remembered")
	}
	if h.Scheme == Token && h.Header == "" {
		fault("header", "scheme token needs the header that has the token", "add header: X-Gitlab-Token, as the provider documents it")
	}
	if h.Scheme == HMAC {
		faults = append(faults, h.checkHMAC()...)
	}
	return faults
}

// taken are the fields that schemes use besides the secrets, and besides tolerance if they sign a time.
var taken = map[Scheme][]string{
	HMAC:   {"header", "encoding", "prefix", "signed", "timestamp", "id"},
	Token:  {"header", "prefix", "id"},
	Bearer: {"id"},
	Basic:  {"id", "user"},
	None:   {"id"},
}

func (h *Hook) checkHMAC() (faults []Fault) {
	fault := func(field, message, fix string) { faults = append(faults, Fault{field, message, fix}) }
	if h.Header == "" {
		fault("header", "scheme hmac needs the header that has the signature", "add header: x-signature")
	}
	signed := cmp.Or(h.Signed, "{body}")
	if strings.Count(signed, "{body}") != 1 {
		fault("signed", "the body must be signed, once", `write signed: "{timestamp}.{body}", as the provider documents it`)
	}
	if strings.Contains(signed, "{id}{body}") || strings.Contains(signed, "{body}{id}") {
		fault("signed", "nothing stands between id and body, so bytes could be moved from one to the other", `put something between them, as in "{id}.{body}"`)
	}
	left := strings.NewReplacer("{timestamp}", "", "{id}", "", "{body}", "").Replace(signed)
	if strings.ContainsAny(left, "{}") {
		fault("signed", "it has a name in braces that is none of {timestamp}, {id} and {body}", "write one of them")
	}
	for _, f := range []struct{ placeholder, name, value string }{{"{timestamp}", "timestamp", h.Timestamp}, {"{id}", "id", h.ID}} {
		if strings.Contains(signed, f.placeholder) && f.value == "" {
			fault("signed", "it has "+f.placeholder+", and no header is named for that", "add "+f.name+": with the name of the header")
		}
	}
	if h.Timestamp != "" && !strings.Contains(signed, "{timestamp}") {
		fault("timestamp", "the signature does not cover it, so a request could be sent again with another time", `add {timestamp} to signed, or remove timestamp`)
	}
	if h.Tolerance != 0 && h.Timestamp == "" {
		fault("tolerance", "no header is named that has a time", "remove it, or add timestamp")
	}
	return faults
}

// headerName reports whether a text is a token, as required for header names.
func headerName(s string) bool {
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("!#$%&'*+-.^_`|~", r):
		default:
			return false
		}
	}
	return s != "" && len(s) <= 100
}
