package submit

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
)

func TestOneAttempt(t *testing.T) {
	type piece struct {
		attempt int
		text    string
	}
	for name, c := range map[string]struct {
		pieces  []piece
		ended   int
		status  api.Status
		want    string
		refused bool
	}{
		"one attempt":                 {[]piece{{1, "a\n"}, {1, "b\n"}}, 1, api.Completed, "a\nb\n", false},
		"no output":                   {nil, 2, api.Completed, "", false},
		"lost before it wrote":        {[]piece{{2, "a\n"}}, 2, api.Completed, "a\n", false},
		"repeated":                    {[]piece{{1, "a\n"}, {2, "a\nb\n"}}, 2, api.Completed, "a\nb\n", false},
		"repeated in smaller pieces":  {[]piece{{1, "a\nb\n"}, {2, "a"}, {2, "\nb"}, {2, "\nc\n"}}, 2, api.Completed, "a\nb\nc\n", false},
		"lost again while repeating":  {[]piece{{1, "a\nb\n"}, {2, "a\n"}, {3, "a\nb\n"}, {3, "c\n"}}, 3, api.Completed, "a\nb\nc\n", false},
		"something else":              {[]piece{{1, "1\n"}, {2, "2\n"}, {2, "end\n"}}, 2, api.Completed, "1\n", true},
		"something else later":        {[]piece{{1, "1\n2\n"}, {2, "1\n"}, {2, "3\n4\n"}}, 2, api.Completed, "1\n2\n", true},
		"less than before":            {[]piece{{1, "1\n2\n"}, {2, "1\n"}}, 2, api.Completed, "1\n2\n", true},
		"nothing the second time":     {[]piece{{1, "1\n"}}, 2, api.Completed, "1\n", true},
		"killed while it repeated":    {[]piece{{1, "1\n2\n"}, {2, "1\n"}}, 2, api.Cancelled, "1\n2\n", false},
		"something else, then failed": {[]piece{{1, "1\n"}, {2, "2\n"}}, 2, api.Failed, "1\n", true},
	} {
		var out strings.Builder
		o := newOneAttempt(&out)
		for _, p := range c.pieces {
			if err := o.write(&api.LogChunk{Attempt: p.attempt, Text: p.text}); err != nil {
				t.Fatal(err)
			}
		}
		err := o.failure(&api.Execution{ID: "ex_1", Attempt: c.ended, Status: c.status})
		if out.String() != c.want || (err != nil) != c.refused {
			t.Errorf("%s: wrote %q, want %q; %v", name, out.String(), c.want, err)
		}
	}
}
