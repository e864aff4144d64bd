package flow

import (
	"encoding/base32"
	"fmt"
	"strings"
)

// ID identifies an execution, a signal or a worker session: 128 bits, made by the process that creates it (UUIDv7, for locality). It is
// identity only and never order. The zero ID means "none".
type ID [16]byte

// The prefixes of ids in texts, so that a reader and a shell history can tell what an id names.
const (
	ExecutionPrefix = "ex_"
	SessionPrefix   = "ws_"
	SignalPrefix    = "sg_"
)

var idText = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

func (id ID) IsZero() bool { return id == ID{} }

// String writes id as an execution's: "ex_" and 26 characters of lower-case base32. The zero ID is "".
func (id ID) String() string { return id.Text(ExecutionPrefix) }

// Text writes id with the given prefix; the zero ID is "".
func (id ID) Text(prefix string) string {
	if id.IsZero() {
		return ""
	}
	var b [32]byte
	n := copy(b[:], prefix)
	idText.Encode(b[n:n+26], id[:])
	return string(b[:n+26])
}

// ParseID reads what Text wrote. The error names the text and the expected form.
func ParseID(prefix, text string) (ID, error) {
	var id ID
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || len(rest) != 26 {
		return id, fmt.Errorf("%.40q is not an id: want %q and 26 characters, as in %s", text, prefix, exampleID.Text(prefix))
	}
	if _, err := idText.Decode(id[:], []byte(rest)); err != nil {
		return ID{}, fmt.Errorf("%.40q is not an id: %q and 26 characters of 0-9 a-z without i, l, o, u", text, prefix)
	}
	// 26 characters are 130 bits. If a decoder ignored the last two, a mistyped id could name another execution.
	if !id.IsZero() && id.Text(prefix) != text {
		return ID{}, fmt.Errorf("%.40q is not an id: a character of it is mistyped", text)
	}
	return id, nil
}

// IDsWith returns the first and the last id whose text begins with text: the prefix and up to 26 characters.
func IDsWith(prefix, text string) (first, last ID, err error) {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || rest == "" || len(rest) > 26 {
		return first, last, fmt.Errorf("%.40q does not begin an id: want %q and 1 to 26 characters, as in %s", text, prefix, exampleID.Text(prefix)[:len(prefix)+8])
	}
	if len(rest) == 26 {
		first, err = ParseID(prefix, text)
		return first, first, err
	}
	whole := []byte(rest + strings.Repeat("0", 26-len(rest)))
	if _, err := idText.Decode(first[:], whole); err != nil {
		return ID{}, last, fmt.Errorf("%.40q does not begin an id: %q and characters of 0-9 a-z without i, l, o, u", text, prefix)
	}
	copy(whole[len(rest):], strings.Repeat("z", 26-len(rest)))
	_, err = idText.Decode(last[:], whole) // ignores the two bits beyond 128
	return first, last, err
}

// Before is the id before id; of the zero ID, itself.
func (id ID) Before() ID {
	if id.IsZero() {
		return id
	}
	for i := len(id) - 1; ; i-- {
		if id[i]--; id[i] != 0xff {
			return id
		}
	}
}

// After is the id after id; of the last one, the zero ID.
func (id ID) After() ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

var exampleID = ID{0x01, 0x93, 0x4c, 0x5a, 0x7b, 0x10, 0x7a, 0x11, 0x8f, 0x3e, 0x42, 0x1d, 0x99, 0xd0, 0x2b, 0x6c}

// MarshalText writes id as an execution's.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads an execution's id; the empty text is the zero ID.
func (id *ID) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*id = ID{}
		return nil
	}
	v, err := ParseID(ExecutionPrefix, string(b))
	if err != nil {
		return err
	}
	*id = v
	return nil
}
