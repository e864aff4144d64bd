// Testreport sums up the events of go test -json that the steps of a tier have left, and decides how the tier ends:
//
//	go run ./scripts/testreport -name test -skips scripts/skips.txt bin/tests/*.json
//
// It prints the slowest packages, each skipped test with its reason, each test that failed and then passed when it was run again
// alone (FLAKY, with the output of its failure), and at last the counts of passed, failed and skipped tests. It exits with 1 where a
// test failed for good, and with -strict also where a test was skipped that the list of skips does not name.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	name := flag.String("name", "tests", "what the closing line calls the tests")
	skips := flag.String("skips", "", "file that lists the tests which may be skipped")
	strict := flag.Bool("strict", false, "fail for a skipped test that the list does not name")
	flag.Parse()
	ok, err := run(os.Stdout, *name, *skips, *strict, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

// run writes the report and says whether the tier has passed.
func run(w io.Writer, name, skips string, strict bool, files []string) (bool, error) {
	allowed, err := readSkips(skips)
	if err != nil {
		return false, err
	}
	r := newReport()
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return false, err
		}
		err = r.read(f)
		f.Close()
		if err != nil {
			return false, fmt.Errorf("%s: %w", file, err)
		}
	}
	return r.write(w, name, allowed, strict), nil
}
