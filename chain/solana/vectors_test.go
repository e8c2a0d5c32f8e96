package solana

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

type vectors struct {
	Associated []struct {
		Owner, Mint string
		Program     string `json:"token_program"`
		ATA         string
		ATA2022     string `json:"ata_token2022"`
	} `json:"associated_token_accounts"`
	Transactions []struct {
		Type       string
		Params     map[string]any
		FeePayer   string   `json:"fee_payer"`
		Seeds      []string `json:"signer_seeds"`
		Message    string   `json:"message_hex"`
		Signatures []string
		Wire       string `json:"wire_base64"`
	}
}

func load(t testing.TB) (v vectors) {
	t.Helper()
	raw, err := os.ReadFile("testdata/solana.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &v))
	require.NotEmpty(t, v.Associated)
	require.NotEmpty(t, v.Transactions)
	return v
}

func TestVectorsOfAssociatedAccounts(t *testing.T) {
	t.Parallel()
	for _, v := range load(t).Associated {
		owner, mint := mustKey(v.Owner), mustKey(v.Mint)
		require.EqualValues(t, v.ATA, associated(owner, mustKey(v.Program), mint).text())
		require.EqualValues(t, v.ATA2022, associated(owner, token2022, mint).text())
	}
}

// TestVectorsOfTransactions: the reader sees in transactions of another library what
// they do, and the same key makes the same signature.
func TestVectorsOfTransactions(t *testing.T) {
	t.Parallel()
	for _, v := range load(t).Transactions {
		raw, err := base64.StdEncoding.DecodeString(v.Wire)
		require.NoError(t, err)
		x, err := readTransaction(raw)
		require.NoError(t, err, v.Type)
		require.Equal(t, v.Message, hex.EncodeToString(x.message))
		require.EqualValues(t, v.FeePayer, x.keys[0].text())
		require.Len(t, x.signatures, len(v.Signatures))
		require.Len(t, v.Seeds, len(v.Signatures))
		for i, want := range v.Signatures {
			require.Equal(t, want, signatureText(x.signatures[i]))
			require.True(t, ed25519.Verify(x.keys[i][:], x.message, x.signatures[i]))
			signed := false
			for _, s := range v.Seeds {
				seed, err := hex.DecodeString(s)
				require.NoError(t, err)
				k := ed25519.NewKeyFromSeed(seed)
				signed = signed || signatureText(ed25519.Sign(k, x.message)) == want
			}
			require.True(t, signed)
		}
		e := &effect{transaction: x, t: &blockTx{}, accounts: x.keys}
		require.NoError(t, e.walk())
		number := func(name string) uint64 {
			n, err := strconv.ParseUint(v.Params[name].(string), 10, 64)
			require.NoError(t, err)
			return n
		}
		if v.Type == "spl transferChecked" {
			require.Len(t, e.moved, 1)
			require.EqualValues(t, v.Params["source"], x.keys[e.moved[0].from].text())
			require.EqualValues(t, v.Params["destination"], x.keys[e.moved[0].to].text())
			require.Equal(t, number("amount"), e.moved[0].amount)
			continue
		}
		require.Len(t, e.lamports, 1, v.Type)
		require.EqualValues(t, v.Params["to"], x.keys[e.lamports[0].to].text())
		require.Equal(t, number("lamports"), e.lamports[0].amount)
	}
}

// TestVectorsOfAddresses: what this client takes for an address is what chain/address
// does, and base58 has one writing.
func TestVectorsOfAddresses(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../address/testdata/addresses.json")
	require.NoError(t, err)
	var all []struct {
		Network, Address string
		Valid, Policy    bool
	}
	require.NoError(t, json.Unmarshal(raw, &all))
	c, err := New(Options{Registry: registry(t, string(tokenProgram.text())), URL: "http://127.0.0.1:1"})
	require.NoError(t, err)
	n := 0
	for _, v := range all {
		if v.Network != "SOL" {
			continue
		}
		n++
		a, err := c.ParseAddress(v.Address)
		if !v.Valid || v.Policy {
			var why *chain.AddressError
			require.ErrorAs(t, err, &why, v.Address)
			continue
		}
		require.NoError(t, err, v.Address)
		require.EqualValues(t, v.Address, a)
	}
	require.Equal(t, 34, n)
}

// TestBase58 compares with another library, zeros at the front included.
func TestBase58(t *testing.T) {
	t.Parallel()
	for i := range 2000 {
		var k key
		for j := i % 33; j < 32; j += 8 {
			binary.LittleEndian.PutUint64(k[min(j, 24):], uint64(i)*0x9e3779b97f4a7c15)
		}
		want := sdk.PublicKey(k).String()
		require.EqualValues(t, want, k.text())
		back, ok := parseKey(want)
		require.True(t, ok, want)
		require.Equal(t, k, back)
		long := append(append([]byte{}, k[:]...), k[:]...)
		require.Equal(t, sdk.SignatureFromBytes(long).String(), signatureText(long))
		short := k[:i%32]
		text := sdk.Base58(short).String()
		require.Equal(t, append([]byte{}, short...), append([]byte{}, decode58([]byte(text))...), text)
	}
	for _, bad := range []string{"", "1", "0", string(make([]byte, 40)), "1111111111111111111111111111111", "111111111111111111111111111111111", "JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFH"} {
		_, ok := parseKey(bad)
		require.False(t, ok, bad)
	}
}
