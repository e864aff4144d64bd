package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

// Each verdict has its own letter. The digest of 1,000 cases has at most 1,200 bytes, since it does not contain their output.
func TestDigestCases(t *testing.T) {
	t.Parallel()
	all := CodeResult{WallMS: 1234567.125, CPUMS: 1234567.125, PeakMemoryBytes: 1 << 40}
	for i := range MaxCases {
		verdict := []string{VerdictOK, WrongAnswer, Skipped, "of a later version"}[i%4]
		all.Cases = append(all.Cases, CaseResult{Name: strings.Repeat("n", 190) + fmt.Sprint(i), Verdict: verdict, Stdout: `"cases":[`, Uncompared: i == 4})
	}
	d := DigestCases(encoded(t, all))
	if d == nil || d.Passed != MaxCases/4 || d.Total != MaxCases || !strings.HasPrefix(d.Cells, "PWN?UWN?PWN?") || len(d.Cells) != MaxCases || len(d.Names) != 16 || d.WallMS != all.WallMS || d.PeakMemoryBytes != all.PeakMemoryBytes {
		t.Errorf("%+v", d)
	}
	if size := len(encoded(t, d)); size > 1200 {
		t.Errorf("the digest of %d cases has %d bytes, want 1,200 at most", MaxCases, size)
	}
	for name, output := range map[string]string{"no cases": `{"verdict":"ok","stdout":"\"cases\":["}`, "none": `{"cases":[]}`, "others": `{"cases":[1]}`, "no object": `"cases"`, "nothing": ``} {
		if d := DigestCases(json.RawMessage(output)); d != nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestCaseNames(t *testing.T) {
	t.Parallel()
	if got := CaseNames([]string{"1", "2", "3"}); got != "" {
		t.Errorf("numbers are called %q", got)
	}
	seen := map[string]string{}
	for _, names := range [][]string{{"2", "1"}, {"a", "b"}, {"ab"}, {"a"}, {"b", "a"}} {
		key := CaseNames(names)
		if other, taken := seen[key]; taken || len(key) != 16 {
			t.Errorf("%v is called %q, as is %s", names, key, other)
		}
		seen[key] = fmt.Sprint(names)
	}
}

func TestCaseLetters(t *testing.T) {
	t.Parallel()
	seen := map[byte]string{CasePassed: VerdictOK, CaseUncompared: VerdictOK}
	for _, v := range []string{WrongAnswer, CheckerError, Skipped, string(runtime.InfraError), string(runtime.Killed), string(runtime.Timeout), string(runtime.CPUTimeout), string(runtime.OutputLimit), string(runtime.OOM),
		string(runtime.Signal), string(runtime.NonzeroExit)} {
		l := CaseLetter(v, false)
		if other, taken := seen[l]; taken || l == CaseOther {
			t.Errorf("%s has the letter %c, as has %s", v, l, other)
		}
		seen[l] = v
	}
}

func encoded(t *testing.T, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
