package signature

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

type Field struct{ Name, Value string }

// Sign returns the headers with which Verify accepts a request. The id is omitted if the scheme has no header for it: Stripe and
// Slack have ids in the body.
func Sign(h *Hook, secret, id string, at time.Time, body []byte) ([]Field, error) {
	if h.Scheme == None {
		return nil, nil
	}
	keys, err := h.keys([]string{secret})
	if err != nil {
		return nil, err
	}
	if h.Scheme.Shared() {
		return h.signShared(secret, id), nil
	}
	key, seconds := keys[0], strconv.FormatInt(at.Unix(), 10)
	of := func(parts ...[]byte) []byte { return sum(key, parts) }
	switch h.Scheme {
	case Standard:
		if err := checkID("Webhook-Id", id); err != nil {
			return nil, err
		}
		s := of([]byte(id), []byte("."), []byte(seconds), []byte("."), body)
		return []Field{{"Webhook-Id", id}, {"Webhook-Timestamp", seconds}, {"Webhook-Signature", "v1," + base64.StdEncoding.EncodeToString(s)}}, nil
	case GitHub:
		fields := []Field{{"X-Hub-Signature-256", "sha256=" + hex.EncodeToString(of(body))}}
		if id != "" {
			fields = append(fields, Field{"X-GitHub-Delivery", id})
		}
		return fields, nil
	case Stripe:
		return []Field{{"Stripe-Signature", "t=" + seconds + ",v1=" + hex.EncodeToString(of([]byte(seconds), []byte("."), body))}}, nil
	case Slack:
		return []Field{{"X-Slack-Request-Timestamp", seconds}, {"X-Slack-Signature", "v0=" + hex.EncodeToString(of([]byte("v0:"), []byte(seconds), []byte(":"), body))}}, nil
	case HMAC:
		s, encode := sum(key, h.parts(seconds, id, body)), hex.EncodeToString
		if h.encoding() == Base64 {
			encode = base64.StdEncoding.EncodeToString
		}
		fields := []Field{{h.Header, h.Prefix + encode(s)}}
		if h.Timestamp != "" {
			fields = append(fields, Field{h.Timestamp, seconds})
		}
		if h.ID != "" {
			fields = append(fields, Field{h.ID, id})
		}
		return fields, nil
	}
	return nil, fmt.Errorf("sign: there is no scheme %q", h.Scheme)
}
