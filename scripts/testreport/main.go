// Testreport summarizes the events of go test -json from the steps of a tier, and decides whether the tier passes:
//
//	go run ./scripts/testreport -name test -skips scripts/skips.txt bin/tests/*.json
//
// It prints the slowest packages, each skipped test with its reason, each test that failed and then passed when it was run again alone
// (FLAKY, with the output of its failure), and finally the counts of passed, failed and skipped tests. It exits with 1 if a test failed for
// good, and with -strict also if a test was skipped that the list of skips does not contain.
//
// With -panics it prints no report, but the packages to run again as a whole: those that failed, at most two, if one ended with a panic. In
// that case gotestsum does not run any test again.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	name := flag.String("name", "tests", "what the closing line calls the tests")
	skips := flag.String("skips", "", "file that lists the tests which may be skipped")
	strict := flag.Bool("strict", false, "fail for a skipped test that the list does not name")
	panics := flag.Bool("panics", false, "print the packages to run again after a panic")
	flag.Parse()
	ok, err := true, error(nil)
	if *panics {
		err = printPanics(os.Stdout, flag.Args())
	} else {
		ok, err = run(os.Stdout, *name, *skips, *strict, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

// run writes the report and returns whether the tier has passed.
func run(w io.Writer, name, skips string, strict bool, files []string) (bool, error) {
	allowed, err := readSkips(skips)
	if err != nil {
		return false, err
	}
	r, err := readFiles(files)
	if err != nil {
		return false, err
	}
	return r.write(w, name, allowed, strict), nil
}

func printPanics(w io.Writer, files []string) error {
	r, err := readFiles(files)
	if err == nil {
		fmt.Fprintln(w, strings.Join(r.panics(), " "))
	}
	return err
}

func readFiles(files []string) (*report, error) {
	r := newReport()
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		err = r.read(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return r, nil
}
