// Package signature verifies and writes the signatures of webhooks: who sent a request, when, and under which id. It is pure: secrets
// and the time are arguments.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Scheme is how a provider signs.
type Scheme string

// The schemes.
const (
	Standard Scheme = "standard" // Standard Webhooks: webhook-id, webhook-timestamp, webhook-signature
	GitHub   Scheme = "github"   // X-Hub-Signature-256 over the body alone
	Stripe   Scheme = "stripe"   // Stripe-Signature: t=…,v1=…
	Slack    Scheme = "slack"    // X-Slack-Signature: v0=…
	HMAC     Scheme = "hmac"     // HMAC-SHA256 of what the hook says, in the header that it says
	None     Scheme = "none"     // no signature: for hooks that only this machine can reach
)

// Schemes lists the schemes in the order in which messages and documents have them.
func Schemes() []string {
	return []string{string(Standard), string(GitHub), string(Stripe), string(Slack), string(HMAC), string(None)}
}

// The encodings of a signature of scheme HMAC.
const (
	Hex    = "hex"
	Base64 = "base64"
)

// DefaultTolerance is how far the time of a request may be from the present: what Standard Webhooks, Stripe and Slack recommend.
const DefaultTolerance = 5 * time.Minute

// Hook is how the requests to a webhook are signed. All but Scheme and Tolerance is for scheme HMAC; scheme None takes ID as well.
type Hook struct {
	Scheme Scheme
	Header string // that has the signature
	// Encoding is Hex (also when empty) or Base64.
	Encoding string
	Prefix   string // before the signature in its header, such as "sha256="
	// Signed is the text that the signature is of, with {timestamp}, {id} and {body} for what they name. Empty: the body alone.
	Signed    string
	Timestamp string        // the header that has the time of the request: seconds or milliseconds since 1970, or RFC 3339
	ID        string        // the header that has the request's id
	Tolerance time.Duration // 0: DefaultTolerance
}

// Header is what a request has for headers, as net/http has them.
type Header = map[string][]string

// Delivery is what a verified request says of itself.
type Delivery struct {
	ID string // "": it has none
	// At is when the provider signed the request; where the scheme signs no time, when it came.
	At time.Time
	// Signed says that the signature covers the id: that nobody but the provider can send the same content under another one.
	Signed bool
	// Sum is the SHA-256 of what is signed: a request that is sent again as it was has the same, one that the provider signs anew with
	// another time has not.
	Sum [sha256.Size]byte
}

// The reasons of refusals.
const (
	Missing  = "missing"  // the signature, time or id is not there
	Garbled  = "garbled"  // one of them is not of the scheme's form
	Mismatch = "mismatch" // no secret gives this signature
	Stale    = "stale"    // the time is too long ago
	Future   = "future"   // the time is too far ahead
)

// Refusal is why a request is not taken for the provider's.
type Refusal struct {
	Reason  string
	Message string // for people; it repeats neither secrets nor the signature that would have been right
}

func (r *Refusal) Error() string { return r.Message }

func refuse(reason, format string, args ...any) *Refusal {
	return &Refusal{reason, fmt.Sprintf(format, args...)}
}

// ErrSecret means that a secret cannot be used: the receiver's fault, not the sender's.
var ErrSecret = errors.New("unusable secret")

const (
	mostSignatures = 32   // in one header: a provider sends one per secret while it rotates them
	mostHeader     = 4096 // bytes of a header that is looked at
	mostID         = 256
)

// Verify checks the signature of a request by each of the secrets, of which several are valid while one replaces another. body is the
// request's as it came: a body that was decoded and encoded again has another signature. The error is a *Refusal, or wraps ErrSecret.
func Verify(h *Hook, secrets []string, header Header, body []byte, now time.Time) (Delivery, error) {
	if h.Scheme == None {
		id, err := h.id(header)
		return Delivery{ID: id, At: now, Sum: sha256.Sum256(body)}, err
	}
	keys, err := h.keys(secrets)
	if err != nil {
		return Delivery{}, err
	}
	c, err := h.read(header, body)
	if err != nil {
		return Delivery{}, err
	}
	if !c.by(keys) {
		return Delivery{}, refuse(Mismatch, "no secret of this hook gives the signature in %s", c.header)
	}
	if err := h.timely(c, now); err != nil {
		return Delivery{}, err
	}
	d := Delivery{ID: c.id, At: now, Signed: c.idSigned, Sum: digest(c.parts)}
	if c.idIn != "" {
		d.ID = textIn(body, c.idIn)
	}
	if !c.at.IsZero() {
		d.At = c.at
	}
	return d, nil
}

// timely refuses what was signed too long ago, or ahead of time.
func (h *Hook) timely(c *claim, now time.Time) error {
	if c.at.IsZero() {
		return nil
	}
	tolerance := h.Tolerance
	if tolerance == 0 {
		tolerance = DefaultTolerance
	}
	switch age := now.Sub(c.at); {
	case age > tolerance:
		return refuse(Stale, "it was signed at %s, %s ago; at most %s are allowed", c.at.UTC().Format(time.RFC3339), age.Round(time.Second), tolerance)
	case age < -tolerance:
		return refuse(Future, "it was signed at %s, %s ahead of this server's clock; at most %s are allowed", c.at.UTC().Format(time.RFC3339), (-age).Round(time.Second), tolerance)
	}
	return nil
}

// claim is what a request says about its signature.
type claim struct {
	header   string   // that has the signature
	sums     [][]byte // the signatures in it, decoded
	parts    [][]byte // what is signed, in pieces
	at       time.Time
	id       string
	idIn     string // the member of the body that has it, which is read once the signature is right
	idSigned bool
}

// by reports whether one of the keys gives one of the signatures. It compares each pair in constant time, and all of them.
func (c *claim) by(keys [][]byte) bool {
	found := false
	for _, key := range keys {
		want := sum(key, c.parts)
		for _, got := range c.sums {
			if hmac.Equal(want, got) {
				found = true
			}
		}
	}
	return found
}

func sum(key []byte, parts [][]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}

func digest(parts [][]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	h.Sum(sum[:0])
	return sum
}

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

func readStandard(header Header, body []byte) (*claim, error) {
	id, err := one(header, "Webhook-Id")
	if err != nil {
		return nil, err
	}
	if err := checkID("Webhook-Id", id); err != nil {
		return nil, err
	}
	at, seconds, err := unixTime(header, "Webhook-Timestamp")
	if err != nil {
		return nil, err
	}
	text, err := one(header, "Webhook-Signature")
	if err != nil {
		return nil, err
	}
	c := &claim{header: "Webhook-Signature", at: at, id: id, idSigned: true,
		parts: [][]byte{[]byte(id), []byte("."), []byte(seconds), []byte("."), body}}
	for _, field := range strings.Fields(text) {
		// Other versions, as v1a of public keys, may stand beside those that this package knows.
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

// parts are the pieces of the text that is signed.
func (h *Hook) parts(moment, id string, body []byte) (parts [][]byte) {
	rest := h.Signed
	if rest == "" {
		rest = "{body}"
	}
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
	if h.Encoding == "" {
		return Hex
	}
	return h.Encoding
}

func (h *Hook) decode(text string) ([]byte, error) {
	if h.encoding() == Base64 {
		return base64.StdEncoding.DecodeString(text)
	}
	return hex.DecodeString(text)
}

// id is the request's id in the header that the hook names; "" where it names none.
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

// add notes a signature; one that cannot be read or is not of SHA-256 matches nothing and is left out.
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

// one is the value of a header that must be there once: of two values a proxy before this server may have checked the other one.
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
	// ParseInt takes a sign; a provider sends none.
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n > mostUnix {
		return time.Time{}, refuse(Garbled, "the time in %s is not a number of seconds since 1970: %.40q", name, text)
	}
	return time.Unix(int64(n), 0).UTC(), nil
}

// leastMilli tells seconds from milliseconds: as seconds it is the year 5138, as milliseconds 1973.
const leastMilli = 100_000_000_000

// parseTime reads what a header of scheme HMAC may have for a time.
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

// textIn is a string at the top of a JSON object; "" where there is none, as in a form.
func textIn(body []byte, name string) string {
	var object map[string]json.RawMessage
	var text string
	if json.Unmarshal(body, &object) != nil || json.Unmarshal(object[name], &text) != nil || checkID(name, text) != nil {
		return ""
	}
	return text
}

// standardPrefix marks the secrets of Standard Webhooks, which are base64 behind it.
const standardPrefix = "whsec_"

// keys are the keys of HMAC that the secrets stand for.
func (h *Hook) keys(secrets []string) ([][]byte, error) {
	if len(secrets) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrSecret)
	}
	keys := make([][]byte, 0, len(secrets))
	for i, s := range secrets {
		key := []byte(s)
		if h.Scheme == Standard {
			var err error
			if key, err = standardKey(s); err != nil {
				return nil, fmt.Errorf("secret %d of %d: %w", i+1, len(secrets), err)
			}
		}
		if len(key) == 0 {
			return nil, fmt.Errorf("%w: secret %d of %d is empty", ErrSecret, i+1, len(secrets))
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func standardKey(secret string) ([]byte, error) {
	text := strings.TrimRight(strings.TrimPrefix(secret, standardPrefix), "=")
	key, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: a secret of Standard Webhooks is whsec_ and base64 behind it", ErrSecret)
	}
	return key, nil
}
