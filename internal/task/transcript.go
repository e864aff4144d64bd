package task

import (
	"slices"

	"github.com/pawl-run/pawl/api"
)

// The bounds of a transcript: the bytes that are kept of its beginning and of its end, and the overhead that is counted for each turn, so
// that a dialogue in single bytes does not make a result of thousands of turns.
const (
	transcriptEnds = 2 << 10
	turnCost       = 24
)

// transcript keeps the beginning and the end of a dialogue.
type transcript struct {
	first, latest []turn
	used, held    int // of transcriptEnds, by first and by latest
	full          bool
	omitted       int64 // bytes between the two
}

type turn struct {
	by   string
	text []byte
}

// add records what one side has written. It copies the bytes.
func (t *transcript) add(by string, p []byte) {
	if !t.full {
		if !continues(t.first, by) {
			t.used += turnCost
		}
		n := min(len(p), max(0, transcriptEnds-t.used))
		if n > 0 {
			t.first = joined(t.first, by, p[:n])
			t.used += n
		}
		p, t.full = p[n:], n < len(p)
	}
	if len(p) == 0 {
		return
	}
	if cut := len(p) - transcriptEnds; cut > 0 { // then nothing before it is kept
		t.omitted += int64(cut)
		p = p[cut:]
	}
	if !continues(t.latest, by) {
		t.held += turnCost
	}
	t.latest = joined(t.latest, by, p)
	t.held += len(p)
	for t.held > transcriptEnds {
		old := &t.latest[0]
		n := min(len(old.text), t.held-transcriptEnds)
		old.text = old.text[n:]
		t.omitted, t.held = t.omitted+int64(n), t.held-n
		if len(old.text) > 0 {
			break
		}
		t.latest, t.held = t.latest[1:], t.held-turnCost
	}
}

func continues(turns []turn, by string) bool { return len(turns) > 0 && turns[len(turns)-1].by == by }

func joined(turns []turn, by string, p []byte) []turn {
	if !continues(turns, by) {
		return append(turns, turn{by, slices.Clone(p)})
	}
	last := &turns[len(turns)-1]
	last.text = append(last.text, p...)
	return turns
}

// last is the side that wrote last; "": neither has.
func (t *transcript) last() string {
	for _, turns := range [][]turn{t.latest, t.first} {
		if len(turns) > 0 {
			return turns[len(turns)-1].by
		}
	}
	return ""
}

// shown is the transcript for the result of a case, as far as the evaluation's result has room.
func (d *dialogue) shown(b *batch) (all []api.CaseTurn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &d.transcript
	turns := slices.Clone(t.first)
	rest := t.latest
	if t.omitted == 0 && len(rest) > 0 && continues(turns, rest[0].by) {
		turns = joined(turns, rest[0].by, rest[0].text)
		rest = rest[1:]
	}
	omitted := int64(0)
	for i, one := range slices.Concat(turns, rest) {
		if i == len(turns) {
			omitted += t.omitted
		}
		kept := b.keep(one.text, len(one.text))
		if len(kept) == 0 {
			omitted += int64(len(one.text))
			continue
		}
		text, raw, _ := inline(kept, int64(len(kept)))
		all = append(all, api.CaseTurn{By: one.by, Text: text, Base64: raw, Omitted: omitted})
		omitted = int64(len(one.text) - len(kept))
	}
	return all
}
