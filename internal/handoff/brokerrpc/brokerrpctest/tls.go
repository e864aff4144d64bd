package brokerrpctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are files for a broker with TLS on 127.0.0.1.
type Certificates struct {
	CA, Cert, Key string
}

// NewCertificates makes them in a directory, from an authority of the test's own, which is in ca.pem.
func NewCertificates(t *testing.T, dir string) Certificates {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, kind string, der []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		must(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o644)) // the broker may run as another user
		return path
	}
	sign := func(c, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) []byte {
		t.Helper()
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, byKey)
		must(err)
		return der
	}
	newKey := func() *ecdsa.PrivateKey {
		t.Helper()
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(err)
		return key
	}
	caKey, key := newKey(), newKey()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the test's authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	server := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "the test's broker"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	return Certificates{
		CA:   write("ca.pem", "CERTIFICATE", sign(ca, ca, caKey, caKey)),
		Cert: write("cert.pem", "CERTIFICATE", sign(server, ca, key, caKey)),
		Key:  write("key.pem", "PRIVATE KEY", der),
	}
}
