package pid1

// The wire format is private to one binary talking to itself: little-endian 64-bit integers and strings that carry
// their length. It exists because encoding/json and encoding/gob would cost every start their initialization.

func putInt(b []byte, v int64) []byte {
	u := uint64(v)
	return append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24), byte(u>>32), byte(u>>40), byte(u>>48), byte(u>>56))
}

func putString(b []byte, s string) []byte { return append(putInt(b, int64(len(s))), s...) }

func putBytes(b, s []byte) []byte { return append(putInt(b, int64(len(s))), s...) }

func putBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// decoder reads what the put functions wrote. After a short read it yields zeroes and bad is set.
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

// count is an integer that says how many items follow; each takes at least one byte.
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

func (d *decoder) string() string { return string(d.bytes()) }

// EncodeSteps encodes steps for Config.Layout.
func EncodeSteps(steps []Step) []byte {
	var b []byte
	b = putInt(b, int64(len(steps)))
	for _, s := range steps {
		b = putInt(b, int64(s.Kind))
		b = putString(b, s.Source)
		b = putString(b, s.Target)
		b = putInt(b, s.Number)
	}
	return b
}

func (d *decoder) steps() []Step {
	steps := make([]Step, d.count())
	for i := range steps {
		steps[i] = Step{StepKind(d.int()), d.string(), d.string(), d.int()}
	}
	return steps
}

// framed puts the length in front of what write appends, as the init reads it from the control socket.
func framed(capacity int, write func([]byte) []byte) []byte {
	b := write(make([]byte, 8, 8+capacity))
	putInt(b[:0], int64(len(b)-8))
	return b
}

func putStrings(b []byte, all []string) []byte {
	b = putInt(b, int64(len(all)))
	for _, s := range all {
		b = putString(b, s)
	}
	return b
}

func (d *decoder) strings() []string {
	all := make([]string, d.count())
	for i := range all {
		all[i] = d.string()
	}
	return all
}

func putInts(b []byte, all []int64) []byte {
	b = putInt(b, int64(len(all)))
	for _, v := range all {
		b = putInt(b, v)
	}
	return b
}

func (d *decoder) ints() []int64 {
	all := make([]int64, d.count())
	for i := range all {
		all[i] = d.int()
	}
	return all
}

// Encode returns the plan with its length in front.
func (p *Plan) Encode() []byte {
	return framed(len(p.Layout)+len(p.Filter)+64, func(b []byte) []byte {
		b = putString(b, p.Cover)
		b = putBytes(b, p.Layout)
		return putBytes(b, p.Filter)
	})
}

// decode fills p from what Encode wrote after the length; false when it is cut short.
func (p *Plan) decode(b []byte) bool {
	d := &decoder{b: b}
	p.Cover = d.string()
	layout := &decoder{b: d.bytes()}
	p.steps = layout.steps()
	p.Filter = d.bytes()
	return !d.bad && !layout.bad
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

// decode fills n from what Encode wrote; false when it is cut short.
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

// DecodeBorn reads an answer; false when it is cut short.
func DecodeBorn(b []byte) (n Born, ok bool) {
	d := decoder{b: b}
	n.PID, n.Errno = d.int(), d.int()
	return n, !d.bad
}

// Encode returns the configuration with its length in front.
func (c *Config) Encode() []byte {
	return framed(1024, func(b []byte) []byte {
		b = putBytes(b, EncodeSteps(c.Steps))
		b = putInt(b, c.ScratchSize)
		b = putInt(b, c.ScratchInodes)
		b = putInts(b, c.TaskFDs)
		b = putInt(b, c.PressureFD)
		b = putBool(b, c.Announce)
		return putBool(b, c.Base)
	})
}

// decode fills c from what Encode wrote after the length; false when it is cut short.
func (c *Config) decode(b []byte) bool {
	d := &decoder{b: b}
	steps := &decoder{b: d.bytes()}
	c.Steps = steps.steps()
	c.ScratchSize = d.int()
	c.ScratchInodes = d.int()
	c.TaskFDs = d.ints()
	c.PressureFD = d.int()
	c.Announce = d.bool()
	c.Base = d.bool()
	return !d.bad && !steps.bad
}

// Encode returns the order with its length in front.
func (o *Order) Encode() []byte {
	return framed(4096, func(b []byte) []byte {
		b = putBool(b, o.Input)
		b = putInt(b, o.ScratchSize)
		b = putInt(b, o.ScratchInodes)
		b = putStrings(b, o.Mounts)
		b = putInt(b, int64(len(o.Rlimits)))
		for _, r := range o.Rlimits {
			b = putInt(b, r.Resource)
			b = putInt(b, int64(r.Value))
		}
		b = putStrings(b, o.Argv)
		b = putStrings(b, o.Env)
		b = putInt(b, int64(len(o.Files)))
		for _, f := range o.Files {
			b = putString(b, f.Path)
			b = putInt(b, f.Mode)
			b = putInt(b, f.Size)
		}
		b = putInts(b, o.CPUs)
		b = putBool(b, o.Template)
		b = putInt(b, o.Shared)
		b = putBool(b, o.IntoCgroup)
		return putBool(b, o.Trial)
	})
}

// decode fills o from what Encode wrote after the length; false when it is cut short.
func (o *Order) decode(b []byte) bool {
	d := &decoder{b: b}
	o.Input = d.bool()
	o.ScratchSize = d.int()
	o.ScratchInodes = d.int()
	o.Mounts = d.strings()
	o.Rlimits = make([]Rlimit, d.count())
	for i := range o.Rlimits {
		o.Rlimits[i] = Rlimit{d.int(), uint64(d.int())}
	}
	o.Argv = d.strings()
	o.Env = d.strings()
	o.Files = make([]File, d.count())
	for i := range o.Files {
		o.Files[i] = File{d.string(), d.int(), d.int()}
	}
	o.CPUs = d.ints()
	o.Template = d.bool()
	o.Shared = d.int()
	o.IntoCgroup = d.bool()
	o.Trial = d.bool()
	return !d.bad
}

// encode returns the message with its length in front.
func (m *Message) encode() []byte {
	return framed(128, func(b []byte) []byte {
		b = append(b, byte(m.Kind))
		b = putString(b, m.Stage)
		b = putString(b, m.Detail)
		b = putInt(b, m.Errno)
		b = putBool(b, m.AtFault)
		b = putInt(b, m.Status)
		b = putInt(b, m.CPU)
		b = putInt(b, m.MaxRSS)
		b = putInt(b, m.Time)
		b = putInt(b, m.Starved)
		b = putInt(b, m.Network)
		return putBool(b, m.Warm)
	})
}

// DecodeMessage takes the first message off b and returns what follows it; ok is false while it is incomplete.
func DecodeMessage(b []byte) (m Message, rest []byte, ok bool) {
	d := &decoder{b: b}
	body := &decoder{b: d.bytes()}
	if d.bad || len(body.b) == 0 {
		return Message{}, b, false
	}
	m.Kind = MessageKind(body.b[0])
	body.b = body.b[1:]
	m.Stage = body.string()
	m.Detail = body.string()
	m.Errno = body.int()
	m.AtFault = body.bool()
	m.Status = body.int()
	m.CPU = body.int()
	m.MaxRSS = body.int()
	m.Time = body.int()
	m.Starved = body.int()
	m.Network = body.int()
	m.Warm = body.bool()
	return m, d.b, !body.bad
}
