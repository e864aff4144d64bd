package s3

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/pawl-run/pawl/internal/blob"
)

// Scheme is the start of a bucket's address.
const Scheme = "s3://"

// maxPrefix keeps a key with the longest blob name within the 1,024 bytes that services allow.
const maxPrefix = 20

// Address is the location of blobs and how to reach it, as in s3://BUCKET/PREFIX?endpoint=….
type Address struct {
	Bucket    string
	Prefix    string // empty, or ends in "/"
	Endpoint  *url.URL
	Region    string // empty: ask the service
	Lookup    minio.BucketLookupType
	SSE       encrypt.ServerSide // nil: the bucket's default
	accessKey string             // from the URL; empty: use the sources of AWS's programs
	secretKey string
}

// String returns the address for messages, without its secrets.
func (a Address) String() string {
	return Scheme + a.Bucket + "/" + a.Prefix + " at " + a.Endpoint.String()
}

// Client returns the library's client for the address.
func (a Address) Client() (*minio.Core, error) { return a.client(newPatience()) }

func (a Address) client(transport http.RoundTripper) (*minio.Core, error) {
	return minio.NewCore(a.Endpoint.Host, &minio.Options{
		Creds: a.credentials(), Secure: a.Endpoint.Scheme == "https", Transport: transport, Region: a.Region, BucketLookup: a.Lookup, MaxRetries: tries,
	})
}

// Parse parses an address. Missing parts are read from the environment variables of AWS's programs, if set.
func Parse(text string, getenv func(string) string) (Address, error) {
	u, err := url.Parse(text)
	if err != nil || astray(u, text) {
		return Address{}, errors.New("the setting blobs is no URL: write it as s3://BUCKET/PREFIX?endpoint=https://HOST, with %2F for /, %3F for ?, %23 for # and %2C for a comma in a key") // what is wrong with it may be a part of the secret
	}
	a := Address{Bucket: u.Host, accessKey: u.User.Username()}
	a.secretKey, _ = u.User.Password()
	if (a.accessKey == "") != (a.secretKey == "") {
		return Address{}, errors.New("the URL has half of a key: write s3://KEY:SECRET@BUCKET, with %2F for / in it, or leave both out and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	if err := s3utils.CheckValidBucketName(a.Bucket); err != nil {
		return Address{}, fmt.Errorf("%.60q is not a bucket's name: %w", a.Bucket, err)
	}
	if prefix := strings.Trim(u.Path, "/"); prefix != "" {
		if err := blob.CheckName(prefix); err != nil || len(prefix) > maxPrefix {
			return Address{}, fmt.Errorf("the prefix %.60q must be 1 to %d letters, digits, \".\", \"_\", \"-\" and \"/\"", prefix, maxPrefix)
		}
		a.Prefix = prefix + "/"
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Address{}, fmt.Errorf("the parameters of s3://%s: %w", a.Bucket, err)
	}
	for name, values := range query {
		if len(values) > 1 {
			return Address{}, fmt.Errorf("the parameter %s is given %d times", name, len(values))
		}
		switch name {
		case "endpoint", "region", "path_style", "sse":
		default:
			return Address{}, fmt.Errorf("%.40q is not a parameter of s3://%s: the parameters are endpoint, region, path_style and sse", name, a.Bucket)
		}
	}
	if a.Endpoint, err = endpoint(cmp.Or(query.Get("endpoint"), getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"))); err != nil {
		return Address{}, err
	}
	a.Region = cmp.Or(query.Get("region"), getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"))
	if a.Region == "" && !s3utils.IsAmazonEndpoint(*a.Endpoint) {
		a.Region = "us-east-1" // the region that services without regions expect
	}
	switch style := query.Get("path_style"); style {
	case "": // automatic for AWS and some others that the library knows; else by path
	case "true":
		a.Lookup = minio.BucketLookupPath
	case "false":
		a.Lookup = minio.BucketLookupDNS
	default:
		return Address{}, fmt.Errorf("path_style=%.20s: write true, for https://HOST/BUCKET, or false, for https://BUCKET.HOST", style)
	}
	a.SSE, err = encryption(query.Get("sse"))
	return a, err
}

// astray reports whether the text read as a bucket may be part of a secret that contains a character which ends it in a URL: the "@" after
// a secret is in the wrong place, or a bucket has a port.
func astray(u *url.URL, text string) bool {
	before := strings.TrimPrefix(text, Scheme)
	if end := strings.IndexAny(before, "/?#"); end >= 0 {
		before = before[:end]
	}
	return strings.LastIndex(text, "@") >= len(Scheme)+len(before) || strings.Contains(u.Host, ":")
}

func endpoint(text string) (*url.URL, error) {
	switch {
	case text == "":
		text = "https://s3.amazonaws.com"
	case !strings.Contains(text, "://"):
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		if strings.Contains(text, "@") { // the text before it may be a secret
			text = "…" + text[strings.LastIndex(text, "@"):]
		}
		return nil, fmt.Errorf("endpoint=%.80s is not the address of a service: write https://HOST or http://HOST:PORT, without a path; the bucket stands in s3://BUCKET", text)
	}
	u.Path = ""
	return u, nil
}

func encryption(text string) (encrypt.ServerSide, error) {
	id, kms := strings.CutPrefix(text, "kms:")
	switch {
	case text == "":
		return nil, nil
	case text == "s3":
		return encrypt.NewSSE(), nil
	case kms && id != "":
		return encrypt.NewSSEKMS(id, nil)
	}
	return nil, fmt.Errorf("sse=%.40s: write s3, for keys of the service, or kms:ID, for a key of its KMS", text)
}
