package wire

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestFrames(t *testing.T) {
	var stream bytes.Buffer
	for _, f := range []Frame{{Kind: Out, Offset: 1 << 40, Data: []byte("a\r\n\x00")}, {Kind: Ping}} {
		if err := Write(&stream, f); err != nil {
			t.Fatal(err)
		}
	}
	whole := stream.Bytes()
	first, err := Read(&stream)
	if err != nil || first.Kind != Out || first.Offset != 1<<40 || string(first.Data) != "a\r\n\x00" {
		t.Errorf("%+v, %v", first, err)
	}
	if f, err := Read(&stream); err != nil || f.Kind != Ping || len(f.Data) != 0 {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := Read(&stream); err != io.EOF {
		t.Errorf("the end between frames: %v", err)
	}
	for cut := 1; cut < headerSize+4; cut++ {
		if _, err := Read(bytes.NewReader(whole[:cut])); err == nil || err == io.EOF {
			t.Errorf("cut after %d bytes: %v", cut, err)
		}
	}
	huge := bytes.Repeat([]byte{0xff}, headerSize)
	if _, err := Read(bytes.NewReader(huge)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a size that is out of bounds: %v", err)
	}
}
