package signature

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"time"
)

const authorization = "Authorization"

// verifyShared accepts a request that contains one of the secrets. It compares digests, and all of them, so that the time does not reveal
// the length of a secret or how much of it was right.
func (h *Hook) verifyShared(secrets [][]byte, header Header, body []byte, now time.Time) (Delivery, error) {
	user, given, err := h.shared(header)
	if err != nil {
		return Delivery{}, err
	}
	got, known := sha256.Sum256([]byte(given)), 0
	for _, s := range secrets {
		want := sha256.Sum256(s)
		known |= subtle.ConstantTimeCompare(want[:], got[:])
	}
	if h.User != "" {
		want, got := sha256.Sum256([]byte(h.User)), sha256.Sum256([]byte(user))
		known &= subtle.ConstantTimeCompare(want[:], got[:])
	}
	if known != 1 {
		return Delivery{}, refuse(Mismatch, "%s has no secret of this hook", h.sharedHeader())
	}
	id, err := h.id(header)
	return Delivery{ID: id, At: now, Sum: sha256.Sum256(body)}, err
}

func (h *Hook) sharedHeader() string {
	if h.Scheme == Token {
		return h.Header
	}
	return authorization
}

// shared reads the secret in a request, and with scheme Basic its user.
func (h *Hook) shared(header Header) (user, secret string, err error) {
	name := h.sharedHeader()
	text, err := one(header, name)
	if err != nil {
		return "", "", err
	}
	if h.Scheme == Token {
		secret, found := strings.CutPrefix(text, h.Prefix)
		if !found || secret == "" {
			return "", "", refuse(Garbled, "%s does not have the form %sTOKEN", name, h.Prefix)
		}
		return "", secret, nil
	}
	scheme, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	if !strings.EqualFold(scheme, string(h.Scheme)) || rest == "" {
		form := map[Scheme]string{Bearer: "Bearer TOKEN", Basic: "Basic BASE64"}[h.Scheme]
		return "", "", refuse(Garbled, "%s does not have the form %s", name, form)
	}
	if h.Scheme == Bearer {
		return "", rest, nil
	}
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(rest, "="))
	user, secret, found := strings.Cut(string(plain), ":")
	if err != nil || !found {
		return "", "", refuse(Garbled, "%s is not Basic with the base64 of USER:PASSWORD", name)
	}
	return user, secret, nil
}

// Challenge is the header WWW-Authenticate of a refusal; "" for schemes that HTTP does not define. Some clients send user and
// password only after a refusal that asks for them.
func (h *Hook) Challenge() string {
	switch h.Scheme {
	case Bearer:
		return "Bearer"
	case Basic:
		return `Basic realm="webhook", charset="UTF-8"`
	}
	return ""
}

// signShared returns the headers of a request with the secret.
func (h *Hook) signShared(secret, id string) (fields []Field) {
	switch h.Scheme {
	case Bearer:
		fields = append(fields, Field{authorization, "Bearer " + secret})
	case Basic:
		fields = append(fields, Field{authorization, "Basic " + base64.StdEncoding.EncodeToString([]byte(h.User+":"+secret))})
	default:
		fields = append(fields, Field{h.Header, h.Prefix + secret})
	}
	if h.ID != "" {
		fields = append(fields, Field{h.ID, id})
	}
	return fields
}
