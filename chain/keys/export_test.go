package keys

import (
	"io"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
)

// What the tests may see of the inside.

func (s *Seed) PrivateKey(path string) ([]byte, error) {
	k, err := s.derive(path)
	if err != nil {
		return nil, err
	}
	defer k.Zero()
	p, err := k.ECPrivKey()
	if err != nil {
		return nil, err
	}
	return p.Serialize(), nil
}

func (s *Seed) Bytes() []byte { return s.raw.Reveal() }

// SaveQuick is Save at the least cost that Load accepts.
func (s *Seed) SaveQuick(file string, passphrase []byte, random io.Reader) error {
	return s.save(file, passphrase, random, minScryptN)
}

var ParsePath = parsePath

// Faulty lets the signer change one bit of each signature that it makes, as a fault of
// the machine does.
func (s *Signer) Faulty(bit int) {
	s.compact = func(key *secp256k1.PrivateKey, hash []byte, compressed bool) []byte {
		sig := ecdsa.SignCompact(key, hash, compressed)
		sig[1+bit/8] ^= 1 << (bit % 8)
		return sig
	}
}
