package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/duration"
)

func TestDurationsOfSettings(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"30d": "720h0m0s", "90m": "1h30m0s", "0": "0s", "5": "5s"} {
		if d, err := duration.Parse(s); err != nil || d.String() != want {
			t.Errorf("%s: %s, %v; want %s", s, d, err, want)
		}
	}
	for _, s := range []string{"", "-1s", "d", "1y"} {
		if d, err := duration.Parse(s); err == nil {
			t.Errorf("%q was taken as %s", s, d)
		}
	}
}

func TestRedacted(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"":                               "",
		"sqlite":                         "sqlite",
		"postgres://user@db/pawl":        "postgres://user@db/pawl",
		"postgres://user:s3cret@db/pawl": "postgres://user:xxxxx@db/pawl",
		"postgres://user:s3@cr/et:word@db:5432/pawl":           "postgres://user:xxxxx@db:5432/pawl",
		"postgres://user:s3 cret%zz@db/pawl":                   "postgres://user:xxxxx@db/pawl",
		"postgres://db/pawl?user=u&password=s3cret&sslmode=no": "postgres://db/pawl?user=u&password=xxxxx&sslmode=no",
		"host=db password='s3 cret' user=u":                    "host=db password=xxxxx user=u",
		"https://user:s3cret@pawl.example.com":                 "https://user:xxxxx@pawl.example.com",
		"NAME@host,OTHER":                                      "NAME@host,OTHER",
	} {
		if got := Redacted(value); got != want {
			t.Errorf("%q is shown as %q, want %q", value, got, want)
		}
	}
}

// Errors about blob locations do not contain the keys of a bucket, even if a comma in them splits the setting into several locations.
func TestBlobsWithoutSecrets(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"S3://KEYID:TOPSECRET@pawl/x":        "place 1 is neither",
		"s3://KEYID:a,TOPSECRET@pawl/x":      "place 2 is neither",
		"s3://KEYID:a,TOPSECRET,b@pawl/x":    "write %2C for a comma",
		"store, s3://KEYID:TOPSECRET@b, x/y": "place 3 is neither",
		"x/y":                                `"x/y" is neither`,
	} {
		err := CheckBlobs(value)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "TOP") {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
}

// What a file of settings means cannot depend on which of two lines counts, or on a secret that is not there.
func TestFilesOfSettings(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"slots: 2\nui: off\nslots: 3\n": "pawl.yaml:3:1: slots is on line 1 as well: leave one out",
		"listn: 127.0.0.1:7411\n":       `pawl.yaml:1:1: "listn" is not a setting: did you mean "listen"?`,
		"bananas: 1\n":                  `pawl.yaml:1:1: "bananas" is not a setting: one of server, token, `,
		"token_file: " + empty + "\n":   "the file " + empty + " is empty: write the value of token into it, or leave the setting out",
	} {
		c := Config{Values: map[string]string{}, Source: map[string]string{}}
		if err := c.parse("pawl.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
