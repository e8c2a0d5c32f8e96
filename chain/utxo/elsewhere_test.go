package utxo

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"
	"github.com/btcsuite/btcd/chaincfg/v2"
	"github.com/btcsuite/btcd/psbt/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// nodeless is a client that asks no node.
func nodeless(t testing.TB, n chain.Network) *Client {
	t.Helper()
	p, ok := Mainnet(n)
	require.True(t, ok)
	c, err := New(Options{Network: n, Params: p, Registry: mainRegistry(), URL: "http://127.0.0.1:1"})
	require.NoError(t, err)
	return c
}

// people have keys of their own.
func people(t testing.TB, count int) (xpubs []string, keys []*btcec.PrivateKey) {
	t.Helper()
	for i := range count {
		k, err := hdkeychain.NewMaster(bytes.Repeat([]byte{byte(i + 1)}, 32), &chaincfg.MainNetParams)
		require.NoError(t, err)
		pub, err := k.Neuter()
		require.NoError(t, err)
		for _, step := range []uint32{0, 3} {
			k, err = k.Derive(step)
			require.NoError(t, err)
		}
		key, err := k.ECPrivKey()
		require.NoError(t, err)
		xpubs, keys = append(xpubs, pub.String()), append(keys, key)
	}
	return xpubs, keys
}

// The checksum is that of BIP 380, and the addresses those of BIP 84's first key and of Bitcoin Core.
func TestDescriptor(t *testing.T) {
	t.Parallel()
	require.Equal(t, "89f8spxm", descriptorSum("raw(deadbeef)"))
	btc, ltc, doge := nodeless(t, "BTC"), nodeless(t, "LTC"), nodeless(t, "DOGE")
	// The account of "abandon … about" at m/84'/0'/0', as BIP 84 has it, with the version of xpub.
	account := "xpub6CatWdiZiodmUeTDp8LT5or8nmbKNcuyvz7WyksVFkKB4RHwCD3XyuvPEbvqAQY3rAPshWcMLoP2fMFMKHPJ4ZeZXYVUhLv1VMrjPC7PW6V"
	text := "wpkh([73c5da0a/84'/0'/0']" + account + "/0/0)"
	a, err := btc.ColdAddress(text)
	require.NoError(t, err)
	require.Equal(t, chain.Address("bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"), a)
	again, err := btc.ColdAddress(strings.ReplaceAll(text, "'", "h"))
	require.NoError(t, err)
	require.Equal(t, a, again)
	_, err = btc.ColdAddress(text + "#" + descriptorSum(text))
	require.NoError(t, err)
	lite, err := ltc.ColdAddress(text)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(lite), "ltc1q"))

	x, _ := people(t, 3)
	one, err := btc.ColdAddress("wsh(sortedmulti(2," + x[0] + "/0/3," + x[1] + "/0/3," + x[2] + "/0/3))")
	require.NoError(t, err)
	other, err := btc.ColdAddress("wsh(sortedmulti(2," + x[2] + "/0/3," + x[0] + "/0/3," + x[1] + "/0/3))")
	require.NoError(t, err)
	require.Equal(t, one, other, "sorted, whatever their order")

	private, err := hdkeychain.NewMaster(bytes.Repeat([]byte{9}, 32), &chaincfg.MainNetParams)
	require.NoError(t, err)
	for bad, named := range map[string]string{
		"": "is none of", "pkh(" + x[0] + ")": "is none of", "wsh(pk(" + x[0] + "))": "is none of", "wpkh(" + x[0] + "/0/3))": "no step", "sh(wpkh(" + x[0] + "))": "is none of",
		"wpkh(" + private.String() + "/0/3)": "is private", "wpkh(" + x[0] + "/0/*)": "many addresses", "wpkh(" + x[0] + "/<0;1>/3)": "many addresses",
		"wpkh(" + x[0] + "/0'/3)": "without the private key", "wpkh([00/0']" + x[0] + ")": "fingerprint", "wpkh([00000000" + x[0] + ")": "does not close",
		"wpkh(" + x[0] + "/01)": "no step", "wpkh(" + x[0][:50] + ")": "no extended public key", "wpkh(" + x[0] + "/0/3)#aaaaaaaa": "checksum",
		"wsh(sortedmulti(3," + x[0] + "," + x[1] + "))": "signatures of 2 keys", "wsh(sortedmulti(0," + x[0] + "))": "signatures", "wsh(sortedmulti(1," + x[0] + "," + x[0] + "))": "twice",
		strings.Repeat("x", maxDescriptor+1): "bytes",
	} {
		_, err := btc.ColdAddress(bad)
		require.ErrorIs(t, err, chain.ErrRejected, bad)
		require.ErrorContains(t, err, named, bad)
		require.NotContains(t, err.Error(), private.String())
	}
	_, err = doge.ColdAddress(text)
	require.ErrorIs(t, err, chain.ErrRejected)
}

// vault is a cold address with coins on a node.
type vault struct {
	c    *Client
	f    *fakeNode
	text string
	keys []*btcec.PrivateKey
	at   chain.Address
	o    chain.Order
}

func openVault(t testing.TB, need, count int) *vault {
	t.Helper()
	f := newFake(t)
	v := &vault{f: f, c: f.client(t, "BTC")}
	x, keys := people(t, count)
	v.keys, v.text = keys, "wpkh("+x[0]+"/0/3)"
	if count > 1 {
		v.text = fmt.Sprintf("wsh(sortedmulti(%d,%s/0/3))", need, strings.Join(x, "/0/3,"))
	}
	var err error
	v.at, err = v.c.ColdAddress(v.text)
	require.NoError(t, err)
	hot, err := v.c.AddressOf(keys[0].PubKey().SerializeCompressed())
	require.NoError(t, err)
	script, err := v.c.script(v.at)
	require.NoError(t, err)
	for i, value := range []int64{1_000_000, 3_000_000, 2_000_000} {
		tx := payTx(fmt.Sprint("cold ", i), value, script)
		f.mine(serialize(tx))
		v.o.Coins = append(v.o.Coins, chain.Coin{Outpoint: tx.TxHash().String() + ":0", Address: v.at, Amount: ledger.Amount(value)})
	}
	f.set("gettxout", func([]any) (any, *fakeError) { return map[string]any{"value": 1, "confirmations": 1}, nil })
	v.o.Intent = chain.Intent{Currency: "BTC", To: hot, Amount: 500_000, MaxCost: 250_000}
	return v
}

// sign is what people's wallets make of a payload.
func (v *vault) sign(t testing.TB, payload []byte, hashType txscript.SigHashType, who ...int) *psbt.Packet {
	t.Helper()
	p, err := psbt.NewFromRawBytes(bytes.NewReader(payload), false)
	require.NoError(t, err)
	outs := txscript.NewMultiPrevOutFetcher(nil)
	for i := range p.Inputs {
		outs.AddPrevOut(p.UnsignedTx.TxIn[i].PreviousOutPoint, p.Inputs[i].WitnessUtxo)
	}
	hashes := txscript.NewTxSigHashes(p.UnsignedTx, outs)
	for i := range p.Inputs {
		in := &p.Inputs[i]
		script := in.WitnessScript
		if script == nil {
			script = in.WitnessUtxo.PkScript
		}
		for _, w := range who {
			sig, err := txscript.RawTxInWitnessSignature(p.UnsignedTx, hashes, i, in.WitnessUtxo.Value, script, hashType, v.keys[w])
			require.NoError(t, err)
			in.PartialSigs = append(in.PartialSigs, &psbt.PartialSig{PubKey: v.keys[w].PubKey().SerializeCompressed(), Signature: sig})
		}
	}
	return p
}

func written(t testing.TB, p *psbt.Packet) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, p.Serialize(&b))
	return b.Bytes()
}

// TestProposeCold: the largest coins are spent that are unspent, the rest goes back, and the fee is within
// its bound.
func TestProposeCold(t *testing.T) {
	t.Parallel()
	v := openVault(t, 2, 3)
	u, tx, err := v.c.ProposeCold(t.Context(), v.text, v.o)
	require.NoError(t, err)
	require.Equal(t, []string{v.o.Coins[1].Outpoint}, u.Spends)
	require.Len(t, u.Outputs, 2)
	var paid ledger.Amount
	for _, o := range u.Outputs {
		require.Equal(t, o.Change, o.To == v.at)
		paid += o.Amount
	}
	require.Equal(t, ledger.Amount(3_000_000), paid+u.MaxCost)
	p, err := psbt.NewFromRawBytes(bytes.NewReader(u.Payload), false)
	require.NoError(t, err)
	require.Equal(t, tx, p.UnsignedTx.TxHash().String())
	require.Len(t, p.Inputs[0].Bip32Derivation, 3)

	v.o.Intent.Amount, v.o.Intent.MaxCost = 5_900_000, 0
	u, _, err = v.c.ProposeCold(t.Context(), v.text, v.o)
	require.NoError(t, err)
	require.Len(t, u.Spends, 3)

	v.o.Intent.Amount = 6_000_000
	_, _, err = v.c.ProposeCold(t.Context(), v.text, v.o)
	require.ErrorIs(t, err, chain.ErrShort)
	v.o.Intent.Amount, v.o.Intent.MaxCost = 1000, 500
	_, _, err = v.c.ProposeCold(t.Context(), v.text, v.o)
	require.ErrorIs(t, err, chain.ErrTooDear)
	v.o.Intent.Amount = 100
	_, _, err = v.c.ProposeCold(t.Context(), v.text, v.o)
	require.ErrorContains(t, err, "dust")

	v.o.Intent.Amount, v.o.Intent.MaxCost = 500_000, 0
	v.f.set("gettxout", func(p []any) (any, *fakeError) {
		if strings.HasPrefix(v.o.Coins[1].Outpoint, p[0].(string)) {
			return nil, nil
		}
		confirmations := 1
		if strings.HasPrefix(v.o.Coins[0].Outpoint, p[0].(string)) {
			confirmations = 0
		}
		return map[string]any{"confirmations": confirmations}, nil
	})
	u, _, err = v.c.ProposeCold(t.Context(), v.text, v.o)
	require.NoError(t, err)
	require.Equal(t, []string{v.o.Coins[2].Outpoint}, u.Spends, "a coin that is spent is left out")
	v.o.Intent.Amount = 2_100_000
	_, _, err = v.c.ProposeCold(t.Context(), v.text, v.o)
	require.ErrorIs(t, err, chain.ErrShort, "and one that is in no block")
	v.o.Intent.Amount = 500_000
	v.o.Coins[2].Amount++
	_, _, err = v.c.ProposeCold(t.Context(), v.text, v.o)
	require.ErrorIs(t, err, chain.ErrRejected, "a coin is worth what the transaction says that made it")
	v.o.Coins[0].Address = v.o.Intent.To
	_, _, err = v.c.ProposeCold(t.Context(), v.text, v.o)
	require.ErrorContains(t, err, "does not lie at the descriptor's address")
}

// TestAcceptCold: enough good signatures in any shape are taken, and make the same transaction; what is
// another is refused by name.
func TestAcceptCold(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]*vault{"2 of 3": openVault(t, 2, 3), "1 of 1": openVault(t, 1, 1)} {
		u, tx, err := v.c.ProposeCold(t.Context(), v.text, v.o)
		require.NoError(t, err)
		who := [][]int{{0, 1}, {2, 1}, {0, 1, 2}}
		if len(v.keys) == 1 {
			who = [][]int{{0}}
		}
		for _, w := range who {
			p := v.sign(t, u.Payload, txscript.SigHashAll, w...)
			raw := written(t, p)
			signed, err := v.c.AcceptCold("", u.Payload, raw)
			require.NoError(t, err, name)
			require.Equal(t, tx, signed.Tx)
			text := base64.StdEncoding.EncodeToString(raw)
			for _, again := range []string{text, " " + text[:60] + "\n" + text[60:] + "\n", hex.EncodeToString(signed.Raw), string(signed.Raw)} {
				got, err := v.c.AcceptCold("", u.Payload, []byte(again))
				require.NoError(t, err)
				require.Equal(t, signed, got)
			}
			if len(w) == 2 || len(v.keys) == 1 {
				require.NoError(t, psbt.MaybeFinalizeAll(p))
				got, err := v.c.AcceptCold("", u.Payload, written(t, p))
				require.NoError(t, err)
				require.Equal(t, signed, got)
			}
		}
	}

	v := openVault(t, 2, 3)
	u, _, err := v.c.ProposeCold(t.Context(), v.text, v.o)
	require.NoError(t, err)
	change := func(f func(tx *wire.MsgTx)) []byte { // a thief edits it, and has it signed
		p, err := psbt.NewFromRawBytes(bytes.NewReader(u.Payload), false)
		require.NoError(t, err)
		f(p.UnsignedTx)
		for len(p.Inputs) < len(p.UnsignedTx.TxIn) {
			p.Inputs = append(p.Inputs, p.Inputs[0])
		}
		p.Outputs = p.Outputs[:0]
		for range p.UnsignedTx.TxOut {
			p.Outputs = append(p.Outputs, psbt.POutput{})
		}
		return written(t, v.sign(t, written(t, p), txscript.SigHashAll, 0, 1))
	}
	other := v.sign(t, u.Payload, txscript.SigHashAll, 0, 1)
	other.Inputs[0].PartialSigs[0].Signature = v.sign(t, change(func(tx *wire.MsgTx) { tx.LockTime = 9 }), txscript.SigHashAll, 0).Inputs[0].PartialSigs[0].Signature
	asks := v.sign(t, u.Payload, txscript.SigHashAll, 0, 1)
	asks.Inputs[0].SighashType = txscript.SigHashNone
	for named, back := range map[string][]byte{
		"pays 1 units":           change(func(tx *wire.MsgTx) { tx.TxOut[0].Value = 1 }),
		"no address":             change(func(tx *wire.MsgTx) { tx.TxOut[0].PkScript = []byte{0x51} }),
		"it has 3 outputs":       change(func(tx *wire.MsgTx) { tx.AddTxOut(wire.NewTxOut(1, []byte{0x51})) }),
		"it has 1 outputs":       change(func(tx *wire.MsgTx) { tx.TxOut = tx.TxOut[:1] }),
		"it has 2 inputs":        change(func(tx *wire.MsgTx) { tx.AddTxIn(&wire.TxIn{PreviousOutPoint: wire.OutPoint{Index: 1}}) }),
		"input 0 spends":         change(func(tx *wire.MsgTx) { tx.TxIn[0].PreviousOutPoint.Index = 7 }),
		"sequence of input 0":    change(func(tx *wire.MsgTx) { tx.TxIn[0].Sequence = 1 }),
		"lock time is 9":         change(func(tx *wire.MsgTx) { tx.LockTime = 9 }),
		"version is 1":           change(func(tx *wire.MsgTx) { tx.Version = 1 }),
		"1 of 2 signatures":      written(t, v.sign(t, u.Payload, txscript.SigHashAll, 1)),
		"0 of 2 signatures":      u.Payload,
		"hash type 0x81":         written(t, v.sign(t, u.Payload, txscript.SigHashAll|txscript.SigHashAnyOneCanPay, 0, 1)),
		"hash type 0x2":          written(t, v.sign(t, u.Payload, txscript.SigHashNone, 0, 1)),
		"asks for the signature": written(t, asks),
		"of none of its keys":    written(t, other),
		"neither a PSBT":         []byte("no"),
		"no PSBT of version 0":   append(bytes.Clone(u.Payload), 0),
		"no base64":              []byte("cHNidP!"),
		"over 16777216 bytes":    make([]byte, maxPayload+1),
	} {
		_, err := v.c.AcceptCold("", u.Payload, back)
		require.ErrorIs(t, err, chain.ErrRejected, named)
		require.ErrorContains(t, err, named)
	}
}

// What a stranger gives back is refused, and never panics.
func FuzzAcceptCold(f *testing.F) {
	v := openVault(f, 2, 3)
	u, tx, err := v.c.ProposeCold(f.Context(), v.text, v.o)
	require.NoError(f, err)
	f.Add(u.Payload)
	for _, w := range [][]int{{0}, {0, 1}, {0, 1, 2}} {
		f.Add(written(f, v.sign(f, u.Payload, txscript.SigHashAll, w...)))
	}
	f.Fuzz(func(t *testing.T, back []byte) {
		if signed, err := v.c.AcceptCold("", u.Payload, back); err == nil {
			require.Equal(t, tx, signed.Tx)
		}
	})
}
