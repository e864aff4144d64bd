package archive

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-run/pawl/internal/strictjson"
)

// Value is a JSON text that is preserved byte for byte in an archive, because replays and reruns compare and hash the bytes. A row contains
// it unchanged if possible; with white space, or if it is not JSON, the row contains {"$bytes": "…"} with base64.
type Value []byte

type asBytes struct {
	Bytes []byte `json:"$bytes"`
}

func (v Value) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	if json.Compact(&b, v) == nil && bytes.Equal(b.Bytes(), v) && !bytes.HasPrefix(v, []byte(`{"$bytes"`)) {
		return v, nil
	}
	return json.Marshal(asBytes{v})
}

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

// decode decodes one JSON text, and refuses unknown members, because they are from a later version and have a meaning.
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
