package main

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain/keys"
)

// loadKeys reads the key that seals what is stored, and the seed that all addresses come from.
// Both are made at the first start. Whoever loses them loses the coins, so keep copies.
func loadKeys(dir string) (key []byte, seed *keys.Seed, err error) {
	name := filepath.Join(dir, "shop.key")
	text, err := fileOf(name, func() ([]byte, error) {
		raw := make([]byte, 32)
		_, err := rand.Read(raw)
		return []byte(hex.EncodeToString(raw) + "\n"), err
	})
	if err != nil {
		return nil, nil, err
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(raw) != 32 {
		return nil, nil, fmt.Errorf("%s must hold 32 bytes in hex", name)
	}
	if key, err = hkdf.Key(sha256.New, raw, nil, "shop: store", 32); err != nil {
		return nil, nil, err
	}
	passphrase, err := hkdf.Key(sha256.New, raw, nil, "shop: seed", 32)
	if err != nil {
		return nil, nil, err
	}
	seed, err = loadSeed(filepath.Join(dir, "shop.seed"), passphrase)
	return key, seed, err
}

func loadSeed(file string, passphrase []byte) (*keys.Seed, error) {
	seed, err := keys.Load(file, passphrase)
	if !errors.Is(err, os.ErrNotExist) {
		return seed, err
	}
	words, err := keys.NewMnemonic(rand.Reader)
	if err != nil {
		return nil, err
	}
	if seed, err = keys.FromMnemonic(words, ""); err != nil {
		return nil, err
	}
	return seed, seed.Save(file, passphrase, rand.Reader)
}
