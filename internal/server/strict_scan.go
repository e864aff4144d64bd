package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// enter goes one level down, and reports whether that is still allowed.
func (c *checker) enter() bool {
	c.depth++
	if c.depth > maxDepth {
		c.fail(fmt.Sprintf("the JSON is nested deeper than %d levels", maxDepth), "flatten it, or send it as a string")
		return false
	}
	c.at++
	return true
}

func (c *checker) array(t reflect.Type, path string) {
	start := c.at
	var item reflect.Type
	wrong := t != nil && (t.Kind() != reflect.Slice || t == bytesType)
	if t != nil && !wrong {
		item = t.Elem()
	}
	if !c.enter() {
		return
	}
	for i := 0; ; i++ {
		c.space()
		if i == 0 && c.next(']') {
			break
		}
		at := path
		if item != nil {
			at = path + "[" + strconv.Itoa(i) + "]"
		}
		c.value(item, at, "")
		c.space()
		if c.broken != nil || c.next(']') {
			break
		}
		if !c.next(',') {
			c.fail("a list's items are separated by commas and end with ]", "")
			return
		}
	}
	c.depth--
	if wrong && c.broken == nil {
		c.fault(path, start, "it is a list and should be "+kindName(t), writeAs(t))
	}
}

func (c *checker) object(t reflect.Type, path string) {
	start, base := c.at, len(c.keys)
	var known *fields
	var element reflect.Type
	wrong := false
	if t != nil {
		switch t.Kind() {
		case reflect.Struct:
			known = fieldsOf(t)
		case reflect.Map:
			element = t.Elem()
		default:
			wrong = true
		}
	}
	if !c.enter() {
		return
	}
	for first := true; ; first = false {
		c.space()
		if first && c.next('}') {
			break
		}
		begin := c.at
		name, at, ok := c.name(path, t != nil)
		if !ok {
			return
		}
		c.repeated(name, base, at, begin)
		f := field{typ: element}
		if known != nil {
			if f, ok = known.byName[string(name)]; !ok {
				c.faultAt(at, begin, min(begin+len(name)+2, c.at), "there is no such field", closest(string(name), known.names))
			}
		}
		c.value(f.typ, at, f.tag)
		c.space()
		if c.broken != nil || c.next('}') {
			break
		}
		if !c.next(',') {
			c.fail("an object's fields are separated by commas and end with }", "")
			return
		}
	}
	c.depth--
	if c.broken == nil {
		if wrong {
			c.fault(path, start, "it is an object and should be "+kindName(t), writeAs(t))
		}
		if known != nil {
			c.missing(known, c.keys[base:], path, start)
		}
	}
	c.keys = c.keys[:base]
}

// name reads a field's name and the colon behind it.
func (c *checker) name(path string, typed bool) (name []byte, at string, ok bool) {
	if c.at >= len(c.src) || c.src[c.at] != '"' {
		c.fail("an object's field begins with its name in double quotes", "")
		return nil, "", false
	}
	start := c.at
	c.text(path)
	if c.broken != nil {
		return nil, "", false
	}
	name = c.src[start+1 : c.at-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		var s string
		_ = json.Unmarshal(c.src[start:c.at], &s) // has been checked
		name = []byte(s)
	}
	at = path
	if typed { // within free values the line and column say enough
		at = joinPath(path, string(name))
	}
	c.space()
	if !c.next(':') {
		c.fail("a name is followed by a colon and its value", "")
		return nil, "", false
	}
	return name, at, true
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// repeated notes a name that the object had before. Objects are small, or they are data with hundreds of names, for which
// looking back over all of them would be slow.
func (c *checker) repeated(name []byte, base int, path string, begin int) {
	const lookBack = 64
	for _, k := range c.keys[max(base, len(c.keys)-lookBack):] {
		if bytes.Equal(k, name) {
			c.faultAt(path, begin, begin, fmt.Sprintf("the name %.40q is given twice in one object", name), "give it once")
			break
		}
	}
	c.keys = append(c.keys, name)
}

func (c *checker) missing(fs *fields, have [][]byte, path string, start int) {
next:
	for _, name := range fs.required {
		for _, k := range have {
			if string(k) == name {
				continue next
			}
		}
		c.faultAt(joinPath(path, name), start, start, "it is missing", "")
	}
}

// next steps over b if it is here.
func (c *checker) next(b byte) bool {
	if c.at < len(c.src) && c.src[c.at] == b {
		c.at++
		return true
	}
	return false
}

func (c *checker) word(w string) bool {
	if bytes.HasPrefix(c.src[c.at:], []byte(w)) {
		c.at += len(w)
		return true
	}
	return false
}

// text steps over a string.
func (c *checker) text(path string) {
	start := c.at
	c.at++
	for c.at < len(c.src) {
		switch b := c.src[c.at]; {
		case b == '"':
			c.at++
			return
		case b == '\\':
			if !c.escape(path, start) {
				return
			}
		case b == 0:
			c.fail("the body has a NUL byte", "remove it")
			return
		case b < ' ':
			c.fail(fmt.Sprintf("a string has the control character %#02x", b), `write it as an escape, such as \n`)
			return
		default:
			c.at++
		}
	}
	c.fail("a string does not end", `close it with "`)
}

func (c *checker) escape(path string, start int) bool {
	rest := c.src[c.at+1:]
	switch {
	case len(rest) == 0:
		c.at++
		c.fail("a string does not end", `close it with "`)
		return false
	case rest[0] != 'u':
		if !strings.ContainsRune(`"\/bfnrt`, rune(rest[0])) {
			c.fail(fmt.Sprintf(`\%c is not an escape`, rest[0]), `write \\ for a backslash`)
			return false
		}
		c.at += 2
		return true
	case len(rest) < 5:
		c.fail(`\u needs four digits`, "")
		return false
	}
	n, err := strconv.ParseUint(string(rest[1:5]), 16, 32)
	if err != nil {
		c.fail(`\u needs four hexadecimal digits`, "")
		return false
	}
	c.at += 6
	if n == 0 {
		c.fault(path, start, "the text has a NUL character", `remove \u0000`)
	}
	return true
}

// number steps over a number.
func (c *checker) number() {
	start := c.at
	for c.at < len(c.src) && strings.IndexByte("+-.eE0123456789", c.src[c.at]) >= 0 {
		c.at++
	}
	if !json.Valid(c.src[start:c.at]) {
		text := shorten(c.src[start:c.at])
		c.at = start
		c.fail(fmt.Sprintf("%s is not a JSON number", text), "")
	}
}

// fields are what a struct takes.
type fields struct {
	byName   map[string]field
	names    []string
	required []string
}

type field struct {
	typ reflect.Type
	tag reflect.StructTag
}

var fieldCache sync.Map // reflect.Type → *fields

func fieldsOf(t reflect.Type) *fields {
	if f, ok := fieldCache.Load(t); ok {
		return f.(*fields)
	}
	fs := &fields{byName: map[string]field{}}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		fs.byName[name] = field{f.Type, f.Tag}
		fs.names = append(fs.names, name)
		if !strings.Contains(options, "omit") {
			fs.required = append(fs.required, name)
		}
	}
	stored, _ := fieldCache.LoadOrStore(t, fs)
	return stored.(*fields)
}
