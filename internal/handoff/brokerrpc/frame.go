package brokerrpc

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// version is the version of this format. Each side refuses other versions.
const version = 1

// A frame is the content of a message: a code that proves who wrote it, a head of one line, and a body.
//
//	32 bytes HMAC-SHA256 of what follows │ head as JSON, "\n" │ body
//
// The key is the session's secret, which only its worker and the servers know. A process that can read or write in the broker therefore
// cannot impersonate a worker or a server. A frame that opens a session is signed with the token. A replayed call is harmless: servers that
// have had the call, or a later one, skip it, and if another server claims work for it the work goes to the same worker. A replayed answer
// is ignored.
type frame struct {
	head
	body   []byte
	signed []byte // the bytes that the code signs
	code   []byte
}

type head struct {
	V       int    `json:"v"`
	ID      string `json:"id"`                // of the call, or of the transfer
	Kind    string `json:"kind"`              // a call of package wire, or one of the kinds below
	Session string `json:"session,omitempty"` // of a call
	To      string `json:"to,omitempty"`      // of a call: the reply queue for the answer
	Key     []byte `json:"key,omitempty"`     // public key, of the worker that opens a session or of the server that answers
	Code    string `json:"code,omitempty"`    // of an answer: the kind of failure
	Say     string `json:"say,omitempty"`     // of an answer: the text of the failure
	Pipe    string `json:"pipe,omitempty"`    // the transfer that carries the body
	Seq     int64  `json:"seq,omitempty"`     // of a piece: its number; of an acknowledgement: the number of the piece expected next
	Last    bool   `json:"last,omitempty"`    // of a piece: it is the last; of an acknowledgement: no more pieces are wanted
}

// Kinds of frames beside the calls of package wire.
const (
	kindAnswer = "answer"
	kindPiece  = "piece"
	kindAck    = "ack"
	kindPut    = "put" // a call: a blob is stored
	kindGet    = "get" // a call: a blob is read
)

// The signers. A worker's code differs from a server's, so a message signed by a worker is not accepted as a server's.
const (
	byWorker = "worker\n"
	byServer = "server\n"
)

func codeOf(signed, key []byte, by string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(by))
	mac.Write(signed)
	return mac.Sum(nil)
}

// pack writes a frame. With a nil key it is not signed.
func pack(h head, body, key []byte, by string) []byte {
	h.V = version
	line, err := json.Marshal(h)
	if err != nil {
		panic(err) // strings and numbers always have a JSON form
	}
	out := make([]byte, sha256.Size, sha256.Size+len(line)+1+len(body))
	out = append(append(append(out, line...), '\n'), body...)
	if key != nil {
		copy(out, codeOf(out[sha256.Size:], key, by))
	}
	return out
}

// unpack reads a frame without checking its code.
func unpack(raw []byte) (*frame, error) {
	if len(raw) < sha256.Size {
		return nil, fmt.Errorf("it has %d bytes", len(raw))
	}
	f := &frame{code: raw[:sha256.Size], signed: raw[sha256.Size:]}
	line, body, ok := bytes.Cut(f.signed, []byte("\n"))
	if !ok {
		return nil, errors.New("its head has no end")
	}
	if err := json.Unmarshal(line, &f.head); err != nil {
		return nil, fmt.Errorf("its head: %w", err)
	}
	f.body = body
	return f, nil
}

// by reports whether the holder of the key has signed the frame.
func (f *frame) by(key []byte, who string) bool {
	return f.V == version && hmac.Equal(f.code, codeOf(f.signed, key, who))
}

func newID() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails on the systems that Go supports
	return hex.EncodeToString(b)
}

// The answer to a worker that opens a session holds the session's secret. It is encrypted for the public key in the call, so
// that other processes which can read the broker do not learn the secret.

func newKey() *ecdh.PrivateKey {
	k, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // crypto/rand never fails on the systems that Go supports
	}
	return k
}

// sealer is the cipher from the key exchange, which both ends compute. Its key is used once.
func sealer(own *ecdh.PrivateKey, others []byte, id string) (cipher.AEAD, error) {
	public, err := ecdh.X25519().NewPublicKey(others)
	if err != nil {
		return nil, fmt.Errorf("the other side's key: %w", err)
	}
	shared, err := own.ECDH(public)
	if err != nil {
		return nil, fmt.Errorf("the other side's key: %w", err)
	}
	key := hmac.New(sha256.New, shared)
	key.Write([]byte("open session\n" + id))
	block, err := aes.NewCipher(key.Sum(nil))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func sealOnce(c cipher.AEAD, plain []byte) []byte {
	return c.Seal(nil, make([]byte, c.NonceSize()), plain, nil)
}

func unsealOnce(c cipher.AEAD, sealed []byte) ([]byte, error) {
	return c.Open(nil, make([]byte, c.NonceSize()), sealed, nil)
}
