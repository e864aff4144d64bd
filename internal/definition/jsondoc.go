package definition

import (
	"errors"
	"fmt"
)

// jsonReader reads a file that is one JSON value, with the place of everything.
type jsonReader struct {
	*reading
	cursor
	// line and column are the place of offset seen.
	line, column, seen int
	// unplaced leaves places out, for what no user wrote.
	unplaced bool
}

func (r *reading) jsonReader() *jsonReader {
	return &jsonReader{reading: r, cursor: cursor{src: r.src}, line: 1, column: 1}
}

// file reads the whole source.
func (j *jsonReader) file() (*value, error) {
	v, err := j.read(0)
	if err != nil {
		return nil, err
	}
	if j.space(); j.at != len(j.cursor.src) {
		return nil, j.unexpected("the end of the file")
	}
	return v, nil
}

// problem places a syntax error.
func (j *jsonReader) problem(err error) Problem {
	fix := ""
	if errors.Is(err, errTooDeep) {
		fix = "flatten the document"
	}
	line, column := j.place(j.at)
	return Problem{Position: Position{j.reading.file, line, column}, Message: "not valid JSON: " + err.Error(), Fix: fix}
}

// place turns an offset into a line and a column. Offsets hardly ever go back,
// so the source is gone through once.
func (j *jsonReader) place(at int) (line, column int) {
	if j.unplaced {
		return 0, 0
	}
	if at < j.seen {
		j.line, j.column, j.seen = 1, 1, 0
	}
	for ; j.seen < at && j.seen < len(j.cursor.src); j.seen++ {
		switch b := j.cursor.src[j.seen]; {
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
		return nil, fmt.Errorf("%w: more than %d levels", errTooDeep, maxNesting)
	}
	b := j.peek()
	v := &value{}
	v.line, v.column = j.place(j.at)
	if j.values++; j.values > maxValues {
		return nil, fmt.Errorf("the file has more than %d values", maxValues)
	}
	var err error
	switch b {
	case '{':
		v.kind = objectValue
		err = j.object(v, depth)
	case '[':
		v.kind = listValue
		err = j.items(func(int) (bool, error) {
			el, err := j.read(depth + 1)
			v.list = append(v.list, el)
			return true, err
		})
	case '"':
		v.kind = textValue
		v.text, err = j.text()
	default:
		v.text, err = j.literal()
		switch v.text {
		case "null":
			v.kind, v.text = nullValue, ""
		case "true", "false":
			v.kind = boolValue
		default:
			v.kind = numberValue
		}
	}
	return v, err
}

func (j *jsonReader) object(v *value, depth int) error {
	seen := map[string]int{}
	if err := j.expect('{'); err != nil {
		return err
	}
	if j.peek() == '}' {
		j.at++
		return nil
	}
	for {
		j.space()
		line, column := j.place(j.at)
		key, err := j.text()
		if err != nil {
			return err
		}
		if err := j.expect(':'); err != nil {
			return err
		}
		el, err := j.read(depth + 1)
		if err != nil {
			return err
		}
		if first, twice := seen[key]; twice {
			j.fail(line, column, "remove one of them", "the key %q is here twice; it was first used on line %d", clip(key, 60), first)
		} else {
			seen[key] = line
			v.fields = append(v.fields, field{key, line, column, el})
		}
		if done, err := j.next('}'); err != nil || done {
			return err
		}
	}
}
