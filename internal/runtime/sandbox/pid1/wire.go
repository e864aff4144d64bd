package pid1

// The wire format is private to one binary talking to itself: little-endian 64-bit integers and strings that carry
// their length. It exists because encoding/json and encoding/gob would cost every start their initialization.

func putInt(b []byte, v int64) []byte {
	u := uint64(v)
	return append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24), byte(u>>32), byte(u>>40), byte(u>>48), byte(u>>56))
}

func putString(b []byte, s string) []byte { return append(putInt(b, int64(len(s))), s...) }

func putBytes(b, s []byte) []byte { return append(putInt(b, int64(len(s))), s...) }

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

// Encode returns the configuration with its length in front, as the init reads it from the control socket.
func (c *Config) Encode() []byte {
	b := make([]byte, 8, 8+len(c.Layout)+len(c.Filter)+4096)
	b = putString(b, c.Cover)
	b = putBytes(b, c.Layout)
	b = putBytes(b, EncodeSteps(c.Steps))
	b = putInt(b, c.ScratchSize)
	b = putInt(b, c.ScratchInodes)
	b = putInt(b, int64(len(c.TaskFDs)))
	for _, fd := range c.TaskFDs {
		b = putInt(b, fd)
	}
	b = putInt(b, int64(len(c.Rlimits)))
	for _, r := range c.Rlimits {
		b = putInt(b, r.Resource)
		b = putInt(b, int64(r.Value))
	}
	b = putInt(b, c.SpareThreads)
	b = putBytes(b, c.Filter)
	b = putInt(b, int64(len(c.Argv)))
	for _, s := range c.Argv {
		b = putString(b, s)
	}
	b = putInt(b, int64(len(c.Env)))
	for _, s := range c.Env {
		b = putString(b, s)
	}
	b = putInt(b, int64(len(c.Files)))
	for _, f := range c.Files {
		b = putString(b, f.Path)
		b = putInt(b, f.Mode)
		b = putInt(b, f.Size)
	}
	putInt(b[:0], int64(len(b)-8))
	return b
}

// decode fills c from what Encode wrote after the length; false when it is cut short.
func (c *Config) decode(b []byte) bool {
	d := &decoder{b: b}
	c.Cover = d.string()
	layout := &decoder{b: d.bytes()}
	extra := &decoder{b: d.bytes()}
	c.Steps = append(layout.steps(), extra.steps()...)
	c.ScratchSize = d.int()
	c.ScratchInodes = d.int()
	c.TaskFDs = make([]int64, d.count())
	for i := range c.TaskFDs {
		c.TaskFDs[i] = d.int()
	}
	c.Rlimits = make([]Rlimit, d.count())
	for i := range c.Rlimits {
		c.Rlimits[i] = Rlimit{d.int(), uint64(d.int())}
	}
	c.SpareThreads = d.int()
	c.Filter = d.bytes()
	c.Argv = make([]string, d.count())
	for i := range c.Argv {
		c.Argv[i] = d.string()
	}
	c.Env = make([]string, d.count())
	for i := range c.Env {
		c.Env[i] = d.string()
	}
	c.Files = make([]File, d.count())
	for i := range c.Files {
		c.Files[i] = File{d.string(), d.int(), d.int()}
	}
	return !d.bad && !layout.bad && !extra.bad
}

// encode returns the message with its length in front.
func (m *Message) encode() []byte {
	b := make([]byte, 8, 128)
	b = append(b, byte(m.Kind))
	b = putString(b, m.Stage)
	b = putString(b, m.Detail)
	b = putInt(b, m.Errno)
	if m.AtFault {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = putInt(b, m.Status)
	b = putInt(b, m.CPU)
	b = putInt(b, m.MaxRSS)
	putInt(b[:0], int64(len(b)-8))
	return b
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
	if len(body.b) > 0 {
		m.AtFault = body.b[0] == 1
		body.b = body.b[1:]
	}
	m.Status = body.int()
	m.CPU = body.int()
	m.MaxRSS = body.int()
	return m, d.b, !body.bad
}
