package strictjson

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// decoders are reused by Members and Elements, which are called for texts of a few bytes, too.
var decoders = sync.Pool{New: func() any { return new(reused) }}

type reused struct {
	buf bytes.Buffer
	dec jsontext.Decoder
}

// walk reads a text whose names and UTF-8 were checked when it came in.
func walk(raw []byte, begin jsontext.Kind, visit func(dec *jsontext.Decoder) error) error {
	d := decoders.Get().(*reused)
	d.buf = *bytes.NewBuffer(raw)
	d.dec.Reset(&d.buf, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	defer func() {
		d.buf = bytes.Buffer{}
		d.dec.Reset(&d.buf)
		decoders.Put(d)
	}()
	if kind := d.dec.PeekKind(); kind != begin && kind != 0 {
		return errors.New("JSON has " + kindName(kind) + " where " + kindName(begin) + " is expected")
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return wrong(raw, err)
	}
	for kind := d.dec.PeekKind(); kind != '}' && kind != ']'; kind = d.dec.PeekKind() {
		if err := visit(&d.dec); errors.Is(err, ErrStop) {
			return nil
		} else if err != nil {
			return wrong(raw, err)
		}
	}
	return nil
}

// ErrStop is what a visitor of Members and Elements returns when it has seen enough.
var ErrStop = errors.New("seen enough")

// Members calls visit for the members of an object in their order. The value is a part of raw.
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

// Elements calls visit for the elements of a list in their order. The value is a part of raw.
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

// part reads a value as a part of raw.
func part(raw []byte, dec *jsontext.Decoder) ([]byte, error) {
	value, err := dec.ReadValue()
	end := int(dec.InputOffset())
	return raw[end-len(value) : end : end], err
}

// Text is the member called name where it is a string, and else "". raw need not be an object, nor JSON.
func Text(raw []byte, name string) string {
	text := ""
	_ = Members(raw, func(n string, value []byte) error { // what is no JSON has no members
		if n != name || len(value) == 0 || value[0] != '"' {
			return nil
		}
		s, err := jsontext.AppendUnquote(nil, value)
		text = string(s)
		return err
	})
	return text
}

// wrong says in users' words why raw cannot be read.
func wrong(raw []byte, err error) error {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) && !errors.Is(err, io.EOF) {
		return err
	}
	p, _ := syntaxProblem(raw, err, false)
	return errors.New(p.Message)
}
