package task

import (
	"strings"
	"testing"
)

func TestTranscript(t *testing.T) {
	shown := func(parts ...string) string {
		d := newDialogue()
		for _, part := range parts {
			by, text, _ := strings.Cut(part, ":")
			d.transcript.add(by, []byte(text))
		}
		var all []string
		for _, one := range d.shown(&batch{room: casesKept}) {
			text := one.Text
			if len(text) > 20 {
				text = text[:1] + "…" + text[len(text)-1:]
			}
			if one.Omitted > 0 {
				text = "[…]" + text
			}
			all = append(all, one.By+":"+text)
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct{ name, got, want string }{
		{"nothing", shown(), ""},
		{"turns", shown("p:1", "p:2", "i:3", "p:4"), "p:12 i:3 p:4"},
		{"one that does not fit", shown("p:a" + strings.Repeat("x", 9000) + "b"), "p:a…x p:[…]x…b"},
		{"two ends of one turn", shown("p:a"+strings.Repeat("x", 2500), "p:"+strings.Repeat("x", 900)+"b"), "p:a…b"},
		{"both ends of many", shown("p:first", "i:"+strings.Repeat("y", 90_000), "p:last"), "p:first i:y…y i:[…]y…y p:last"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, c.got, c.want)
		}
	}
	d := newDialogue()
	for range 10_000 {
		d.transcript.add("p", []byte("1"))
		d.transcript.add("i", []byte("2"))
	}
	total := int64(0)
	turns := d.shown(&batch{room: casesKept})
	for _, one := range turns {
		total += one.Omitted + int64(len(one.Text))
	}
	if total != 20_000 || len(turns) > 200 {
		t.Errorf("%d bytes accounted for in %d turns", total, len(turns))
	}
	if turns = d.shown(&batch{room: 10}); len(turns) != 10 {
		t.Errorf("%d turns where 10 bytes have room", len(turns))
	}
}
