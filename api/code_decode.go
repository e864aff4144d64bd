package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/language"
)

// FieldErrors is the error of a request that cannot be decoded: everything that is wrong with it, in order of appearance.
type FieldErrors []FieldError

// Error writes one fault after the other.
func (es FieldErrors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.String()
	}
	return strings.Join(lines, "; ")
}

// DecodeCode reads and checks a Code. The error is a [FieldErrors] with every fault.
func DecodeCode(b []byte) (Code, error) {
	var c Code
	if errs := decodeCode(b, &c, nil); len(errs) > 0 {
		return Code{}, errs
	}
	return c, nil
}

// DecodeLimits reads and checks limits. The error is a [FieldErrors] with every fault.
func DecodeLimits(b []byte) (CodeLimits, error) {
	var d codeDecoder
	l := d.limits("", b)
	if len(d.errs) > 0 {
		return CodeLimits{}, d.errs
	}
	return l, nil
}

// UnmarshalJSON reads and checks an Evaluation. The error is a [FieldErrors] with every fault.
func (e *Evaluation) UnmarshalJSON(b []byte) error {
	var v Evaluation
	if errs := decodeCode(b, &v.Code, map[string]any{
		"queue": &v.Queue, "priority": &v.Priority, "labels": &v.Labels, "worker_labels": &v.WorkerLabels, "timeout": &v.Timeout,
		"queue_timeout": &v.QueueTimeout, "total_timeout": &v.TotalTimeout, "retry": &v.Retry,
		"concurrency": &v.Concurrency, "idempotency_key": &v.IdempotencyKey, "wait": &v.Wait,
	}); len(errs) > 0 {
		return errs
	}
	*e = v
	return nil
}

// decodeCode reads an object with the fields of a Code and others, which are decoded into the pointers given.
func decodeCode(b []byte, c *Code, others map[string]any) FieldErrors {
	var d codeDecoder
	if !utf8.Valid(b) {
		d.fault("", nil, "it holds bytes that are not UTF-8", `send bytes as {"base64": "…"}`)
		return d.errs
	}
	fields := map[string]func(string, json.RawMessage){
		"language":    func(p string, r json.RawMessage) { c.Language = d.text(p, r) },
		"source":      func(p string, r json.RawMessage) { c.Source = d.text(p, r) },
		"files":       func(p string, r json.RawMessage) { c.Files = d.files(p, r) },
		"args":        func(p string, r json.RawMessage) { c.Args = d.list(p, r) },
		"env":         func(p string, r json.RawMessage) { c.Env = d.env(p, r) },
		"stdin":       func(p string, r json.RawMessage) { c.Stdin = d.content(p, r, false) },
		"interactive": func(p string, r json.RawMessage) { d.plain(p, r, &c.Interactive) },
		"rerun_near_limit": func(p string, r json.RawMessage) {
			if n, err := strconv.Atoi(string(r)); err != nil || n < 0 || n > MaxReruns {
				d.fault(p, r, "it is not a number of further runs", fmt.Sprintf("a whole number from 0 to %d", MaxReruns))
			} else {
				c.RerunNearLimit = n
			}
		},
		"limits":  func(p string, r json.RawMessage) { c.Limits = d.limits(p, r) },
		"collect": func(p string, r json.RawMessage) { c.Collect = d.patterns(p, r) },
		"runtime": func(p string, r json.RawMessage) { c.Runtime = d.text(p, r) },
	}
	for name, into := range others {
		fields[name] = func(p string, r json.RawMessage) { d.plain(p, r, into) }
	}
	d.caseFields(fields, c)
	d.object("", b, fields)
	if len(d.errs) == 0 {
		d.whole(c)
		d.wholeCases(c)
	}
	return d.errs
}

// plain decodes a value of a type whose own JSON form is check enough; unknown fields in it are faults.
func (d *codeDecoder) plain(at string, raw json.RawMessage, into any) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		d.fault(at, raw, strings.TrimPrefix(err.Error(), "json: "), "see the API's description of this field")
	}
	if bytes.Contains(raw, []byte(`\u0000`)) {
		d.fault(at, nil, "it holds a NUL character", "remove it")
	}
}

// whole checks what no single field shows.
func (d *codeDecoder) whole(c *Code) {
	c.Language = d.language("language", c.Language)
	if strings.TrimSpace(c.Source) == "" {
		d.fault("source", nil, "it is missing or empty", "give the program's text")
	}
	if c.Interactive && c.RerunNearLimit > 0 {
		d.fault("rerun_near_limit", nil, "what an interactive program was given cannot be given again", "leave it out, or give stdin and leave interactive out")
	}
	if c.Interactive && !c.Stdin.IsZero() {
		d.fault("stdin", nil, "an interactive program reads what is sent to it while it runs", "leave stdin out and send it first, or leave interactive out")
	}
	d.fits(c.Limits.Disk, len(c.Source), c.Files)
}

// fits refuses a disk limit that the files of the submission exceed before anything runs. What lies in blobs is measured by
// the worker.
func (d *codeDecoder) fits(disk Size, source int, files map[string]Content) {
	total := source
	for _, f := range files {
		total += len(f.Bytes)
	}
	if disk > 0 && Size(total) > disk {
		d.fault("limits.disk", nil, fmt.Sprintf("it is %d bytes, and the files that are sent have %d", disk, total), fmt.Sprintf("raise it to what they and the program's own files need, more than %d, or leave it out", total))
	}
}

// language is the proper name of a language. Who decodes it does not know the profiles that were added: those are for
// the server and its workers to know.
func (d *codeDecoder) language(at, given string) string {
	lower := strings.ToLower(given)
	if name, ok := LanguageName(given); ok {
		return name
	} else if given == "" {
		d.fault(at, nil, "it is missing", "one of "+strings.Join(Languages(), ", "))
	} else if language.CheckName(lower) != nil {
		d.fault(at, quote(given), "it is not the name of a language", "one of "+strings.Join(Languages(), ", "))
	}
	return lower
}

type codeDecoder struct{ errs FieldErrors }

// fault notes what is wrong: where, with which value, and what to do about it.
func (d *codeDecoder) fault(path string, value []byte, message, fix string) {
	const most = 60
	s := string(value)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	if s != "" {
		message += ": " + s
	}
	d.errs = append(d.errs, FieldError{Path: path, Value: s, Message: message, Fix: fix})
}

func quote(s string) []byte { return []byte(strconv.Quote(s)) }

func isNull(raw []byte) bool { return string(bytes.TrimSpace(raw)) == "null" }

// each walks the members of an object in order; a member that comes twice is a fault.
func (d *codeDecoder) each(at string, raw json.RawMessage, member func(key string, r json.RawMessage)) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	t, err := dec.Token()
	if err == nil && t != json.Delim('{') {
		d.fault(at, raw, "it is not an object", "write {…}")
		return
	}
	seen := map[string]bool{}
	for err == nil && dec.More() {
		if t, err = dec.Token(); err != nil {
			break
		}
		key, _ := t.(string) // the decoder gives only strings here
		var r json.RawMessage
		if err = dec.Decode(&r); err != nil {
			break
		}
		if seen[key] {
			d.fault(join(at, key), nil, "it is given twice", "give it once")
			continue
		}
		seen[key] = true
		member(key, r)
	}
	if err != nil {
		d.fault(at, nil, "it is not JSON: "+err.Error(), "send a JSON object")
	}
}

func (d *codeDecoder) object(at string, raw json.RawMessage, fields map[string]func(string, json.RawMessage)) {
	d.each(at, raw, func(key string, r json.RawMessage) {
		read, ok := fields[key]
		if !ok {
			names := make([]string, 0, len(fields))
			for n := range fields {
				names = append(names, n)
			}
			sort.Strings(names)
			d.fault(join(at, key), nil, "it is not a known field", "one of "+strings.Join(names, ", "))
			return
		}
		if !isNull(r) {
			read(join(at, key), r)
		}
	})
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// text reads a string without NUL.
func (d *codeDecoder) text(at string, raw json.RawMessage) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		d.fault(at, raw, "it is not a string", `write "…"`)
		return ""
	}
	if i := strings.IndexByte(s, 0); i >= 0 {
		d.fault(at, nil, fmt.Sprintf("it holds a NUL character at byte %d", i), `remove it; stdin and files take {"base64": "…"}`)
		return ""
	}
	return s
}

func (d *codeDecoder) list(at string, raw json.RawMessage) []string {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		d.fault(at, raw, "it is not a list of strings", `write ["…", "…"]`)
		return nil
	}
	out := make([]string, len(items))
	for i, r := range items {
		out[i] = d.text(fmt.Sprintf("%s[%d]", at, i), r)
	}
	return out
}

func (d *codeDecoder) env(at string, raw json.RawMessage) map[string]string {
	env := map[string]string{}
	d.each(at, raw, func(key string, r json.RawMessage) {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			d.fault(join(at, key), nil, "it is not the name of a variable", `use a name without "=" and NUL`)
			return
		}
		env[key] = d.text(join(at, key), r)
	})
	return env
}

func (d *codeDecoder) files(at string, raw json.RawMessage) map[string]Content {
	files := map[string]Content{}
	d.each(at, raw, func(name string, r json.RawMessage) {
		where := fmt.Sprintf("%s[%q]", at, name)
		if !cleanPath(name) {
			d.fault(where, nil, "it is not a path beneath the working directory", `use a relative path such as "data/input.txt", without ".." or NUL`)
			return
		}
		files[name] = d.content(where, r, true)
	})
	if len(files) > maxFiles {
		d.fault(at, nil, fmt.Sprintf("it has %d files", len(files)), fmt.Sprintf("at most %d; pack them into one", maxFiles))
	}
	// A file that is also another's directory can never be placed.
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, both := files[dir]; both {
				d.fault(fmt.Sprintf("%s[%q]", at, dir), nil, fmt.Sprintf("it is a file and the directory of %q", name), "rename one of them")
			}
		}
	}
	return files
}

func cleanPath(p string) bool {
	return p != "" && p != "." && len(p) < 4096 && !path.IsAbs(p) && path.Clean(p) == p &&
		p != ".." && !strings.HasPrefix(p, "../") && !strings.ContainsAny(p, "\x00")
}

func (d *codeDecoder) patterns(at string, raw json.RawMessage) []string {
	list := d.list(at, raw)
	for i, p := range list {
		if _, err := path.Match(p, ""); err != nil || !cleanPath(p) {
			d.fault(fmt.Sprintf("%s[%d]", at, i), quote(p), "it is not a path or pattern beneath the working directory", `use one such as "out/*.csv"`)
		}
	}
	return list
}

func (d *codeDecoder) content(at string, raw json.RawMessage, file bool) Content {
	if raw = bytes.TrimSpace(raw); raw[0] == '"' {
		return Text(d.text(at, raw))
	}
	if raw[0] != '{' {
		d.fault(at, raw, "it is neither a string nor an object", `write "…", {"base64": "…"} or {"blob": "…"}`)
		return Content{}
	}
	var c Content
	given := 0
	fields := map[string]func(string, json.RawMessage){
		"base64": func(p string, r json.RawMessage) {
			given++
			b, err := decodeBase64(d.text(p, r))
			if err != nil {
				d.fault(p, r, "it is not base64: "+err.Error(), "use the standard alphabet with + and /")
			}
			c.Bytes = b
		},
		"text": func(p string, r json.RawMessage) {
			given++
			c.Bytes = []byte(d.text(p, r))
		},
		"blob": func(p string, r json.RawMessage) {
			given++
			c.Blob = d.text(p, r)
		},
	}
	if file {
		fields["mode"] = func(p string, r json.RawMessage) {
			m, err := strconv.ParseUint(d.text(p, r), 8, 32)
			if err != nil || m == 0 || m > 0o777 {
				d.fault(p, r, "it is not a file mode", `write octal permission bits such as "0755"`)
			}
			c.Mode = uint32(m)
		}
	}
	before := len(d.errs)
	d.object(at, raw, fields)
	if given != 1 && len(d.errs) == before {
		d.fault(at, nil, fmt.Sprintf("it gives its bytes %d times", given), `give exactly one of "text", "base64" and "blob"`)
	}
	return c
}

func (d *codeDecoder) limits(at string, raw json.RawMessage) CodeLimits {
	var l CodeLimits
	var wall []string
	readWall := func(p string, r json.RawMessage) {
		wall = append(wall, p)
		l.Wall = d.duration(p, r)
	}
	d.object(at, raw, map[string]func(string, json.RawMessage){
		"wall":    readWall,
		"timeout": readWall,
		"cpu":     func(p string, r json.RawMessage) { l.CPU = d.duration(p, r) },
		"memory":  func(p string, r json.RawMessage) { l.Memory = d.size(p, r, MinMemory, MaxMemory) },
		"output":  func(p string, r json.RawMessage) { l.Output = d.size(p, r, 1, MaxOutput) },
		"disk":    func(p string, r json.RawMessage) { l.Disk = d.size(p, r, 1, MaxDisk) },
		"pids": func(p string, r json.RawMessage) {
			if err := json.Unmarshal(r, &l.Pids); err != nil || l.Pids < 1 || l.Pids > MaxPids {
				d.fault(p, r, "it is not a number of processes", fmt.Sprintf("a whole number from 1 to %d", MaxPids))
			}
		},
		"cpus": func(p string, r json.RawMessage) {
			if err := json.Unmarshal(r, &l.CPUs); err != nil || l.CPUs < MinCPUs || l.CPUs > MaxCPUs {
				d.fault(p, r, "it is not a number of processors", fmt.Sprintf("a number from %g to %d, such as 1 or 0.5", MinCPUs, MaxCPUs))
			}
		},
	})
	if slices.Sort(wall); len(wall) > 1 {
		d.fault(wall[0], nil, "it means the same as "+wall[1], "give one of them")
	}
	return l
}

func (d *codeDecoder) duration(at string, raw json.RawMessage) Duration {
	var v Duration
	if err := v.UnmarshalJSON(raw); err != nil || v <= 0 || v > MaxWall {
		d.fault(at, raw, "it is not a time limit", `write "10s", "500ms" or a number of seconds, more than 0 and at most 24h`)
	}
	return v
}

func (d *codeDecoder) size(at string, raw json.RawMessage, least, most Size) Size {
	var v Size
	if err := v.UnmarshalJSON(raw); err != nil || v < least || v > most {
		d.fault(at, raw, "it is not a size within the range", fmt.Sprintf(`write "64MB", "64MiB" or a number of bytes, from %s to %s`, least, most))
	}
	return v
}
