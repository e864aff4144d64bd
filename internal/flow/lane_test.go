package flow

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestLaneIsCanonical(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		queue string
		needs []string
		want  string
	}{
		{"default", nil, "default"},
		{"default", []string{"docker"}, "default@docker"},
		{"gpu", []string{"zone=eu", "docker", "gpu=a100", OfferLanguage("f#")}, "gpu@code:f#,docker,gpu=a100,zone=eu"},
		{"gpu", []string{"gpu=a100", "docker", "gpu=a100"}, "gpu@docker,gpu=a100"},
	} {
		if got := Lane(c.queue, c.needs...); got != c.want {
			t.Errorf("%q with %q is lane %q, want %q", c.queue, c.needs, got, c.want)
		}
		slices.Reverse(c.needs)
		if got := Lane(c.queue, c.needs...); got != c.want {
			t.Errorf("the other way round: %q, want %q", got, c.want)
		}
		queue, needs := SplitLane(c.want)
		if queue != c.queue || Lane(queue, needs...) != c.want {
			t.Errorf("%q was split into %q and %q", c.want, queue, needs)
		}
	}
	queue, needs := NeedsOf("gpu@code:f#,docker,gpu=a100,zone=eu,empty=")
	if queue != "gpu" || needs.Runtime != "code:f#,docker" || !maps.Equal(needs.Labels, map[string]string{"gpu": "a100", "zone": "eu", "empty": ""}) {
		t.Errorf("%q, %+v", queue, needs)
	}
	if got := AddNeeds("q@zone=eu", "docker"); got != "q@docker,zone=eu" {
		t.Error(got)
	}
}

func TestRelane(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lane, queue string
		labels      map[string]string
		want        string
	}{
		{"default", "", nil, "default"},
		{"default", "other", nil, "other"},
		{"default", "", map[string]string{"b": "2", "a": "1"}, "default@a=1,b=2"},
		{"default@a=1", "other", nil, "other@a=1"},
		{"default@a=1,b=2,docker", "", map[string]string{"a": "3", "c": "4"}, "default@a=3,b=2,c=4,docker"},
	} {
		if got := Relane(c.lane, c.queue, c.labels); got != c.want {
			t.Errorf("%q with queue %q and %v is %q, want %q", c.lane, c.queue, c.labels, got, c.want)
		}
	}
}

func TestReach(t *testing.T) {
	t.Parallel()
	kinds := append([]string{"code", OfferRuntime("docker"), "runtime:", "code:", "label:", OfferLanguage("f#")}, OfferLabels(map[string]string{"gpu": "a100", "zone": "eu"})...)
	r := ReachOf([]string{"a", "b"}, kinds)
	for lane, want := range map[string]bool{
		"a": true, "b": true, "c": false,
		"a@docker": true, "b@code:f#": true, "a@kubernetes": false, "c@docker": false,
		"a@gpu=a100": true, "a@gpu=a100,zone=eu": true, "b@code:f#,docker,gpu=a100,zone=eu": true,
		"a@gpu=t4": false, "a@gpu=": false, "a@gpu": false, "a@gpu=a100,zone=us": false, "a@": false,
	} {
		if got := r.Serves(lane); got != want {
			t.Errorf("serves %q: %t", lane, got)
		}
		needs, ok := r.Lacks(lane)
		if (ok && len(needs) == 0) != want {
			t.Errorf("lacks %q of %q (%t)", needs, lane, ok)
		}
	}
	if needs, _ := r.Lacks("a@disk=ssd,docker,gpu=t4,zone=eu"); !slices.Equal(needs, []string{"disk=ssd", "gpu=t4"}) {
		t.Errorf("lacks %q", needs)
	}
	if ReachOf([]string{"a"}, []string{"code"}).Plain() != true || r.Plain() {
		t.Error("which is plain?")
	}
	if (Reach{}).Serves("a") {
		t.Error("nobody serves a")
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	labels, err := ParseLabels(" gpu=a100, zone=eu,example.com/rack=r-1,empty=")
	if err != nil || LabelText(labels) != "empty=,example.com/rack=r-1,gpu=a100,zone=eu" {
		t.Errorf("%v, %v", labels, err)
	}
	if labels, err := ParseLabels(""); labels != nil || err != nil {
		t.Errorf("%v, %v", labels, err)
	}
	long := strings.Repeat("x", 63)
	if _, err := ParseLabels(long + "=" + long); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"gpu":               `"gpu" is not a label: write key=value`,
		"gpu=a100,gpu=t4":   "label gpu is given twice",
		"-gpu=a100":         `"-gpu" is not the key of a label: write 1 to 63 letters`,
		"=a100":             `"" is not the key of a label`,
		"Example.com/gpu=a": `"Example.com/gpu" is not the key`,
		"a/b/gpu=a":         `"a/b/gpu" is not the key`,
		"gpu=a b":           `label gpu: "a b" is not a label's value: write at most 63 letters`,
		"gpu=a=b":           `label gpu: "a=b" is not a label's value`,
		"gpu=" + long + "x": "is not a label's value",
		long + "x=1":        "is not the key of a label",
		strings.Join(slices.Collect(func(yield func(string) bool) {
			for i := range 65 {
				if !yield("k" + strings.Repeat("x", i) + "=1") {
					return
				}
			}
		}), ","): "65 labels are more than the 64",
	} {
		if _, err := ParseLabels(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	kinds := append([]string{"code"}, append(OfferLabels(map[string]string{"gpu": "a100"}), "http")...)
	if labels, rest := OfferedLabels(kinds); LabelText(labels) != "gpu=a100" || !slices.Equal(rest, []string{"code", "http"}) {
		t.Errorf("%v, %q", labels, rest)
	}
	if labels, rest := OfferedLabels([]string{"code"}); labels != nil || !slices.Equal(rest, []string{"code"}) {
		t.Errorf("%v, %q", labels, rest)
	}
}
