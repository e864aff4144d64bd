package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/pawl-run/pawl/internal/blob"
)

// answer returns the service's error response, if err is one.
func answer(err error) (minio.ErrorResponse, bool) {
	var e minio.ErrorResponse
	ok := errors.As(err, &e)
	return e, ok
}

// status returns the status of the service's answer; 0: there is none.
func status(err error) int {
	e, _ := answer(err)
	return e.StatusCode
}

// unsupported reports whether the service does not support the request.
func unsupported(err error) bool {
	e, ok := answer(err)
	return ok && (e.Code == minio.NotImplemented || e.Code == minio.MethodNotAllowed || e.StatusCode == http.StatusNotImplemented || e.StatusCode == http.StatusMethodNotAllowed)
}

// fault converts an error to one of the port: blob.ErrNotFound, blob.ErrUnavailable, or an error that a retry does not change. An error
// that an operator can fix is ErrUnavailable until then: no blob is lost because of expired keys.
func (s *Store) fault(ctx context.Context, err error) error {
	found, curable := s.diagnose(ctx, err)
	if curable {
		return fmt.Errorf("%w: %w", blob.ErrUnavailable, found)
	}
	return found
}

// diagnose explains an error, and reports whether it persists until the operator changes what the explanation says.
func (s *Store) diagnose(ctx context.Context, err error) (found error, curable bool) {
	if err == nil {
		return nil, false
	}
	if ctx.Err() != nil {
		return ctx.Err(), false
	}
	e, ok := answer(err)
	if !ok {
		return s.unanswered(err)
	}
	if passes(e.Code) {
		return fmt.Errorf("%w: %s: %s: %w", blob.ErrUnavailable, s.at, e.Code, err), false
	}
	if cure := s.cure(e); cure != "" {
		return fmt.Errorf("%s: %s: %s (%w)", s.at, e.Code, cure, err), true
	}
	switch {
	case e.Code == minio.NoSuchKey || e.Code == minio.NoSuchUpload:
		return blob.ErrNotFound, false
	case e.StatusCode == 0, e.StatusCode >= 500 && e.StatusCode != http.StatusNotImplemented, e.StatusCode == http.StatusTooManyRequests, e.StatusCode == http.StatusRequestTimeout:
		return fmt.Errorf("%w: %s: %s: %w", blob.ErrUnavailable, s.at, e.Code, err), false
	}
	return fmt.Errorf("%s: %s: %w", s.at, e.Code, err), false
}

// passes reports whether a repetition of the request that got this error code may succeed. It ignores the HTTP status, because services
// send different ones for the same code. A body that was damaged on its way is one of these errors.
func passes(code string) bool {
	switch code {
	case "QuotaExceeded", "RequestTimeout", "OperationAborted", minio.IncompleteBody, minio.BadDigest, minio.XAmzContentSHA256Mismatch:
		return true
	}
	return strings.HasPrefix(code, "SlowDown")
}

// cure says what the operator must change; empty: unknown.
func (s *Store) cure(e minio.ErrorResponse) string {
	switch e.Code {
	case minio.NoSuchBucket:
		return "there is no bucket " + s.at.Bucket + ": make it, or write another name in s3://BUCKET"
	case "InvalidAccessKeyId", "XAdminUserNotFound", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken":
		return "the service refuses the keys: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, and that they belong to this endpoint"
	case "RequestTimeTooSkewed":
		return fmt.Sprintf("this machine's clock and that of the service differ by %s: set this one, as by NTP", s.Skew().Abs().Round(time.Second))
	case "AuthorizationHeaderMalformed", "InvalidRegion", "PermanentRedirect", "TemporaryRedirect", "IllegalLocationConstraintException", "IncorrectRegion":
		if e.Region != "" {
			return "the bucket is in another region: write region=" + e.Region
		}
		return "the region " + s.at.Region + " is not the bucket's: write the right one in region=, or the endpoint of its region in endpoint="
	case minio.AccessDenied, "AllAccessDisabled", "AccountProblem":
		return "the keys may not do this: allow s3:ListBucket, s3:ListBucketMultipartUploads, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload on " + s.at.Bucket
	case "InvalidBucketName":
		return s.at.Bucket + " is not a name of a bucket"
	}
	switch {
	case e.StatusCode == http.StatusForbidden || e.StatusCode == http.StatusUnauthorized:
		return "the service refuses the request: check the keys and what they may do"
	case e.StatusCode == http.StatusNotFound && e.Code != minio.NoSuchKey && e.Code != minio.NoSuchUpload:
		return "this is not the address of a bucket: check the bucket's name, endpoint= and path_style="
	}
	return ""
}

// unanswered explains an error without an answer, and separates wrong settings from errors that may pass.
func (s *Store) unanswered(err error) (found error, curable bool) {
	var (
		missing   noCredentials
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &missing):
		return fmt.Errorf("%w: %s: %w", blob.ErrUnavailable, s.at, missing), false
	case errors.As(err, &authority):
		return fmt.Errorf("%s: its certificate is of an authority that this machine does not know: name that one's certificate with SSL_CERT_FILE (%w)", s.at, err), true
	case errors.As(err, &host):
		return fmt.Errorf("%s: its certificate is for another name: write that name in endpoint=, or path_style=true where the bucket's name was put before it (%w)", s.at, err), true
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%s: it speaks HTTP and not HTTPS: write endpoint=http://%s (%w)", s.at, s.at.Endpoint.Host, err), true
	}
	return fmt.Errorf("%w: %s does not answer: check endpoint= and the way there: %w", blob.ErrUnavailable, s.at, err), false
}
