package stellar

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

type vectors struct {
	Transactions []struct {
		Note, From, To, Memo, MemoKind, Kind, Amount string
		Fee, Sequence, MaxTime                       int64
		Network                                      string
		Payload, Hash, Signature, Envelope           string
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

// TestVectors_Transactions: bytes, hashes and envelopes as the reference library
// makes them; what we never make is refused.
func TestVectors_Transactions(t *testing.T) {
	t.Parallel()
	clients := map[string]*Client{Mainnet: openTown(t).client, Testnet: openTown(t, func(o *Options) { o.Passphrase = Testnet }).client}
	made, refused := 0, 0
	for _, x := range load(t).Transactions {
		c := clients[x.Network]
		payload := unhexed(t, x.Payload)
		raw, err := base64.StdEncoding.DecodeString(x.Envelope)
		require.NoError(t, err)
		to, id, err := c.own(chain.Address(x.To))
		require.NoError(t, err, x.Note)
		if id != nil || x.MemoKind == "hash" || x.MaxTime == 0 || x.Kind == "issued" || x.Kind == "merge" {
			_, err = c.Inspect(payload)
			require.ErrorIs(t, err, chain.ErrRejected, x.Note)
			_, err = c.signed(x.Hash, raw)
			require.ErrorIs(t, err, chain.ErrRejected, x.Note)
			refused++
			continue
		}
		from, _, err := c.own(chain.Address(x.From))
		require.NoError(t, err)
		amount, ok := stroops(x.Amount)
		require.True(t, ok)
		s := &sending{from: from, to: to, memo: x.Memo, amount: amount, create: x.Kind == "create", cancel: x.Kind == "bump"}
		b := s.body(x.Sequence, uint32(x.Fee))
		b.until = uint64(x.MaxTime)
		require.Equal(t, x.Payload, hex.EncodeToString(b.encode()), x.Note)
		u, err := c.Inspect(payload)
		require.NoError(t, err, x.Note)
		require.Equal(t, x.Memo, u.Memo)
		signed, err := c.Assemble(u, []chain.Signature{unhexed(t, x.Signature)})
		require.NoError(t, err, x.Note)
		require.Equal(t, chain.Signed{Tx: x.Hash, Raw: raw}, signed, x.Note)
		made++
		if x.Network == Testnet {
			_, err = clients[Mainnet].Assemble(u, []chain.Signature{unhexed(t, x.Signature)})
			require.Error(t, err, "a signature for one network is none for another")
		}
	}
	require.Equal(t, []int{9, 5}, []int{made, refused})
}

// TestVectors_Addresses: as the format's own specification (SEP-23) writes them.
func TestVectors_Addresses(t *testing.T) {
	t.Parallel()
	c := openTown(t).client
	const account, muxed = "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ", "MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ"
	got, err := c.Multiplex(account, 0)
	require.NoError(t, err)
	require.EqualValues(t, muxed, got)
	base, memo, ok := c.Untag(muxed)
	require.True(t, ok)
	require.EqualValues(t, account, base)
	require.Equal(t, "0", memo)
}

func TestStroops(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{"0.0000001": 1, "1.0000000": 1e7, "922337203685.4775807": 1<<63 - 1, "12": 12e7} {
		n, ok := stroops(s)
		require.True(t, ok, s)
		require.Equal(t, want, n)
		require.True(t, decimal.RequireFromString(s).Equal(coins(n)))
	}
	for _, s := range []string{"", "-1", "+1", "1e3", "0.00000001", "922337203685.4775808", "NaN", "1.", ".", "1,0", "−1", "99999999999999999999999999"} {
		n, ok := stroops(s)
		require.True(t, !ok || s == "1.", "%q is %d", s, n)
	}
}

// FuzzDecode: nothing that is read is written otherwise, and nothing ends the
// reading but an error.
func FuzzDecode(f *testing.F) {
	for _, x := range load(f).Transactions {
		f.Add(unhexed(f, x.Payload))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if b, err := decode(raw); err == nil {
			require.Equal(t, raw, b.encode())
		}
		_, _, _ = unseal(raw)
	})
}
