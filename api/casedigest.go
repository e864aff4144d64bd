package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// CaseDigest has one letter for the verdict of each case, and the times of all cases together. It holds no output, so 1,000 cases (the
// maximum) need 1.2 KB. The last event of the evaluation carries it as the member "cases" of its data; lists carry it with digest=true.
type CaseDigest struct {
	Passed int    `json:"passed" doc:"Cases with the verdict ok"`
	Total  int    `json:"total" doc:"Number of cases"`
	Cells  string `json:"cells" doc:"One letter for each case, in their order: P passed, U passed and compared with nothing, W wrong_answer, T timeout, C cpu_timeout, M oom, O output_limit, X nonzero_exit, S signal, K killed, E checker_error, I infra_error, N skipped, ? any other"`
	// Names is a fingerprint of the case names: two evaluations with the same value have the same names.
	Names           string  `json:"names,omitempty" doc:"Start of a SHA-256 over the case names; absent if all are numbered"`
	WallMS          float64 `json:"wall_ms" doc:"Sum over all cases, in milliseconds"`
	CPUMS           float64 `json:"cpu_ms" doc:"Sum over all cases, in milliseconds"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes" doc:"Highest of any case"`
}

// Letters of CaseDigest.Cells that are not in caseLetters.
const (
	CasePassed     = 'P'
	CaseUncompared = 'U' // passed, and compared with nothing
	CaseSkipped    = 'N'
	CaseOther      = '?'
)

var caseLetters = map[string]byte{
	WrongAnswer: 'W', "timeout": 'T', "cpu_timeout": 'C', "oom": 'M', "output_limit": 'O', "nonzero_exit": 'X', "signal": 'S', "killed": 'K', CheckerError: 'E',
	"infra_error": 'I', Skipped: CaseSkipped,
}

// CaseLetter returns the letter of CaseDigest.Cells for a verdict.
func CaseLetter(verdict string, uncompared bool) byte {
	switch l, ok := caseLetters[verdict]; {
	case ok:
		return l
	case verdict != VerdictOK:
		return CaseOther
	case uncompared:
		return CaseUncompared
	}
	return CasePassed
}

// CaseNames computes CaseDigest.Names from the names of the cases.
func CaseNames(names []string) string {
	sum, numbered := sha256.New(), true
	for i, name := range names {
		numbered = numbered && name == strconv.Itoa(i+1)
		sum.Write([]byte(name + "\x00"))
	}
	if numbered {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// DigestCases sums up the cases in the output of an evaluation. It returns nil if the output has no cases or is not the output of code.
func DigestCases(output json.RawMessage) *CaseDigest {
	if !bytes.Contains(output, []byte(`"cases":`)) { // the output of a run without cases may have megabytes; do not decode it for nothing
		return nil
	}
	var run struct {
		WallMS          float64 `json:"wall_ms"`
		CPUMS           float64 `json:"cpu_ms"`
		PeakMemoryBytes int64   `json:"peak_memory_bytes"`
		Cases           []struct {
			CaseVerdict
			Uncompared bool `json:"uncompared"`
		} `json:"cases"`
	}
	if json.Unmarshal(output, &run) != nil || len(run.Cases) == 0 || len(run.Cases) > MaxCases {
		return nil
	}
	d := &CaseDigest{Total: len(run.Cases), WallMS: run.WallMS, CPUMS: run.CPUMS, PeakMemoryBytes: run.PeakMemoryBytes}
	cells := make([]byte, 0, len(run.Cases))
	names := make([]string, 0, len(run.Cases))
	for _, c := range run.Cases {
		if c.Verdict == VerdictOK {
			d.Passed++
		}
		cells, names = append(cells, CaseLetter(c.Verdict, c.Uncompared)), append(names, c.Name)
	}
	d.Cells, d.Names = string(cells), CaseNames(names)
	return d
}
