//go:build linux

package pid1

import "testing"

func TestStarved(t *testing.T) {
	const some = "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
	for text, want := range map[string]int64{
		"": 0, "full": 0, "full total=": 0, some: 0,
		some + "full avg10=0.00 avg60=0.00 avg300=0.00 total=1935\n": 1_935_000,
		some + "full avg10=0.00 avg60=0.00 avg300=0.00 total=1935":   1_935_000,
		"full avg10=1.50 total=12 more=3\n":                          12_000,
	} {
		if got := Starved([]byte(text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
