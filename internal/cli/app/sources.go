package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// Source is a file with definitions.
type Source struct {
	Name    string
	Content []byte
}

// maxSource bounds the size of a file. The API has the same limit.
const maxSource = 16 << 20

// ReadFiles reads files, standard input and the definitions in directories.
func (a *App) ReadFiles(args []string) ([]Source, error) {
	var all []Source
	for _, arg := range args {
		if arg == "-" {
			b, err := io.ReadAll(io.LimitReader(a.In, maxSource+1))
			if err != nil {
				return nil, fmt.Errorf("read standard input: %w", err)
			}
			if len(b) > maxSource {
				return nil, fmt.Errorf("standard input is larger than %s", output.Bytes(maxSource))
			}
			all = append(all, Source{"-", b})
			continue
		}
		paths := []string{arg}
		if info, err := os.Stat(arg); err == nil && info.IsDir() {
			if paths, err = definitionsIn(arg); err != nil {
				return nil, err
			}
		}
		for _, p := range paths {
			b, err := ReadBounded(p)
			if err != nil {
				return nil, err
			}
			all = append(all, Source{p, b})
		}
	}
	return all, nil
}

// Given is the text of a flag, or the content of the file named by @FILE; @- is standard input.
func (a *App) Given(flag, text string) ([]byte, error) {
	path, ok := strings.CutPrefix(text, "@")
	if !ok {
		return []byte(text), nil
	}
	files, err := a.ReadFiles([]string{path})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return files[0].Content, nil
}

// JSONVar adds a flag for JSON or @FILE, to be read by GivenJSON. An empty value, for example from an unset shell variable, is refused.
func JSONVar(flags *pflag.FlagSet, into *string, name, short, doc string) {
	flags.VarP((*jsonText)(into), name, short, doc)
}

type jsonText string

// Type is the form of a value in the help.
func (v *jsonText) Type() string   { return "string" }
func (v *jsonText) String() string { return string(*v) }

func (v *jsonText) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("it is empty: write JSON, for example {}, or leave the flag out")
	}
	*v = jsonText(text)
	return nil
}

// CheckJSON returns an error with the place if a text is not valid JSON or has duplicate names.
func CheckJSON(flag string, raw []byte) error {
	var value json.RawMessage
	return new(strictjson.Rules).Decode(raw, flag, &value)
}

// GivenJSON is Given for a flag that takes JSON; nil if the flag is not given. It removes a leading byte order mark.
func (a *App) GivenJSON(flag, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	raw, err := a.Given(flag, text)
	if err != nil {
		return nil, err
	}
	raw = bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\uFEFF")))
	if err := CheckJSON(flag, raw); err != nil {
		hint := ""
		if _, is := os.Stat(text); is == nil || strings.HasSuffix(text, ".json") {
			hint = fmt.Sprintf("; to read it from a file write %s @%s", flag, text)
		} else if name, _, pair := strings.Cut(text, "="); pair && flag == "--input" && !strings.ContainsAny(name, " {[\"") {
			hint = "; to give one field of it write --set " + text
		}
		return nil, exit.Usagef("%s is not JSON: %v%s", flag, err, hint)
	}
	return raw, nil
}

func definitionsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read directory: %w", err)
	}
	var paths []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, ext) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no .yaml, .yml or .json files", dir)
	}
	return paths, nil
}

// ReadBounded reads a file of at most maxSource bytes.
func ReadBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, nearFile(path, err)) // err contains the operation and the path
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory: name a file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(b) > maxSource {
		return nil, fmt.Errorf("%s is larger than %s", path, output.Bytes(maxSource))
	}
	return b, nil
}

// LooksLikeFile reports whether the argument of `pawl run` names a file rather than a registered action.
func LooksLikeFile(s string) bool {
	if s == "-" || strings.ContainsAny(s, `/\`) || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(s)) {
		return true
	}
	info, err := os.Stat(s)
	return err == nil && !info.IsDir()
}

// nearFile suggests a file in the same directory with a name similar to one that does not exist.
func nearFile(path string, err error) string {
	entries, unread := os.ReadDir(filepath.Dir(path))
	if !errors.Is(err, fs.ErrNotExist) || unread != nil {
		return ""
	}
	var names []string
	for _, e := range entries[:min(len(entries), 1000)] {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if near := problem.Nearest(filepath.Base(path), names); near != "" {
		return "; " + near
	}
	return ""
}

// knowsLanguage reports whether a language has a profile here.
func (a *App) knowsLanguage(name string) bool {
	_, ok := a.Config.Languages.Set().Resolve(name)
	return ok
}

// MayKnowLanguage is like knowsLanguage, but accepts any language if a server is named, which then decides.
func (a *App) MayKnowLanguage(name string) bool {
	return a.knowsLanguage(name) || a.Config.Text("server") != "" && language.CheckName(name) == nil
}
