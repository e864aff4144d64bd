package flow

import (
	"errors"
	"strings"
	"testing"
)

func TestFeed(t *testing.T) {
	const so = "hello"
	open, closed := Input{Pieces: 2, Size: 5}, Input{Pieces: 2, Size: 5, Closed: true}
	for _, c := range []struct {
		say   string
		in    Input
		at    int64
		piece string
		last  bool
		fresh string
		want  Input
		err   error
	}{
		{"the next piece", open, 5, " you", false, " you", Input{3, 9, false}, nil},
		{"the last piece", open, 5, " you", true, " you", Input{3, 9, true}, nil},
		{"the end alone", open, 5, "", true, "", Input{3, 5, true}, nil},
		{"nothing", open, 5, "", false, "", open, nil},
		{"the same again", open, 0, "hello", false, "", open, nil},
		{"a part again", open, 1, "ell", false, "", open, nil},
		{"the same again, and more", open, 3, "lo you", false, " you", Input{3, 9, false}, nil},
		{"the same again, and the end", open, 3, "lo", true, "", Input{3, 5, true}, nil},
		{"a gap", open, 6, "x", false, "", open, ErrInputOffset},
		{"other bytes", open, 3, "xx", false, "", open, ErrInputOffset},
		{"other bytes, and more", open, 3, "lx you", false, "", open, ErrInputOffset},
		{"an end in the middle", open, 1, "ell", true, "", open, ErrInputOffset},
		{"more after the end", closed, 5, "x", false, "", closed, ErrInputClosed},
		{"more after the end, from before", closed, 4, "ox", false, "", closed, ErrInputClosed},
		{"the last piece again", closed, 3, "lo", true, "", closed, nil},
		{"the end again", closed, 5, "", true, "", closed, nil},
		{"too much", Input{Pieces: 1, Size: InputLimit - 1}, InputLimit - 1, "xx", false, "", Input{Pieces: 1, Size: InputLimit - 1}, ErrInputFull},
		{"as much as there may be", Input{Pieces: 1, Size: InputLimit - 1}, InputLimit - 1, "x", false, "x", Input{2, InputLimit, false}, nil},
		{"too often", Input{Pieces: inputPieces, Size: 5}, 5, "x", false, "", Input{Pieces: inputPieces, Size: 5}, ErrInputFull},
		{"the end after as many pieces as there may be", Input{Pieces: inputPieces, Size: 5}, 5, "", true, "", Input{inputPieces + 1, 5, true}, nil},
	} {
		var given []byte
		if n := c.in.Repeats(c.at, len(c.piece)); n > 0 {
			given = []byte(so[c.at:][:n])
		}
		fresh, got, err := c.in.Feed(c.at, []byte(c.piece), c.last, given)
		if string(fresh) != c.fresh || got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %+v, %v; want %q, %+v, %v", c.say, fresh, got, err, c.fresh, c.want, c.err)
		}
	}
}

// However pieces are cut, repeated and delayed, the input has the sent bytes once.
func TestFeedAgain(t *testing.T) {
	whole := strings.Repeat("0123456789", 5)
	var input Input
	var kept string
	for _, p := range [][2]int64{{0, 7}, {0, 7}, {3, 12}, {12, 12}, {5, 30}, {0, 50}, {49, 50}} {
		piece := []byte(whole[p[0]:p[1]])
		given := []byte(kept[p[0]:][:input.Repeats(p[0], len(piece))])
		fresh, next, err := input.Feed(p[0], piece, p[1] == int64(len(whole)), given)
		if err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		kept += string(fresh)
		input = next
	}
	if kept != whole || !input.Closed || input.Size != int64(len(whole)) {
		t.Errorf("kept %q, %+v", kept, input)
	}
}
