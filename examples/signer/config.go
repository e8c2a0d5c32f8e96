package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/keys/hsm"
	"github.com/cryptopay-go/cryptopay/chain/keys/signerd"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/networks"
	"github.com/cryptopay-go/cryptopay/examples/internal/policy"
	"github.com/cryptopay-go/cryptopay/internal/secret"
)

// config is the configuration file. Files are named from its folder on.
type config struct {
	Listen      string `json:"listen"`
	Certificate string `json:"certificate"` // PEM
	Key         string `json:"key"`
	CA          string `json:"ca"` // of the App's certificate

	Seed       string `json:"seed"`       // sealed
	Passphrase string `json:"passphrase"` // file
	Module     module `json:"module"`     // in place of a seed
	Mandates   string `json:"mandates"`   // file: what the gateway's command mandates printed
	Registry   string `json:"registry"`   // SQLite
	Log        string `json:"log"`

	// NetworksFile adds networks and tokens; see docs/registry.md. The gateway must have the same.
	NetworksFile string `json:"networks_file"`

	Networks   map[chain.Network]network `json:"networks"`
	Currencies map[string]currency       `json:"currencies"`
	// Simulated lists all networks that a gateway simulates, in its order, in place of
	// real ones: to try it out.
	Simulated []chain.Network `json:"simulated"`

	dir      string
	all      *networks.Set
	registry *chain.Registry
	clients  map[chain.Network]chain.Client
	limits   keys.Limits
	allow    map[string][]signerd.Recipient
}

// module is a hardware module whose keys sign.
type module struct {
	Library string `json:"library"` // PKCS#11
	Token   string `json:"token"`   // label
	PIN     string `json:"pin"`     // file; none: SIGNER_PIN in the environment has it
}

// network is what may be signed on a network.
type network struct {
	Chain  string `json:"chain"`  // "" is the main one; see CRYPTOPAY_CHAIN_… of the gateway
	Pruned bool   `json:"pruned"` // see CRYPTOPAY_PRUNED_… of the gateway
	Stake  string `json:"stake"`  // of ADA; see CRYPTOPAY_STAKE_ADA of the gateway
	policy.Network
}

// currency is what may be paid to others.
type currency struct {
	Contract string `json:"contract"` // on other chains than the main one
	policy.Currency
	Recipients []signerd.Recipient `json:"recipients"` // left out = anybody; an empty list = nobody
}

// readConfig reads the file.
func readConfig(file string) (*config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &config{
		Listen: "127.0.0.1:8443", Certificate: "signer.crt", Key: "signer.key", CA: "ca.crt", Seed: "seed.json", Passphrase: "passphrase",
		Registry: "registry.db", Log: "signed.log", dir: filepath.Dir(file),
	}
	if err = policy.Decode(text, c); err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return c, nil
}

func (c *config) check() (err error) {
	if len(c.Networks) == 0 {
		return errors.New("networks: name at least one")
	}
	if c.hasModule() && (c.Module.Library == "" || c.Module.Token == "") {
		return errors.New("module: library and token are needed")
	}
	c.all = networks.Shipped()
	if c.NetworksFile != "" {
		if c.all, err = networks.Read(c.path(c.NetworksFile)); err != nil {
			return fmt.Errorf("networks_file: %w", err)
		}
	}
	if c.registry, c.clients, err = c.connect(); err != nil {
		return err
	}
	networks, currencies := map[chain.Network]policy.Network{}, map[string]policy.Currency{}
	for n, set := range c.Networks {
		networks[n] = set.Network
	}
	c.allow = map[string][]signerd.Recipient{}
	for code, set := range c.Currencies {
		currencies[code] = set.Currency
		if set.Recipients != nil {
			c.allow[code] = set.Recipients
		}
	}
	c.limits, err = policy.Limits(c.registry, networks, currencies)
	return err
}

func (c *config) hasModule() bool { return c.Module != module{} }

// path is a file's, from the folder of the configuration on.
func (c *config) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.dir, name)
}

func (c *config) passphrase() ([]byte, error) {
	b, err := secret.ReadFile(c.path(c.Passphrase))
	if err != nil {
		return nil, fmt.Errorf("passphrase: %w", err)
	}
	return bytes.TrimRight(b, "\r\n"), nil
}

// mandates are the keys that orders are proved with, none where no file is named.
func (c *config) mandates() (mandate.Keys, error) {
	if c.Mandates == "" {
		return nil, nil
	}
	text, err := secret.ReadFile(c.path(c.Mandates))
	if err != nil {
		return nil, fmt.Errorf("mandates: %w", err)
	}
	defer clear(text)
	return mandate.ReadKeys(text)
}

func (c *config) seed() (*keys.Seed, error) {
	passphrase, err := c.passphrase()
	if err != nil {
		return nil, err
	}
	defer clear(passphrase)
	return keys.Load(c.path(c.Seed), passphrase)
}

// simulatedPaths are the accounts that a gateway gives simulated networks whose real keys
// are on another curve.
var simulatedPaths = map[chain.Network]string{"SOL": "m/44'/501'/0'", "ADA": "m/44'/1815'/0'", "XLM": "m/44'/148'/0'"}

// simulatedAccounts are those of the networks that are simulated, without their xpubs.
func (c *config) simulatedAccounts() (out []keys.Account) {
	for n, path := range simulatedPaths {
		if slices.Contains(c.Simulated, n) {
			out = append(out, keys.Account{Network: n, Path: path})
		}
	}
	return out
}

// openModule opens the module, and says which network's keys it cannot have.
func (c *config) openModule(ctx context.Context) (*hsm.Module, keys.Names, error) {
	pin := []byte(os.Getenv("SIGNER_PIN"))
	if c.Module.PIN != "" {
		b, err := secret.ReadFile(c.path(c.Module.PIN))
		if err != nil {
			return nil, nil, fmt.Errorf("module: pin: %w", err)
		}
		pin = bytes.TrimRight(b, "\r\n")
	}
	defer clear(pin)
	names, err := keys.NamesOf(c.registry.Networks(), c.simulatedAccounts()...)
	if err != nil {
		return nil, nil, err
	}
	m, err := hsm.Open(ctx, hsm.Config{Library: c.Module.Library, Token: c.Module.Token, PIN: pin})
	if err != nil {
		return nil, nil, err
	}
	for _, n := range slices.Sorted(maps.Keys(c.Networks)) {
		name, ok := names[n]
		if !ok {
			return nil, nil, errors.Join(fmt.Errorf("networks: %s: no account is known for its keys", n), m.Close())
		}
		if err := m.Try(ctx, name(0)); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("networks: %s: the module cannot sign for it: %w", n, err), m.Close())
		}
	}
	return m, names, nil
}
