package judge0

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/server/compat"
)

type request struct {
	SourceCode           string   `json:"source_code,omitempty"`
	LanguageID           int64    `json:"language_id"`
	CompilerOptions      string   `json:"compiler_options,omitempty"`
	CommandLineArguments string   `json:"command_line_arguments,omitempty"`
	Stdin                string   `json:"stdin,omitempty"`
	ExpectedOutput       *string  `json:"expected_output,omitempty"`
	CPUTimeLimit         *float64 `json:"cpu_time_limit,omitempty"` // seconds, like all times
	CPUExtraTime         *float64 `json:"cpu_extra_time,omitempty"` // how long a program may run after its CPU limit
	WallTimeLimit        *float64 `json:"wall_time_limit,omitempty"`
	MemoryLimit          *float64 `json:"memory_limit,omitempty"` // KiB, like all sizes
	StackLimit           *float64 `json:"stack_limit,omitempty"`
	MaxProcesses         *int64   `json:"max_processes_and_or_threads,omitempty"`
	PerThreadTime        bool     `json:"enable_per_process_and_thread_time_limit,omitempty"`
	PerThreadMemory      bool     `json:"enable_per_process_and_thread_memory_limit,omitempty"`
	MaxFileSize          *float64 `json:"max_file_size,omitempty"`
	NumberOfRuns         *int64   `json:"number_of_runs,omitempty"`
	RedirectStderr       bool     `json:"redirect_stderr_to_stdout,omitempty"`
	EnableNetwork        bool     `json:"enable_network,omitempty"`
	CallbackURL          string   `json:"callback_url,omitempty"`
	AdditionalFiles      string   `json:"additional_files,omitempty"`
}

// Judge0's defaults, and Pawl's bounds.
const (
	cpuTimeLimit = 5.0     // seconds
	wallLimit    = 10.0    // seconds
	memoryLimit  = 128_000 // KiB
	stackLimit   = 64_000  // KiB
	processes    = 60
	fileSize     = 1024 // KiB

	minMemory       = 2048 // KiB
	maxArguments    = 512  // total bytes of arguments or options
	maxRuns         = 20
	maxFileSize     = int64(api.MaxCaseOutput >> 10)
	maxExtracted    = 10_240 << 10 // total bytes of the additional files
	languageLabel   = "judge0.language_id"
	maxExtraSeconds = 86_400
)

var seconds = time.Duration(api.MaxWall).Seconds()

// submission is a Judge0 submission as an evaluation.
type submission struct {
	api.Evaluation
	// encoded says whether its texts were in base64. If the query does not say so, they are if the source is the base64 of a text.
	encoded  bool
	callback string // URL to call after its end; empty: none
}

// submission converts a request. The error is a [*compat.Refused].
func (s *wire) submission(raw []byte, base64Encoded *bool) (sub *submission, err error) {
	var in request
	if err := compat.Decode(raw, &in); err != nil {
		return nil, err
	}
	var e api.Evaluation
	var encoded bool
	r := reader{wrong: &compat.Refused{Status: http.StatusUnprocessableEntity}}
	if encoded = base64Encoded != nil && *base64Encoded; base64Encoded == nil {
		_, plain := decoded(in.SourceCode)
		encoded = plain == nil && in.SourceCode != ""
	}
	if encoded {
		r.decode("source_code", &in.SourceCode)
		r.decode("stdin", &in.Stdin)
		if in.ExpectedOutput != nil {
			r.decode("expected_output", in.ExpectedOutput)
		}
	}
	l, ok := s.known(in.LanguageID)
	if !ok {
		r.fault("language_id", strconv.FormatInt(in.LanguageID, 10), fmt.Sprintf("language with id %d doesn't exist", in.LanguageID), "GET /languages lists those that are here")
	}
	e.Language = numbers[l.ID]
	if e.Source = in.SourceCode; strings.TrimSpace(e.Source) == "" && !r.at("source_code") {
		r.fault("source_code", "", "can't be blank", "")
	}
	e.Args = r.words("command_line_arguments", in.CommandLineArguments)
	for _, option := range r.words("compiler_options", in.CompilerOptions) {
		if std, ok := strings.CutPrefix(option, "-std="); ok {
			e.Std = std
		} else {
			e.Flags = append(e.Flags, option)
		}
	}
	r.limits(&in, &e.Limits)
	for _, o := range []struct {
		name  string
		given bool
		say   string
	}{
		{"enable_per_process_and_thread_time_limit", in.PerThreadTime, "this option cannot be enabled"},
		{"enable_per_process_and_thread_memory_limit", in.PerThreadMemory, "this option cannot be enabled"},
		{"redirect_stderr_to_stdout", in.RedirectStderr, "this option cannot be enabled"},
		{"enable_network", in.EnableNetwork, "enabling network is not allowed"},
	} {
		if o.given {
			r.fault(o.name, "", o.say, "leave it out")
		}
	}
	r.callback(&in)
	e.Files = r.unzipped(in.AdditionalFiles, maxExtracted)
	runs := int(r.number("number_of_runs", in.NumberOfRuns, 1, 1, maxRuns))
	e.Labels = map[string]string{languageLabel: strconv.FormatInt(in.LanguageID, 10)}
	stdin := api.Content{Bytes: []byte(in.Stdin)}
	if in.ExpectedOutput == nil && runs == 1 {
		e.Stdin = stdin
	} else {
		// Judge0 repeats a program only as long as it is right.
		e.StopOnFailure = true
		for range runs {
			c := api.Case{Stdin: stdin}
			if in.ExpectedOutput != nil {
				c.Expect = &api.Content{Bytes: []byte(*in.ExpectedOutput)}
			}
			e.Cases = append(e.Cases, c)
		}
	}
	if len(r.wrong.Errors) > 0 {
		return nil, r.wrong
	}
	return &submission{e, encoded, in.CallbackURL}, nil
}

// reader reads the fields of a request, and collects its errors.
type reader struct{ wrong *compat.Refused }

func (r *reader) fault(path, value, message, fix string) {
	r.wrong.Errors = append(r.wrong.Errors, api.FieldError{Path: path, Value: problem.Clip(value, 60), Message: message, Fix: fix})
}

// at reports whether there is an error for a field.
func (r *reader) at(path string) bool {
	return slices.ContainsFunc(r.wrong.Errors, func(e api.FieldError) bool { return e.Path == path })
}

// decode replaces a base64 text by the decoded text.
func (r *reader) decode(name string, text *string) {
	b, err := decoded(*text)
	if err != nil && name == "source_code" {
		r.fault(name, *text, "it is not base64 of a text in UTF-8", "send it so, or base64_encoded=false in the query")
	} else if b == nil {
		r.fault(name, *text, "it is not base64", "send it so, or base64_encoded=false in the query")
	}
	*text = string(b)
}

// decoded decodes base64, which may have line ends and no padding. If it returns bytes and an error, the bytes are not text.
func decoded(s string) ([]byte, error) {
	s = strings.TrimRight(strings.NewReplacer("\n", "", "\r", "").Replace(s), "=")
	b, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(b) {
		return b, errors.New("not UTF-8")
	}
	return b, nil
}

func (r *reader) limits(in *request, into *api.CodeLimits) {
	span := func(name string, given *float64, otherwise, least, most float64) api.Duration {
		v := otherwise
		if given != nil {
			v = *given
		}
		if v < least || v > most {
			r.fault(name, fmt.Sprint(v), fmt.Sprintf("must be from %v to %v seconds", least, most), "")
		}
		return api.Duration(v * float64(time.Second))
	}
	size := func(name string, given *float64, otherwise, least, most float64) api.Size {
		v := otherwise
		if given != nil {
			v = *given
		}
		if v < least || v > most {
			r.fault(name, fmt.Sprint(v), fmt.Sprintf("must be from %.0f to %.0f kilobytes", least, most), "")
		}
		return api.Size(v * 1024)
	}
	into.Wall = span("wall_time_limit", in.WallTimeLimit, wallLimit, 1, seconds)
	into.CPU = span("cpu_time_limit", in.CPUTimeLimit, cpuTimeLimit, 0, seconds)
	if into.CPU == 0 { // 0: no limit; a program may have up to 64 threads
		into.CPU = min(64*into.Wall, api.MaxWall)
	}
	// In Judge0, too, a program over cpu_time_limit has failed. The extra time is only how long it goes on running, so it is checked but not
	// used.
	span("cpu_extra_time", in.CPUExtraTime, 0, 0, maxExtraSeconds)
	into.Memory = size("memory_limit", in.MemoryLimit, memoryLimit, minMemory, float64(api.MaxMemory>>10))
	if in.StackLimit == nil || *in.StackLimit != 0 { // 0: only the memory limit applies
		into.Stack = size("stack_limit", in.StackLimit, stackLimit, float64(api.MinStack>>10), float64(api.MaxStack>>10))
	}
	into.Output = size("max_file_size", in.MaxFileSize, fileSize, 1, float64(maxFileSize))
	into.Pids = int(r.number("max_processes_and_or_threads", in.MaxProcesses, processes, 1, api.MaxPids))
}

// callback checks callback_url. The whole body of the callback is in memory, so the output is limited as in Judge0.
func (r *reader) callback(in *request) {
	if in.CallbackURL == "" {
		return
	}
	if to, err := url.Parse(in.CallbackURL); err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		r.fault("callback_url", in.CallbackURL, "it is not a URL", "write http:// or https://, a host and a path")
	}
	if size := in.MaxFileSize; size != nil && *size > callbackFileSize {
		r.fault("max_file_size", fmt.Sprint(*size), fmt.Sprintf("must be at most %d kilobytes with callback_url", callbackFileSize), "")
	}
}

func (r *reader) number(name string, given *int64, otherwise, least, most int64) int64 {
	v := otherwise
	if given != nil {
		v = *given
	}
	if v < least || v > most {
		r.fault(name, strconv.FormatInt(v, 10), fmt.Sprintf("must be from %d to %d", least, most), "")
	}
	return v
}

// words splits a command line into words, with quotes and backslashes as in a shell. No shell runs: $, * and ; are ordinary characters.
func (r *reader) words(name, line string) (all []string) {
	if len(line) > maxArguments {
		r.fault(name, line, fmt.Sprintf("is too long (maximum is %d characters)", maxArguments), "")
		return nil
	}
	var word strings.Builder
	inWord, quote, escaped := false, rune(0), false
	for _, c := range line {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune("\"\\$`", c) {
				word.WriteByte('\\')
			}
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			inWord, escaped = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			inWord, quote = true, c
		case strings.ContainsRune(" \t\r\n", c):
			if inWord {
				all = append(all, word.String())
				word.Reset()
			}
			inWord = false
		default:
			inWord = true
			word.WriteRune(c)
		}
	}
	if quote != 0 || escaped {
		r.fault(name, line, "a quotation does not end", "close it, or write \\ before the character")
	}
	if inWord {
		all = append(all, word.String())
	}
	return all
}

// unzipped returns the files of a base64 zip archive, of at most most bytes together.
func (r *reader) unzipped(text string, most int64) map[string]api.Content {
	const name = "additional_files"
	if text == "" {
		return nil
	}
	packed, _ := decoded(text)
	if packed == nil {
		r.fault(name, text, "it is not base64", "send a .zip in base64")
		return nil
	}
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		r.fault(name, "", "it is not a .zip: "+err.Error(), "send a .zip in base64")
		return nil
	}
	files, room := map[string]api.Content{}, most
	for _, f := range archive.File {
		if f.FileInfo().IsDir() {
			continue
		}
		if !f.Mode().IsRegular() {
			r.fault(name, f.Name, problem.Clip(f.Name, 60)+" is not a regular file", "leave it out")
			return nil // one error is enough: there may be 100,000 files
		}
		if _, twice := files[f.Name]; twice {
			r.fault(name, f.Name, problem.Clip(f.Name, 60)+" is there twice", "give each file a name of its own")
			return nil
		}
		content, err := extracted(f, room)
		if err == nil && int64(len(content)) > room {
			err = fmt.Errorf("the files have more than %d bytes", most)
		}
		if err != nil {
			r.fault(name, f.Name, problem.Clip(f.Name, 60)+": "+err.Error(), "")
			return nil
		}
		room -= int64(len(content))
		files[f.Name] = api.Content{Bytes: content, Mode: uint32(f.Mode().Perm()&0o111 | 0o644)}
	}
	return files
}

// extracted returns up to most+1 bytes of a file in an archive.
func extracted(f *zip.File, most int64) ([]byte, error) {
	body, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	return io.ReadAll(io.LimitReader(body, most+1))
}

// stored is the stored input of an evaluation.
type stored struct {
	Source string         `json:"source"`
	Std    string         `json:"std"`
	Flags  []string       `json:"flags"`
	Args   []string       `json:"args"`
	Stdin  content        `json:"stdin"`
	Limits api.CodeLimits `json:"limits"`
	Cases  []struct {
		Stdin  content  `json:"stdin"`
		Expect *content `json:"expect"`
	} `json:"cases"`
}

type content []byte

// UnmarshalJSON reads a string, or an object with text or base64.
func (c *content) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*c = content(text)
		return nil
	}
	var o struct {
		Text   *string `json:"text"`
		Base64 []byte  `json:"base64"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	if *c = o.Base64; o.Text != nil {
		*c = content(*o.Text)
	}
	return nil
}

// line joins words into a line that the method words would split again.
func line(all []string) string {
	quoted := make([]string, len(all))
	for i, w := range all {
		if quoted[i] = w; w == "" || strings.ContainsAny(w, " \t\r\n'\"\\") {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
