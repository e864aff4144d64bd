package pid1

// The wire format is private to this binary: little-endian 64-bit integers, and strings with their length in
// front. With encoding/json or encoding/gob every start would pay for their initialization.

func putInt(b []byte, v int64) []byte {
	u := uint64(v)
	return append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24), byte(u>>32), byte(u>>40), byte(u>>48), byte(u>>56))
}

func putBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// decoder reads what the put functions wrote. After a short read it returns zeroes, and bad is set.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) int() int64 {
	if len(d.b) < 8 {
		d.b, d.bad = nil, true
		return 0
	}
	var u uint64
	for i := 7; i >= 0; i-- {
		u = u<<8 | uint64(d.b[i])
	}
	d.b = d.b[8:]
	return int64(u)
}

func (d *decoder) bool() bool {
	if len(d.b) == 0 {
		d.bad = true
		return false
	}
	v := d.b[0] == 1
	d.b = d.b[1:]
	return v
}

// count is an integer that gives the number of items that follow; each takes at least one byte.
func (d *decoder) count() int {
	n := d.int()
	if n < 0 || n > int64(len(d.b)) {
		d.b, d.bad = nil, true
		return 0
	}
	return int(n)
}

func (d *decoder) bytes() []byte {
	n := d.count()
	s := d.b[:n]
	d.b = d.b[n:]
	return s
}

// coder writes fields or reads them: a message lists its fields once, for both.
type coder struct {
	decoder // b is what has been written, or what is left to read
	reads   bool
}

func integer[T ~int64 | ~uint64](c *coder, v *T) {
	if c.reads {
		*v = T(c.int())
	} else {
		c.b = putInt(c.b, int64(*v))
	}
}

func text[T ~string | ~[]byte](c *coder, v *T) {
	if c.reads {
		*v = T(c.bytes())
	} else {
		c.b = append(putInt(c.b, int64(len(*v))), *v...)
	}
}

func letter[T ~byte](c *coder, v *T) {
	switch {
	case !c.reads:
		c.b = append(c.b, byte(*v))
	case len(c.b) == 0:
		c.bad = true
	default:
		*v, c.b = T(c.b[0]), c.b[1:]
	}
}

func flag(c *coder, v *bool) {
	var n byte
	if *v {
		n = 1
	}
	letter(c, &n)
	*v = n == 1
}

func list[T any](c *coder, all *[]T, fields func(*coder, *T)) {
	if c.reads {
		*all = make([]T, c.count())
	} else {
		c.b = putInt(c.b, int64(len(*all)))
	}
	for i := range *all {
		fields(c, &(*all)[i])
	}
}

// framed encodes fields with their length in front, as the init reads them from the control socket.
func framed(capacity int, fields func(*coder)) []byte {
	c := &coder{decoder: decoder{b: make([]byte, 8, 8+capacity)}}
	fields(c)
	putInt(c.b[:0], int64(len(c.b)-8))
	return c.b
}

// decoded reads fields from the output of framed, after the length; false if it is cut short.
func decoded(b []byte, fields func(*coder)) bool {
	c := &coder{decoder{b: b}, true}
	fields(c)
	return !c.bad
}

func steps(c *coder, all *[]Step) {
	list(c, all, func(c *coder, s *Step) {
		integer(c, &s.Kind)
		text(c, &s.Source)
		text(c, &s.Target)
		integer(c, &s.Number)
	})
}

// EncodeSteps encodes steps for Plan.Layout.
func EncodeSteps(all []Step) []byte {
	c := &coder{}
	steps(c, &all)
	return c.b
}

func (p *Plan) fields(c *coder) {
	text(c, &p.Cover)
	text(c, &p.Layout)
	text(c, &p.Filter)
}

// Encode returns the plan with its length in front.
func (p *Plan) Encode() []byte { return framed(len(p.Layout)+len(p.Filter)+64, p.fields) }

func (p *Plan) decode(b []byte) bool {
	ok := decoded(b, p.fields) && decoded(p.Layout, func(c *coder) { steps(c, &p.steps) })
	p.Layout = nil
	return ok
}

// birthSize is the length of an encoded Birth, which has no length in front.
const birthSize = 21

// Encode returns the birth.
func (n *Birth) Encode() []byte {
	b := putInt(make([]byte, 0, birthSize), n.UID)
	b = putInt(b, n.GID)
	b = putBool(b, n.SetGroups)
	b = putBool(b, n.IntoCgroup)
	b = putBool(b, n.OntoBase)
	b = putBool(b, n.Network)
	return putBool(b, n.Template)
}

// decode fills n from the output of Encode; false if it is cut short.
func (n *Birth) decode(b []byte) bool {
	d := decoder{b: b}
	n.UID, n.GID, n.SetGroups, n.IntoCgroup, n.OntoBase, n.Network = d.int(), d.int(), d.bool(), d.bool(), d.bool(), d.bool()
	n.Template = d.bool()
	return !d.bad
}

// BornSize is the length of an encoded Born, which has no length in front.
const BornSize = 16

// put appends the answer to b.
func (n *Born) put(b []byte) []byte {
	return putInt(putInt(b, n.PID), n.Errno)
}

// DecodeBorn decodes an answer; false if it is cut short.
func DecodeBorn(b []byte) (n Born, ok bool) {
	d := decoder{b: b}
	n.PID, n.Errno = d.int(), d.int()
	return n, !d.bad
}

func (c *Config) fields(to *coder) {
	steps(to, &c.Steps)
	integer(to, &c.ScratchSize)
	integer(to, &c.ScratchInodes)
	list(to, &c.TaskFDs, integer)
	integer(to, &c.PressureFD)
	flag(to, &c.Announce)
	flag(to, &c.Base)
}

// Encode returns the configuration with its length in front.
func (c *Config) Encode() []byte { return framed(1024, c.fields) }

func (c *Config) decode(b []byte) bool { return decoded(b, c.fields) }

func rlimit(c *coder, r *Rlimit) {
	integer(c, &r.Resource)
	integer(c, &r.Value)
}

func (o *Order) fields(c *coder) {
	flag(c, &o.Input)
	integer(c, &o.ScratchSize)
	integer(c, &o.ScratchInodes)
	list(c, &o.Mounts, text)
	list(c, &o.Rlimits, rlimit)
	list(c, &o.Argv, text)
	list(c, &o.Env, text)
	list(c, &o.Files, func(c *coder, f *File) {
		text(c, &f.Path)
		integer(c, &f.Mode)
		integer(c, &f.Size)
	})
	list(c, &o.CPUs, integer)
	flag(c, &o.Template)
	integer(c, &o.Shared)
	flag(c, &o.IntoCgroup)
	flag(c, &o.Trial)
}

// Encode returns the order with its length in front.
func (o *Order) Encode() []byte { return framed(4096, o.fields) }

func (o *Order) decode(b []byte) bool { return decoded(b, o.fields) }

// The template, which is not written in Go, writes messages, too: see template.py.
func (m *Message) fields(c *coder) {
	letter(c, &m.Kind)
	text(c, &m.Stage)
	text(c, &m.Detail)
	integer(c, &m.Errno)
	flag(c, &m.AtFault)
	integer(c, &m.Status)
	integer(c, &m.CPU)
	integer(c, &m.MaxRSS)
	integer(c, &m.Time)
	integer(c, &m.Starved)
	flag(c, &m.Warm)
}

// encode returns the message with its length in front.
func (m *Message) encode() []byte { return framed(128, m.fields) }

// DecodeMessage decodes the first message of b and returns the rest of b; ok is false while the message is incomplete.
func DecodeMessage(b []byte) (m Message, rest []byte, ok bool) {
	d := &decoder{b: b}
	body := d.bytes()
	if d.bad || len(body) == 0 {
		return Message{}, b, false
	}
	ok = decoded(body, m.fields)
	return m, d.b, ok
}
