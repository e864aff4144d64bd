package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// settings are the environment's settings for the destination of spans.
type settings struct {
	url     string
	headers http.Header
	gzip    bool
	timeout time.Duration // of one request
	client  *http.Client
}

const (
	defaultEndpoint = "http://localhost:4318"
	defaultTimeout  = 10 * time.Second
)

// read reads OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER and OTEL_EXPORTER_OTLP_[TRACES_]…: ENDPOINT, PROTOCOL, HEADERS,
// TIMEOUT (milliseconds), COMPRESSION, CERTIFICATE, CLIENT_CERTIFICATE and CLIENT_KEY. Spans are sent only if an endpoint
// or the exporter "otlp" is set. The SDK itself reads OTEL_TRACES_SAMPLER, OTEL_BSP_… and the rest.
func read(getenv func(string) string) (*settings, bool, error) {
	const prefix = "OTEL_EXPORTER_OTLP_"
	get := func(name string) string {
		if v := strings.TrimSpace(getenv(prefix + "TRACES_" + name)); v != "" {
			return v
		}
		return strings.TrimSpace(getenv(prefix + name))
	}
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, false, nil
	}
	switch x := getenv("OTEL_TRACES_EXPORTER"); x {
	case "otlp":
	case "none":
		return nil, false, nil
	case "":
		if get("ENDPOINT") == "" {
			return nil, false, nil
		}
	default:
		return nil, false, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: Pawl has otlp and none", x)
	}
	if p := get("PROTOCOL"); p != "" && p != "http/protobuf" {
		return nil, false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: Pawl speaks http/protobuf, which collectors take on port 4318", p)
	}
	s := &settings{headers: http.Header{}, timeout: defaultTimeout}
	var err error
	if s.url, err = endpoint(getenv(prefix+"TRACES_ENDPOINT"), getenv(prefix+"ENDPOINT")); err != nil {
		return nil, false, err
	}
	switch c := get("COMPRESSION"); c {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		return nil, false, fmt.Errorf("OTEL_EXPORTER_OTLP_COMPRESSION is %q: give gzip or none", c)
	}
	if t := get("TIMEOUT"); t != "" {
		ms, err := strconv.Atoi(t)
		if err != nil || ms < 1 {
			return nil, false, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT is %q: give milliseconds", t)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	for pair := range strings.SplitSeq(get("HEADERS"), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, false, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: header %q is not written as name=value", strings.TrimSpace(name)) // values are secrets
		}
		s.headers.Set(strings.TrimSpace(name), plain)
	}
	s.client, err = client(get("CERTIFICATE"), get("CLIENT_CERTIFICATE"), get("CLIENT_KEY"))
	return s, err == nil, err
}

// endpoint is the URL for spans: the one for traces unchanged, or the one for all signals with the path for traces.
func endpoint(traces, all string) (string, error) {
	given := strings.TrimSpace(traces)
	if given == "" {
		if given = strings.TrimSpace(all); given == "" {
			given = defaultEndpoint
		}
		given = strings.TrimSuffix(given, "/") + "/v1/traces"
	}
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("the OTLP endpoint %q is no URL: write it as http://collector:4318", given)
	}
	return given, nil
}

func client(roots, certificate, key string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() // with the proxy settings of the environment
	if roots == "" && certificate == "" && key == "" {
		return &http.Client{Transport: transport}, nil
	}
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if roots != "" {
		pem, err := os.ReadFile(roots)
		if err != nil {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s holds no certificate in PEM", roots)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	if certificate != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY: %w", err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: transport}, nil
}
