package strictjson

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// decoders are reused, because most texts for Read have only a few bytes.
var decoders = sync.Pool{New: func() any { return new(reused) }}

type reused struct {
	buf bytes.Buffer
	dec jsontext.Decoder
}

// lenient accepts texts that were checked when they were received.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// Read calls read with a decoder for raw, a text that was checked when it was received. An error of the decoder is translated to users'
// terms.
func Read(raw []byte, read func(dec *jsontext.Decoder) error) error {
	d := decoders.Get().(*reused)
	d.buf = *bytes.NewBuffer(raw)
	d.dec.Reset(&d.buf, lenient...)
	err := read(&d.dec)
	if err != nil {
		err = explain(raw, &d.dec, err)
	}
	decoders.Put(d)
	return err
}

// explain says in users' terms why raw cannot be read. It returns errors that are not about JSON's syntax unchanged.
func explain(raw []byte, dec *jsontext.Decoder, err error) error {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) && !errors.Is(err, io.EOF) {
		return err
	}
	p, _ := Syntax(raw, dec, err)
	return errors.New(p.Message)
}

func walk(raw []byte, begin jsontext.Kind, visit func(dec *jsontext.Decoder) error) error {
	err := Read(raw, func(dec *jsontext.Decoder) error { return inside(dec, begin, visit) })
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// inside calls visit until the end of the list or object that is next in dec.
func inside(dec *jsontext.Decoder, begin jsontext.Kind, visit func(dec *jsontext.Decoder) error) error {
	if kind := dec.PeekKind(); kind != begin && kind != 0 {
		return errors.New("JSON has " + kindName(kind) + " where " + kindName(begin) + " is expected")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for kind := dec.PeekKind(); kind != '}' && kind != ']'; kind = dec.PeekKind() {
		if err := visit(dec); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// EachMember calls visit for the members of the object that is next in dec; visit reads each value from dec. Nested objects are thus read
// in one pass, while Members reads each once as a value and once more for its members.
func EachMember(dec *jsontext.Decoder, visit func(name string) error) error {
	return inside(dec, '{', func(dec *jsontext.Decoder) error {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		return visit(name.String())
	})
}

// EachElement calls visit for the elements of the list that is next in dec; visit reads each from dec.
func EachElement(dec *jsontext.Decoder, visit func(i int) error) error {
	i := -1
	return inside(dec, '[', func(*jsontext.Decoder) error {
		i++
		return visit(i)
	})
}

// ErrStop can be returned by a visitor of Members and Elements to stop.
var ErrStop = errors.New("seen enough")

// Members calls visit for the members of an object in order. The value is a slice of raw.
func Members(raw []byte, visit func(name string, value []byte) error) error {
	return walk(raw, '{', func(dec *jsontext.Decoder) error {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		text := name.String()
		value, err := part(raw, dec)
		if err != nil {
			return err
		}
		return visit(text, value)
	})
}

// Elements calls visit for the elements of a list in order. The value is a slice of raw.
func Elements(raw []byte, visit func(i int, value []byte) error) error {
	i := -1
	return walk(raw, '[', func(dec *jsontext.Decoder) error {
		value, err := part(raw, dec)
		if err != nil {
			return err
		}
		i++
		return visit(i, value)
	})
}

func part(raw []byte, dec *jsontext.Decoder) ([]byte, error) {
	value, err := dec.ReadValue()
	end := int(dec.InputOffset())
	return raw[end-len(value) : end : end], err
}

// Member returns the value of an object's member, a slice of raw. If a name occurs twice it is the last one, as everywhere in Go's JSON.
func Member(raw []byte, name string) (value []byte, found bool, err error) {
	err = walk(raw, '{', func(dec *jsontext.Decoder) error {
		quoted, err := dec.ReadValue()
		if err != nil {
			return err
		}
		is := isName(quoted, name)
		v, err := part(raw, dec)
		if is && err == nil {
			value, found = v, true
		}
		return err
	})
	return value, found, err
}

func isName(quoted []byte, name string) bool {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) == name
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	return err == nil && string(text) == name
}

// Text returns the member called name if it is a string, else "". raw need not be an object, or JSON.
func Text(raw []byte, name string) string {
	value, _, err := Member(raw, name)
	if err != nil || len(value) == 0 || value[0] != '"' {
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}
