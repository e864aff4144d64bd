package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// resultMost bounds, in bytes, the value that a program returns through $PAWL_OUTPUT.
const resultMost = 1 << 20

// ResultDepth bounds the nesting of the JSON value in a handler's output.
const ResultDepth = 100

// failure is the error of an attempt whose program ended with a nonzero exit code, by a signal or at a limit, was stopped,
// or left an invalid result.
func failure(r *api.CodeResult, output json.RawMessage) *Error {
	e := &Error{As: flow.Failed, Code: r.Verdict, Message: summary(r), Output: output}
	if r.Verdict == string(runtime.OK) {
		e.Code, e.Message = flow.CodeInvalidOutput, r.ResultError
		return e
	}
	switch runtime.Verdict(r.Verdict) {
	case runtime.Timeout, runtime.CPUTimeout, flow.CodeIdle:
		e.As = flow.TimedOut
	case runtime.Killed:
		e.As = flow.Cancelled
	}
	e.Details = detailsOf(r)
	return e
}

// detailsOf are the parts of a result that retry policies and conditions use; nil if there are none.
func detailsOf(r *api.CodeResult) json.RawMessage {
	details, err := json.Marshal(struct {
		ExitCode *int   `json:"exit_code,omitempty"`
		Signal   string `json:"signal,omitempty"`
		Reason   string `json:"reason,omitempty"`
	}{r.ExitCode, r.Signal, r.Cause})
	if err != nil || string(details) == "{}" {
		return nil
	}
	return details
}

// summary describes in one line how a program ended.
func summary(r *api.CodeResult) string {
	switch {
	case r.Reason != "":
		return r.Reason + alsoHit(r.LimitsHit)
	case r.Signal != "":
		return "ended by " + r.Signal + alsoHit(r.LimitsHit)
	}
	return r.Verdict
}

func exitCode(code int) string { return fmt.Sprintf("exit code %d", code) }

// alsoHit names a limit that was reached and that the verdict does not name. A program that cannot start another process fails
// with an error of its own, or waits for ever.
func alsoHit(limits []string) string {
	if !slices.Contains(limits, runtime.HitPids) {
		return ""
	}
	return " (it was refused a process or thread: raise limits.pids)"
}

// unmatched says which of the patterns no file fits that was taken, but for those of which something else has been said.
func unmatched(patterns []string, files []runtime.Collected, refused []string) (all []string) {
	for _, p := range patterns {
		if slices.ContainsFunc(refused, func(why string) bool { return strings.HasPrefix(why, p+": ") }) {
			continue
		}
		fits := func(f runtime.Collected) bool {
			for name := f.Path; name != "."; name = path.Dir(name) {
				if ok, _ := path.Match(path.Clean(p), name); ok || path.Clean(p) == "." {
					return true
				}
			}
			return false
		}
		if !slices.ContainsFunc(files, fits) {
			all = append(all, p+": no file that the run left was taken for it")
		}
	}
	return all
}

// collect adds the files that the program left to the result, small ones inline, others through the blob store. It fails if
// the blob store stays unreachable: the attempt can be repeated, but a lost file cannot be restored.
func (e *evaluation) collect(ctx context.Context, r *api.CodeResult, files []runtime.Collected) error {
	const into, directory = ": write the value into the file itself", "$PAWL_OUTPUT is a directory and not a regular file"
	for _, why := range r.Refused {
		if strings.HasPrefix(why, payload.OutputFile+"/") {
			r.ResultError = directory + into
		} else if why, ok := strings.CutPrefix(why, payload.OutputFile+": "); ok {
			r.ResultError = "$PAWL_OUTPUT " + why + into
		}
	}
	room := int64(blob.InlineLimit)
	for _, f := range files {
		if strings.HasPrefix(f.Path, payload.OutputFile+"/") {
			r.ResultError = directory + into
			continue
		}
		if f.Path == payload.OutputFile {
			r.Result, r.ResultError = readResult(f)
			continue
		}
		out := api.ResultFile{Path: f.Path, Size: f.Size, Mode: fmt.Sprintf("%04o", f.Mode.Perm())}
		if !utf8.ValidString(f.Path) || strings.ContainsRune(f.Path, 0) {
			r.Refused = append(r.Refused, fmt.Sprintf("%q: its name is not text", f.Path))
			continue
		}
		if f.Size <= room {
			b, err := os.ReadFile(f.Host)
			if err != nil {
				r.Refused = append(r.Refused, fmt.Sprintf("%s: %v", f.Path, err))
				continue
			}
			room -= int64(len(b))
			if api.IsText(b) {
				s := string(b)
				out.Content = &s
			} else {
				out.Base64 = b
			}
		} else {
			name, err := e.keep(ctx, f, len(r.Files))
			if s, stopped := Stopped(ctx); err != nil && stopped && r.Verdict == string(runtime.OK) {
				return s // otherwise the attempt would complete without its file
			}
			if errors.Is(err, blob.ErrUnavailable) {
				return fmt.Errorf("keep %s: %w", f.Path, err)
			}
			if err != nil {
				r.Refused = append(r.Refused, fmt.Sprintf("%s: %v", f.Path, err))
				continue
			}
			out.Blob = name
		}
		r.Files = append(r.Files, out)
	}
	return nil
}

// byteOrderMark is the first character of the output of some Windows programs.
const byteOrderMark = "\uFEFF"

// readResult reads the value that a program wrote to the file of $PAWL_OUTPUT.
func readResult(f runtime.Collected) (json.RawMessage, string) {
	if f.Size > resultMost {
		return nil, fmt.Sprintf("$PAWL_OUTPUT holds %d bytes: at most %s; collect the file instead", f.Size, api.Size(resultMost))
	}
	b, err := os.ReadFile(f.Host)
	if err != nil {
		return nil, err.Error()
	}
	b = bytes.TrimPrefix(b, []byte(byteOrderMark))
	if strictjson.DeeperThan(b, ResultDepth) >= 0 {
		return nil, fmt.Sprintf("$PAWL_OUTPUT is nested deeper than %d levels", ResultDepth)
	}
	if err := strictjson.Value(b); err != nil {
		return nil, fmt.Sprintf("$PAWL_OUTPUT does not hold one JSON value: %v; it begins with %.60q", err, b)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		return nil, fmt.Sprintf("$PAWL_OUTPUT does not hold one JSON value: %v", err)
	}
	return out.Bytes(), ""
}

// inline makes a result's fields from b, the first bytes of a stream of all bytes. If b is not valid text, raw is b,
// and text has U+FFFD for the invalid bytes, so that it does not look empty.
func inline(b []byte, all int64) (text string, raw []byte, truncated bool) {
	truncated = int64(len(b)) < all
	if truncated {
		b = wholeRunes(b)
	}
	if api.IsText(b) {
		return string(b), nil, truncated
	}
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD"), b, truncated
}

// wholeRunes removes a character at the end of b that was cut.
func wholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// result converts a runtime's result into the API's.
func (e *evaluation) result(ctx context.Context, res runtime.Result, limits runtime.Limits, stdout, stderr *head) *api.CodeResult {
	r := &api.CodeResult{
		Verdict: string(res.Verdict), Signal: res.Signal, Reason: e.lang.ended(res, stderr.end()), Cause: string(res.Cause), Refused: res.Refused,
		WallMS: milliseconds(res.Wall), CPUMS: milliseconds(res.CPU), StarvedMS: milliseconds(res.Starved), ChildOOM: res.ChildOOM,
		PeakMemoryBytes: res.PeakMemory, HeldMemoryBytes: res.PeakMemory - res.PageCache, PageCacheBytes: res.PageCache,
		LimitsHit: res.LimitsHit, Limits: inForce(limits), PinnedCPUs: res.PinnedCPUs, SharedCPUs: res.SharedCPUs,
		Enforcement: res.Enforcement, Runtime: e.runtime.Name(), Tool: e.tools.name(), ToolVersion: e.tools.version,
	}
	if s, stopped := Stopped(ctx); stopped && res.Verdict == runtime.Killed && s.Code == flow.CodeIdle {
		r.Verdict = flow.CodeIdle
	} else if stopped && res.Verdict == runtime.Killed && s.As == flow.TimedOut {
		r.Verdict = string(runtime.Timeout) // the attempt's deadline is reported as a limit on wall-clock time
	}
	if res.Verdict == runtime.OK || res.Verdict == runtime.NonzeroExit {
		r.ExitCode = &res.ExitCode
	}
	r.StdoutBytes = res.StdoutBytes
	r.Stdout, r.StdoutBase64, r.StdoutTruncated = inline(stdout.kept, res.StdoutBytes)
	r.StderrBytes = res.StderrBytes
	r.Stderr, r.StderrBase64, r.StderrTruncated = inline(stderr.kept, res.StderrBytes)
	return r
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
