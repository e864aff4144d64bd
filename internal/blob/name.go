package blob

import (
	"fmt"
	"strings"
)

// The parts of a name are file names on all common file systems, with room for a suffix.
const maxPart, maxName = 200, 1000

// CheckName says what is wrong with the first bad one of some names of blobs.
func CheckName(names ...string) error {
	for _, name := range names {
		if len(name) > maxName {
			return fmt.Errorf("the name %.40q… has %d bytes: at most %d", name, len(name), maxName)
		}
		for part := range strings.SplitSeq(name, "/") {
			if part == "" || part == "." || part == ".." || len(part) > maxPart || strings.ContainsFunc(part, foreign) {
				return fmt.Errorf("%.80q is not a blob's name: want parts of 1 to %d letters, digits, \".\", \"_\" and \"-\", "+
					"separated by \"/\"", name, maxPart)
			}
		}
	}
	return nil
}

func foreign(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}
