package payload

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// standards match the values of -std for C and C++ compilers, by language.
var standards = map[string]*regexp.Regexp{
	"c":   regexp.MustCompile(`^(c|gnu)(89|90|99|9x|11|1x|17|18|23|2x)$`),
	"c++": regexp.MustCompile(`^(c|gnu)\+\+(98|03|11|0x|14|1y|17|1z|20|2a|23|2b|26|2c)$`),
}

// compilerFlag matches the flags that a request may pass to a C or C++ compiler. They change how a program is compiled, not the kind of
// output: none of them names an output, stops before linking, or loads code into the compiler.
var compilerFlag = regexp.MustCompile(`^(-O[0-3sgz]?|-Ofast|-g[0-3]?|-w|-W(no-)?[a-z0-9+-]+(=[a-z0-9]+)?|-pedantic(-errors)?` +
	`|-D[A-Za-z_]\w*(=[^\x00]*)?|-U[A-Za-z_]\w*|-I[\w.][\w./+-]*|-l[\w+-]+|-m[a-z0-9.+-]+(=[\w.+-]+)?|-pthread|-static(-lib(gcc|stdc\+\+))?|-pie|-no-pie` +
	`|-f(no-)?(sanitize(-recover)?(=[a-z,-]+)?|omit-frame-pointer|wrapv|trapv|strict-aliasing|strict-overflow|fast-math|unroll-loops|unroll-all-loops|inline|inline-functions|exceptions|rtti|openmp` +
	`|constexpr-(depth|ops-limit|loop-limit)=\d+|template-depth=\d+|max-errors=\d+|concepts|coroutines|modules-ts|permissive|char8_t|(un)?signed-char|short-enums|stack-protector(-all|-strong)?` +
	`|tree-vectorize|lto|gnu89-inline|pic|PIC|pie|PIE|builtin|ext-numeric-literals|math-errno|finite-math-only|associative-math|reciprocal-math|signed-zeros|rounding-math|split-stack|common|sized-deallocation|aligned-new|threadsafe-statics))$`)

// mostFlags is how many flags one request may pass to a compiler.
const mostFlags = 50

// checkCompiler checks the standard and the flags of a request. The worker checks those of languages that profiles add.
func checkCompiler(r *strictjson.Reader, c *api.Code) {
	if c.Std == "" && len(c.Flags) == 0 {
		return
	}
	known, isC := standards[c.Language]
	if _, builtIn := language.BuiltIn().Resolve(c.Language); builtIn && !isC {
		at := "flags"
		if c.Std != "" {
			at = "std"
		}
		r.ProblemAt(at, "", fmt.Sprintf("%s takes neither a standard nor flags: only c and c++ do", c.Language), "leave it out, or give the language a profile of its own")
		return
	}
	if c.Std != "" && !(isC && known.MatchString(c.Std) || !isC && (standards["c"].MatchString(c.Std) || standards["c++"].MatchString(c.Std))) {
		such := cmp.Or(map[string]string{"c": `"c11" or "gnu17"`}[c.Language], `"c++17" or "gnu++20"`)
		r.ProblemAt("std", strconv.Quote(c.Std), "it is not a standard of "+c.Language, "write one such as "+such)
	}
	if len(c.Flags) > mostFlags {
		r.ProblemAt("flags", "", fmt.Sprintf("it has %d flags", len(c.Flags)), fmt.Sprintf("at most %d", mostFlags))
		return
	}
	for i, flag := range c.Flags {
		at := fmt.Sprintf("flags[%d]", i)
		switch {
		case strings.HasPrefix(flag, "-std="):
			r.ProblemAt(at, strconv.Quote(flag), "the standard has a field of its own", fmt.Sprintf(`write "std": %q`, strings.TrimPrefix(flag, "-std=")))
		case !compilerFlag.MatchString(flag):
			r.ProblemAt(at, strconv.Quote(flag), "it is not a flag that a request may give to a compiler",
				"the flags of optimization, warnings, macros, sanitizers and code generation are allowed, one in each text, such as -O3, -Wall, -DN=100 or -fsanitize=address; a profile may have any")
		}
	}
}
