package schedule

import (
	"strings"
	"testing"
	"time"
)

// Notations of other systems in cron lines and zones are refused with the notation to use here.
func TestOtherNotations(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"@every 5m":          "write every: 5m in the document",
		"@every":             "write every: 5m in the document",
		"@reboot":            "one of @hourly",
		"0 0 * * Sunday":     "write its first three letters, sun",
		"0 0 * * mon-FRIDAY": "write its first three letters, fri",
		"0 0 * September *":  "write its first three letters, sep",
		"0 0 * * montag":     "write its first three letters, mon",
		"0 0 * * x":          "or three letters such as sat",
		"0 0 L-1 * *":        "only L is known, its last day",
		"0 0 15W * *":        "only L is known, its last day",
		"0 0 LW * *":         "only L is known, its last day",
	} {
		if _, err := parseCron(line, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	for zone, want := range map[string]string{
		"utc": `did you mean "UTC"?`, "europe/berlin": `did you mean "Europe/Berlin"?`, "AMERICA/NEW_YORK": `did you mean "America/New_York"?`,
		"Mars/Olympus": "write a name of the IANA database", "": "",
	} {
		_, err := New(Spec{Every: time.Minute, Zone: zone})
		if err == nil != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", zone, err, want)
		}
	}
}
