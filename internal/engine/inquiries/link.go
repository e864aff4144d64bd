package inquiries

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// answerKeyName is the setting that holds the key by which links to answer inquiries are signed.
const answerKeyName = "answer_key"

// ErrBadLink means that this engine has not made a link, or that it is not valid any more.
var ErrBadLink = errors.New("the link is not valid, or not any more")

// linkKey is the key for links, once it has been loaded.
type linkKey struct {
	mu  sync.Mutex
	key []byte
}

func (q *Inquiries) linkKey(ctx context.Context) ([]byte, error) {
	q.links.mu.Lock()
	defer q.links.mu.Unlock()
	if q.links.key == nil {
		key, err := q.Catalog.SharedKey(ctx, answerKeyName)
		if err != nil {
			return nil, err
		}
		q.links.key = key
	}
	return q.links.key, nil
}

// invitation is the content of a link: the inquiry, when it was asked and is due, and who may answer it.
type invitation struct {
	Inquiry string   `json:"i"`
	Due     int64    `json:"d,omitempty"` // in microseconds since 1970; 0: never
	Asked   int64    `json:"a"`           // when it was asked, in microseconds since 1970: a question that is asked again needs another link
	By      string   `json:"b"`
	Groups  []string `json:"g,omitempty"`
}

// linkLimit bounds the token of a link, in bytes.
const linkLimit = 16 << 10

// Invite makes the token of a link by which one person may answer an open inquiry, until it is due. The token is signed and not stored. The
// errors are *Invalid, store.ErrNotFound, and those of flow.Inquiry.May and Reply.
func (q *Inquiries) Invite(ctx context.Context, id flow.ID, name string, groups []string) (token string, i *flow.Inquiry, err error) {
	p, err := (&Reply{By: name, Groups: groups}).person()
	if err != nil {
		return "", nil, err
	}
	if i, err = q.Store.Inquiry(ctx, id); err != nil {
		return "", nil, err
	}
	if err := i.May(p); err != nil {
		return "", i, err
	}
	if i.State != flow.InquiryOpen {
		return "", i, fmt.Errorf("%w: it was %s at %s", flow.ErrClosed, i.State, i.ClosedAt.Format(time.RFC3339))
	}
	key, err := q.linkKey(ctx)
	if err != nil {
		return "", nil, err
	}
	said, err := json.Marshal(invitation{Inquiry: id.Text(flow.InquiryPrefix), Due: dueMicros(i), Asked: i.AskedAt.UnixMicro(), By: p.Name, Groups: p.Groups})
	if err != nil {
		return "", nil, fmt.Errorf("make a link: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(append(signed(key, said), said...)), i, nil
}

func signed(key, said []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("pawl answer link 1\n"))
	h.Write(said)
	return h.Sum(nil)
}

func dueMicros(i *flow.Inquiry) int64 {
	if i.Due.IsZero() {
		return 0
	}
	return i.Due.UnixMicro()
}

// Invited reads the token of a link: the inquiry, and the person who may answer it. The error is ErrBadLink if Invite has not made the
// token, or if the question has been asked again since.
func (q *Inquiries) Invited(ctx context.Context, token string) (*flow.Inquiry, flow.Person, error) {
	var p flow.Person
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) <= sha256.Size || len(token) > linkLimit {
		return nil, p, ErrBadLink
	}
	key, err := q.linkKey(ctx)
	if err != nil {
		return nil, p, err
	}
	var v invitation
	if !hmac.Equal(raw[:sha256.Size], signed(key, raw[sha256.Size:])) || json.Unmarshal(raw[sha256.Size:], &v) != nil {
		return nil, p, ErrBadLink
	}
	id, err := flow.ParseID(flow.InquiryPrefix, v.Inquiry)
	if err != nil {
		return nil, p, ErrBadLink
	}
	i, err := q.Store.Inquiry(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, p, ErrBadLink
	case err != nil:
		return nil, p, err
	case dueMicros(i) != v.Due || i.AskedAt.UnixMicro() != v.Asked:
		return nil, p, ErrBadLink
	}
	return i, flow.Person{Name: v.By, Groups: v.Groups}, nil
}
