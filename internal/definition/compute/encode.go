package compute

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// ErrTooLarge is the error for a result of more than MaxResult bytes.
var ErrTooLarge = fmt.Errorf("the result is larger than %d MB", MaxResult>>20)

// maxEncoded is how many values, of all levels, one result may have.
const maxEncoded = 500_000

// encoder writes values with limits on size and number.
type encoder struct {
	most int // bytes
	left int // values
}

// Encode writes the result of an expression as JSON, with sorted object keys, bytes as base64, times in RFC 3339, durations as "1.5s", and
// an absent optional as null.
func Encode(v ref.Val) (json.RawMessage, error) {
	return encodeUpTo(v, MaxResult)
}

// encodeUpTo returns an error if the text would have more than most bytes.
func encodeUpTo(v ref.Val, most int) (json.RawMessage, error) {
	e := encoder{most, maxEncoded}
	return e.value(nil, v, 0)
}

func (e *encoder) tooLarge() error {
	if e.most == MaxResult {
		return ErrTooLarge
	}
	return fmt.Errorf("the text is larger than %d bytes", maxText)
}

// begins counts one more value, and returns an error if there are too many values, too many levels or too many bytes.
func (e *encoder) begins(b []byte, depth int) error {
	if depth > strictjson.MaxDepth {
		return fmt.Errorf("%w: more than %d levels", jsonvalue.ErrTooDeep, strictjson.MaxDepth)
	}
	if e.left--; e.left < 0 {
		return fmt.Errorf("the result has more than %d values", maxEncoded)
	}
	if len(b) > e.most {
		return e.tooLarge()
	}
	return nil
}

func (e *encoder) value(b []byte, v ref.Val, depth int) ([]byte, error) {
	if err := e.begins(b, depth); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case types.Null:
		return append(b, "null"...), nil
	case types.Bool:
		return strconv.AppendBool(b, bool(v)), nil
	case types.Int:
		return strconv.AppendInt(b, int64(v), 10), nil
	case types.Uint:
		return strconv.AppendUint(b, uint64(v), 10), nil
	case types.Double:
		return appendFloat(b, float64(v))
	case longNumber:
		return append(b, v...), nil
	case types.String:
		if len(b)+len(v) > e.most {
			return nil, e.tooLarge()
		}
		return jsonvalue.AppendText(b, string(v)), nil
	case types.Bytes:
		return jsonvalue.AppendText(b, base64.StdEncoding.EncodeToString(v)), nil
	case types.Timestamp:
		return jsonvalue.AppendText(b, v.Time.UTC().Format(time.RFC3339Nano)), nil
	case types.Duration:
		return jsonvalue.AppendText(b, v.Duration.String()), nil
	case *types.Optional:
		if !v.HasValue() {
			return append(b, "null"...), nil
		}
		return e.value(b, v.GetValue(), depth)
	case traits.Mapper:
		if m, ok := v.Value().(map[string]any); ok { // it was decoded from JSON, not made by the expression
			return e.decodedObject(b, m, depth)
		}
		return e.object(b, v, depth)
	case traits.Lister:
		return e.list(b, v, depth)
	case *types.Err:
		return nil, v
	}
	return nil, fmt.Errorf("a value of type %s has no JSON form", v.Type().TypeName())
}

func appendFloat(b []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("the number %v has no JSON form", f)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, f, format, -1, 64), nil
}

func (e *encoder) list(b []byte, list traits.Lister, depth int) ([]byte, error) {
	b = append(b, '[')
	first := true
	for it := list.Iterator(); it.HasNext() == types.True; first = false {
		if !first {
			b = append(b, ',')
		}
		var err error
		if b, err = e.value(b, it.Next(), depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func (e *encoder) object(b []byte, m traits.Mapper, depth int) ([]byte, error) {
	keys := make(map[string]ref.Val)
	names := []string{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		name, err := keyText(k)
		if err != nil {
			return nil, err
		}
		if _, twice := keys[name]; twice {
			return nil, fmt.Errorf("an object has the key %q twice", name)
		}
		keys[name] = k
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsonvalue.AppendText(b, name), ':')
		v, found := m.Find(keys[name])
		if !found {
			return nil, errors.New("an object lost a key while it was written")
		}
		var err error
		if b, err = e.value(b, v, depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// decoded writes a value from jsonvalue.Decode in the same way as value writes CEL's form of it, without creating that form.
func (e *encoder) decoded(b []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case map[string]any:
		if err := e.begins(b, depth); err != nil {
			return nil, err
		}
		return e.decodedObject(b, v, depth)
	case []any:
		if err := e.begins(b, depth); err != nil {
			return nil, err
		}
		b = append(b, '[')
		for i, el := range v {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = e.decoded(b, el, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case string:
		return e.value(b, types.String(v), depth)
	case int64:
		return e.value(b, types.Int(v), depth)
	}
	return e.value(b, native(v), depth)
}

func (e *encoder) decodedObject(b []byte, m map[string]any, depth int) ([]byte, error) {
	var few [16]string // most objects have at most 16 members, so their names need no allocation
	names := few[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = e.decoded(append(jsonvalue.AppendText(b, name), ':'), m[name], depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func keyText(k ref.Val) (string, error) {
	switch k := k.(type) {
	case types.String:
		return string(k), nil
	case types.Int:
		return strconv.FormatInt(int64(k), 10), nil
	case types.Uint:
		return strconv.FormatUint(uint64(k), 10), nil
	case types.Bool:
		return strconv.FormatBool(bool(k)), nil
	}
	return "", fmt.Errorf("a key of type %s has no JSON form", k.Type().TypeName())
}
