package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/keys/signerd"
	"github.com/cryptopay-go/cryptopay/storage"
)

// signer is what the settings say of a signer on another machine.
type signer struct {
	url      string
	files    signerd.Files
	accounts string // file: what addresses are derived from
}

// elsewhere reports whether the keys are on another machine.
func (s signer) elsewhere() bool { return s != signer{} }

func readSigner(env func(string) string) signer {
	return signer{
		url: env("CRYPTOPAY_SIGNER_URL"), accounts: env("CRYPTOPAY_SIGNER_ACCOUNTS"),
		files: signerd.Files{Certificate: env("CRYPTOPAY_SIGNER_CERTIFICATE"), Key: env("CRYPTOPAY_SIGNER_KEY"), CA: env("CRYPTOPAY_SIGNER_CA")},
	}
}

// checkSigner refuses half a signer, and a seed beside one.
func (s *settings) checkSigner() (err error) {
	if !s.signer.elsewhere() {
		return nil
	}
	for _, set := range [][2]string{
		{"URL", s.signer.url}, {"CERTIFICATE", s.signer.files.Certificate}, {"KEY", s.signer.files.Key}, {"CA", s.signer.files.CA}, {"ACCOUNTS", s.signer.accounts},
	} {
		if set[1] == "" {
			err = errors.Join(err, fmt.Errorf("CRYPTOPAY_SIGNER_%s is missing: a signer needs URL, CERTIFICATE, KEY, CA and ACCOUNTS", set[0]))
		}
	}
	if s.mnemonic != "" {
		err = errors.Join(err, errors.New("CRYPTOPAY_MNEMONIC has no place beside CRYPTOPAY_SIGNER_URL: the seed is the signer's alone"))
	}
	return err
}

// custody is where addresses come from and who signs: a signer on another machine, or the
// seed of this store.
func (g *gateway) custody(ctx context.Context, ring keyring, encode map[chain.Network]keys.Encode, chains map[chain.Network]keys.Chain) (chain.AddressSource, chain.Signer, error) {
	keyOf := func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
		return g.app.KeyOf(ctx, n, a)
	}
	if g.s.signer.elsewhere() {
		return g.remote(ctx, encode, keyOf)
	}
	seed, err := loadSeed(ctx, g.store, ring, g.s.mnemonic)
	if err != nil {
		return nil, nil, err
	}
	accounts, err := seed.Accounts(g.world.registry.Networks())
	if err != nil {
		return nil, nil, err
	}
	if accounts, err = g.simulatedAccounts(seed, accounts); err != nil {
		return nil, nil, err
	}
	source, err := g.source(seed, accounts, encode)
	if err != nil {
		return nil, nil, err
	}
	registry, err := g.registry(ctx)
	if err != nil {
		return nil, nil, err
	}
	cfg := keys.SignerConfig{Seed: seed, Chains: chains, Registry: registry, KeyOf: keyOf}
	if !g.world.clock.Now().Before(g.unsealed) { // until then withdrawals without a mandate are paid
		cfg.Mandates = cryptopay.MandateKeys(ring.of(forLibrary)...)
	}
	local, err := keys.NewSigner(cfg)
	if err != nil || g.signerStore == nil {
		return source, local, err
	}
	name, _, err := readMark(ctx, g.signerStore, registryName)
	return source, apart{local, g.signerStore, name}, err
}

// remote asks a signer on another machine. Nothing here knows a private key.
func (g *gateway) remote(ctx context.Context, encode map[chain.Network]keys.Encode,
	keyOf func(context.Context, chain.Network, chain.Address) (chain.KeyRef, bool, error),
) (chain.AddressSource, chain.Signer, error) {
	if _, _, found, err := seeds.One(ctx, g.store, storage.System, seedID); err != nil {
		return nil, nil, err
	} else if found {
		g.log.WarnContext(ctx, "seed_in_store", slog.String("action", "the signer has the seed: delete the row of gateway_seeds, and its backups"))
	}
	text, err := os.ReadFile(g.s.signer.accounts)
	if err != nil {
		return nil, nil, fmt.Errorf("CRYPTOPAY_SIGNER_ACCOUNTS: %w", err)
	}
	var accounts signerd.Accounts
	if err := json.Unmarshal(text, &accounts); err != nil {
		return nil, nil, fmt.Errorf("CRYPTOPAY_SIGNER_ACCOUNTS: must be what the signer's command accounts printed: %w", err)
	}
	source, public, err := accounts.Source(encode)
	if err != nil {
		return nil, nil, fmt.Errorf("CRYPTOPAY_SIGNER_ACCOUNTS: %w", err)
	}
	g.world.public = public
	tls, err := g.s.signer.files.ClientTLS()
	if err != nil {
		return nil, nil, fmt.Errorf("CRYPTOPAY_SIGNER_CERTIFICATE, _KEY and _CA: %w", err)
	}
	client, err := signerd.NewClient(signerd.ClientConfig{URL: g.s.signer.url, TLS: tls, KeyOf: keyOf})
	if err != nil {
		return nil, nil, fmt.Errorf("CRYPTOPAY_SIGNER_URL: %w", err)
	}
	return source, client, nil
}

// source derives addresses: from extended public keys, where a network's keys have
// them, and from the seed itself on the others.
func (g *gateway) source(seed *keys.Seed, accounts []keys.Account, encode map[chain.Network]keys.Encode) (chain.AddressSource, error) {
	public, err := keys.NewSource(accounts, encode)
	if err != nil {
		return nil, err
	}
	g.world.public = public.PublicKey
	hardened, out := seed.Hardened(encode), keys.Sources{}
	for n := range encode {
		out[n] = hardened
	}
	for _, a := range accounts {
		out[a.Network] = public
	}
	return out, nil
}

// simulatedAccounts gives networks whose real keys are on another curve an
// account each, in the place of a real one: a simulated chain takes any key.
func (g *gateway) simulatedAccounts(seed *keys.Seed, have []keys.Account) ([]keys.Account, error) {
	paths := map[chain.Network]string{"SOL": "m/44'/501'/0'", "ADA": "m/44'/1815'/0'", "XLM": "m/44'/148'/0'"}
	for _, c := range g.world.sims {
		path, missing := paths[c.Network()]
		if !missing {
			continue
		}
		have = slices.DeleteFunc(have, func(a keys.Account) bool { return a.Network == c.Network() })
		xpub, err := seed.XPub(path)
		if err != nil {
			return nil, err
		}
		have = append(have, keys.Account{Network: c.Network(), Path: path, XPub: xpub})
	}
	return have, nil
}
