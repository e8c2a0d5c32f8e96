package cryptopay

import (
	"crypto/hkdf"
	"crypto/sha256"
)

// DeriveKeys returns a key of 32 bytes for each of Config.Keys, newest first, for what is
// built on top of an App: such as httpapi/checkout, whose links it makes. The keys of one
// purpose tell nothing about those of another, or about Config.Keys.
func (a *App) DeriveKeys(purpose string) [][]byte {
	out := make([][]byte, len(a.cfg.Keys))
	for i, k := range a.cfg.Keys {
		key, err := hkdf.Key(sha256.New, k, nil, "cryptopay host "+purpose, sha256.Size)
		if err != nil {
			panic(err) // the sizes are constants
		}
		out[i] = key
	}
	return out
}
