package main

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/internal/secret"
	"github.com/cryptopay-go/cryptopay/storage"
)

// keySize is the size of every key here, in bytes.
const keySize = 32

// keyring is the keys of the key file, newest first. The newest seals, each opens and verifies.
type keyring [][]byte

// loadKeys reads the keys that seal what is stored, one a line, or makes one at the first
// start. The file is the operator's to back up: without it no stored secret opens again.
// made says that there was none.
func loadKeys(file string) (ring keyring, made bool, err error) {
	text, err := secret.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		key, err := makeKey(file)
		return keyring{key}, true, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("key file %s: %w", file, err)
	}
	for n, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		key, err := hex.DecodeString(strings.TrimSpace(line))
		if err != nil || len(key) != keySize {
			return nil, false, fmt.Errorf("key file %s: line %d must hold %d bytes in hex", file, n+1, keySize)
		}
		ring = append(ring, key)
	}
	return ring, false, nil
}

// of is the keys of one use, newest first.
func (k keyring) of(use string) (out [][]byte) {
	for _, key := range k {
		out = append(out, derive(key, use))
	}
	return out
}

// The uses of keys. That of the library has the name of the time when it sealed webhook
// secrets alone.
const (
	forLibrary     = "webhooks"
	forCredentials = "credentials"
	forSeed        = "seed"
)

// mandatesCommand prints what a signer on another machine checks orders with: mandates.
const mandatesCommand = "mandates"

// printMandates derives it from the key file, and makes the file where there is none: the signer
// starts before the gateway. What it prints is a secret, and opens nothing that is sealed.
func printMandates(file string, out io.Writer) error {
	ring, made, err := loadKeys(file)
	if err == nil && made {
		err = noteSealed(file) // there is no store yet
	}
	if err == nil {
		_, err = out.Write(cryptopay.MandateKeys(ring.of(forLibrary)...).Text())
	}
	return err
}

// sealedFile says, beside the key file, that everything in the store is sealed. The database
// cannot tell: whoever edits it could make it look like one of a version before seals.
func sealedFile(keyFile string) string { return keyFile + ".sealed" }

// unsealedUntil is the day of the settings. Without one rows of a version before seals are
// taken until CRYPTOPAY_UPGRADED=1 has sealed them, as sealedFile says.
func (g *gateway) unsealedUntil(made bool) (time.Time, error) {
	if made || !g.s.unsealed.IsZero() {
		return g.s.unsealed, nil
	}
	switch _, err := os.Stat(sealedFile(g.s.keyFile)); {
	case errors.Is(err, os.ErrNotExist):
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), nil
	default:
		return time.Time{}, err
	}
}

// allSealed writes sealedFile.
func (g *gateway) allSealed(ctx context.Context) {
	if err := noteSealed(g.s.keyFile); err != nil {
		g.log.WarnContext(ctx, "sealed_not_noted", "error", err, "hint", "make the file by hand, or set CRYPTOPAY_UNSEALED_UNTIL to a day that is past")
	}
}

func noteSealed(keyFile string) error {
	return os.WriteFile(sealedFile(keyFile), []byte("All in the store is sealed. Without this file rows that nobody sealed are taken.\n"), 0o600)
}

func makeKey(file string) ([]byte, error) {
	key := make([]byte, keySize)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	return key, errors.Join(err, f.Sync(), f.Close())
}

// derive makes a key of its own for each use (HKDF, RFC 5869).
func derive(key []byte, use string) []byte {
	out, err := hkdf.Key(sha256.New, key, nil, "cryptopay gateway: "+use, keySize)
	if err != nil {
		panic(err) // the sizes are constants
	}
	return out
}

// sealed is the HD seed's words as they are stored.
type sealed struct {
	Words []byte `db:"words"`
}

var seeds = storage.NewTable[sealed]("gateway_seeds")

const seedID = "seed"

// loadSeed is the seed of CRYPTOPAY_MNEMONIC, or the one in the store, made at
// the first start. Words that are not those of the store are refused: its
// addresses would belong to nobody.
func loadSeed(ctx context.Context, s storage.Store, ring keyring, words string) (*keys.Seed, error) {
	stored, _, found, err := seeds.One(ctx, s, storage.System, seedID)
	if err != nil {
		return nil, err
	}
	if found {
		opened, _, err := ring.openSeed(stored)
		if err != nil {
			return nil, err
		}
		if words != "" && words != string(opened.Reveal()) {
			return nil, errors.New("CRYPTOPAY_MNEMONIC is not the seed that this store's addresses come from")
		}
		return keys.FromMnemonic(string(opened.Reveal()), "")
	}
	mine := words
	if mine == "" {
		if mine, err = keys.NewMnemonic(rand.Reader); err != nil {
			return nil, err
		}
	}
	seed, err := keys.FromMnemonic(mine, "")
	if err != nil {
		return nil, fmt.Errorf("CRYPTOPAY_MNEMONIC: %w", err)
	}
	shut, err := ring.sealSeed(secret.New([]byte(mine)))
	if err != nil {
		return nil, err
	}
	err = storage.CommitOne(ctx, s, storage.Change{
		// Another process that starts at the same moment makes other words.
		ID: fmt.Sprintf("gateway/seed/%x", sha256.Sum256(shut)), Partition: storage.System,
		Put: []storage.Row{seeds.Row(seedID, 0, time.Time{}, sealed{Words: shut})},
	})
	if errors.Is(err, storage.ErrConflict) {
		return loadSeed(ctx, s, ring, words) // it was first
	}
	return seed, err
}

// openSeed opens the stored words with whichever key sealed them. newest says that the
// newest did.
func (k keyring) openSeed(stored sealed) (words secret.Secret, newest bool, err error) {
	for n, key := range k.of(forSeed) {
		box, e := secret.NewBox(key, rand.Reader)
		if e != nil {
			return words, false, e
		}
		if words, e = box.Open(stored.Words, seedID); e == nil {
			return words, n == 0, nil
		}
		err = e
	}
	return words, false, fmt.Errorf("the stored seed does not open: is the key file the right one? %w", err)
}

func (k keyring) sealSeed(words secret.Secret) ([]byte, error) {
	box, err := secret.NewBox(k.of(forSeed)[0], rand.Reader)
	if err != nil {
		return nil, err
	}
	return box.Seal(words, seedID)
}

// resealSeed seals the stored words with the newest key, where an older one did.
func (k keyring) resealSeed(ctx context.Context, s storage.Store) error {
	stored, row, found, err := seeds.One(ctx, s, storage.System, seedID)
	if err != nil || !found {
		return err
	}
	words, newest, err := k.openSeed(stored)
	if err != nil || newest {
		return err
	}
	shut, err := k.sealSeed(words)
	if err != nil {
		return err
	}
	err = storage.CommitOne(ctx, s, storage.Change{
		ID: fmt.Sprintf("gateway/seed/%x", sha256.Sum256(shut)), Partition: storage.System,
		Put: []storage.Row{seeds.Row(seedID, row.Version, time.Time{}, sealed{Words: shut})},
	})
	if errors.Is(err, storage.ErrConflict) {
		return nil // another process was first
	}
	return err
}
