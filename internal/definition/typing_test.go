package definition

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const typedInput = `name: w
input:
  type: object
  properties:
    n: {type: integer}
    x: {type: number}
    s: {type: string}
    b: {type: boolean}
    level: {enum: [warn, page]}
    list: {type: array, items: {type: integer}}
    hosts: {type: array, items: {type: object, properties: {name: {type: string}, disks: {type: integer}}}}
    o: {type: object, properties: {deep: {type: object, properties: {n: {type: integer}}}}}
    either: {type: [integer, string]}
    any: {}
tasks:
  a: {action: noop}
  b:
    needs: a
    foreach: ${{ input.hosts }}
    action: noop
    with: {v: "${{ EXPRESSION }}"}
  c: {needs: a, action: noop, if: 'dyn(EXPRESSION) == null'}
`

// Known types of inputs, items and results are checked before anything runs, and errors name the types and the fix.
func TestTypesOfOperators(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`input.n * 1.5`:                             "* does not take an integer (input.n) and a number with a fraction (1.5) (write double(input.n) * 1.5)",
		`input.n + 'a'`:                             `+ does not take an integer (input.n) and a string ("a") (write string(input.n) + "a")`,
		`'a' + input.n`:                             `(write "a" + string(input.n))`,
		`input.s + 1`:                               "(write input.s + string(1))",
		`input.s - 1`:                               "- does not take a string (input.s) and an integer (1) (write int(input.s) - 1)",
		`input.s * 2.5`:                             "(write double(input.s) * 2.5)",
		`input.o.deep.n / 0.5`:                      "an integer (input.o.deep.n)",
		`input["n"] * 1.5`:                          "an integer (input.n)",
		`2 * input.b`:                               "* does not take a boolean (input.b)",
		`input.b + input.any`:                       "+ does not take a boolean (input.b)",
		`input.x % 2.5`:                             "% does not take a value of any type and a number with a fraction",
		`input.x + 's'`:                             "a number (input.x)",
		`input.list + 1`:                            "a list (input.list)",
		`input.list[0] * 1.5`:                       "an integer",
		`input.list.map(i, i * 1.5)`:                "an integer (i)",
		`input.hosts.filter(h, h.disks > 'x')`:      `> does not compare an integer (h.disks) with a string ("x")`,
		`input.hosts.exists(h, h.name == 3)`:        "a string (h.name) is never equal to an integer (3)",
		`item.disks + 'x'`:                          "an integer (item.disks)",
		`item.name * 2`:                             "a string (item.name)",
		`index * 1.5`:                               "* does not take an integer and a number with a fraction (double(x) makes the integer",
		`index.startsWith('a')`:                     "startsWith() does not take an integer and a string (int(x)",
		`[1] + {'a': [1, 2]}`:                       "+ does not take a list and an object (take an element",
		`-string(input.n)`:                          "- does not take a string (convert",
		`input.n < 'x'`:                             "< does not compare an integer",
		`input.n == '5'`:                            `an integer (input.n) is never equal to a string ("5")`,
		`input.s != 5`:                              "is never equal",
		`input.level == 'pagee'`:                    `input.level is never "pagee" (did you mean "page"?)`,
		`input.level in ['warn', 'paged']`:          `input.level is never "paged"`,
		`'x' in input.list`:                         "is never equal to",
		`input.n ? 1 : 2`:                           "an integer (input.n) is not true or false",
		`input.s && input.b`:                        "a string (input.s) is not true or false",
		`!input.n`:                                  "not true or false",
		`input.n.startsWith('a')`:                   "an integer (input.n) has no startsWith(), which is of strings (write string(input.n).startsWith(…))",
		`size(input.n)`:                             "has no size",
		`input.n.parts + 1`:                         `an integer (input.n) has no field "parts"`,
		`default(input.n, 1) * 1.5`:                 "an integer (default(input.n, 1))",
		`(input.b ? input.n : 3) * 0.5`:             "an integer",
		`cel.bind(v, input.n, v * 1.5)`:             "an integer (v)",
		`tasks.a.status == 'success'`:               `tasks.a.status is never "success" (write "completed")`,
		`"succeeded" == tasks.a.status`:             `(write "completed")`,
		`tasks.a.status != 'failure'`:               `(write "failed")`,
		`tasks["a"].status == 'canceled'`:           `(write "cancelled")`,
		`tasks.a.status in ['completed', 'skiped']`: `(did you mean "skipped"?)`,
		`tasks.a.status == 'running'`:               "it is one of completed, failed, skipped, cancelled, timed_out",
		`tasks.a.status == true`:                    "is never equal to a boolean",
		`tasks.a.error.code + 1`:                    "a string (tasks.a.error.code)",
	} {
		for _, line := range []string{"with:", "if:"} {
			if strings.HasPrefix(expression, "i") && strings.Contains(expression, "item") && line == "if:" || strings.HasPrefix(expression, "index") && line == "if:" {
				continue
			}
			_, err := Parse("w.yaml", []byte(typedWith(expression, line)))
			var ps Problems
			if !errors.As(err, &ps) || !slices.ContainsFunc(ps, func(p Problem) bool { return strings.Contains(p.String(), want) && p.Line > 15 }) {
				t.Errorf("%s %s\ngives %v\nwant %s", line, expression, err, want)
			}
		}
	}
	for _, expression := range []string{
		`input.n * 2`, `double(input.n) * 1.5`, `string(input.n) + 'a'`, `input.x * 1.5`, `input.x * 2`, `input.n + input.x`, `input.n < 1.5`, `input.x == 1`, `input.n == 1.0`,
		`input.either + 1`, `input.either == 'a'`, `input.any * 1.5`, `input.undeclared + 1`, `input.n == null`, `input.s == null`, `input.list + [1]`, `input.level == 'page'`,
		`input.list.map(i, i * 2)`, `input.list.map(n, string(n) + 'a')`, `input.hosts.map(input, input.name + 'x')`, `default(input.n, 0.5) * 1.5`, `input.s + 'a' + string(1)`,
		`tasks.a.status == 'completed'`, `tasks.a.status in ['failed', 'timed_out']`, `tasks.a.error.code == 'timeout'`, `tasks.a.output * 1.5`, `tasks.a.output.status == 'success'`,
		`input.s in ['a', 'b']`, `input.n in [1, 2.0]`, `'n' in input`, `has(input.n) ? input.n * 2 : 0`, `input.b && input.n > 3`, `size(input.s) * 2`, `input.s.size() + input.n`,
		`input.o.deep.n + 1`, `input.s < 'b'`, `-input.n`, `input.list.exists(i, i == 3)`, `input.s.split(',').map(p, p + '!')`, `json(input.n) + 'a'`, `int(input.s) % 2`,
	} {
		if _, err := Parse("w.yaml", []byte(typedWith(expression, "with:"))); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
}

// typedWith puts an expression into one place of the document.
func typedWith(expression, line string) string {
	var out []string
	for l := range strings.SplitSeq(typedInput, "\n") {
		if strings.Contains(l, "EXPRESSION") {
			if !strings.Contains(l, line) {
				l = strings.ReplaceAll(strings.ReplaceAll(l, "dyn(EXPRESSION) == null", "true"), "${{ EXPRESSION }}", "")
			}
			if line == "with:" {
				l = strings.ReplaceAll(l, `"${{ EXPRESSION }}"`, "'${{ "+strings.ReplaceAll(expression, "'", "''")+" }}'")
			} else {
				l = strings.ReplaceAll(l, "EXPRESSION", "("+strings.ReplaceAll(expression, "'", "''")+")")
			}
		}
		out = append(out, l)
	}
	return strings.Join(out, "\n")
}

// A condition and a foreach that are a plain path are checked as well.
func TestTypesOfPaths(t *testing.T) {
	t.Parallel()
	const head = "name: w\ninput: {type: object, properties: {n: {type: integer}, day: {type: string}, days: {type: array}, go: {type: boolean}, " +
		"one: {type: object, properties: {size: {}}, additionalProperties: false}}}\ntasks:\n"
	for src, want := range map[string]string{
		"  a: {action: noop, if: input.n}\n":                                     "w.yaml:4:25: tasks.a.if: the condition is an integer, not true or false",
		"  a: {action: noop, foreach: '${{ input.day }}'}\n":                     "input.day is a string, not a list",
		"  a: {action: noop, if: input.go}\n":                                    "",
		"  a: {action: noop, with: {v: '${{ input.n.parts }}'}}\n":               `an integer (input.n) has no field "parts"`,
		"  a: {action: noop, with: {v: '${{ input.one.siez }}'}}\n":              `w.yaml:4:36: tasks.a.with.v: an object (input.one) has no field "siez" (did you mean "size"?)`,
		"  a: {action: noop, with: {v: '${{ input.one.x + 1 }}'}}\n":             `an object (input.one) has no field "x" (it has size)`,
		"  a: {action: noop, with: {v: '${{ input.one.size.x }}'}}\n":            "",
		"  a: {action: noop, with: {v: '${{ has(input.one.x) }}'}}\n":            "",
		"  a: {action: noop, foreach: '${{ input.days }}'}\n":                    "",
		"  a: {action: noop, foreach: '${{ input.other }}'}\n":                   "",
		"  a: {action: noop, foreach: [1, 2], with: {v: '${{ item * 1.5 }}'}}\n": "an integer (item)",
		"  a: {action: noop, foreach: [1, x], with: {v: '${{ item * 1.5 }}'}}\n": "",
	} {
		_, err := Parse("w.yaml", []byte(head+src))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s gives %v, want %q", src, err, want)
		}
	}
}

// A call that fails for every input is found before anything runs; a call that may not be evaluated is accepted.
func TestCallsThatAlwaysFail(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`input.s.matches('(')`:                   "fails always: matches: error parsing regexp: missing closing )",
		`input.s.matches('a(?=b)')`:              "invalid or unsupported Perl syntax",
		`'%z'.format([1])`:                       "fails always: format: %z: the verbs are",
		`'%s %s'.format([1])`:                    "there are more verbs than the 1 values",
		`'%d'.format(['a'])`:                     "fails always",
		`parse_json('{')`:                        "fails always: parse_json",
		`base64.decode('!!')`:                    "illegal base64 data",
		`lists.range(-1)`:                        "lists.range: -1 is not from 0 to",
		`9223372036854775807 + 1`:                "integer overflow",
		`1u - 2u`:                                "overflow",
		`input.n / 0`:                            "input.n / 0 divides by 0",
		`input.n % 0`:                            "input.n % 0 divides by 0",
		`'ab'.substring(5)`:                      "substring: from 5 to 2",
		`string(input.list)`:                     "string() does not take a list (input.list) (write json(input.list))",
		`urlencode(input.n)`:                     "urlencode() does not take an integer (input.n) (write urlencode(string(input.n)))",
		`urlencode(input.o)`:                     "(write urlencode(json(input.o)))",
		`input.list.join(',')`:                   "an element of input.list is an integer (write input.list.map(v, string(v)).join(…))",
		`'%s'.format(input.s)`:                   "format() takes a list, and not a string (input.s) (write ….format([input.s]))",
		`input.s[0]`:                             "a string (input.s) has no elements",
		`input.n[0] == 1`:                        "has no elements",
		`input.any.matches('a+')`:                "",
		`input.b ? parse_json('{') : 1`:          "",
		`input.b || 1 / 0 == 1`:                  "",
		`default(parse_json('{'), 1)`:            "",
		`input.list.map(i, i / 0)`:               "",
		`input.list.all(i, 'a'.matches('('))`:    "",
		`input.n / (input.n - 3)`:                "",
		`lists.range(100000).size()`:             "",
		`'%s'.format([input.s])`:                 "",
		`input.any[0]`:                           "",
		`input.o['deep']`:                        "",
		`['a', 'b'].join(',')`:                   "",
		`input.list.map(v, string(v)).join(',')`: "",
	} {
		_, err := Parse("w.yaml", []byte(typedWith(expression, "with:")))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s gives %v, want %q", expression, err, want)
		}
	}
}
