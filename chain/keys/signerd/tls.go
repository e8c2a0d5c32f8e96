package signerd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/cryptopay-go/cryptopay/internal/secret"
)

// Files names the PEM files of one side. Only its owner may read Key.
type Files struct {
	Certificate string // ours, and what is between it and the authority
	Key         string // ours
	CA          string // of the authority that signed the other side's certificate
}

// ServerTLS is the configuration of a Server: it takes clients with a certificate of the
// authority alone.
func (f Files) ServerTLS() (*tls.Config, error) {
	cert, pool, err := f.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		SessionTicketsDisabled: true, // every connection shows its certificate
	}, nil
}

// ClientTLS is the configuration of a Client: it trusts no other authority.
func (f Files) ClientTLS() (*tls.Config, error) {
	cert, pool, err := f.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: pool}, nil
}

func (f Files) load() (tls.Certificate, *x509.CertPool, error) {
	key, err := secret.ReadFile(f.Key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("signerd: key: %w", err)
	}
	defer clear(key)
	chain, err := os.ReadFile(f.Certificate)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("signerd: certificate: %w", err)
	}
	cert, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("signerd: certificate and key: %w", err)
	}
	authority, err := os.ReadFile(f.CA)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("signerd: CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return tls.Certificate{}, nil, errors.New("signerd: CA: the file has no certificate")
	}
	return cert, pool, nil
}
