package flow

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Labels of workers are written as Kubernetes writes labels.
const (
	// LabelKeyForm and LabelValueForm tell users how to write a label of a worker.
	LabelKeyForm   = `write 1 to 63 letters, digits, "-", "_" and ".", a letter or digit first and last, as in gpu; a domain and "/" may come before them, as in example.com/gpu`
	LabelValueForm = `write at most 63 letters, digits, "-", "_" and ".", a letter or digit first and last, as in a100`

	// workerLabelsLimit is how many labels a worker may have, SelectorLimit how many an execution may require.
	workerLabelsLimit = 64
	SelectorLimit     = 16

	labelMark = "="
)

var (
	labelName   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	labelDomain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

// BadLabelKey reports whether a worker cannot have a label with the key; LabelKeyForm describes valid ones.
func BadLabelKey(key string) bool {
	const longest = 253
	domain, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return !labelName.MatchString(key)
	}
	return len(domain) > longest || !labelDomain.MatchString(domain) || !labelName.MatchString(name)
}

// BadLabelValue reports whether a label of a worker cannot have the value; LabelValueForm describes valid ones.
func BadLabelValue(value string) bool { return value != "" && !labelName.MatchString(value) }

// CheckLabels returns what is wrong with the labels of a worker, and how to write them.
func CheckLabels(labels map[string]string) error {
	if len(labels) > workerLabelsLimit {
		return fmt.Errorf("%d labels are more than the %d that a worker may have: leave some out", len(labels), workerLabelsLimit)
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if BadLabelKey(key) {
			return fmt.Errorf("%.80q is not the key of a label: %s", key, LabelKeyForm)
		}
		if value := labels[key]; BadLabelValue(value) {
			return fmt.Errorf("label %s: %.80q is not a label's value: %s", key, value, LabelValueForm)
		}
	}
	return nil
}

// ParseLabels reads labels of a worker in the form "gpu=a100,zone=eu".
func ParseLabels(text string) (map[string]string, error) {
	var labels map[string]string
	for pair := range strings.SplitSeq(text, ",") {
		pair = strings.TrimSpace(pair)
		if pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, labelMark)
		if !ok {
			return nil, fmt.Errorf("%.80q is not a label: write key=value, as in gpu=a100", pair)
		}
		if _, twice := labels[key]; twice {
			return nil, fmt.Errorf("label %.80s is given twice: leave one out", key)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	return labels, CheckLabels(labels)
}

func HasLabels(labels, wanted map[string]string) bool {
	for name, value := range wanted {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// LabelText writes labels in the form of ParseLabels, in the order of their keys.
func LabelText(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+labelMark+labels[key])
	}
	return strings.Join(pairs, ",")
}

const labelOffer = "label:"

// OfferLabels is the form of a worker's labels among the kinds that it offers.
func OfferLabels(labels map[string]string) []string {
	offers := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		offers = append(offers, labelOffer+key+labelMark+labels[key])
	}
	return offers
}

// OfferedLabels separates a worker's labels from its kinds; nil labels: it has none.
func OfferedLabels(kinds []string) (labels map[string]string, rest []string) {
	for i, kind := range kinds {
		label, ok := strings.CutPrefix(kind, labelOffer)
		switch {
		case ok && labels == nil:
			labels, rest = map[string]string{}, append(rest, kinds[:i]...)
			fallthrough
		case ok:
			key, value, _ := strings.Cut(label, labelMark)
			labels[key] = value
		case labels != nil:
			rest = append(rest, kind)
		}
	}
	if labels == nil {
		return nil, kinds
	}
	return labels, rest
}
