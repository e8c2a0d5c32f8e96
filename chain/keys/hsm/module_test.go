//go:build cgo

package hsm_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"github.com/miekg/pkcs11"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/keys/hsm"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// The tests of this package are not parallel: PKCS#11 has one state in a process, and
// SoftHSM reads its folder from the environment.

const (
	secp chain.KeyRef = "m/44'/60'/0'/0/0"
	ed   chain.KeyRef = "ed25519/m/44'/501'/0'/0'"
)

func config(t *testing.T) (hsm.Config, testenv.Token) {
	t.Helper()
	token := testenv.SoftHSM(t)
	t.Setenv("SOFTHSM2_CONF", token.Conf)
	return hsm.Config{Library: token.Library, Token: token.Label, PIN: []byte(token.PIN)}, token
}

func open(t *testing.T, cfg hsm.Config) *hsm.Module {
	t.Helper()
	m, err := hsm.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// Keys are made in the module, and nothing that PKCS#11 has takes one out: not its value,
// not wrapped in another key, not by a change of what it is, not by a copy.
func TestFS07_KeysNeverLeaveTheModule(t *testing.T) { //nolint:paralleltest // see above
	cfg, _ := config(t)
	m := open(t, cfg)
	for _, ref := range []chain.KeyRef{secp, ed} {
		pub, err := m.Make(t.Context(), ref)
		require.NoError(t, err)
		require.Len(t, pub, map[chain.KeyRef]int{secp: 33, ed: 32}[ref])
		tried := 0
		require.NoError(t, m.Inside(t.Context(), ref, func(lib *pkcs11.Ctx, s pkcs11.SessionHandle, key pkcs11.ObjectHandle) error {
			tried++
			_, err := lib.GetAttributeValue(s, key, []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_VALUE, nil)})
			require.ErrorIs(t, err, pkcs11.Error(pkcs11.CKR_ATTRIBUTE_SENSITIVE))
			wrapping, err := lib.GenerateKey(s, []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_AES_KEY_GEN, nil)}, []*pkcs11.Attribute{
				pkcs11.NewAttribute(pkcs11.CKA_TOKEN, false), pkcs11.NewAttribute(pkcs11.CKA_VALUE_LEN, 32), pkcs11.NewAttribute(pkcs11.CKA_WRAP, true),
			})
			require.NoError(t, err)
			for _, way := range []uint{pkcs11.CKM_AES_KEY_WRAP, pkcs11.CKM_AES_KEY_WRAP_PAD} {
				_, err = lib.WrapKey(s, []*pkcs11.Mechanism{pkcs11.NewMechanism(way, nil)}, wrapping, key)
				require.ErrorIs(t, err, pkcs11.Error(pkcs11.CKR_KEY_UNEXTRACTABLE))
			}
			loose := []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_EXTRACTABLE, true)}
			require.Error(t, lib.SetAttributeValue(s, key, loose))
			_, err = lib.CopyObject(s, key, loose)
			require.Error(t, err)
			_, err = lib.CopyObject(s, key, []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_SENSITIVE, false)})
			require.Error(t, err)
			return nil
		}))
		require.Equal(t, 1, tried)
	}
}

// A key that was put into the module, or that the module gives away, signs nothing, though
// it has the right label.
func TestFS07_KeyFromOutsideIsRefused(t *testing.T) { //nolint:paralleltest // see above
	cfg, _ := config(t)
	m := open(t, cfg)
	_, err := m.Make(t.Context(), secp)
	require.NoError(t, err)
	const put, loose chain.KeyRef = "m/44'/60'/0'/0/1", "m/44'/60'/0'/0/2"
	is := pkcs11.NewAttribute
	params := []byte("\x06\x05\x2b\x81\x04\x00\x0a")
	require.NoError(t, m.Inside(t.Context(), secp, func(lib *pkcs11.Ctx, s pkcs11.SessionHandle, _ pkcs11.ObjectHandle) error {
		key := secp256k1.PrivKeyFromBytes([]byte("a key of 32 bytes from elsewhere"))
		_, err := lib.CreateObject(s, []*pkcs11.Attribute{
			is(pkcs11.CKA_CLASS, pkcs11.CKO_PRIVATE_KEY), is(pkcs11.CKA_KEY_TYPE, pkcs11.CKK_EC), is(pkcs11.CKA_TOKEN, true), is(pkcs11.CKA_LABEL, string(put)),
			is(pkcs11.CKA_ID, "1"), is(pkcs11.CKA_EC_PARAMS, params), is(pkcs11.CKA_VALUE, key.Serialize()), is(pkcs11.CKA_SIGN, true),
			is(pkcs11.CKA_SENSITIVE, true), is(pkcs11.CKA_EXTRACTABLE, false),
		})
		require.NoError(t, err)
		_, err = lib.CreateObject(s, []*pkcs11.Attribute{
			is(pkcs11.CKA_CLASS, pkcs11.CKO_PUBLIC_KEY), is(pkcs11.CKA_KEY_TYPE, pkcs11.CKK_EC), is(pkcs11.CKA_TOKEN, true), is(pkcs11.CKA_LABEL, string(put)),
			is(pkcs11.CKA_ID, "1"), is(pkcs11.CKA_EC_PARAMS, params), is(pkcs11.CKA_EC_POINT, append([]byte{4, 65}, key.PubKey().SerializeUncompressed()...)),
		})
		require.NoError(t, err)
		_, _, err = lib.GenerateKeyPair(s, []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_EC_KEY_PAIR_GEN, nil)},
			[]*pkcs11.Attribute{is(pkcs11.CKA_TOKEN, true), is(pkcs11.CKA_LABEL, string(loose)), is(pkcs11.CKA_EC_PARAMS, params)},
			[]*pkcs11.Attribute{
				is(pkcs11.CKA_TOKEN, true), is(pkcs11.CKA_LABEL, string(loose)), is(pkcs11.CKA_SIGN, true),
				is(pkcs11.CKA_SENSITIVE, true), is(pkcs11.CKA_EXTRACTABLE, true),
			})
		require.NoError(t, err)
		return nil
	}))
	for _, ref := range []chain.KeyRef{put, loose} {
		for name, err := range map[string]error{
			"sign": second(m.Sign(t.Context(), ref, make([]byte, 32))), "public": second(m.Public(t.Context(), ref)), "make": second(m.Make(t.Context(), ref)),
		} {
			require.ErrorContains(t, err, "is refused", "%s %s", name, ref)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A module that is opened again has the same keys, makes none anew, and half a key, of a
// maker that died, is in nobody's way. A key that is there twice signs nothing.
func TestFS07_ModuleKnowsItsKeysAgain(t *testing.T) { //nolint:paralleltest // see above
	cfg, _ := config(t)
	m := open(t, cfg)
	of := map[chain.KeyRef]chain.PublicKey{}
	for _, ref := range []chain.KeyRef{secp, ed, "m/84'/0'/0'/0/0"} {
		pub, err := m.Make(t.Context(), ref)
		require.NoError(t, err)
		again, err := m.Make(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, pub, again)
		of[ref] = pub
	}
	require.NotEqual(t, of[secp], of["m/84'/0'/0'/0/0"])
	halves := []chain.KeyRef{"m/44'/60'/0'/0/9", "m/44'/60'/0'/0/10"} // the private one, and the public one
	for i, ref := range halves {
		require.NoError(t, m.Inside(t.Context(), secp, func(lib *pkcs11.Ctx, s pkcs11.SessionHandle, _ pkcs11.ObjectHandle) error {
			named := []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_TOKEN, true), pkcs11.NewAttribute(pkcs11.CKA_LABEL, string(ref))}
			public, private, err := lib.GenerateKeyPair(s, []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_EC_KEY_PAIR_GEN, nil)},
				append(named, pkcs11.NewAttribute(pkcs11.CKA_EC_PARAMS, []byte("\x06\x05\x2b\x81\x04\x00\x0a"))), named)
			require.NoError(t, err)
			return lib.DestroyObject(s, []pkcs11.ObjectHandle{public, private}[i])
		}))
	}
	require.NoError(t, m.Close())
	require.ErrorContains(t, second(m.Public(t.Context(), secp)), "closed")

	m = open(t, cfg)
	for ref, pub := range of {
		again, err := m.Public(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, pub, again)
	}
	for _, ref := range halves {
		require.ErrorContains(t, second(m.Public(t.Context(), ref)), "no key of this name")
		_, err := m.Make(t.Context(), ref)
		require.NoError(t, err)
	}
	require.ErrorIs(t, second(m.Make(t.Context(), "no path")), keys.ErrPath)

	require.NoError(t, m.Another(t.Context(), ed, true))
	require.NoError(t, m.Close())
	m = open(t, cfg)
	require.ErrorContains(t, second(m.Sign(t.Context(), ed, []byte("m"))), "2 keys are labelled")
	require.ErrorContains(t, second(m.Make(t.Context(), ed)), "2 keys are labelled")
}

// Signatures of the module are right on both curves, low-S, and come back to their key,
// many at once.
func TestFS07_ModuleSignsAtOnce(t *testing.T) { //nolint:paralleltest // see above
	cfg, _ := config(t)
	m := open(t, cfg)
	for _, ref := range []chain.KeyRef{secp, ed} {
		require.NoError(t, m.Try(t.Context(), ref))
		_, err := m.Make(t.Context(), ref)
		require.NoError(t, err)
	}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 25 {
				assert.NoError(t, signs(t.Context(), m, fmt.Appendf(nil, "message %d of %d", i, n)))
			}
		})
	}
	all.Wait()
}

// signs has a message signed on both curves.
func signs(ctx context.Context, m *hsm.Module, message []byte) error {
	pub, err := m.Public(ctx, ed)
	if err != nil {
		return err
	}
	sig, err := m.Sign(ctx, ed, message)
	if err != nil {
		return err
	}
	if !ed25519.Verify(ed25519.PublicKey(pub), message, sig) {
		return errors.New("a signature of ed25519 does not verify")
	}
	hash := sha256.Sum256(message)
	if pub, err = m.Public(ctx, secp); err != nil {
		return err
	}
	raw, err := m.Sign(ctx, secp, hash[:])
	if err != nil {
		return err
	}
	done, err := keys.Finish(pub, hash[:], raw)
	if err != nil {
		return err
	}
	var s secp256k1.ModNScalar
	if s.SetByteSlice(done[32:64]) || s.IsOverHalfOrder() {
		return errors.New("s is not low")
	}
	if back, _, err := ecdsa.RecoverCompact(append([]byte{27 + 4 + done[64]}, done[:64]...), hash[:]); err != nil || !bytes.Equal(pub, back.SerializeCompressed()) {
		return fmt.Errorf("another key comes back: %w", err)
	}
	raw[10] ^= 1
	if _, err = keys.Finish(pub, hash[:], raw); err == nil {
		return errors.New("a faulty signature was handed out")
	}
	return nil
}

// A module that is gone is an error each time, and serves again when it is back.
func TestFS07_ModuleComesBack(t *testing.T) { //nolint:paralleltest // see above
	cfg, token := config(t)
	m := open(t, cfg)
	pub, err := m.Make(t.Context(), secp)
	require.NoError(t, err)
	for _, asked := range []chain.KeyRef{secp, "m/44'/60'/0'/0/1"} { // one that is known and one that is looked for
		require.NoError(t, m.Ready(t.Context()))
		require.NoError(t, os.Rename(token.Dir, token.Dir+".gone"))
		for range 3 {
			_, err = m.Sign(t.Context(), asked, make([]byte, 32))
			require.Error(t, err)
			require.NotErrorIs(t, err, chain.ErrRefused)
		}
		require.Error(t, m.Ready(t.Context()))
		require.NoError(t, os.Rename(token.Dir+".gone", token.Dir))
		_, err = m.Sign(t.Context(), secp, make([]byte, 32))
		require.NoError(t, err)
		again, err := m.Public(t.Context(), secp)
		require.NoError(t, err)
		require.Equal(t, pub, again)
		require.NoError(t, m.Ready(t.Context()))
	}
}

// A PIN that the module refused is not tried again: a few wrong ones lock it.
func TestFS07_RefusedPINIsNotTriedAgain(t *testing.T) { //nolint:paralleltest // see above
	cfg, token := config(t)
	m := open(t, cfg)
	_, err := m.Make(t.Context(), secp)
	require.NoError(t, err)
	before := t.TempDir()
	require.NoError(t, os.CopyFS(before, os.DirFS(token.Dir)))
	broken := pkcs11.Error(pkcs11.CKR_DEVICE_ERROR)
	require.ErrorIs(t, m.Inside(t.Context(), secp, func(lib *pkcs11.Ctx, s pkcs11.SessionHandle, _ pkcs11.ObjectHandle) error {
		require.NoError(t, lib.SetPIN(s, token.PIN, "another one"))
		return broken
	}), broken)
	for range 2 {
		require.ErrorIs(t, second(m.Sign(t.Context(), secp, make([]byte, 32))), pkcs11.Error(pkcs11.CKR_PIN_INCORRECT))
		require.NoError(t, os.RemoveAll(token.Dir))
		require.NoError(t, os.CopyFS(token.Dir, os.DirFS(before))) // the old PIN would be right again
	}
}

// What is wrong with a configuration is said, and never the PIN.
func TestFS07_ModuleIsChecked(t *testing.T) { //nolint:paralleltest // see above
	whole, _ := config(t)
	for want, edit := range map[string]func(*hsm.Config){
		"are required":     func(c *hsm.Config) { c.PIN = nil },
		"can be loaded":    func(c *hsm.Config) { c.Library = "/nowhere.so" },
		`0 tokens are`:     func(c *hsm.Config) { c.Token = "another" },
		"CKR_PIN_INCORREC": func(c *hsm.Config) { c.PIN = []byte("wrong horse") },
	} {
		cfg := whole
		edit(&cfg)
		_, err := hsm.Open(t.Context(), cfg)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "horse")
	}
	m := open(t, whole)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", m, m, m), "horse")
	require.ErrorIs(t, m.Try(t.Context(), "no path"), keys.ErrPath)
}
