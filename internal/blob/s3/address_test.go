package s3_test

import (
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/pawl-run/pawl/internal/blob/s3"
)

func TestParse(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"AWS_ENDPOINT_URL": "http://10.0.0.1:9000", "AWS_REGION": "eu-west-1"}
	for text, want := range map[string]struct {
		shown, region string
		lookup        minio.BucketLookupType
		sse           string
	}{
		"s3://bucket": {"s3://bucket/ at http://10.0.0.1:9000", "eu-west-1", minio.BucketLookupAuto, ""},
		"s3://bucket/a/b/?endpoint=s3.example.com&region=r&path_style=true&sse=s3": {"s3://bucket/a/b/ at https://s3.example.com", "r", minio.BucketLookupPath, "S3"},
		"s3://k:s%2Fs@bucket/a?endpoint=http://h:1/&path_style=false&sse=kms:id":   {"s3://bucket/a/ at http://h:1", "eu-west-1", minio.BucketLookupDNS, "KMS"},
	} {
		at, err := s3.Parse(text, func(name string) string { return environment[name] })
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		sse := ""
		if at.SSE != nil {
			sse = string(at.SSE.Type())
		}
		if at.String() != want.shown || at.Region != want.region || at.Lookup != want.lookup || sse != want.sse {
			t.Errorf("%s: %s, region %s, lookup %v, encryption %q", text, at, at.Region, at.Lookup, sse)
		}
	}
	if at, err := s3.Parse("s3://bucket", unset); err != nil || at.Endpoint.String() != "https://s3.amazonaws.com" || at.Region != "" {
		t.Errorf("without anything else: %s, region %q, %v", at, at.Region, err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"s3://":                                  "not a bucket's name",
		"s3:///prefix":                           "not a bucket's name",
		"s3://UPPER_case!":                       "not a bucket's name",
		"s3://k:se/cret@bucket":                  "%2F",
		"s3://key:12/cret@bucket":                "%2F",
		"s3://key/a:cret@bucket":                 "%2F",
		"s3://key/a:cret?b@bucket":               "%3F",
		"s3://key?a:cret@bucket":                 "%3F",
		"s3://key#a:cret@bucket":                 "%23",
		"s3://key:a@cret/b@bucket":               "%2F",
		"s3://cret:12":                           "%2C",
		"s3://bucket?endpoint=http://u:cret%40h": "endpoint=…@h",
		"s3://key@bucket":                        "half of a key",
		"s3://bucket/a//b":                       "the prefix",
		"s3://bucket/ä":                          "the prefix",
		"s3://bucket/" + strings.Repeat("p", 21): "the prefix",
		"s3://bucket?endpont=x":                  `"endpont" is not a parameter`,
		"s3://bucket?region=a&region=b":          "2 times",
		"s3://bucket?endpoint=ftp://h":           "endpoint=ftp://h",
		"s3://bucket?endpoint=https://h/p":       "without a path",
		"s3://bucket?path_style=yes":             "path_style=yes",
		"s3://bucket?sse=aes":                    "sse=aes",
		"s3://bucket?sse=kms:":                   "sse=kms:",
	} {
		_, err := s3.Parse(text, unset)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "cret") {
			t.Errorf("the secret is in %v", err)
		}
	}
}
