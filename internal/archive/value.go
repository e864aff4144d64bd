package archive

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-run/pawl/internal/strictjson"
)

// Value is a JSON that comes out of an archive byte for byte as it went in: replays and reruns compare and hash the bytes. It stands in a
// row as it is where that is possible, and otherwise, with spaces or as no JSON at all, as {"$bytes": "…"} in base64.
type Value []byte

type asBytes struct {
	Bytes []byte `json:"$bytes"`
}

// MarshalJSON implements json.Marshaler.
func (v Value) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	if json.Compact(&b, v) == nil && bytes.Equal(b.Bytes(), v) && !bytes.HasPrefix(v, []byte(`{"$bytes"`)) {
		return v, nil
	}
	return json.Marshal(asBytes{v})
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Value) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte(`{"$bytes"`)) {
		*v = append((*v)[:0], text...)
		return nil
	}
	var b asBytes
	err := decode(text, &b)
	*v = b.Bytes
	return err
}

// decode reads one JSON, and refuses members that it does not know: they come from a later version and mean something.
func decode(text []byte, into any) error {
	err := strictjson.Read(text, func(dec *jsontext.Decoder) error {
		if err := exact(dec, reflect.TypeOf(into)); err != nil {
			return err
		}
		return strictjson.End(text, dec)
	})
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
