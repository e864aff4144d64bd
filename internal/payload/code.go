package payload

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// Code reads the payload of kind "code". The error is a *strictjson.Error that lists all errors.
func Code(payload []byte) (api.Code, error) { return decode[api.Code](payload) }

// Limits reads limits of code on their own.
func Limits(raw []byte) (api.CodeLimits, error) { return decode[api.CodeLimits](raw) }

// LanguagesUsed yields the languages that the code needs, by their place in it.
func LanguagesUsed(c *api.Code) iter.Seq2[string, string] {
	return func(yield func(at, language string) bool) {
		if at, judge := Judge(c); yield("language", c.Language) && judge != nil {
			yield(at+".language", judge.Language)
		}
	}
}

// wholeCode makes the checks that concern several fields of code.
func wholeCode(r *strictjson.Reader, c *api.Code) {
	if c.Interactive && c.RerunNearLimit > 0 {
		r.ProblemAt("rerun_near_limit", "", "what an interactive program was given cannot be given again", "leave it out, or give stdin and leave interactive out")
	}
	if c.Interactive && !c.Stdin.IsZero() {
		r.ProblemAt("stdin", "", "an interactive program reads what is sent to it while it runs", "leave stdin out and send it first, or leave interactive out")
	}
	checkCompiler(r, c)
	checkFits(r, c.Limits.Disk, len(c.Source), c.Files)
	if len(c.Cases) == 0 {
		if c.Compare != nil {
			r.ProblemAt("compare", "", "there are no cases to compare", "add cases, or leave it out")
		}
		if c.StopOnFailure {
			r.ProblemAt("stop_on_failure", "", "there are no cases to stop", "add cases, or leave it out")
		}
		return
	}
	checkCaseOutput(r, "", c.Limits)
	checkCalls(r, c)
	if !c.Stdin.IsZero() {
		r.ProblemAt("stdin", "", "each case has its own", "move it into the cases")
	}
	if c.Interactive {
		r.ProblemAt("interactive", "", "each case has its own input", "leave it out")
	}
	if len(c.Collect) > 0 {
		r.ProblemAt("collect", "", "nothing is collected from cases", "leave it out; what is written to stdout is compared")
	}
}

// blobName matches the names of contents: a SHA-256, or the name in a result.
var blobName = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|(files|logs)/ex_[0-9a-z]{26}/.+)$`)

// blobNames reports contents with invalid names of blobs.
func blobNames(c *api.Code) (list problem.List) {
	check := func(at, name string) {
		if name != "" && !blobName.MatchString(name) {
			list = append(list, problem.Problem{Path: at + ".blob", Value: problem.Clip(name, 60), Message: "it is not the name of a blob",
				Fix: "give sha256: and the 64 hexadecimal digits of an upload, as pawl upload prints it, or the blob of a file of a result"})
		}
	}
	all := func(at string, files map[string]api.Content) {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			check(problem.Join(at, name), files[name].Blob)
		}
	}
	all("files", c.Files)
	check("stdin", c.Stdin.Blob)
	for i, one := range c.Cases {
		at := fmt.Sprintf("cases[%d]", i)
		check(at+".stdin", one.Stdin.Blob)
		if one.Expect != nil {
			check(at+".expect", one.Expect.Blob)
		}
	}
	if at, judge := Judge(c); judge != nil {
		all(at+".files", judge.Files)
	}
	return list
}

// Container reads the payload of kind "container". The error is a *strictjson.Error that lists all errors.
func Container(payload []byte) (api.Container, error) { return decode[api.Container](payload) }

// OutputFile is the file that $PAWL_OUTPUT names, relative to the working directory.
const OutputFile = ".pawl-output.json"

func wholeContainer(r *strictjson.Reader, c *api.Container) {
	checkPlaced(r, c.Files, OutputFile)
	checkFits(r, c.Limits.Disk, 0, c.Files)
	if strings.TrimSpace(c.Image) != c.Image || len(c.Image) > 512 || c.Image == "" {
		r.ProblemAt("image", c.Image, "it is not the name of an image", `name one such as "alpine:3.20"`)
	}
	if w := c.WorkDir; w != "" && (w[0] != '/' || w == "/" || !cleanPath(w[1:])) {
		r.ProblemAt("workdir", w, "it is not a directory of the container", `write an absolute path such as "/app"`)
	}
}

// checkFits refuses a disk limit below the size of the submission's files. The worker checks the size of blobs.
func checkFits(r *strictjson.Reader, disk api.Size, source int, files map[string]api.Content) {
	total := source
	for _, f := range files {
		total += len(f.Bytes)
	}
	if disk > 0 && api.Size(total) > disk {
		r.ProblemAt("limits.disk", "", fmt.Sprintf("it is %d bytes, and the files that are sent have %d", disk, total),
			fmt.Sprintf("raise it to what they and the program's own files need, more than %d, or leave it out", total))
	}
}
