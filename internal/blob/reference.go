package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Sum is the SHA-256 of an uploaded content. A submission refers to the content by it: {"blob": "sha256:9f86d0…"}.
type Sum = [sha256.Size]byte

const sumScheme = "sha256:"

// SumText returns the name of an uploaded content in submissions.
func SumText(s Sum) string { return sumScheme + hex.EncodeToString(s[:]) }

// ParseSum parses exactly the output of SumText.
func ParseSum(text string) (s Sum, ok bool) {
	digits, ok := strings.CutPrefix(text, sumScheme)
	if !ok || len(digits) != hex.EncodedLen(len(s)) || strings.ToLower(digits) != digits {
		return Sum{}, false
	}
	_, err := hex.Decode(s[:], []byte(digits))
	return s, err == nil
}

// Reference is a place in a JSON text that names a blob.
type Reference struct {
	Path string // path of the member "blob" or "set": cases[2].stdin.blob
	Name string
}

// traces occur in every payload that may have a reference.
var traces = [][]byte{[]byte("blob"), []byte(`"set"`), []byte(`\u006`), []byte(`\u007`)}

// References finds the members called "blob" that are strings, and those called "set" that are the sum of an upload, in their order. It
// parses only payloads that may have one: a payload without the letters costs four searches.
func References(payload []byte) []Reference {
	// "b", "l", "o" and "e" can be written as \u0062, \u006c, \u006f and \u0065, "s" and "t" as \u0073 and \u0074.
	if !slices.ContainsFunc(traces, func(trace []byte) bool { return bytes.Contains(payload, trace) }) {
		return nil
	}
	w := walker{dec: json.NewDecoder(bytes.NewReader(payload))}
	w.dec.UseNumber()
	w.value("", "")
	return w.found
}

// walker walks through a JSON text. Invalid JSON ends the walk.
type walker struct {
	dec   *json.Decoder
	found []Reference
}

// value reads the value of a member at a path; it reports whether the walk continues.
func (w *walker) value(path, member string) bool {
	token, err := w.dec.Token()
	if err != nil {
		return false
	}
	switch t := token.(type) {
	case string:
		if _, isSum := ParseSum(t); member == "blob" || member == "set" && isSum {
			w.found = append(w.found, Reference{path, t})
		}
	case json.Delim:
		for i := 0; w.dec.More(); i++ {
			at, name := path+"["+strconv.Itoa(i)+"]", ""
			if t == '{' {
				key, err := w.dec.Token()
				if err != nil {
					return false
				}
				name, _ = key.(string)
				at = strings.TrimPrefix(path+"."+name, ".")
				if strings.ContainsFunc(name, foreign) || strings.ContainsAny(name, ".") {
					at = path + "[" + strconv.Quote(name) + "]" // for example files["data/in.txt"]
				}
			}
			if !w.value(at, name) {
				return false
			}
		}
		_, err = w.dec.Token() // the end of the object or list
		return err == nil
	}
	return true
}
