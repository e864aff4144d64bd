package flow

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestRoutingKeyIsCanonical(t *testing.T) {
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
		if got := RoutingKey(c.queue, c.needs...); got != c.want {
			t.Errorf("%q with %q is routing key %q, want %q", c.queue, c.needs, got, c.want)
		}
		slices.Reverse(c.needs)
		if got := RoutingKey(c.queue, c.needs...); got != c.want {
			t.Errorf("the other way round: %q, want %q", got, c.want)
		}
		queue, needs := SplitRoutingKey(c.want)
		if queue != c.queue || RoutingKey(queue, needs...) != c.want {
			t.Errorf("%q was split into %q and %q", c.want, queue, needs)
		}
	}
	if got := ForKind("gpu@gpu=a100", "resize"); got != "gpu@gpu=a100,kind:resize" {
		t.Error(got)
	}
	if again := ForKind("gpu@gpu=a100,kind:resize", "resize"); again != "gpu@gpu=a100,kind:resize" {
		t.Error(again)
	}
	for _, kind := range append(Standard(), KindContainer, KindWorkflow, KindSleep) {
		if got := ForKind("gpu", kind); got != "gpu" || !kind.BuiltIn() {
			t.Errorf("%s: %q", kind, got)
		}
	}
	if queue, needs := NeedsOf("resize@docker,gpu=a100,kind:resize"); queue != "resize" || needs.Handler != "resize" || needs.Runtime != "docker" {
		t.Errorf("%q, %+v", queue, needs)
	}
	for _, need := range []string{"", "a,b", "a@b", "a=b", "kind:resize"} {
		if !BadNeed(need) {
			t.Errorf("%q can be asked for as a runtime", need)
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

func TestReroute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		routingKey, queue string
		labels            map[string]string
		want              string
	}{
		{"default", "", nil, "default"},
		{"default", "other", nil, "other"},
		{"default", "", map[string]string{"b": "2", "a": "1"}, "default@a=1,b=2"},
		{"default@a=1", "other", nil, "other@a=1"},
		{"default@a=1,b=2,docker", "", map[string]string{"a": "3", "c": "4"}, "default@a=3,b=2,c=4,docker"},
	} {
		if got := Reroute(c.routingKey, c.queue, c.labels); got != c.want {
			t.Errorf("%q with queue %q and %v is %q, want %q", c.routingKey, c.queue, c.labels, got, c.want)
		}
	}
}

func TestReach(t *testing.T) {
	t.Parallel()
	var kinds []string
	for _, kind := range Standard() {
		kinds = append(kinds, string(kind))
	}
	kinds = append(append(kinds, OfferRuntime("docker"), "runtime:", "code:", "label:", OfferLanguage("f#")), OfferLabels(map[string]string{"gpu": "a100", "zone": "eu"})...)
	r := ReachOf([]string{"a", "b"}, kinds)
	for routingKey, want := range map[string]bool{
		"a": true, "b": true, "c": false,
		"a@docker": true, "b@code:f#": true, "a@kubernetes": false, "c@docker": false,
		"a@gpu=a100": true, "a@gpu=a100,zone=eu": true, "b@code:f#,docker,gpu=a100,zone=eu": true,
		"a@gpu=t4": false, "a@gpu=": false, "a@gpu": false, "a@gpu=a100,zone=us": false, "a@": false,
	} {
		if got := r.Serves(routingKey); got != want {
			t.Errorf("serves %q: %t", routingKey, got)
		}
		needs, ok := r.Lacks(routingKey)
		if (ok && len(needs) == 0) != want {
			t.Errorf("lacks %q of %q (%t)", needs, routingKey, ok)
		}
	}
	if needs, _ := r.Lacks("a@disk=ssd,docker,gpu=t4,zone=eu"); !slices.Equal(needs, []string{"disk=ssd", "gpu=t4"}) {
		t.Errorf("lacks %q", needs)
	}
	if !ReachOf([]string{"a"}, names(Standard())).Plain() || !ReachOf([]string{"a"}, nil).Plain() || r.Plain() || ReachOf([]string{"a"}, []string{"resize"}).Plain() {
		t.Error("which is plain?")
	}
	if (Reach{}).Serves("a") {
		t.Error("nobody serves a")
	}
}

func names(kinds []Kind) (all []string) {
	for _, k := range kinds {
		all = append(all, string(k))
	}
	return all
}

// A worker gets executions only of the kinds that it lists: one without the built-in kinds gets nothing from a plain routing key, and one
// without a custom kind nothing from that kind's routing keys.
func TestReachOfKinds(t *testing.T) {
	t.Parallel()
	queues, built := []string{"default", "resize", "sums"}, names(Standard())
	gpu := OfferLabels(map[string]string{"gpu": "a100"})
	for name, c := range map[string]struct {
		kinds         []string
		serves, lacks []string // routing keys
		bad           string   // "": a worker may have these
		shown         []string
	}{
		"built-in kinds": {built, []string{"default", "resize"}, []string{"default@kind:resize", "resize@kind:resize"}, "", queues},
		"no kinds named": {nil, []string{"default"}, []string{"default@kind:resize"}, "", queues},
		"labels only":    {gpu, []string{"default", "sums@gpu=a100"}, []string{"default@kind:resize"}, "", queues},
		"containers":     {append([]string{"container", OfferRuntime("docker")}, built...), []string{"default", "default@docker"}, nil, "", queues},
		"handlers": {append([]string{"resize", "add"}, gpu...),
			[]string{"default@kind:resize", "resize@kind:resize", "default@kind:add", "sums@gpu=a100,kind:add"},
			[]string{"default", "resize", "sums@gpu=a100", "default@kind:other", "default@gpu=t4,kind:add", "other@kind:add"}, "",
			[]string{"default@kind:add", "default@kind:resize", "resize@kind:resize", "sums@kind:add", "sums@kind:resize"}},
		"both":                {append([]string{"resize"}, built...), []string{"default", "default@kind:resize"}, []string{"default@kind:add"}, "", []string{"default", "default@kind:resize", "resize", "resize@kind:resize", "sums", "sums@kind:resize"}},
		"some of them":        {[]string{"noop", "http"}, nil, []string{"default"}, "http and noop but not code, llm, webhook, input, output", nil},
		"some, and a handler": {[]string{"noop", "resize"}, []string{"resize@kind:resize"}, []string{"default"}, "noop but not code", nil},
		"containers alone":    {[]string{"container"}, nil, []string{"default"}, "container but not code", nil},
		"workflows":           {append([]string{"workflow"}, built...), []string{"default"}, nil, "no worker runs executions of kind workflow", nil},
	} {
		r := ReachOf(queues, c.kinds)
		for _, routingKey := range c.serves {
			if needs, ok := r.Lacks(routingKey); !r.Serves(routingKey) || !ok || len(needs) > 0 {
				t.Errorf("%s: does not serve %q, lacking %q", name, routingKey, needs)
			}
		}
		for _, routingKey := range c.lacks {
			if needs, ok := r.Lacks(routingKey); r.Serves(routingKey) || ok && len(needs) == 0 {
				t.Errorf("%s: serves %q", name, routingKey)
			}
		}
		if err := CheckKinds(c.kinds); (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s: %v, want %q", name, err, c.bad)
		}
		if shown := r.Shown(); c.bad == "" && !slices.Equal(shown, c.shown) {
			t.Errorf("%s: shown at %q, want %q", name, shown, c.shown)
		}
	}
	if plain := ReachOf(queues, []string{"resize"}).Queues(); len(plain) > 0 {
		t.Errorf("a worker of custom kinds looks into %q", plain)
	}
	if needs, _ := ReachOf(queues, []string{"resize"}).Lacks("default@docker"); !slices.Equal(needs, []string{"docker", NeedBuiltIns}) {
		t.Errorf("lacks %q", needs)
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
