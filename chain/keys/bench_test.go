package keys_test

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"

	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/solana"
	"github.com/cryptopay-go/cryptopay/chain/tron"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
)

// BenchmarkDerive compares the public derivation of one child with that of
// hdkeychain, on one core and without the address's own encoding.
func BenchmarkDerive(b *testing.B) {
	xpub, err := newSeed(b).XPub("m/84'/0'/0'")
	require.NoError(b, err)
	b.Run("ours", func(b *testing.B) {
		s, err := keys.NewSource([]keys.Account{{Network: "BTC", Path: "m/84'/0'/0'", XPub: xpub}},
			map[chain.Network]keys.Encode{"BTC": func(chain.PublicKey) (chain.Address, error) { return "", nil }})
		require.NoError(b, err)
		i := uint32(0)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Derive(b.Context(), "BTC", i, 1); err != nil {
				b.Fatal(err)
			}
			i++
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "keys/s")
	})
	b.Run("hdkeychain", func(b *testing.B) {
		k, err := hdkeychain.NewKeyFromString(xpub)
		require.NoError(b, err)
		k, err = k.Derive(0)
		require.NoError(b, err)
		i := uint32(0)
		b.ReportAllocs()
		for b.Loop() {
			c, err := k.Derive(i)
			if err != nil {
				b.Fatal(err)
			}
			p, err := c.ECPubKey()
			if err != nil {
				b.Fatal(err)
			}
			_ = p.SerializeCompressed()
			i++
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "keys/s")
	})
}

// BenchmarkAddresses derives addresses as each network writes them, one after another.
// The baselines are hdkeychain's child of a kept parent with the same encoding, and on
// ed25519 a key of the standard library alone: nothing can be cheaper. XRP and XLM
// derive nothing for a payment: it gets a number.
func BenchmarkAddresses(b *testing.B) {
	clients := realClients(b)
	seed := newSeed(b)
	encode := map[chain.Network]keys.Encode{}
	for n, c := range clients {
		encode[n] = c.AddressOf
	}
	accounts, err := seed.Accounts(chain.Networks())
	require.NoError(b, err)
	accounts = slices.DeleteFunc(accounts, func(a keys.Account) bool { return clients[a.Network] == nil })
	public, err := keys.NewSource(accounts, encode)
	require.NoError(b, err)
	for _, n := range slices.Sorted(maps.Keys(clients)) {
		var source chain.AddressSource = seed.Hardened(encode)
		name, naive := "ed25519", func(i int) (chain.PublicKey, error) {
			var s [32]byte
			binary.LittleEndian.PutUint64(s[:], uint64(i))
			return chain.PublicKey(ed25519.NewKeyFromSeed(s[:]).Public().(ed25519.PublicKey)), nil
		}
		if at := slices.IndexFunc(accounts, func(a keys.Account) bool { return a.Network == n }); at >= 0 {
			parent, err := hdkeychain.NewKeyFromString(accounts[at].XPub)
			require.NoError(b, err)
			parent, err = parent.Derive(0)
			require.NoError(b, err)
			source, name, naive = public, "hdkeychain", func(i int) (chain.PublicKey, error) {
				child, err := parent.Derive(uint32(i))
				if err != nil {
					return nil, err
				}
				key, err := child.ECPubKey()
				if err != nil {
					return nil, err
				}
				return key.SerializeCompressed(), nil
			}
		}
		each(b, fmt.Sprintf("%s/ours", n), func(i int) error {
			_, err := source.Derive(b.Context(), n, uint32(i), 1)
			return err
		})
		each(b, fmt.Sprintf("%s/%s", n, name), func(i int) error {
			key, err := naive(i)
			if err != nil {
				return err
			}
			_, err = encode[n](key)
			return err
		})
	}
}

func realClients(b *testing.B) map[chain.Network]chain.Client {
	b.Helper()
	const url = "http://127.0.0.1:1"
	registry, clients := chain.MainnetRegistry(), map[chain.Network]chain.Client{}
	add := func(c chain.Client, err error) {
		require.NoError(b, err)
		clients[c.Network()] = c
	}
	for _, n := range []chain.Network{"BTC", "LTC", "DOGE"} {
		params, _ := utxo.Mainnet(n)
		c, err := utxo.New(utxo.Options{Network: n, Params: params, Registry: registry, URL: url})
		add(c, err)
	}
	o, _ := evm.Preset("ETH")
	o.Registry, o.URL = registry, url
	eth, err := evm.New(o)
	add(eth, err)
	trx, err := tron.New(tron.Options{Registry: registry, URL: url})
	add(trx, err)
	sol, err := solana.New(solana.Options{Registry: registry, URL: url})
	add(sol, err)
	return clients
}

// each reports the processor time of one, which other work on the machine moves less.
func each(b *testing.B, name string, do func(i int) error) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		i, before := 0, processor()
		for b.Loop() {
			if err := do(i); err != nil {
				b.Fatal(err)
			}
			i++
		}
		used := float64(processor()-before) / float64(b.N)
		b.ReportMetric(used, "cpu-ns/op")
		b.ReportMetric(1e9/used, "keys/cpu-s")
	})
}

func processor() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkSign is a whole request on a store in memory: read back, derived,
// signed, verified and bound.
func BenchmarkSign(b *testing.B) {
	w := newWorld(b, "ETH")
	r := w.request("w1", 0)
	b.ReportAllocs()
	for b.Loop() {
		w.signs(r)
	}
}
