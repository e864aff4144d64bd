package signature

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

func (h *Hook) read(header Header, body []byte) (*claim, error) {
	switch h.Scheme {
	case Standard:
		return readStandard(header, body)
	case GitHub:
		return readGitHub(header, body)
	case Stripe:
		return readStripe(header, body)
	case Slack:
		return readSlack(header, body)
	case HMAC:
		return h.readHMAC(header, body)
	}
	return nil, fmt.Errorf("verify: there is no scheme %q", h.Scheme)
}

// readStandard also accepts the headers svix-id, svix-timestamp and svix-signature, which Svix and its customers used before the
// standard. All three headers of a request must have the same prefix.
func readStandard(header Header, body []byte) (*claim, error) {
	prefix := "Webhook-"
	if !has(header, prefix+"Signature") && has(header, "Svix-Signature") {
		prefix = "Svix-"
	}
	id, err := one(header, prefix+"Id")
	if err != nil {
		return nil, err
	}
	if err := checkID(prefix+"Id", id); err != nil {
		return nil, err
	}
	at, seconds, err := unixTime(header, prefix+"Timestamp")
	if err != nil {
		return nil, err
	}
	text, err := one(header, prefix+"Signature")
	if err != nil {
		return nil, err
	}
	c := &claim{header: prefix + "Signature", at: at, id: id, idSigned: true,
		parts: [][]byte{[]byte(id), []byte("."), []byte(seconds), []byte("."), body}}
	for field := range strings.FieldsSeq(text) {
		// There may also be signatures of other versions, such as v1a for public keys.
		if value, known := strings.CutPrefix(field, "v1,"); known {
			c.add(base64.StdEncoding.DecodeString(value))
		}
	}
	return c.checked("v1,BASE64")
}

func readGitHub(header Header, body []byte) (*claim, error) {
	text, err := one(header, "X-Hub-Signature-256")
	if err != nil {
		return nil, err
	}
	c := &claim{header: "X-Hub-Signature-256", parts: [][]byte{body}}
	if value, known := strings.CutPrefix(text, "sha256="); known {
		c.add(hex.DecodeString(value))
	}
	if len(header["X-Github-Delivery"]) > 0 {
		if c.id, err = one(header, "X-Github-Delivery"); err != nil {
			return nil, err
		}
		if err := checkID("X-GitHub-Delivery", c.id); err != nil {
			return nil, err
		}
	}
	return c.checked("sha256=HEX")
}

func readStripe(header Header, body []byte) (*claim, error) {
	text, err := one(header, "Stripe-Signature")
	if err != nil {
		return nil, err
	}
	c := &claim{header: "Stripe-Signature", idSigned: true}
	seconds := ""
	for field := range strings.SplitSeq(text, ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(field), "="); name {
		case "t":
			if seconds != "" {
				return nil, refuse(Garbled, "Stripe-Signature has more than one time")
			}
			seconds = value
		case "v1":
			c.add(hex.DecodeString(value))
		}
	}
	if c.at, err = parseUnix("Stripe-Signature", seconds); err != nil {
		return nil, err
	}
	c.parts = [][]byte{[]byte(seconds), []byte("."), body}
	c.idIn = "id"
	return c.checked("t=SECONDS,v1=HEX")
}

func readSlack(header Header, body []byte) (*claim, error) {
	at, seconds, err := unixTime(header, "X-Slack-Request-Timestamp")
	if err != nil {
		return nil, err
	}
	text, err := one(header, "X-Slack-Signature")
	if err != nil {
		return nil, err
	}
	c := &claim{header: "X-Slack-Signature", at: at, idSigned: true, idIn: "event_id",
		parts: [][]byte{[]byte("v0:"), []byte(seconds), []byte(":"), body}}
	if value, known := strings.CutPrefix(text, "v0="); known {
		c.add(hex.DecodeString(value))
	}
	return c.checked("v0=HEX")
}

func (h *Hook) readHMAC(header Header, body []byte) (*claim, error) {
	text, err := one(header, h.Header)
	if err != nil {
		return nil, err
	}
	c := &claim{header: h.Header, idSigned: strings.Contains(h.Signed, "{id}")}
	if c.id, err = h.id(header); err != nil {
		return nil, err
	}
	moment := ""
	if h.Timestamp != "" {
		if moment, err = one(header, h.Timestamp); err != nil {
			return nil, err
		}
		if c.at, err = parseTime(h.Timestamp, moment); err != nil {
			return nil, err
		}
	}
	c.parts = h.parts(moment, c.id, body)
	if value, known := strings.CutPrefix(text, h.Prefix); known {
		c.add(h.decode(value))
	}
	return c.checked(h.Prefix + strings.ToUpper(h.encoding()))
}

// parts are the pieces of the signed text.
func (h *Hook) parts(moment, id string, body []byte) (parts [][]byte) {
	rest := cmp.Or(h.Signed, "{body}")
	for rest != "" {
		name, at := "", len(rest)
		for _, n := range placeholders {
			if i := strings.Index(rest, n); i >= 0 && i < at {
				name, at = n, i
			}
		}
		parts = append(parts, []byte(rest[:at]))
		switch name {
		case "{timestamp}":
			parts = append(parts, []byte(moment))
		case "{id}":
			parts = append(parts, []byte(id))
		case "{body}":
			parts = append(parts, body)
		}
		rest = rest[at+len(name):]
	}
	return parts
}

var placeholders = []string{"{timestamp}", "{id}", "{body}"}

func (h *Hook) encoding() string {
	return cmp.Or(h.Encoding, Hex)
}

func (h *Hook) decode(text string) ([]byte, error) {
	if h.encoding() == Base64 {
		return base64.StdEncoding.DecodeString(text)
	}
	return hex.DecodeString(text)
}

// id is the request's id in the header that the hook names; "" if it names none.
func (h *Hook) id(header Header) (string, error) {
	if h.ID == "" {
		return "", nil
	}
	id, err := one(header, h.ID)
	if err != nil {
		return "", err
	}
	return id, checkID(h.ID, id)
}

// add adds a signature; one that cannot be decoded or is not of SHA-256's size matches nothing and is left out.
func (c *claim) add(sum []byte, err error) {
	if err == nil && len(sum) == sha256.Size && len(c.sums) < mostSignatures {
		c.sums = append(c.sums, sum)
	}
}

func (c *claim) checked(form string) (*claim, error) {
	if len(c.sums) == 0 {
		return nil, refuse(Garbled, "%s has no signature of the form %s", c.header, form)
	}
	return c, nil
}

func has(header Header, name string) bool {
	for n := range header {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// one is the value of a header that must occur once: of two values, a proxy before this server may have checked the other.
func one(header Header, name string) (string, error) {
	var values []string
	for n, vs := range header {
		if strings.EqualFold(n, name) {
			values = append(values, vs...)
		}
	}
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", refuse(Missing, "the header %s is missing", name)
	case len(values) > 1:
		return "", refuse(Garbled, "the header %s is there %d times", name, len(values))
	case len(values[0]) > mostHeader:
		return "", refuse(Garbled, "the header %s has %d bytes; at most %d are looked at", name, len(values[0]), mostHeader)
	}
	return values[0], nil
}

func checkID(header, id string) error {
	if len(id) > mostID {
		return refuse(Garbled, "the id in %s has %d bytes; at most %d are allowed", header, len(id), mostID)
	}
	for _, r := range id {
		if r <= ' ' || r > '~' {
			return refuse(Garbled, "the id in %s has %q; visible ASCII characters are allowed", header, r)
		}
	}
	return nil
}

func unixTime(header Header, name string) (time.Time, string, error) {
	text, err := one(header, name)
	if err != nil {
		return time.Time{}, "", err
	}
	at, err := parseUnix(name, text)
	return at, text, err
}

// mostUnix is the last second of the year 9999.
const mostUnix = 253402300799

func parseUnix(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, refuse(Missing, "%s has no time", name)
	}
	// ParseUint refuses a sign, which no provider sends.
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n > mostUnix {
		return time.Time{}, refuse(Garbled, "the time in %s is not a number of seconds since 1970: %.40q", name, text)
	}
	return time.Unix(int64(n), 0).UTC(), nil
}

// leastMilli separates seconds from milliseconds: it is the year 5138 in seconds, and 1973 in milliseconds.
const leastMilli = 100_000_000_000

// parseTime parses the time in a header of scheme HMAC.
func parseTime(name, text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	switch {
	case err != nil:
	case n < leastMilli:
		return time.Unix(int64(n), 0).UTC(), nil
	case n <= mostUnix*1000:
		return time.UnixMilli(int64(n)).UTC(), nil
	}
	return time.Time{}, refuse(Garbled, "the time in %s is neither seconds nor milliseconds since 1970, nor RFC 3339: %.40q", name, text)
}

// textIn is a string member of a JSON object; "" if there is none, or if body is not JSON but, for example, a form.
func textIn(body []byte, name string) string {
	var object map[string]json.RawMessage
	var text string
	if json.Unmarshal(body, &object) != nil || json.Unmarshal(object[name], &text) != nil || checkID(name, text) != nil {
		return ""
	}
	return text
}

// standardPrefix is the start of Standard Webhooks secrets; base64 follows.
const standardPrefix = "whsec_"
