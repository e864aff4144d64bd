package java_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/task/java"
)

// starts are sources with the class that a program starts with, or the error if there is none. Each is compiled in its own package.
var starts = []struct{ name, source, want string }{
	{"Main", "public class Main { public static void main(String[] a) {} }", "Main"},
	{"another public class, indented", "\t public class Foo { public static void main(String[] a) {} }", "Foo"},
	{"behind an import", "import java.util.*; public class Foo{ public static void main(String[] a) {} }", "Foo"},
	{"annotated", "@SuppressWarnings(\"all\") public class Foo { @Deprecated public static void main(String[] a) {} }", "Foo"},
	{"modifiers in another order", "final public class Foo { static public final synchronized void main(String[] a) {} }", "Foo"},
	{"words on lines of their own", "public\nclass\nFoo\n{\npublic\nstatic\nvoid\nmain(\nString\n[]\na) {} }", "Foo"},
	{"old names of parameters", "public class Foo { public static void main(String a[]) {} }", "Foo"},
	{"many arguments", "public class Foo { public static void main(String... a) {} }", "Foo"},
	{"old code in a comment", "/*\npublic class Old { public static void main(String[] a) {} }\n*/\npublic class Foo { public static void main(String[] a) {} }", "Foo"},
	{"no public class", "  class Program {\n  public static void main(String[] a) {} }", "Program"},
	{"a public helper before it", "public class Helper { static int two() { return 2; } }\nclass Program { public static void main(String[] a) {} }", "Program"},
	{"a helper after it", "class Program { public static void main(String[] a) {} }\nclass Zero {} interface Other {}", "Program"},
	{"another main before it", "class A { void main(int x) {} static int main() { return 1; } }\nclass B { public static void main(String[] a) {} }", "B"},
	{"two, and one is public", "class A { public static void main(String[] a) {} }\npublic class B { public static void main(String[] a) {} }", "B"},
	{"two, and one is Main", "class A { public static void main(String[] a) {} }\nclass Main { public static void main(String[] a) {} }", "Main"},
	{"two, and none is", "class Zero { public static void main(String[] a) {} }\nclass Alpha { public static void main(String[] a) {} }", "Zero"},
	{"nested", "class Outer { static class Inner { public static void main(String[] a) {} } }", "Outer$Inner"},
	{"nested and outer", "class Outer { static class Inner { public static void main(String[] a) {} }\n public static void main(String[] a) {} }", "Outer"},
	{"an interface", "public interface Foo { static void main(String[] a) {} }", "Foo"},
	{"an enum", "public enum Foo { A; public static void main(String[] a) {} }", "Foo"},
	{"inherited", "class Base { public static void main(String[] a) {} }\npublic class Foo extends Base {}", "Base"},
	{"a dollar in its name", "public class Foo$Bar { public static void main(String[] a) {} }", "Foo$Bar"},
	{"numbers that take two places", "public class Foo { static final long L = 1L << 40; static final double D = 1e300; static final Object o = (Runnable) () -> {}; public static void main(String[] a) {} }", "Foo"},
	{"none", "public class Foo { int x; }", "no class has a method `public static void main(String[] args)`"},
	{"other parameters", "public class Foo { public static void main(int x) {} }", "main of p.Foo has other parameters"},
	{"private", "public class Foo { private static int main(String[] a) { return 0; } }", "main of p.Foo has other parameters or returns something"},
}

func TestStart(t *testing.T) {
	t.Parallel()
	javac, err := exec.LookPath("javac")
	if err != nil {
		t.Skipf("no Java compiler: %v: apt install default-jdk-headless", err)
	}
	dir := t.TempDir()
	args := []string{"-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "-nowarn", "-encoding", "UTF-8", "-d", filepath.Join(dir, "classes")}
	for i, c := range starts {
		source := fmt.Sprintf("package p%d; %s", i, c.source)
		file := filepath.Join(dir, fmt.Sprint(i), java.File(source, "Main.java"))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	if out, err := exec.CommandContext(t.Context(), javac, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, c := range starts {
		pkg := fmt.Sprintf("p%d", i)
		files, err := filepath.Glob(filepath.Join(dir, "classes", pkg, "*.class"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", c.name, files, err)
		}
		var classes []java.Class
		for _, f := range files {
			content, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			class, err := java.Read(content)
			if err != nil {
				t.Fatalf("%s: %s: %v", c.name, f, err)
			}
			classes = append(classes, class)
			for n := range content {
				_, _ = java.Read(content[:n]) // a truncated file is refused without a panic
			}
		}
		got, err := java.Main(classes, filepath.Base(args[len(args)-len(starts)+i]))
		if err != nil {
			got = err.Error()
		}
		if want := strings.ReplaceAll(c.want, "p.", pkg+"."); got != pkg+"."+want && !(err != nil && strings.Contains(got, want)) {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
	}
}

// From Java 25 on, main may be an instance method without parameters.
func TestStartOfJava25(t *testing.T) {
	t.Parallel()
	javac, err := exec.LookPath("javac")
	if err != nil {
		t.Skipf("no Java compiler: %v: apt install default-jdk-headless", err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "Main.java")
	if err := os.WriteFile(file, []byte("class Main { void main() {} }"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), javac, "-d", dir, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(filepath.Join(dir, "Main.class"))
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[byte]string{65: "", 69: "Main"} {
		content[7] = version
		class, err := java.Read(content)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := java.Main([]java.Class{class}, "Main.java"); got != want {
			t.Errorf("of version %d: %q, want %q", version, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("\xca\xfe\xba\xbe\x00\x00\x007\x00\x02\x07\x00\x01\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := java.Read(b); err == nil {
			_, _ = java.Main([]java.Class{c}, "Main.java")
		}
	})
}
