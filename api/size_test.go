package api

import (
	"math"
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "17": 17, "17B": 17, "1e3": 1000, "1.5kb": 1500, ".5GB": 500_000_000, "5.MB": 5_000_000, " 64 MiB ": 64 << 20,
		"4.1MB": 4_100_000, "16.4GB": 16_400_000_000, "1.1GiB": 1_181_116_006, "0.3KiB": 307, "9223372036854775807": math.MaxInt64,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "B", ".", "-1", "+1", "1.5", "1.5B", "0x10", "1_0", "1e999999999", "1e99", "NaN", "Inf", "9223372036854775808",
		"8388608TiB", "1e-3MB",
	} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q: %d, want an error", text, got)
		}
	}
}
