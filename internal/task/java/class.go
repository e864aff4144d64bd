package java

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Class is the part of a class file that decides whether and how a program can start with the class.
type Class struct {
	Name    string // in the form for java's command line: "a.b.Main"
	Source  string // the file name of its source, without directories; "" if not recorded
	Version int    // of the file's format: 55 for Java 11, 69 for Java 25
	access  int
	nested  bool
	mains   []method
	make    bool // it has a non-private constructor without parameters
}

// method is a method named main.
type method struct {
	access     int
	descriptor string
	line       int // of its first statement; 0 if unknown
}

// Flags of classes and methods, and the first version whose launcher takes a main that is not public and static, or has no
// parameters.
const (
	isPublic, isPrivate, isStatic, isAbstract = 0x1, 0x2, 0x8, 0x400

	java25 = 69
)

// Main chooses the class that a program starts with among those that java can start; it prefers a class of the source named file, then
// one of the top level, a public one, one called Main, and the one whose main comes first. The error says what is missing.
func Main(classes []Class, file string) (string, error) {
	var best *Class
	for i := range classes {
		c := &classes[i]
		if c.start() != nil && (best == nil || slices.Compare(c.rank(file), best.rank(file)) < 0) {
			best = c
		}
	}
	if best != nil {
		return best.Name, nil
	}
	message := "no class has a method `public static void main(String[] args)`, with which a program starts"
	for _, c := range classes {
		switch {
		case len(c.mains) == 0:
		case c.mains[0].descriptor != "([Ljava/lang/String;)V":
			return "", fmt.Errorf("%s: main of %s has other parameters or returns something", message, c.Name)
		default:
			return "", fmt.Errorf("%s: main of %s is not public and static", message, c.Name)
		}
	}
	return "", errors.New(message)
}

// rank orders startable classes; the least comes first.
func (c *Class) rank(file string) []int {
	rank := func(last bool) int {
		if last {
			return 1
		}
		return 0
	}
	return []int{rank(c.Source != file), rank(c.nested), rank(c.access&isPublic == 0), rank(c.Name != "Main" && !strings.HasSuffix(c.Name, ".Main")), c.start().line}
}

// start is the method with which java starts the class; nil if there is none.
func (c *Class) start() *method {
	for i, m := range c.mains {
		switch {
		case m.descriptor == "([Ljava/lang/String;)V" && m.access&(isPublic|isStatic) == isPublic|isStatic:
			return &c.mains[i]
		case c.Version < java25 || m.access&(isPrivate|isAbstract) != 0:
		case m.descriptor != "([Ljava/lang/String;)V" && m.descriptor != "()V":
		case m.access&isStatic != 0 || c.make && c.access&isAbstract == 0:
			return &c.mains[i]
		}
	}
	return nil
}

func Read(file []byte) (Class, error) {
	r := reader{rest: file}
	if r.u4() != 0xcafebabe {
		return Class{}, errors.New("it is not a class file")
	}
	r.u2()
	c := Class{Version: r.u2()}
	p := r.pool()
	c.access = r.u2()
	c.Name = strings.ReplaceAll(p.class(r.u2()), "/", ".")
	r.u2()             // its superclass
	r.take(2 * r.u2()) // its interfaces
	for range r.u2() { // fields
		r.take(6)
		r.attributes(p, func(string, reader) {})
	}
	for range r.u2() {
		m := method{access: r.u2()}
		name := p.text[r.u2()]
		m.descriptor = p.text[r.u2()]
		r.attributes(p, func(attribute string, body reader) {
			if attribute == "Code" && name == "main" {
				m.line = body.firstLine(p)
			}
		})
		if name == "main" {
			c.mains = append(c.mains, m)
		}
		c.make = c.make || name == "<init>" && m.descriptor == "()V" && m.access&isPrivate == 0
	}
	r.attributes(p, func(attribute string, body reader) {
		switch attribute {
		case "SourceFile":
			c.Source = p.text[body.u2()]
		case "InnerClasses":
			for range body.u2() {
				inner := p.class(body.u2())
				body.take(6)
				c.nested = c.nested || strings.ReplaceAll(inner, "/", ".") == c.Name
			}
		}
	})
	if r.short {
		return Class{}, errors.New("the class file is cut short")
	}
	return c, nil
}

// pool is the part of a constant pool that this package uses.
type pool struct {
	text  map[int]string
	named map[int]int // index of the text of a class's name
}

func (p pool) class(at int) string { return p.text[p.named[at]] }

// reader reads big-endian numbers. Beyond its end it reads zeros, and short is true.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.rest) {
		r.short, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) u1() int {
	if b := r.take(1); b != nil {
		return int(b[0])
	}
	return 0
}

func (r *reader) u2() int {
	if b := r.take(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) u4() int {
	if b := r.take(4); b != nil {
		return int(binary.BigEndian.Uint32(b))
	}
	return 0
}

// pool reads the constant pool (JVMS 4.4).
func (r *reader) pool() pool {
	p := pool{map[int]string{}, map[int]int{}}
	for n, i := r.u2(), 1; i < n && !r.short; i++ {
		switch r.u1() {
		case 1: // text
			p.text[i] = string(r.take(r.u2()))
		case 7: // a class
			p.named[i] = r.u2()
		case 8, 16, 19, 20:
			r.take(2)
		case 15:
			r.take(3)
		case 3, 4, 9, 10, 11, 12, 17, 18:
			r.take(4)
		case 5, 6: // 8 bytes, which take up two entries
			r.take(8)
			i++
		default:
			r.short = true
		}
	}
	return p
}

func (r *reader) attributes(p pool, each func(name string, body reader)) {
	for range r.u2() {
		name := p.text[r.u2()]
		body := r.take(r.u4())
		if r.short {
			return
		}
		each(name, reader{rest: body})
	}
}

// firstLine is the lowest source line of a method's code, from its attribute Code.
func (r *reader) firstLine(p pool) int {
	r.take(4)
	r.take(r.u4())     // instructions
	r.take(8 * r.u2()) // handlers of exceptions
	least := 0
	r.attributes(p, func(attribute string, body reader) {
		if attribute != "LineNumberTable" {
			return
		}
		for range body.u2() {
			body.take(2)
			if line := body.u2(); least == 0 || line < least {
				least = line
			}
		}
	})
	return cmp.Or(least, 1<<16)
}
