package java_test

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/task/java"
)

func TestFile(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"public class Foo {}":                                                                "Foo.java",
		" \tpublic class Foo {}":                                                             "Foo.java",
		"import java.util.*; public class Foo{}":                                             "Foo.java",
		"@SuppressWarnings(\"all\") public class Foo {}":                                     "Foo.java",
		"@A({B.class}) @C public @D(x = {1, 2}) final class Foo {}":                          "Foo.java",
		"final public class Foo {}":                                                          "Foo.java",
		"public\nclass\r\nFoo\n{}":                                                           "Foo.java",
		"/* x */ public /* y */ class /**/ Foo {}":                                           "Foo.java",
		"public // a comment\nclass Foo {}":                                                  "Foo.java",
		"/*\npublic class Old {}\n*/\npublic class Foo {}":                                   "Foo.java",
		"// public class Old {}\npublic class Foo {}":                                        "Foo.java",
		"class A { String s = \"public class Old {\"; } public class Foo {}":                 "Foo.java",
		"class A { String s = \"\"\"\n  \"public class Old {\n\"\"\"; } public class Foo {}": "Foo.java",
		"class A { char c = '\"', d = '\\'', e = '{'; } public class Foo {}":                 "Foo.java",
		"class A { String s = \"\\\\\"; } public class Foo {}":                               "Foo.java",
		"class A { public static class Inner {} } public class Foo {}":                       "Foo.java",
		"class A { public void f() {} }\nclass B {}":                                         "Main.java",
		"class Foo { public static void main(String[] a) {} }":                               "Main.java",
		"public record Foo(int x, int y) {}":                                                 "Foo.java",
		"public sealed interface Foo permits A {} final class A implements Foo {}":           "Foo.java",
		"public non-sealed class Foo extends A {}":                                           "Foo.java",
		"public enum Foo { A; }":                                                             "Foo.java",
		"public @interface Foo {}":                                                           "Foo.java",
		"public abstract strictfp class Foo<T extends Comparable<T>> {}":                     "Foo.java",
		"package a.b;\npublic class Foo {}":                                                  "Foo.java",
		"\ufeffpublic class Foo {}":                                                          "Foo.java",
		"public class Prüfung_$1 {}":                                                         "Prüfung_$1.java",
		"\\u0070ublic class \\u0046oo {}":                                                    "Foo.java",
		"class A { String s = \"\\\\u007d\"; } public class Foo {}":                          "Foo.java",
		"public static void main(String[] a) {}\npublic int record = 1;\nint Foo;":           "Main.java",
		"void main() { System.out.println(1); }":                                             "Main.java",
		"":                                                                                   "Main.java",
		"class A { String s = \"never closed":                                                "Main.java",
		"/* never closed":                                                                    "Main.java",
		"public class":                                                                       "Main.java",
		"public class 7":                                                                     "Main.java",
		"}}}} public class Foo {}":                                                           "Foo.java",
		"\\u00":                                                                              "Main.java",
		"\\":                                                                                 "Main.java",
	} {
		if got := java.File(source, "Main.java"); got != want {
			t.Errorf("%q: %s, want %s", source, got, want)
		}
	}
}

// The cost of a source grows with its size and not with the square of it.
func TestFileOfALargeSource(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"/*", "'", "\"\"\"", "\\u0041", "\\", "{", "a ", "public class "} {
		java.File(strings.Repeat(part, 4<<20/len(part)), "Main.java")
	}
}
