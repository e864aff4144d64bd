package submit

import (
	"testing"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/task"
)

func TestLanguageIsTold(t *testing.T) {
	t.Parallel()
	a := &app.App{Config: config.Config{Languages: task.BuiltInLanguages()}}
	for _, c := range []struct{ given, file, program, want string }{
		{"", "a.py", "", "python"},
		{"", "a.mjs", "", "javascript"},
		{"", "a.go", "", "go"},
		{"", "a.cc", "", "c++"},
		{"cpp", "-", "", "c++"},
		{"", "Main.java", "", "java"},
		{"", "-", "#!/usr/bin/env python3\n", "python"},
		{"", "x", "#!/bin/sh -e\n", "bash"},
		{"", "x", "#!/usr/bin/python3.11\n", "python"},
		{"node", "a.py", "", "javascript"},
		{"", "a.txt", "print(1)", ""},
		{"cobol", "a.py", "", ""},
	} {
		got, err := languageOf(a, c.given, c.file, []byte(c.program))
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("languageOf(%q, %q, %q) = %q, %v; want %q", c.given, c.file, c.program, got, err, c.want)
		}
	}
}
