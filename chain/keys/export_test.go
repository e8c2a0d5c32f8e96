package keys

import "io"

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
