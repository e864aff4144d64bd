// Package signature verifies and creates the signatures and shared secrets of webhooks: who sent a request, when, and under which id. It
// is pure: secrets and the time are arguments.
package signature

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Scheme is how a provider signs.
type Scheme string

const (
	Standard Scheme = "standard" // Standard Webhooks: webhook-id, webhook-timestamp, webhook-signature
	GitHub   Scheme = "github"   // X-Hub-Signature-256 over the body alone
	Stripe   Scheme = "stripe"   // Stripe-Signature: t=…,v1=…
	Slack    Scheme = "slack"    // X-Slack-Signature: v0=…
	HMAC     Scheme = "hmac"     // HMAC-SHA256 of the hook's Signed, in its Header
	Token    Scheme = "token"    // the secret itself, in the hook's Header
	Bearer   Scheme = "bearer"   // Authorization: Bearer SECRET
	Basic    Scheme = "basic"    // Authorization: Basic, with the secret as password
	None     Scheme = "none"     // no signature: for hooks that only this machine can reach
)

// Schemes lists the schemes in the order for messages and documents.
func Schemes() []string {
	return []string{string(Standard), string(GitHub), string(Stripe), string(Slack), string(HMAC),
		string(Token), string(Bearer), string(Basic), string(None)}
}

// Signs reports whether a request of the scheme has a signature over its body.
func (s Scheme) Signs() bool { return !s.Shared() && s != None }

// Shared reports whether a request of the scheme contains the secret itself, so that a sender can try out secrets.
func (s Scheme) Shared() bool { return s == Token || s == Bearer || s == Basic }

// The encodings of a signature of scheme HMAC.
const (
	Hex    = "hex"
	Base64 = "base64"
)

// DefaultTolerance is the allowed difference between the time of a request and the present; Standard Webhooks, Stripe and Slack
// recommend this value.
const DefaultTolerance = 5 * time.Minute

// Hook is how the requests to a webhook are signed. All fields except Scheme, Tolerance and User are for scheme HMAC. Token also uses
// Header, Prefix and ID; Bearer, Basic and None use ID.
type Hook struct {
	Scheme Scheme
	Header string // with the signature, or the secret itself
	// Encoding is Hex (also when empty) or Base64.
	Encoding string
	Prefix   string // before the signature in its header, such as "sha256="
	// Signed is the signed text, with the placeholders {timestamp}, {id} and {body}. Empty: the body alone.
	Signed    string
	Timestamp string        // header with the request's time: seconds or milliseconds since 1970, or RFC 3339
	ID        string        // header with the request's id
	Tolerance time.Duration // 0: DefaultTolerance
	User      string        // with scheme Basic; "": any, because the password is the secret
}

type Header = map[string][]string

// Delivery is what is known about a verified request.
type Delivery struct {
	ID string // "": it has none
	// At is when the provider signed the request, or, if the scheme signs no time, when it arrived.
	At time.Time
	// Signed is true when the signature covers the id: then only the provider can send the same content under another id.
	Signed bool
	// Sum is the SHA-256 of the signed content: it is the same if a request is repeated unchanged, and differs if the provider signs
	// the request again with another time.
	Sum [sha256.Size]byte
}

const (
	Missing  = "missing"  // the signature, time or id is not there
	Garbled  = "garbled"  // one of them does not have the scheme's form
	Mismatch = "mismatch" // no secret gives this signature
	Stale    = "stale"    // the time is too long ago
	Future   = "future"   // the time is too far ahead
)

// Refusal is the reason why a request is not accepted as the provider's.
type Refusal struct {
	Reason  string
	Message string // for people; it contains neither secrets nor the correct signature
}

func (r *Refusal) Error() string { return r.Message }

func refuse(reason, format string, args ...any) *Refusal {
	return &Refusal{reason, fmt.Sprintf(format, args...)}
}

// ErrSecret means that a secret is unusable: a fault of the receiver and not of the sender.
var ErrSecret = errors.New("unusable secret")

const (
	mostSignatures = 32   // per header: a provider sends one per secret during a rotation
	mostHeader     = 4096 // bytes of a header that are read
	mostID         = 256
)

// Verify checks the signature of a request with each of the secrets, several of which are valid during a rotation. body must be the
// original bytes: a body that was decoded and encoded again has another signature. The error is a *Refusal, or wraps ErrSecret.
func Verify(h *Hook, secrets []string, header Header, body []byte, now time.Time) (Delivery, error) {
	if h.Scheme == None {
		id, err := h.id(header)
		return Delivery{ID: id, At: now, Sum: sha256.Sum256(body)}, err
	}
	keys, err := h.keys(secrets)
	if err != nil {
		return Delivery{}, err
	}
	if h.Scheme.Shared() {
		return h.verifyShared(keys, header, body, now)
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

// timely refuses a request that was signed too long ago or too far in the future.
func (h *Hook) timely(c *claim, now time.Time) error {
	if c.at.IsZero() {
		return nil
	}
	tolerance := cmp.Or(h.Tolerance, DefaultTolerance)
	switch age := now.Sub(c.at); {
	case age > tolerance:
		return refuse(Stale, "it was signed at %s, %s ago; at most %s are allowed", c.at.UTC().Format(time.RFC3339), age.Round(time.Second), tolerance)
	case age < -tolerance:
		return refuse(Future, "it was signed at %s, %s ahead of this server's clock; at most %s are allowed", c.at.UTC().Format(time.RFC3339), (-age).Round(time.Second), tolerance)
	}
	return nil
}

// claim is a request's signature and what it covers.
type claim struct {
	header   string   // that has the signature
	sums     [][]byte // the decoded signatures
	parts    [][]byte // the signed content, in pieces
	at       time.Time
	id       string
	idIn     string // the member of the body with the id, which is read after the signature has been verified
	idSigned bool
}

// by reports whether one of the keys matches one of the signatures. It compares every pair, each in constant time.
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

// keys are the HMAC keys for the secrets.
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
