package blob

import (
	"fmt"
	"strings"
)

// A name's parts are file names, with a little room for a suffix, on every file system in use.
const maxPart, maxName = 200, 1000

// CheckName says what is wrong with the name of a blob.
func CheckName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("the name %.40q… has %d bytes: at most %d", name, len(name), maxName)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || len(part) > maxPart || strings.ContainsFunc(part, foreign) {
			return fmt.Errorf("%.80q is not a blob's name: want parts of 1 to %d letters, digits, \".\", \"_\" and \"-\", separated by \"/\"", name, maxPart)
		}
	}
	return nil
}

func foreign(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}
