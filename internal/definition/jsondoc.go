package definition

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// jsonReader reads a file with one JSON value, with the position of every value.
type jsonReader struct {
	*reading
	dec *jsontext.Decoder
	// line and column are the position of offset seen.
	line, column, seen int
	// unplaced leaves out positions, for documents that no user wrote.
	unplaced bool
}

func (r *reading) jsonReader() *jsonReader {
	return &jsonReader{reading: r, dec: jsontext.NewDecoder(bytes.NewBuffer(r.src), jsontext.AllowDuplicateNames(true)), line: 1, column: 1}
}

func (j *jsonReader) file() (*value, error) {
	v, err := j.read(0)
	if err == nil {
		err = strictjson.End(j.src, j.dec)
	}
	return v, err
}

func (j *jsonReader) problem(err error) Problem {
	p, at := strictjson.Syntax(j.src, j.dec, err)
	line, column := j.place(at)
	if errors.Is(err, jsonvalue.ErrTooDeep) {
		return Problem{File: j.reading.file, Line: line, Column: column, Message: deeper, Fix: lessDeep}
	}
	return Problem{File: j.reading.file, Line: line, Column: column, Message: "not valid JSON: " + p.Message, Fix: p.Fix}
}

// place converts an offset to a line and a column. Offsets rarely go back, so it reads the source about once.
func (j *jsonReader) place(at int) (line, column int) {
	if j.unplaced {
		return 0, 0
	}
	if at < j.seen {
		j.line, j.column, j.seen = 1, 1, 0
	}
	for ; j.seen < at && j.seen < len(j.src); j.seen++ {
		switch b := j.src[j.seen]; {
		case b == '\n':
			j.line, j.column = j.line+1, 1
		case b&0xC0 != 0x80: // not the continuation of a character
			j.column++
		}
	}
	return j.line, j.column
}

func (j *jsonReader) read(depth int) (*value, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("%w: more than %d levels", jsonvalue.ErrTooDeep, maxNesting)
	}
	v := &value{}
	v.line, v.column = j.place(strictjson.Next(j.src, j.dec))
	if j.values++; j.values > maxValues {
		return nil, fmt.Errorf("the file has more than %d values", maxValues)
	}
	tok, err := j.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case '{':
		v.kind = objectValue
		err = j.object(v, depth)
	case '[':
		v.kind = listValue
		for err == nil && j.dec.PeekKind() != ']' {
			var el *value
			el, err = j.read(depth + 1)
			v.list = append(v.list, el)
		}
		if err == nil {
			_, err = j.dec.ReadToken()
		}
	case '"':
		v.kind, v.text = textValue, tok.String()
		j.withoutNUL(v.text, v.line, v.column)
	case 'n':
		v.kind = nullValue
	case 't', 'f':
		v.kind, v.text = boolValue, tok.String()
	default:
		v.kind, v.text = numberValue, tok.String()
	}
	return v, err
}

func (j *jsonReader) object(v *value, depth int) error {
	seen := map[string]int{}
	for j.dec.PeekKind() != '}' {
		line, column := j.place(strictjson.Next(j.src, j.dec))
		tok, err := j.dec.ReadToken()
		if err != nil {
			return err
		}
		key := tok.String()
		j.withoutNUL(key, line, column)
		el, err := j.read(depth + 1)
		if err != nil {
			return err
		}
		if first, twice := seen[key]; twice {
			j.fail(line, column, "remove one of them", "the key %q is here twice; it was first used on line %d", problem.Clip(key, 60), first)
		} else {
			seen[key] = line
			v.fields = append(v.fields, field{key, line, column, el})
		}
	}
	_, err := j.dec.ReadToken()
	return err
}
