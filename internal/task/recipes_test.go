package task_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/task"
)

// recipeTests are programs for each recipe: one that reads a line and writes "hello LINE" to stdout; and one that fails with the message
// "boom".
var recipeTests = map[string]struct{ hello, fails, verdict, says, wrong string }{
	"csharp": {
		hello:   "using System;\nclass P { static void Main() { Console.WriteLine(\"hello \" + Console.ReadLine()); } }",
		fails:   "class P { static void Main() { throw new System.Exception(\"boom\"); } }",
		verdict: "nonzero_exit", says: "boom", wrong: "class P {",
	},
	"haskell": {hello: "main = getLine >>= \\l -> putStrLn (\"hello \" ++ l)", fails: "main = error \"boom\"", verdict: "nonzero_exit", says: "boom", wrong: "main = ("},
	"julia":   {hello: "println(\"hello \", readline())", fails: "error(\"boom\")", verdict: "nonzero_exit", says: "boom"},
	"kotlin":  {hello: "fun main() { println(\"hello \" + readLine()) }", fails: "fun main() { throw Exception(\"boom\") }", verdict: "nonzero_exit", says: "boom", wrong: "fun main( {"},
	"lean": {
		hello: "def main : IO Unit := do\n  let line ← (← IO.getStdin).getLine\n  IO.print s!\"hello {line}\"",
		fails: "def main : IO Unit := throw (IO.userError \"boom\")", verdict: "nonzero_exit", says: "boom",
	},
	"lua":  {hello: "print('hello ' .. io.read())", fails: "error('boom')", verdict: "nonzero_exit", says: "boom"},
	"perl": {hello: "my $l = <STDIN>; print 'hello ' . $l . \"\\n\";", fails: "die 'boom'", verdict: "nonzero_exit", says: "boom", wrong: "my $x = ;"},
	"php":  {hello: "<?php echo 'hello ', trim(fgets(STDIN)), \"\\n\";", fails: "<?php throw new Exception('boom');", verdict: "nonzero_exit", says: "Exception: boom", wrong: "<?php echo ;"},
	"r":    {hello: "cat('hello ', readLines('stdin', 1), '\\n', sep='')", fails: "stop('boom')", verdict: "nonzero_exit", says: "boom"},
	"scala": {
		hello:   "object Main { def main(a: Array[String]): Unit = println(\"hello \" + scala.io.StdIn.readLine()) }",
		fails:   "object Main { def main(a: Array[String]): Unit = sys.error(\"boom\") }",
		verdict: "nonzero_exit", says: "boom", wrong: "object Main {",
	},
	"sql":   {hello: "CREATE TABLE t (line);\n.import /dev/stdin t\nSELECT 'hello ' || line FROM t;", fails: "SELECT boom;", verdict: "nonzero_exit", says: "no such column: boom"},
	"swift": {hello: "print(\"hello \" + readLine()!)", fails: "fatalError(\"boom\")", verdict: "signal", says: "boom", wrong: "let x ="},
}

// Each recipe whose tool this machine has runs a program, and reports the fault of one that fails.
func TestRecipes(t *testing.T) {
	t.Parallel()
	languages := task.BuiltInLanguages().WithRecipes()
	for name, c := range recipeTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if lacks := languages.Install(name); lacks != "" {
				t.Skip(lacks)
			}
			for _, rt := range runtimes(t) {
				r := with(t, rt, languages, api.Code{Language: name, Source: c.hello, Stdin: api.Text("you\n")})
				if r.err != nil || strings.TrimRight(r.result.Stdout, "\n") != "hello you" || r.result.Stderr != "" {
					t.Errorf("%s: %+v\n%+v\n%+v", rt.Name(), r.err, r.result, r.result.Compile)
				}
				if r = with(t, rt, languages, api.Code{Language: name, Source: c.fails}); r.err == nil || r.err.Code != c.verdict || !strings.Contains(r.err.Message, c.says) || strings.Contains(r.err.Message, "main.") {
					t.Errorf("%s: %+v\n%s", rt.Name(), r.err, r.result.Stderr)
				}
				if c.wrong == "" {
					continue
				}
				if r = with(t, rt, languages, api.Code{Language: name, Source: c.wrong}); r.err == nil || r.err.Code != api.SyntaxError && r.err.Code != api.CompileError {
					t.Errorf("%s: %+v\n%s", rt.Name(), r.err, r.result.Stderr)
				}
			}
		})
	}
}

// A recipe is a profile like those of a configuration, and one of its name replaces it.
func TestRecipesAreProfiles(t *testing.T) {
	t.Parallel()
	own := task.BuiltInLanguages().WithRecipes()
	seen := map[string]bool{}
	for _, p := range append(own.Profiles(), own.Dormant()...) {
		if faults := p.Check(); len(faults) > 0 && recipeTests[p.Name].hello != "" {
			t.Errorf("%s: %v", p.Name, faults)
		}
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			if seen[name] {
				t.Errorf("%q means two languages", name)
			}
			seen[name] = true
		}
	}
	for name := range recipeTests {
		if !seen[name] {
			t.Errorf("there is no recipe of %s", name)
		}
	}
	path := tool(t)
	mine := profiles(t, task.Profile{Name: "lua", Aliases: []string{"pl"}, Extensions: []string{"php"}, Tools: []string{path}},
		task.Profile{Name: "moon", Like: "lua", Tools: []string{path}}).WithRecipes()
	if p, ok := mine.Profile("lua"); !ok || p.Tools[0] != path || len(p.Message) != 0 {
		t.Errorf("%+v", p)
	}
	if p, _ := mine.Profile("moon"); p == nil || len(p.Message) == 0 || p.Tools[0] != path {
		t.Errorf("%+v", p)
	}
	if p, ok := mine.Profile("pl"); !ok || p.Name != "lua" {
		t.Errorf("%+v", p)
	}
	if name, _ := mine.Set().OfExtension("php"); name != "lua" {
		t.Errorf("sources in %s", name)
	}
	if !slices.Contains(mine.Added(), "lua") {
		t.Error(mine.Added())
	}
}
