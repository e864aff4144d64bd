package wire

import (
	"encoding/binary"
	"fmt"
)

// Message is the content of a frame. It lists its fields once, for encoding and decoding, so that both use the same order. With JSON and
// package net the helper, which is in memory twice in each pod, was 0.5 MB larger.
type Message interface{ fields(*coder) }

// Pack puts a message into a frame.
func Pack(kind Kind, offset int64, m Message) Frame {
	c := &coder{}
	m.fields(c)
	return Frame{kind, offset, c.data}
}

// Decode reads the message of a frame. From a message of another Version it reads only that version.
func (f Frame) Decode(m Message) error {
	c := &coder{data: f.Data, reads: true}
	if m.fields(c); c.wrong || len(c.data) > 0 {
		return fmt.Errorf("frame %q: %d bytes of data, which are not its message", f.Kind, len(f.Data))
	}
	return nil
}

// Refusal is a State that shows a worker of another version the version of this one.
func Refusal() Frame { return Pack(Status, 0, &State{Version: Version}) }

// coder encodes fields into a frame's data or decodes them from it. Numbers and lengths take 8 bytes. A length is
// limited to the data that is left, so that decoding a frame takes no more than twice the frame's memory.
type coder struct {
	data  []byte // written so far, or left to read
	reads bool
	wrong bool // the data does not match the fields
}

// take returns the next bytes; nil if there are too few.
func (c *coder) take(size int) []byte {
	if c.wrong || size < 0 || size > len(c.data) {
		c.wrong = true
		return nil
	}
	taken := c.data[:size]
	c.data = c.data[size:]
	return taken
}

func number[T ~int | ~int64 | ~uint32](c *coder, v *T) {
	if !c.reads {
		c.data = binary.BigEndian.AppendUint64(c.data, uint64(*v))
		return
	}
	if taken := c.take(8); taken != nil {
		n := binary.BigEndian.Uint64(taken)
		*v = T(n)
		c.wrong = uint64(*v) != n
	}
}

func text[T ~string](c *coder, v *T) {
	size := len(*v)
	number(c, &size)
	if !c.reads {
		c.data = append(c.data, *v...)
		return
	}
	*v = T(c.take(size))
}

func (c *coder) flag(v *bool) {
	var n int
	if *v {
		n = 1
	}
	number(c, &n)
	*v = n == 1
	c.wrong = c.wrong || n>>1 != 0
}

func (c *coder) texts(v *[]string) {
	count := len(*v)
	number(c, &count)
	if c.reads {
		*v = nil
		if c.wrong = c.wrong || count < 0 || count > len(c.data)/8; c.wrong || count == 0 {
			return
		}
		*v = make([]string, count)
	}
	for i := range *v {
		text(c, &(*v)[i])
	}
}

func optional[T any](c *coder, v **T, fields func(*T, *coder)) {
	is := *v != nil
	c.flag(&is)
	if c.reads {
		*v = nil
		if is {
			*v = new(T)
		}
	}
	if *v != nil {
		fields(*v, c)
	}
}

// version reports whether the message is of this Version; the fields of other versions are skipped.
func (c *coder) version(v *int) bool {
	number(c, v)
	if c.reads && *v != Version {
		c.data = nil
	}
	return *v == Version
}
