package task_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
)

// Recursion can be as deep as limits.stack allows, also in languages that bound their stacks themselves. A program that has exhausted its
// stack keeps its verdict, and its message says what raises the limit.
func TestStack(t *testing.T) {
	t.Parallel()
	sources := map[string]string{
		"c": "int f(int n, volatile char *up) { volatile char here[32]; here[0] = *up; return n ? f(n - 1, here) + here[0] : 0; }\n" +
			"int main(void) { char c = 0; return f(%d, &c); }",
		"rust": "#[inline(never)] fn f(n: u64) -> u64 { let a = std::hint::black_box([n; 4]); if n == 0 { 0 } else { f(n - 1) + a[0] %% 2 } }\n" +
			"fn main() { assert!(f(%d) > 0) }",
		"java":       "class Main { static int f(int n) { return n == 0 ? 0 : 1 + f(n - 1); } public static void main(String[] a) { f(%d); } }",
		"javascript": "const f = n => n ? 1 + f(n - 1) : 0\nf(%d)",
	}
	for _, rt := range runtimes(t) {
		for language, source := range sources {
			t.Run(language+"/"+rt.Name(), func(t *testing.T) {
				need(t, language)
				for _, c := range []struct {
					depth int
					stack api.Size
					hint  string // "": it ends well
				}{
					{50_000, 0, ""},
					{500_000, 200e6, ""},
					{500_000, 2e6, " was used up: limits.stack raises it"},
				} {
					r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: language, Source: fmt.Sprintf(source, c.depth),
						Limits: api.CodeLimits{Memory: 512e6, Stack: c.stack}}))
					if c.hint == "" && r.err != nil || c.hint != "" && (r.err == nil || !strings.HasSuffix(r.err.Message, c.hint) ||
						r.err.Code != "signal" && r.err.Code != "nonzero_exit") || r.result.Limits.Stack != c.stack {
						t.Errorf("%d calls on a stack of %s: %v, %+v", c.depth, c.stack, r.err, r.result)
					}
				}
			})
		}
	}
}
