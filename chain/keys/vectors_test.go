package keys_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/sha3"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
)

type vectors struct {
	Mnemonic   string
	SeedHex    string `json:"seed_hex"`
	MasterXprv string `json:"master_xprv"`
	Accounts   []struct {
		Network, Scheme, Path, XPub string
		Addresses                   []struct {
			Path       string
			Address    string
			PublicKey  string `json:"public_key"`
			PrivateKey string `json:"private_key"`
		}
	}
}

func load(t testing.TB) (v vectors) {
	b, err := os.ReadFile("testdata/hd.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &v))
	return v
}

// asHex is an Encode that shows the public key itself.
func asHex(pub chain.PublicKey) (chain.Address, error) {
	return chain.Address(hex.EncodeToString(pub)), nil
}

// evmAddress is EIP-55, written here once more to check against.
func evmAddress(pub chain.PublicKey) (chain.Address, error) {
	k, err := secp256k1.ParsePubKey(pub)
	if err != nil {
		return "", err
	}
	keccak := func(b []byte) []byte { h := sha3.NewLegacyKeccak256(); h.Write(b); return h.Sum(nil) }
	a := hex.EncodeToString(keccak(k.SerializeUncompressed()[1:])[12:])
	sum := hex.EncodeToString(keccak([]byte(a)))
	out := []byte(a)
	for i, c := range out {
		if c >= 'a' && sum[i] >= '8' {
			out[i] = c - 'a' + 'A'
		}
	}
	return chain.Address("0x" + string(out)), nil
}

// TestVectors holds every row of the vectors against a Seed and a Source. The
// xpubs of other networks' versions differ in the version alone.
func TestVectors(t *testing.T) {
	t.Parallel()
	v := load(t)
	seed, err := keys.FromMnemonic("  "+strings.ReplaceAll(v.Mnemonic, " ", "\n ")+" ", "")
	require.NoError(t, err)
	require.Equal(t, v.SeedHex, hex.EncodeToString(seed.Bytes()))
	rows := 0
	for _, a := range v.Accounts {
		xpub, err := seed.XPub(a.Path)
		require.NoError(t, err)
		want, err := hdkeychain.NewKeyFromString(a.XPub)
		require.NoError(t, err)
		got, err := hdkeychain.NewKeyFromString(xpub)
		require.NoError(t, err)
		require.False(t, got.IsPrivate())
		version := got.Version()
		want, err = want.CloneWithVersion(version)
		require.NoError(t, err)
		require.Equal(t, want.String(), xpub, a.Path)

		n := chain.Network(a.Network)
		acc := []keys.Account{{Network: n, Path: a.Path, XPub: a.XPub}}
		source, err := keys.NewSource(acc, map[chain.Network]keys.Encode{n: asHex})
		require.NoError(t, err)
		derived, err := source.Derive(t.Context(), n, 0, len(a.Addresses))
		require.NoError(t, err)
		evm, err := keys.NewSource(acc, map[chain.Network]keys.Encode{n: evmAddress})
		require.NoError(t, err)
		for i, row := range a.Addresses {
			require.Equal(t, row.PublicKey, string(derived[i].Address), row.Path)
			require.Equal(t, row.Path, string(derived[i].Key))
			require.EqualValues(t, i, derived[i].Index)
			private, err := seed.PrivateKey(row.Path)
			require.NoError(t, err)
			require.Equal(t, row.PrivateKey, hex.EncodeToString(private), row.Path)
			if a.Network == "EVM" {
				d, err := evm.Derive(t.Context(), n, uint32(i), 1)
				require.NoError(t, err)
				require.Equal(t, row.Address, string(d[0].Address))
			}
			rows++
		}
	}
	require.GreaterOrEqual(t, rows, 100)
}

// TestBIP39 checks the official vectors of the mnemonic code, with the
// passphrase TREZOR, and the Japanese-style case that normalisation is for.
func TestBIP39(t *testing.T) {
	t.Parallel()
	for phrase, want := range map[string]string{
		strings.Repeat("abandon ", 11) + "about":                                      "c55257c360c07c72029aebc1b53c05ed0362ada38ead3e3e9efa3708e53495531f09a6987599d18264c1e1c92f2cf141630c7a3c4ab7c81b2f001698e7463b04",
		"legal winner thank year wave sausage worth useful legal winner thank yellow": "2e8905819b8723fe2c1d161860e5ee1830318dbf49a83bd451cfb8440c28bd6fa457fe1296106559a3c80937a1c1069be3a3a5bd381ee6260e8d9739fce1f607",
		strings.Repeat("zoo ", 11) + "wrong":                                          "ac27495480225222079d7be181583751e86f571027b0497b5b5d11218e0a8a13332572917f0f8e5a589620c6f15b11c61dee327651a14c34e18231052e48c069",
		strings.Repeat("abandon ", 23) + "art":                                        "bda85446c68413707090a52022edd26a1c9462295029f2e60cd7c4f2bbd3097170af7a4d73245cafa9c3cca8d561a7c3de6f5d4a10be8ed2a5e608d68f92fcc8",
	} {
		s, err := keys.FromMnemonic(phrase, "TREZOR")
		require.NoError(t, err)
		require.Equal(t, want, hex.EncodeToString(s.Bytes()))
	}
	phrase := strings.Repeat("abandon ", 11) + "about"
	composed, err := keys.FromMnemonic(phrase, "caf\u00e9 \u212b")
	require.NoError(t, err)
	decomposed, err := keys.FromMnemonic(phrase, "cafe\u0301 A\u030a")
	require.NoError(t, err)
	require.Equal(t, composed.Bytes(), decomposed.Bytes(), "one passphrase, however it is typed")

	for _, bad := range []string{
		"", "abandon", strings.Repeat("abandon ", 12), strings.Repeat("abandon ", 11) + "abuot", strings.Repeat("zoo ", 12),
		strings.ToUpper(phrase), strings.Repeat("abandon ", 10) + "about", phrase + " about",
	} {
		_, err := keys.FromMnemonic(bad, "")
		require.ErrorIs(t, err, keys.ErrMnemonic, bad)
	}
	m, err := keys.NewMnemonic(strings.NewReader(strings.Repeat("\x00", 32)))
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("abandon ", 23)+"art", m)
	_, err = keys.NewMnemonic(strings.NewReader("short"))
	require.Error(t, err)
}

// TestBIP32 checks the official vectors 1, 2 and 3; 3 is about leading zeros.
func TestBIP32(t *testing.T) {
	t.Parallel()
	for _, v := range []struct{ seed, path, xpub string }{
		{"000102030405060708090a0b0c0d0e0f", "m", "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8"},
		{"000102030405060708090a0b0c0d0e0f", "m/0'", "xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw"},
		{"000102030405060708090a0b0c0d0e0f", "m/0'/1", "xpub6ASuArnXKPbfEwhqN6e3mwBcDTgzisQN1wXN9BJcM47sSikHjJf3UFHKkNAWbWMiGj7Wf5uMash7SyYq527Hqck2AxYysAA7xmALppuCkwQ"},
		{"000102030405060708090a0b0c0d0e0f", "m/0'/1/2'/2/1000000000", "xpub6H1LXWLaKsWFhvm6RVpEL9P4KfRZSW7abD2ttkWP3SSQvnyA8FSVqNTEcYFgJS2UaFcxupHiYkro49S8yGasTvXEYBVPamhGW6cFJodrTHy"},
		{"4b381541583be4423346c643850da4b320e46a87ae3d2a4e6da11eba819cd4acba45d239319ac14f863b8d5ab5a0d0c64d2e8a1e7d1457df2e5a3c51c73235be", "m/0'", "xpub68NZiKmJWnxxS6aaHmn81bvJeTESw724CRDs6HbuccFQN9Ku14VQrADWgqbhhTHBaohPX4CjNLf9fq9MYo6oDaPPLPxSb7gwQN3ih19Zm4Y"},
	} {
		raw, err := hex.DecodeString(v.seed)
		require.NoError(t, err)
		s, err := keys.FromBytes(raw)
		require.NoError(t, err)
		clear(raw) // it keeps a copy
		got, err := s.XPub(v.path)
		require.NoError(t, err)
		require.Equal(t, v.xpub, got, v.path)
	}
	for _, n := range []int{0, 15, 65} {
		_, err := keys.FromBytes(make([]byte, n))
		require.Error(t, err)
	}
}

// TestSourceAgainstReference compares our child derivation with hdkeychain's.
func TestSourceAgainstReference(t *testing.T) {
	t.Parallel()
	seed, err := keys.FromBytes([]byte("a seed of no value whatever......"))
	require.NoError(t, err)
	for _, path := range []string{"m/44'/60'/0'", "m/84'/0'/0'", "m/0'"} {
		xpub, err := seed.XPub(path)
		require.NoError(t, err)
		for _, branch := range []uint32{0, 1, 137, 1<<31 - 1} {
			source, err := keys.NewSource([]keys.Account{{Network: "N", Path: path, Branch: branch, XPub: xpub}}, map[chain.Network]keys.Encode{"N": asHex})
			require.NoError(t, err)
			ref, err := hdkeychain.NewKeyFromString(xpub)
			require.NoError(t, err)
			ref, err = ref.Derive(branch)
			require.NoError(t, err)
			for _, from := range []uint32{0, 255, 256, 1 << 30, 1<<31 - 8} {
				got, err := source.Derive(t.Context(), "N", from, 8)
				require.NoError(t, err)
				for i, d := range got {
					k, err := ref.Derive(from + uint32(i))
					require.NoError(t, err)
					pub, err := k.ECPubKey()
					require.NoError(t, err)
					require.Equal(t, hex.EncodeToString(pub.SerializeCompressed()), string(d.Address))
					private, err := seed.PrivateKey(string(d.Key))
					require.NoError(t, err)
					require.Equal(t, pub.SerializeCompressed(), secp256k1.PrivKeyFromBytes(private).PubKey().SerializeCompressed())
				}
			}
		}
	}
}

func TestSourceRefuses(t *testing.T) {
	t.Parallel()
	v := load(t)
	seed, err := keys.FromMnemonic(v.Mnemonic, "")
	require.NoError(t, err)
	encode := map[chain.Network]keys.Encode{"N": asHex}
	good := keys.Account{Network: "N", Path: "m/84'/0'/0'", XPub: v.Accounts[0].XPub}
	for name, change := range map[string]func(a *keys.Account){
		"private":                func(a *keys.Account) { a.XPub = v.MasterXprv },
		"nonsense":               func(a *keys.Account) { a.XPub = "xpub" },
		"changed":                func(a *keys.Account) { a.XPub = a.XPub[:50] + "1" + a.XPub[51:] },
		"another depth":          func(a *keys.Account) { a.Path = "m/84'/0'" },
		"another account":        func(a *keys.Account) { a.Path = "m/84'/0'/1'" },
		"not hardened":           func(a *keys.Account) { a.Path = "m/84'/0'/0" },
		"no path":                func(a *keys.Account) { a.Path = "84'/0'/0'" },
		"a branch that hardened": func(a *keys.Account) { a.Branch = 1 << 31 },
	} {
		a := good
		change(&a)
		_, err := keys.NewSource([]keys.Account{a}, encode)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), v.MasterXprv[4:])
	}
	s, err := keys.NewSource([]keys.Account{good, {Network: "OTHER"}}, encode)
	require.NoError(t, err)
	for _, c := range []struct {
		n     chain.Network
		from  uint32
		count int
	}{{"OTHER", 0, 1}, {"N", 1 << 31, 1}, {"N", 1<<31 - 1, 2}, {"N", 0, -1}} {
		_, err = s.Derive(t.Context(), c.n, c.from, c.count)
		require.Error(t, err, c)
	}
	last, err := s.Derive(t.Context(), "N", 1<<31-1, 1)
	require.NoError(t, err)
	require.Equal(t, chain.KeyRef("m/84'/0'/0'/0/2147483647"), last[0].Key)
	pub, err := s.PublicKey("N", last[0].Key)
	require.NoError(t, err)
	require.Equal(t, last[0].Address, must(asHex(pub)))
	_, err = s.PublicKey("OTHER", last[0].Key)
	require.Error(t, err)
	for _, ref := range []chain.KeyRef{
		"", "7", "m/84'/0'/0'/0/", "m/84'/0'/0'/0/x", "m/84'/0'/0'/0/07", "m/84'/0'/0'/0/+7", "m/84'/0'/0'/0/2147483648", "m/84'/0'/0'/0/-1",
		"m/84'/0'/0'/1/7", "m/84'/0'/0'/0/7'", "m/84'/0'/0'/0/7/7",
	} {
		_, err := s.PublicKey("N", ref)
		require.Error(t, err, ref)
	}
	none, err := s.Derive(t.Context(), "N", 5, 0)
	require.NoError(t, err)
	require.Empty(t, none)

	// No two networks share an address, and chain ids that would make them are refused.
	accounts, err := seed.Accounts(chain.MainnetRegistry().Networks())
	require.NoError(t, err)
	seen := map[string]chain.Network{}
	for _, a := range accounts {
		branch := fmt.Sprint(a.Path, "/", a.Branch)
		require.Empty(t, seen[branch], "%s and %s share %s", a.Network, seen[branch], branch)
		seen[branch] = a.Network
	}
	require.GreaterOrEqual(t, len(accounts), 5)
	for _, id := range []int64{0, -1, 1 << 31, 1 << 32, 1<<32 + 56} {
		_, err := seed.Accounts([]chain.NetworkInfo{{Code: "X", AddressType: "EVM", ChainID: id}})
		require.Error(t, err, id)
	}
}

// FuzzParsePath: what is accepted has one writing only.
func FuzzParsePath(f *testing.F) {
	for _, s := range []string{"m", "m/44'/60'/0'/0/7", "m/2147483647'", "m/", "m//1", "m/00", "m/+1", "M/1", "m/1h", "m/2147483648", "m/1'/", "m1", "m/-1", "m/1''"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		steps, err := keys.ParsePath(path)
		if err != nil {
			require.ErrorIs(t, err, keys.ErrPath)
			require.Equal(t, keys.ErrPath.Error(), err.Error())
			return
		}
		again := "m"
		for _, s := range steps {
			if s >= 1<<31 {
				again += fmt.Sprintf("/%d'", s-1<<31)
			} else {
				again += fmt.Sprintf("/%d", s)
			}
		}
		require.Equal(t, path, again)
	})
}

func TestPaths(t *testing.T) {
	t.Parallel()
	steps, err := keys.ParsePath("m/44'/60'/0'/0/7")
	require.NoError(t, err)
	require.Equal(t, []uint32{1<<31 + 44, 1<<31 + 60, 1 << 31, 0, 7}, steps)
	for _, bad := range []string{"", "/", "m/", "m//1", "m/00", "m/01", "m/+1", "M/1", "m/1h", "m/2147483648", "m/1'/", "m1", "m/-1", "m/1''", "m/ 1", "m/1" + strings.Repeat("/1", 60)} {
		_, err := keys.ParsePath(bad)
		require.ErrorIs(t, err, keys.ErrPath, bad)
	}
}
