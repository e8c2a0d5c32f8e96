package utxo

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"testing"

	btcaddr "github.com/btcsuite/btcd/address/v2"
	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcec/v2/schnorr"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, v))
}

// hdKey is one address of the hd.json vectors.
type hdKey struct {
	Path, Address string
	Public        string `json:"public_key"`
	Private       string `json:"private_key"`
}

func hdKeys(t testing.TB) map[string]map[string][]hdKey {
	t.Helper()
	var v struct {
		Networks []struct {
			Network, Scheme string
			Addresses       []hdKey
		}
	}
	readJSON(t, "testdata/hd.json", &v)
	out := map[string]map[string][]hdKey{}
	for _, n := range v.Networks {
		if out[n.Network] == nil {
			out[n.Network] = map[string][]hdKey{}
		}
		out[n.Network][n.Scheme] = n.Addresses
	}
	return out
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

// TestHDVectors writes the address of every key, in every form there is.
func TestHDVectors(t *testing.T) {
	t.Parallel()
	checked := 0
	for network, schemes := range hdKeys(t) {
		var c *Client
		if network == "BTC_REGTEST" {
			p, ok := Testnets("BTC", "regtest")
			require.True(t, ok)
			c = offline(t, "BTC", p)
		} else {
			c = mainnet(t, chain.Network(network))
		}
		for scheme, keys := range schemes {
			for _, k := range keys {
				pub := unhex(t, k.Public)
				hash := btcaddr.Hash160(pub)
				var script []byte
				switch scheme {
				case "BIP84":
					script = scriptOf(p2wpkh, hash)
				case "BIP44":
					script = scriptOf(p2pkh, hash)
				case "BIP49":
					script = scriptOf(p2sh, btcaddr.Hash160(scriptOf(p2wpkh, hash)))
				case "BIP86":
					key, err := btcec.ParsePubKey(pub)
					require.NoError(t, err)
					script = scriptOf(p2tr, schnorr.SerializePubKey(txscript.ComputeTaprootKeyNoScript(key)))
				}
				got, ok := c.address(script)
				require.True(t, ok)
				require.Equal(t, k.Address, string(got), "%s %s %s", network, scheme, k.Path)
				if own := map[bool]string{true: "BIP44", false: "BIP84"}[c.p.Legacy]; scheme == own {
					got, err := c.AddressOf(pub)
					require.NoError(t, err)
					require.Equal(t, k.Address, string(got))
				}
				checked++
			}
		}
	}
	require.Greater(t, checked, 80)
}

// TestTransactionVectors signs what bitcoinjs-lib signed, and compares all bytes.
func TestTransactionVectors(t *testing.T) {
	t.Parallel()
	var v struct {
		Transactions []struct {
			Network, Type string
			Inputs        []struct {
				Path, Txid, Address string
				Vout                uint32
				Value               string `json:"value_sat"`
				Script              string `json:"script_pubkey"`
				Prev                string `json:"prev_tx"`
			}
			Outputs []struct {
				Address string
				Value   string `json:"value_sat"`
			}
			RBF       bool
			Raw, Txid string
			Vsize     int64
		}
	}
	readJSON(t, "testdata/utxo.json", &v)
	require.Len(t, v.Transactions, 14)
	private := map[string]string{}
	for network, schemes := range hdKeys(t) {
		for _, keys := range schemes {
			for _, k := range keys {
				private[network+k.Path] = k.Private
			}
		}
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		require.NoError(t, err)
		return n
	}
	whole := 0
	for _, x := range v.Transactions {
		c := mainnet(t, chain.Network(x.Network))
		p := &packet{network: chain.Network(x.Network), tx: wire.NewMsgTx(2)}
		var s size
		var keys []*btcec.PrivateKey
		complete := true
		for _, in := range x.Inputs {
			at, err := parseOutpoint(in.Txid + ":" + strconv.Itoa(int(in.Vout)))
			require.NoError(t, err)
			sequence := wire.MaxTxInSequenceNum
			if x.RBF {
				sequence = replaceable
			}
			p.tx.AddTxIn(&wire.TxIn{PreviousOutPoint: at, Sequence: sequence})
			script, err := c.script(chain.Address(in.Address))
			require.NoError(t, err)
			require.Equal(t, in.Script, hex.EncodeToString(script))
			key, _ := btcec.PrivKeyFromBytes(unhex(t, private[x.Network+in.Path]))
			src := source{out: wire.NewTxOut(number(in.Value), script)}
			switch x.Type {
			case "p2sh-p2wpkh":
				src.redeem = scriptOf(p2wpkh, btcaddr.Hash160(key.PubKey().SerializeCompressed()))
			case "p2tr":
				key = txscript.TweakTaprootPrivKey(*key, nil)
			}
			if in.Prev != "" {
				src.tx = wire.NewMsgTx(2)
				require.NoError(t, src.tx.Deserialize(bytes.NewReader(unhex(t, in.Prev))))
			} else if x.Type != "p2tr" {
				complete = false // the transactions that these spend from are made up
			}
			p.from, keys = append(p.from, src), append(keys, key)
			s.input(script)
		}
		for _, o := range x.Outputs {
			script, err := c.script(chain.Address(o.Address))
			require.NoError(t, err)
			p.tx.AddTxOut(wire.NewTxOut(number(o.Value), script))
			p.change = append(p.change, false)
			s.output(script)
		}
		digests, err := c.digests(p)
		require.NoError(t, err)
		var sigs []chain.Signature
		for i, d := range digests {
			require.Equal(t, x.Inputs[i].Address, string(d.From))
			sigs = append(sigs, signWith(t, keys[i], d.Hash, x.Type == "p2tr"))
		}
		if complete { // through the whole way that a signer sees
			payload, err := p.encode()
			require.NoError(t, err)
			u, err := c.Inspect(payload)
			require.NoError(t, err)
			require.Equal(t, digests, u.Digests)
			got, err := c.Assemble(u, sigs)
			require.NoError(t, err)
			require.Equal(t, x.Raw, hex.EncodeToString(got.Raw))
			whole++
		}
		got, err := c.finish(p, sigs)
		require.NoError(t, err)
		require.Equal(t, x.Raw, hex.EncodeToString(got.Raw), "%s %s", x.Network, x.Type)
		require.Equal(t, x.Txid, got.Tx)
		require.GreaterOrEqual(t, s.virtual(), x.Vsize, "the size is never guessed too small")
		require.LessOrEqual(t, s.virtual(), x.Vsize+2*int64(len(x.Inputs)))
		back, err := readTx(got.Raw, false)
		require.NoError(t, err)
		require.Equal(t, x.Txid, hexHash(back.id))
	}
	require.Equal(t, 8, whole)
}

func signWith(t testing.TB, k *btcec.PrivateKey, digest [32]byte, taproot bool) chain.Signature {
	t.Helper()
	if taproot {
		sig, err := schnorr.Sign(k, digest[:], schnorr.CustomNonce([32]byte{}))
		require.NoError(t, err)
		return sig.Serialize()
	}
	compact := ecdsa.SignCompact(k, digest[:], true)
	return append(bytes.Clone(compact[1:]), compact[0]-27-4)
}

// TestW16_AddressesRoundTrip takes every good address of the vectors to its
// script and back.
func TestW16_AddressesRoundTrip(t *testing.T) {
	t.Parallel()
	var all []struct {
		Network, Address, Note string
		Valid, Policy          bool
	}
	readJSON(t, "../address/testdata/addresses.json", &all)
	good, bad := 0, 0
	for _, v := range all {
		if v.Network != "BTC" && v.Network != "LTC" && v.Network != "DOGE" {
			continue
		}
		c := mainnet(t, chain.Network(v.Network))
		a, err := c.ParseAddress(v.Address)
		if !v.Valid || v.Policy {
			require.Error(t, err, "%s: %s", v.Address, v.Note)
			_, err = c.script(chain.Address(v.Address))
			require.Error(t, err)
			bad++
			continue
		}
		require.NoError(t, err)
		script, err := c.script(a)
		require.NoError(t, err)
		back, ok := c.address(script)
		require.True(t, ok)
		require.Equal(t, a, back)
		good++
	}
	require.Greater(t, good, 50)
	require.Greater(t, bad, 80)
}
