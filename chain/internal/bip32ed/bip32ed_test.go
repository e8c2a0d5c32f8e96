package bip32ed

import (
	"crypto/ed25519"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tyler-smith/go-bip39"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// TestVectors_LedgerMaster: CIP-3's own.
func TestVectors_LedgerMaster(t *testing.T) {
	t.Parallel()
	for _, v := range []struct{ phrase, passphrase, want string }{
		{
			"recall grace sport punch exhibit mad harbor stand obey short width stem awkward used stairs wool ugly trap season stove worth toward congress jaguar", "",
			"a08cf85b564ecf3b947d8d4321fb96d70ee7bb760877e371899b14e2ccf88658104b884682b57efd97decbb318a45c05a527b9cc5c2f64f7352935a049ceea60680d52308194ccef2a18e6812b452a5815fbd7f5babc083856919aaf668fe7e4",
		},
		{
			strings.Repeat("abandon ", 23) + "art", "foo",
			"f053a1e752de5c26197b60f032a4809f08bb3e5d90484fe42024be31efcba7578d914d3ff992e21652fee6a4d99f6091006938fac2c0c0f9d2de0ba64b754e92a4f3723f23472077aa4cd4dd8a8a175dba07ea1852dad1cf268c61a2679c3890",
		},
	} {
		seed, err := bip39.NewSeedWithErrorChecking(v.phrase, v.passphrase)
		require.NoError(t, err)
		k := Ledger(seed)
		require.Equal(t, v.want, hex.EncodeToString(k.left[:])+hex.EncodeToString(k.right[:])+hex.EncodeToString(k.code[:]))
	}
}

// TestPublicDerivesWhatPrivateDerives: by any soft path, and the signatures of what is
// derived are ed25519's.
func TestPublicDerivesWhatPrivateDerives(t *testing.T) {
	t.Parallel()
	for _, path := range [][]uint32{{0, 0}, {0, 7}, {1, Hardened - 1}, {2, 0}} {
		k := Ledger([]byte("a seed of 16 bytes or more"))
		require.NoError(t, k.Derive(1852+Hardened, 1815+Hardened, Hardened))
		pub, err := k.Public()
		require.NoError(t, err)
		require.NoError(t, k.Derive(path...))
		for _, i := range path {
			pub, err = pub.Child(i)
			require.NoError(t, err)
		}
		own, err := k.Public()
		require.NoError(t, err)
		require.Equal(t, own, pub)
		sig, err := k.Sign([]byte("message"))
		require.NoError(t, err)
		require.True(t, ed25519.Verify(pub.Key[:], []byte("message"), sig))
		require.False(t, ed25519.Verify(pub.Key[:], []byte("another"), sig))
		k.Clear()
		require.Equal(t, Private{}, *k)
	}
	_, err := Public{}.Child(Hardened)
	require.Error(t, err)
}

// TestReference_KeysAndSignatures: every key of a path, and its signature, as the reference
// library of Cardano derives and makes them.
func TestReference_KeysAndSignatures(t *testing.T) {
	t.Parallel()
	type task struct {
		Derive struct {
			Master  string   `json:"master"`
			Path    []uint32 `json:"path"`
			Message string   `json:"message"`
		} `json:"derive"`
	}
	master := Ledger([]byte("a seed of 16 bytes or more"))
	var tasks []task
	paths := [][]uint32{{}, {Hardened + 1852}, {Hardened + 1852, Hardened + 1815, Hardened}, {Hardened + 1852, Hardened + 1815, Hardened, 0, 7}, {1, 2, 3, Hardened - 1}}
	for _, path := range paths {
		var x task
		x.Derive.Master = hex.EncodeToString(master.left[:]) + hex.EncodeToString(master.right[:]) + hex.EncodeToString(master.code[:])
		x.Derive.Path, x.Derive.Message = path, hex.EncodeToString([]byte("message"))
		tasks = append(tasks, x)
	}
	var got []struct{ Public, Signature string }
	testenv.Cardano(t, tasks, &got)
	require.Len(t, got, len(paths))
	for i, path := range paths {
		k := *master
		require.NoError(t, k.Derive(path...))
		pub, err := k.Public()
		require.NoError(t, err)
		require.Equal(t, got[i].Public, hex.EncodeToString(pub.Key[:]), path)
		sig, err := k.Sign([]byte("message"))
		require.NoError(t, err)
		require.Equal(t, got[i].Signature, hex.EncodeToString(sig), path)
	}
}
