package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// skipList is the tests that may be skipped in a tier in which every test must run.
type skipList []skip

type skip struct {
	pkg  string
	test *regexp.Regexp // of the test's whole name
}

// readSkips reads a list of skips. Each line has a package, a regular expression for tests, and the reason; # starts a comment.
func readSkips(path string) (skipList, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list skipList
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 3 {
			return nil, fmt.Errorf("%s:%d: %q lacks a reason; write PACKAGE TESTS REASON", path, i+1, line)
		}
		test, err := regexp.Compile("^(?:" + fields[1] + ")$")
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		list = append(list, skip{fields[0], test})
	}
	return list, nil
}

func (l skipList) has(k key) bool {
	for _, s := range l {
		if s.pkg == k.pkg && s.test.MatchString(k.test) {
			return true
		}
	}
	return false
}
