// Package s3test gives tests a prefix in a bucket.
package s3test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"os"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/pawl-run/pawl/internal/blob/s3"
)

// Variable names the bucket that tests share.
const Variable = "PAWL_TEST_S3"

// URL returns the address of a new prefix for the test, which is emptied at its end.
func URL(t testing.TB) *url.URL {
	t.Helper()
	text := os.Getenv(Variable)
	if text == "" && os.Getenv("PAWL_TEST_STRICT") != "" {
		t.Fatal(Variable + " names no bucket")
	}
	if text == "" {
		t.Skip("NOT TESTED: " + Variable + " names no bucket. Run `eval \"$(scripts/services up)\"` first.")
	}
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(Variable + " is no URL")
	}
	raw := make([]byte, 6)
	rand.Read(raw) // never fails on the systems that Go supports
	u.Path = "/t-" + hex.EncodeToString(raw)
	t.Cleanup(func() { empty(t, u) })
	return u
}

// With returns a URL with one changed parameter.
func With(u *url.URL, name, value string) *url.URL {
	changed := *u
	q := u.Query()
	q.Set(name, value)
	changed.RawQuery = q.Encode()
	return &changed
}

// Client returns the library's client, for operations that the store does not have, with the bucket and the prefix.
func Client(t testing.TB, u *url.URL) (c *minio.Core, bucket, prefix string) {
	t.Helper()
	at, err := s3.Parse(u.String(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	c, err = at.Client()
	if err != nil {
		t.Fatal(err)
	}
	return c, at.Bucket, at.Prefix
}

func empty(t testing.TB, u *url.URL) {
	c, bucket, prefix := Client(t, u)
	ctx := context.Background()
	left := c.Client.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true})
	for o := range c.RemoveObjects(ctx, bucket, left, minio.RemoveObjectsOptions{}) {
		t.Error(o.Err)
	}
}
