package keys

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"
	"github.com/btcsuite/btcd/chaincfg/v2"
	"github.com/tyler-smith/go-bip39"
	"golang.org/x/crypto/scrypt"
	"golang.org/x/text/unicode/norm"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/secret"
)

// Errors of this package. None of them ever carries key material.
var (
	ErrMnemonic   = errors.New("keys: not a BIP39 mnemonic: check words, order and checksum")
	ErrPassphrase = errors.New("keys: the seed file does not open: wrong passphrase or changed file")
	// ErrPath does not repeat what was given: it might be a key.
	ErrPath = errors.New("keys: not a derivation path such as m/44'/60'/0'/0/7")
)

// errNoKey happens once in 2^127 indexes.
var errNoKey = errors.New("keys: this index has no key, use the next")

// Seed is the root of all private keys. Printing it shows stars.
type Seed struct{ raw secret.Secret }

// NewMnemonic makes a new BIP39 phrase of 24 English words from 32 bytes of
// random.
func NewMnemonic(random io.Reader) (string, error) {
	entropy := make([]byte, 32)
	if _, err := io.ReadFull(random, entropy); err != nil {
		return "", fmt.Errorf("keys: no randomness: %w", err)
	}
	defer clear(entropy)
	return bip39.NewMnemonic(entropy)
}

// FromMnemonic is the seed of a BIP39 phrase and its optional passphrase.
func FromMnemonic(mnemonic, passphrase string) (*Seed, error) {
	raw, err := bip39.NewSeedWithErrorChecking(strings.Join(strings.Fields(mnemonic), " "), norm.NFKD.String(passphrase))
	if err != nil {
		return nil, ErrMnemonic
	}
	defer clear(raw)
	return FromBytes(raw)
}

// FromBytes is a seed of 16 to 64 bytes, as BIP32 takes it.
func FromBytes(raw []byte) (*Seed, error) {
	s := &Seed{secret.New(append([]byte(nil), raw...))}
	k, err := s.master()
	if err != nil {
		return nil, err
	}
	k.Zero()
	return s, nil
}

// Format, String, GoString, LogValue and MarshalText all print stars.
func (s Seed) Format(f fmt.State, v rune)   { s.raw.Format(f, v) }
func (s Seed) String() string               { return s.raw.String() }
func (s Seed) GoString() string             { return s.raw.GoString() }
func (s Seed) LogValue() slog.Value         { return s.raw.LogValue() }
func (s Seed) MarshalText() ([]byte, error) { return s.raw.MarshalText() }

func (s *Seed) master() (*hdkeychain.ExtendedKey, error) {
	k, err := hdkeychain.NewMaster(s.raw.Reveal(), &chaincfg.MainNetParams)
	if err != nil {
		return nil, errors.New("keys: a seed must have 16 to 64 bytes")
	}
	return k, nil
}

// derive walks a path from the master key; the caller zeroes the result.
func (s *Seed) derive(path string) (*hdkeychain.ExtendedKey, error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	k, err := s.master()
	for _, i := range steps {
		if err != nil {
			return nil, errNoKey
		}
		var child *hdkeychain.ExtendedKey
		child, err = k.Derive(i)
		k.Zero()
		k = child
	}
	return k, err
}

// public is the public key that a KeyRef names, on either curve.
func (s *Seed) public(ref chain.KeyRef) (chain.PublicKey, error) {
	if path, ok := strings.CutPrefix(string(ref), edwards); ok {
		k, err := s.deriveEdwards(path)
		if err != nil {
			return nil, err
		}
		defer clear(k)
		return chain.PublicKey(k.Public().(ed25519.PublicKey)), nil
	}
	if path, ok := onSoft(ref); ok {
		k, err := s.publicSoft(path)
		return k.Key[:], err
	}
	k, err := s.derive(string(ref))
	if err != nil {
		return nil, err
	}
	defer k.Zero()
	pub, err := k.ECPubKey()
	if err != nil {
		return nil, err
	}
	return pub.SerializeCompressed(), nil
}

// XPub is the extended public key of an account path, as BIP32 writes it:
// enough to derive every address below it, and no private key.
func (s *Seed) XPub(path string) (string, error) {
	k, err := s.derive(path)
	if err != nil {
		return "", err
	}
	defer k.Zero()
	pub, err := k.Neuter()
	if err != nil {
		return "", err
	}
	return pub.String(), nil
}

// maxPath is the length of the longest path, in bytes.
const maxPath = 100

func parsePath(path string) ([]uint32, error) {
	rest, ok := strings.CutPrefix(path, "m")
	if !ok || len(path) > maxPath {
		return nil, ErrPath
	}
	var steps []uint32
	for rest != "" {
		part, ok := strings.CutPrefix(rest, "/")
		if !ok {
			return nil, ErrPath
		}
		part, rest, ok = strings.Cut(part, "/")
		if ok {
			rest = "/" + rest
		}
		number, hardened := strings.CutSuffix(part, "'")
		i, err := strconv.ParseUint(number, 10, 31)
		if err != nil || number != strconv.FormatUint(i, 10) {
			return nil, ErrPath
		}
		if hardened {
			i += hdkeychain.HardenedKeyStart
		}
		steps = append(steps, uint32(i))
	}
	return steps, nil
}

// Account is where a network's keys are: <Path>/<Branch>/<index>.
type Account struct {
	Network chain.Network
	Path    string // hardened part, for KeyRefs
	Branch  uint32
	XPub    string // of Path: BIP32's, or acct_xvk1… of BIP32-Ed25519
}

// coinTypes are the registered coin types of SLIP-44 with the purpose used.
var coinTypes = map[chain.Network]string{
	"BTC": "m/84'/0'/0'", "LTC": "m/84'/2'/0'", "DOGE": "m/44'/3'/0'", "TRX": "m/44'/195'/0'", "XRP": "m/44'/144'/0'",
}

// evmAccount is shared by all EVM networks; see the package's promise.
const evmAccount = "m/44'/60'/0'"

// foreign reports whether a key is below the coin type of another network. Some networks
// sign alike: a signature of Litecoin over a bitcoin is one of Bitcoin. EVM networks share
// a coin type, and sign their chain id.
func foreign(n chain.Network, ref chain.KeyRef) bool {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(string(ref), edwards), softEdwards), "/")
	if len(parts) < 3 {
		return false
	}
	of := func(path string) bool { return strings.Split(path, "/")[2] == parts[2] }
	for other, path := range coinTypes {
		if other != n && of(path) {
			return true
		}
	}
	for other, place := range edwardsPaths {
		if other != n && of(place.path) {
			return true
		}
	}
	for other, path := range softAccounts {
		if other != n && of(path) {
			return true
		}
	}
	return false
}

// Accounts lists the accounts of a registry's networks whose public keys derive others, with
// their xpubs: what a watch-only process needs. Solana and Stellar have none.
func (s *Seed) Accounts(networks []chain.NetworkInfo) ([]Account, error) {
	out, err := accountsOf(networks)
	for i := range out {
		if path, ok := onSoft(chain.KeyRef(out[i].Path)); ok {
			k, err := s.publicSoft(path)
			if err != nil {
				return nil, err
			}
			if out[i].XPub, err = softXPub(k); err != nil {
				return nil, err
			}
			continue
		}
		if out[i].XPub, err = s.XPub(out[i].Path); err != nil {
			return nil, err
		}
	}
	return out, err
}

// accountsOf are the accounts of such networks without their xpubs.
func accountsOf(networks []chain.NetworkInfo) (out []Account, err error) {
	for _, n := range networks {
		a := Account{Network: n.Code, Path: coinTypes[n.Code]}
		if a.Path == "" && n.Family == chain.UTXOFamily {
			a.Path = n.KeyPath
		}
		if n.AddressType == "EVM" {
			if n.Code != "ETH" && (n.ChainID <= 0 || n.ChainID >= hdkeychain.HardenedKeyStart) {
				return nil, fmt.Errorf("keys: network %s: chain id %d gives no branch of its own", n.Code, n.ChainID)
			}
			a.Path = evmAccount
			if n.Code != "ETH" {
				a.Branch = uint32(n.ChainID)
			}
		}
		if path, ok := softAccounts[n.Code]; ok {
			a.Path = softEdwards + path
		}
		if a.Path != "" { // else no public key derives another, or no account per payment
			out = append(out, a)
		}
	}
	return out, nil
}

// sealedSeed is the seed file: JSON, the seed in AES-256-GCM under a key that
// scrypt (RFC 7914) makes of the passphrase.
type sealedSeed struct {
	Version int    `json:"version"`
	KDF     string `json:"kdf"`
	N       int    `json:"n"`
	R       int    `json:"r"`
	P       int    `json:"p"`
	Salt    []byte `json:"salt"`
	Sealed  []byte `json:"sealed"`
}

const (
	seedPlace = "cryptopay/seed/1"
	scryptN   = 1 << 17 // 128 MiB and a third of a second

	minScryptN = 1 << 14 // of a file that is opened
	scryptR    = 8
	scryptP    = 1
)

// Save writes the seed to a new file that only its owner can read, sealed with
// the passphrase (at least 12 bytes). An existing file is never overwritten.
func (s *Seed) Save(file string, passphrase []byte, random io.Reader) error {
	return s.save(file, passphrase, random, scryptN)
}

func (s *Seed) save(file string, passphrase []byte, random io.Reader, n int) error {
	if len(passphrase) < 12 {
		return errors.New("keys: the passphrase must have at least 12 bytes")
	}
	f := sealedSeed{Version: 1, KDF: "scrypt", N: n, R: scryptR, P: scryptP, Salt: make([]byte, 32)}
	if _, err := io.ReadFull(random, f.Salt); err != nil {
		return fmt.Errorf("keys: no randomness: %w", err)
	}
	box, err := f.box(passphrase, random)
	if err != nil {
		return err
	}
	if f.Sealed, err = box.Seal(s.raw, seedPlace); err != nil {
		return err
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return writeNew(file, append(b, '\n'))
}

// writeNew makes the file durable before it has its name.
func writeNew(file string, b []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".seed-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), file); err != nil {
		return fmt.Errorf("keys: the seed file cannot be made: %w", err)
	}
	return syncDir(filepath.Dir(file)) // else the name may be gone after a power cut
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Load opens a seed file, which only its owner may read. The error wraps ErrPassphrase where it does not open.
func Load(file string, passphrase []byte) (*Seed, error) {
	b, err := secret.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("keys: the seed file: %w", err)
	}
	var f sealedSeed
	if err := json.Unmarshal(b, &f); err != nil || f.Version != 1 || f.KDF != "scrypt" {
		return nil, fmt.Errorf("keys: %s is no seed file of this version", filepath.Base(file))
	}
	if f.N < minScryptN || f.N > 1<<20 || f.N&(f.N-1) != 0 || f.R != scryptR || f.P != scryptP {
		return nil, fmt.Errorf("%w: its cost parameters are out of bounds", ErrPassphrase)
	}
	box, err := f.box(passphrase, nil)
	if err != nil {
		return nil, err
	}
	raw, err := box.Open(f.Sealed, seedPlace)
	if err != nil {
		return nil, ErrPassphrase
	}
	defer clear(raw.Reveal())
	return FromBytes(raw.Reveal())
}

func (f *sealedSeed) box(passphrase []byte, random io.Reader) (*secret.Box, error) {
	key, err := scrypt.Key(passphrase, f.Salt, f.N, f.R, f.P, 32)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	return secret.NewBox(key, random)
}
