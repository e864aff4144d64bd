// Package archive reads and writes archives of executions: tar files that every tar program opens.
//
//	manifest.json            the format, its version, and where the archive is from
//	definitions/NAME@V.HASH.json
//	executions/000001.jsonl  rows, one JSON in each line: trees of executions, each workflow before its tasks
//	files/…, logs/…, uploads/…  blobs, by the names that rows have for them
//	checksums/000001         the SHA-256 of the members before it, as sha256sum -c reads it
//	seal.json                the SHA-256 of every byte before it
//
// Nothing follows the seal, so an archive that is truncated or changed anywhere is refused. It is a checksum and not a signature: it does
// not show who made the archive.
//
// The package is pure: it reads from and writes to given streams, holds one part of the rows at a time, and stores nothing.
package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"
)

// Format and Version identify the archives of this program.
const (
	Format  = "pawl-archive"
	Version = 1
)

const (
	manifestName = "manifest.json"
	sealName     = "seal.json"
	// Directories of blobs.
	filesUnder, logsUnder, uploadsUnder = "files/", "logs/", "uploads/"

	definitionsUnder = "definitions/"
	rowsUnder        = "executions/"
	checksumsUnder   = "checksums/"

	// partSize is how many bytes of rows are collected into one member.
	partSize = 1 << 20
	// mostRow bounds a row: what was given, what its handler got and what it put out have 16 MB each, and base64 a third more.
	mostRow        = 80 << 20
	mostDefinition = 4 << 20
	// mostName is the largest size of a member's name. The reader holds up to checkedAtOnce names with checksums, and mostPending names of
	// blobs; tar itself allows names of 1 MB.
	mostName = 1 << 10
	// checkedAtOnce is how many members one list of checksums has.
	checkedAtOnce = 10_000

	block = 512 // of a tar file
)

// ErrBroken means that an archive is truncated or damaged, or has another format.
var ErrBroken = errors.New("the archive is broken")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBroken, fmt.Sprintf(format, args...))
}

type Manifest struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Pawl    string    `json:"pawl"` // version of the program that wrote it
	From    string    `json:"from"` // host name of the server
	At      time.Time `json:"at"`
}

// seal is the content of the last member.
type seal struct {
	SHA256 string `json:"sha256"` // of every byte before the member
}

// header returns a member's header, which has only the name and the size.
func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644}
}

// sealed returns the end of an archive after content with the given sum: the last member and the two empty blocks after it.
func sealed(sum []byte) ([]byte, error) {
	content, err := json.Marshal(seal{hex.EncodeToString(sum)})
	if err != nil {
		return nil, err
	}
	content = append(content, '\n')
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(header(sealName, int64(len(content)))); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// checksum returns a line of a list of checksums.
func checksum(sum [sha256.Size]byte, name string) string {
	return hex.EncodeToString(sum[:]) + "  " + name + "\n"
}

// DefinitionName returns the member name of a definition; hash is that of its document.
func DefinitionName(name string, version int, hash string) string {
	return fmt.Sprintf("%s%s@%d.%s.json", definitionsUnder, name, version, hash)
}

func ParseDefinitionName(member string) (name string, version int, err error) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(member, definitionsUnder), "@")
	number, _, _ := strings.Cut(rest, ".")
	if version, err = strconv.Atoi(number); err != nil || name == "" || version < 1 || version > math.MaxInt32 {
		return "", 0, broken("member %.100q is not %sNAME@VERSION.HASH.json", member, definitionsUnder)
	}
	return name, version, nil
}

func isBlob(name string) bool {
	return under(name, filesUnder) || under(name, logsUnder) || under(name, uploadsUnder)
}

func UploadName(sum [sha256.Size]byte) string { return uploadsUnder + hex.EncodeToString(sum[:]) }

func under(name, prefix string) bool {
	return strings.HasPrefix(name, prefix) && path.Clean(name) == name
}
