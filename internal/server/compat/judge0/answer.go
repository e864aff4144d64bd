package judge0

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/server/compat"
)

type status struct {
	ID          int    `json:"id"`
	Description string `json:"description"`
}

// The statuses that the code uses.
const (
	inQueue = iota + 1
	processing
	accepted
	wrongAnswer
	timeLimit
	compileError
	sigsegv
	sigxfsz
	sigfpe
	sigabrt
	nonzero
	otherSignal
	internalError
)

// statuses lists all statuses; the index is the id minus one.
var statuses = []status{
	{inQueue, "In Queue"}, {processing, "Processing"}, {accepted, "Accepted"}, {wrongAnswer, "Wrong Answer"}, {timeLimit, "Time Limit Exceeded"},
	{compileError, "Compilation Error"}, {sigsegv, "Runtime Error (SIGSEGV)"}, {sigxfsz, "Runtime Error (SIGXFSZ)"}, {sigfpe, "Runtime Error (SIGFPE)"},
	{sigabrt, "Runtime Error (SIGABRT)"}, {nonzero, "Runtime Error (NZEC)"}, {otherSignal, "Runtime Error (Other)"}, {internalError, "Internal Error"},
	{14, "Exec Format Error"},
}

var (
	defaultFields = []string{"token", "time", "memory", "stdout", "stderr", "compile_output", "message", "status"}
	allFields     = append(slices.Clone(defaultFields), "source_code", "language_id", "stdin", "expected_output", "status_id", "created_at", "finished_at",
		"number_of_runs", "cpu_time_limit", "cpu_extra_time", "wall_time_limit", "memory_limit", "stack_limit", "max_processes_and_or_threads",
		"enable_per_process_and_thread_time_limit", "enable_per_process_and_thread_memory_limit", "max_file_size", "exit_code", "exit_signal", "wall_time",
		"compiler_options", "command_line_arguments", "redirect_stderr_to_stdout", "callback_url", "additional_files", "enable_network", "language")
)

var errNotText = errors.New("some attributes for this submission cannot be converted to UTF-8, use base64_encoded=true query parameter")

// config is the answer of /config_info: Judge0's defaults, and the maxima of this wire.
var config = map[string]any{
	"maintenance_mode": false, "enable_wait_result": true, "enable_compiler_options": true, "allowed_languages_for_compile_options": []string{"C", "C++"},
	"enable_command_line_arguments": true, "enable_submission_delete": false, "enable_callbacks": true, "callbacks_max_tries": callbackTries, "callbacks_timeout": callbackTime.Seconds(),
	"enable_additional_files": true, "max_queue_size": math.MaxInt32, "cpu_time_limit": cpuTimeLimit, "max_cpu_time_limit": seconds, "cpu_extra_time": 1,
	"max_cpu_extra_time": maxExtraSeconds, "wall_time_limit": wallLimit, "max_wall_time_limit": seconds, "memory_limit": memoryLimit,
	"max_memory_limit": int64(api.MaxMemory >> 10), "stack_limit": stackLimit, "max_stack_limit": int64(api.MaxStack >> 10),
	"max_processes_and_or_threads": processes, "max_max_processes_and_or_threads": api.MaxPids,
	"enable_per_process_and_thread_time_limit": false, "allow_enable_per_process_and_thread_time_limit": false,
	"enable_per_process_and_thread_memory_limit": false, "allow_enable_per_process_and_thread_memory_limit": false,
	"max_file_size": fileSize, "max_max_file_size": maxFileSize, "number_of_runs": 1, "max_number_of_runs": maxRuns, "redirect_stderr_to_stdout": false,
	"max_extract_size": maxExtracted >> 10, "enable_batched_submissions": true, "max_submission_batch_size": batchLimit, "submission_cache_duration": 0,
	"use_docs_as_homepage": false, "allow_enable_network": false, "enable_network": false, "disable_implicit_base64_encoding": false,
}

// run is the result of a program in Judge0's terms. Nil texts and numbers become null.
type run struct {
	status                 int
	stdout, stderr         []byte
	compileOutput, message []byte
	exitCode, exitSignal   *int
	time, wall             *string // seconds
	memory                 *int64  // KiB
}

// serialized returns a submission with the given fields, and its outcome for metrics. The error is [errNotText], [compat.ErrLate] or a
// [*compat.Refused].
func (s *wire) serialized(ctx context.Context, x *api.Execution, encoded bool, fields []string) (map[string]any, string, error) {
	r, outcome := run{status: inQueue}, compat.Answered
	switch {
	case x.Status.Terminal():
		done, err := s.ended(ctx, x, slices.ContainsFunc(fields, isOutput))
		var lost *compat.Lost
		switch {
		case errors.As(err, &lost):
			r, outcome = run{status: internalError, message: []byte(lost.Error())}, compat.Broken
		case err != nil:
			return nil, compat.Late, err
		default:
			r = judged(done)
		}
	case x.Status == api.Provisioning || x.Status == api.Running:
		r.status = processing
	}
	var in stored
	if len(x.Input) > 0 {
		if err := json.Unmarshal(x.Input, &in); err != nil {
			return nil, compat.Broken, &compat.Lost{Execution: x.ID, Reason: "its input cannot be read: " + err.Error()}
		}
	}
	all := fieldsOf(x, &r, &in)
	out := map[string]any{}
	for _, name := range fields {
		v := all[name]
		if b, ok := v.([]byte); ok {
			switch {
			case b == nil:
				v = nil
			case encoded:
				v = wrapped(b)
			case !api.IsText(b):
				return nil, outcome, errNotText
			default:
				v = string(b)
			}
		}
		out[name] = v
	}
	return out, outcome, nil
}

// isOutput reports whether a field has output of the program or the compiler.
func isOutput(field string) bool {
	return field == "stdout" || field == "stderr" || field == "compile_output"
}

// ended returns the result of an execution. An execution that ended because it waited too long gives a [*compat.Lost]: that end is final,
// unlike a request whose time is up. Without output it does not read the log, which may have 64 MiB: clients poll the status until a whole
// batch has ended.
func (s *wire) ended(ctx context.Context, x *api.Execution, output bool) (*compat.Done, error) {
	if x.Error != nil && strings.HasSuffix(x.Error.Code, "_timeout") && x.Output == nil {
		return nil, &compat.Lost{Execution: x.ID, Reason: x.Error.Code + ": " + x.Error.Message}
	}
	if !output {
		return compat.Judged(x)
	}
	return s.Done(ctx, x)
}

// fieldsOf returns all fields of a submission. Fields of type []byte are texts.
func fieldsOf(x *api.Execution, r *run, in *stored) map[string]any {
	id, _ := strconv.ParseInt(x.Labels[languageLabel], 10, 64)
	stdin, expected, runs := in.Stdin, []byte(nil), 1
	if len(in.Cases) > 0 {
		stdin, runs = in.Cases[0].Stdin, len(in.Cases)
		if e := in.Cases[0].Expect; e != nil {
			expected = append([]byte{}, *e...)
		}
	}
	options := in.Flags
	if in.Std != "" {
		options = append([]string{"-std=" + in.Std}, options...)
	}
	l := in.Limits
	return map[string]any{
		"token": x.ID, "time": r.time, "wall_time": r.wall, "memory": r.memory, "stdout": r.stdout, "stderr": r.stderr, "compile_output": r.compileOutput, "message": r.message,
		"status": statuses[r.status-1], "status_id": r.status, "exit_code": r.exitCode, "exit_signal": r.exitSignal, "source_code": []byte(in.Source),
		"language_id": id, "language": named{id, title(id)}, "stdin": []byte(stdin), "expected_output": expected, "created_at": moment(x.CreatedAt),
		"finished_at": moment(x.FinishedAt), "number_of_runs": runs, "cpu_time_limit": decimal(time.Duration(l.CPU)), "wall_time_limit": decimal(time.Duration(l.Wall)),
		"memory_limit": int64(l.Memory >> 10), "stack_limit": int64(l.Stack >> 10), "max_processes_and_or_threads": l.Pids, "max_file_size": int64(l.Output >> 10),
		"compiler_options": line(options), "command_line_arguments": line(in.Args), "enable_per_process_and_thread_time_limit": false,
		"enable_per_process_and_thread_memory_limit": false, "redirect_stderr_to_stdout": false, "enable_network": false,
		// An evaluation does not store these.
		"cpu_extra_time": nil, "callback_url": nil, "additional_files": nil,
	}
}

// judged returns the result of a program in Judge0's terms.
func judged(d *compat.Done) run {
	compiler := filled(append(slices.Clip(d.CompileStdout), d.CompileStderr...))
	if d.Verdict == api.CompileError {
		if compiler == nil && d.Compile != nil {
			compiler = filled([]byte(d.Compile.Reason))
		}
		return run{status: compileError, compileOutput: compiler}
	}
	r := run{compileOutput: compiler, stdout: filled(d.Stdout), stderr: filled(d.Stderr), exitCode: d.ExitCode}
	verdict, signal, reason, cpu, wall, memory := d.Verdict, d.Signal, d.Reason, d.CPUMS, d.WallMS, d.PeakMemoryBytes
	if len(d.Cases) > 0 {
		// The last case that ran decides. Times and memory are the means of the cases that ran.
		ran := slices.IndexFunc(d.Cases, func(c api.CaseResult) bool { return c.Verdict == api.Skipped })
		if ran < 0 {
			ran = len(d.Cases)
		}
		c := &d.Cases[max(ran, 1)-1]
		verdict, signal, reason, r.exitCode = c.Verdict, c.Signal, c.Message, c.ExitCode
		r.stdout, r.stderr = filled(shown(c.Stdout, c.StdoutBase64)), filled(shown(c.Stderr, c.StderrBase64))
		cpu, wall, memory = 0, 0, 0
		for _, one := range d.Cases[:ran] {
			cpu, wall, memory = cpu+one.CPUMS/float64(ran), wall+one.WallMS/float64(ran), memory+one.PeakMemoryBytes/int64(ran)
		}
		if c.StdoutTruncated || c.StderrTruncated {
			reason = strings.TrimPrefix(fmt.Sprintf("%s; with expected_output or number_of_runs, only the first 4 KB of stdout and 1 KB of stderr are kept", reason), "; ")
		}
	}
	exit := func(signal int) { r.exitSignal = &signal }
	switch verdict {
	case "ok":
		r.status = accepted
	case api.WrongAnswer:
		r.status = wrongAnswer
	case "timeout", "cpu_timeout":
		r.status = timeLimit
	case "signal":
		r.status = otherSignal
		switch signal {
		case "SIGSEGV":
			r.status = sigsegv
		case "SIGXFSZ":
			r.status = sigxfsz
		case "SIGFPE":
			r.status = sigfpe
		case "SIGABRT":
			r.status = sigabrt
		}
		exit(compat.Signal(signal))
	case "oom":
		r.status = otherSignal
		exit(compat.Signal("SIGKILL"))
	case "output_limit":
		r.status = sigxfsz
		exit(compat.Signal("SIGXFSZ"))
	case "nonzero_exit", api.SyntaxError:
		r.status = nonzero
	default:
		r.status = internalError
	}
	r.message = filled([]byte(reason))
	r.time, r.wall = decimal(time.Duration(cpu*float64(time.Millisecond))), decimal(time.Duration(wall*float64(time.Millisecond)))
	memory >>= 10
	r.memory = &memory
	return r
}

// filled returns the text, or nil (null in JSON) if it is empty.
func filled(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

func shown(text string, raw []byte) []byte {
	if raw != nil {
		return raw
	}
	return []byte(text)
}

// decimal returns a time in seconds as a text.
func decimal(d time.Duration) *string {
	s := strconv.FormatFloat(d.Seconds(), 'f', 3, 64)
	return &s
}

// moment returns a time as a text, or nil (null in JSON) if it is zero.
func moment(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format("2006-01-02T15:04:05.000Z")
	return &s
}

// wrapped returns base64 in lines of 60 characters, each with a line end.
func wrapped(b []byte) string {
	const width = 60
	var out strings.Builder
	for s := base64.StdEncoding.EncodeToString(b); s != ""; {
		n := min(width, len(s))
		out.WriteString(s[:n] + "\n")
		s = s[n:]
	}
	return out.String()
}
