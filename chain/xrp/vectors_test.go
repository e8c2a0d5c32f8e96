package xrp

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

type vectors struct {
	Wallets []struct {
		Algorithm string `json:"algorithm"`
		Classic   string `json:"classic_address"`
		X         string `json:"x_address"`
		Public    string `json:"public_key"`
		Private   string `json:"private_key"`
	} `json:"wallets"`
	Transactions []struct {
		Wallet int `json:"wallet"`
		Tx     struct {
			Account, Destination, Fee string
			Sequence                  uint32
			Amount                    json.RawMessage
			DestinationTag            *uint32
			LastLedgerSequence        uint32
			Flags                     uint32
			SourceTag                 *uint32
			Memos                     []any
		} `json:"tx"`
		Signing   string `json:"signing_data"`
		Blob      string `json:"tx_blob"`
		Hash      string `json:"hash"`
		Signature string `json:"signature"`
	} `json:"transactions"`
}

func load(t testing.TB) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	require.NoError(t, err)
	var v vectors
	require.NoError(t, json.Unmarshal(b, &v))
	return v
}

func unhexed(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func TestVectors_Addresses(t *testing.T) {
	t.Parallel()
	c := openTown(t).client
	v := load(t)
	require.Len(t, v.Wallets, 6)
	for _, w := range v.Wallets {
		key := unhexed(t, w.Public)
		if w.Algorithm == "ed25519" {
			key = key[1:]
		}
		a, err := c.AddressOf(key)
		require.NoError(t, err)
		require.Equal(t, w.Classic, string(a))
		back, err := c.ParseAddress(w.X)
		require.NoError(t, err)
		require.Equal(t, a, back, "an X-address without a tag is the account")
		for _, tag := range []uint32{0, 1, 1<<32 - 1} {
			x, err := c.Multiplex(a, tag)
			require.NoError(t, err)
			same, err := c.ParseAddress(string(x))
			require.NoError(t, err)
			require.Equal(t, x, same)
			base, memo, ok := c.Untag(x)
			require.True(t, ok)
			require.Equal(t, a, base)
			require.Equal(t, strconv.FormatUint(uint64(tag), 10), memo)
		}
	}
	// As the format's own specification (XLS-5) writes it.
	x, err := c.Multiplex("rGWrZyQqhTp9Xu7G5Pkayo7bXjH4k4QYpf", 1<<32-1)
	require.NoError(t, err)
	require.EqualValues(t, "XVLhHMPHU98es4dbozjVtdWzVrDjtV18pX8yuPT7y4xaEHi", x)
}

// TestVectors_Transactions: bytes, hashes and, being deterministic, secp256k1
// signatures as the reference library makes them; what we never make is refused.
func TestVectors_Transactions(t *testing.T) {
	t.Parallel()
	c := openTown(t).client
	v := load(t)
	made, refused := 0, 0
	for i, x := range v.Transactions {
		w := v.Wallets[x.Wallet]
		payload := unhexed(t, strings.TrimPrefix(x.Signing, "53545800"))
		amount, native := drops(x.Tx.Amount)
		if !native || len(x.Tx.Memos) > 0 || x.Tx.SourceTag != nil {
			_, err := decode(payload)
			require.Error(t, err, "%d", i)
			_, err = c.signed(strings.ToLower(x.Hash), unhexed(t, x.Blob))
			require.ErrorIs(t, err, chain.ErrRejected, "%d", i)
			refused++
			continue
		}
		from, _, err := c.own(chain.Address(x.Tx.Account))
		require.NoError(t, err)
		to, _, err := c.own(chain.Address(x.Tx.Destination))
		require.NoError(t, err)
		fee, err := strconv.ParseUint(x.Tx.Fee, 10, 64)
		require.NoError(t, err)
		b := &body{
			kind: typePayment, flags: x.Tx.Flags, sequence: x.Tx.Sequence, tag: x.Tx.DestinationTag, lastLedger: x.Tx.LastLedgerSequence,
			amount: uint64(amount), fee: fee, key: unhexed(t, w.Public), account: from, dest: to,
		}
		require.Equal(t, payload, b.encode(), "%d", i)
		digest := half(prefixSign, payload)
		sig := chain.Signature(unhexed(t, x.Signature))
		if w.Algorithm != "ed25519" {
			key := secp256k1.PrivKeyFromBytes(unhexed(t, w.Private)[1:])
			compact := ecdsa.SignCompact(key, digest[:], true)
			sig = append(append(chain.Signature{}, compact[1:]...), compact[0]-31)
		}
		b.signature, err = signature(sig, b.key)
		require.NoError(t, err)
		require.True(t, b.signedWell(payload))
		require.Equal(t, strings.ToLower(x.Blob), hex.EncodeToString(b.encode()), "%d", i)
		id := half(prefixID, b.encode())
		require.Equal(t, strings.ToLower(x.Hash), hex.EncodeToString(id[:]))
		made++
		if b.lastLedger > 0 {
			u, err := c.Inspect(payload)
			require.NoError(t, err)
			require.Equal(t, strconv.FormatUint(uint64(*b.tag), 10), u.Memo)
			signed, err := c.Assemble(u, []chain.Signature{sig})
			require.NoError(t, err)
			require.Equal(t, chain.Signed{Tx: strings.ToLower(x.Hash), Raw: b.encode()}, signed)
		}
	}
	require.Equal(t, []int{6, 5}, []int{made, refused})
}

// FuzzDecode: nothing that is read is written otherwise, and nothing ends the
// reading but an error.
func FuzzDecode(f *testing.F) {
	for _, x := range load(f).Transactions {
		f.Add(unhexed(f, x.Blob))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if b, err := decode(raw); err == nil {
			require.Equal(t, raw, b.encode())
		}
	})
}
