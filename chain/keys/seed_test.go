package keys_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/keys"
)

var passphrase = []byte("a passphrase of tests")

func newSeed(t testing.TB) *keys.Seed {
	s, err := keys.FromBytes([]byte("canary-seed-canary-seed-canary-s"))
	require.NoError(t, err)
	return s
}

func TestSeedFile(t *testing.T) {
	t.Parallel()
	dir, random := t.TempDir(), rand.NewChaCha8([32]byte{3})
	seed, file := newSeed(t), filepath.Join(t.TempDir(), "seed.json")
	require.Error(t, seed.Save(file, []byte("too short"), random))
	require.Error(t, seed.Save(file, []byte("eleven byte"), random))
	require.NoFileExists(t, file)
	require.NoError(t, seed.SaveQuick(filepath.Join(dir, "twelve"), []byte("twelve bytes"), random))
	require.NoError(t, seed.SaveQuick(file, passphrase, random))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file is left")

	again, err := keys.Load(file, passphrase)
	require.NoError(t, err)
	require.Equal(t, seed.Bytes(), again.Bytes())
	for _, wrong := range []string{"", "a passphrase of test", "A passphrase of tests", "a passphrase of tests\x00"} {
		_, err = keys.Load(file, []byte(wrong))
		if wrong != "a passphrase of tests\x00" { // PBKDF2 pads with zeros
			require.ErrorIs(t, err, keys.ErrPassphrase, "%q", wrong)
		}
	}

	// Never overwritten, by nobody.
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	other, err := keys.FromBytes(bytes.Repeat([]byte{1}, 32))
	require.NoError(t, err)
	require.ErrorIs(t, other.SaveQuick(file, passphrase, random), os.ErrExist)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Error(t, seed.SaveQuick(filepath.Join(dir, "no", "such"), passphrase, random))
	require.Error(t, seed.SaveQuick(filepath.Join(dir, "x"), passphrase, strings.NewReader("")))
	_, err = keys.Load(filepath.Join(dir, "missing"), passphrase)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestSeedFileChanged: a changed file opens to the same seed or not at all.
func TestSeedFileChanged(t *testing.T) {
	t.Parallel()
	seed, dir := newSeed(t), t.TempDir()
	file := filepath.Join(dir, "seed.json")
	require.NoError(t, seed.SaveQuick(file, passphrase, rand.NewChaCha8([32]byte{4})))
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	try := func(b []byte) error {
		require.NoError(t, os.WriteFile(file, b, 0o600))
		s, err := keys.Load(file, passphrase)
		if err == nil {
			require.Equal(t, seed.Bytes(), s.Bytes())
		}
		return err
	}
	for i := 0; i < len(good); i += 17 {
		b := bytes.Clone(good)
		b[i] ^= 1
		_ = try(b)
	}
	var f map[string]any
	require.NoError(t, json.Unmarshal(good, &f))
	edit := func(field string, v any) []byte {
		c := map[string]any{}
		for k, old := range f {
			c[k] = old
		}
		c[field] = v
		b, err := json.Marshal(c)
		require.NoError(t, err)
		return b
	}
	require.NoError(t, try(edit("comment", "x")))
	for _, field := range []string{"salt", "sealed"} {
		raw, err := base64.StdEncoding.DecodeString(f[field].(string))
		require.NoError(t, err)
		for _, i := range []int{0, len(raw) / 2, len(raw) - 1} {
			b := bytes.Clone(raw)
			b[i] ^= 1
			require.ErrorIs(t, try(edit(field, b)), keys.ErrPassphrase, "%s %d", field, i)
		}
		require.ErrorIs(t, try(edit(field, raw[1:])), keys.ErrPassphrase)
		require.ErrorIs(t, try(edit(field, []byte{})), keys.ErrPassphrase)
	}
	for _, n := range []int{-1, 0, 1 << 13, 1<<14 + 1, 1 << 21, 1 << 40} { // neither weak nor all the memory
		require.ErrorIs(t, try(edit("n", n)), keys.ErrPassphrase)
	}
	for _, c := range []struct {
		field string
		v     any
	}{{"r", 1}, {"r", 1 << 30}, {"p", 2}, {"p", 0}, {"version", 2}, {"kdf", "none"}, {"n", "x"}, {"n", 1 << 15}} {
		require.Error(t, try(edit(c.field, c.v)), c.field)
	}
	for _, b := range []string{"", "{}", "null", "[]", string(good[:len(good)/2])} {
		require.Error(t, try([]byte(b)))
	}
}

// canaries are the writings in which the canary seed could get out.
func canaries(t testing.TB) []string {
	seed := newSeed(t)
	out := []string{}
	add := func(b []byte) {
		out = append(out, string(b), hex.EncodeToString(b), strings.ToUpper(hex.EncodeToString(b)), base64.StdEncoding.EncodeToString(b)[:len(b)], strings.Trim(fmt.Sprintf("%v", b), "[]"))
		dump := fmt.Sprintf("%#v", b)
		out = append(out, strings.TrimSuffix(dump[strings.Index(dump, "{")+1:], "}"))
	}
	add(seed.Bytes())
	for _, path := range []string{"m", "m/44'/60'/0'", "m/44'/60'/0'/0/0", "m/84'/0'/0'/0/0"} {
		p, err := seed.PrivateKey(path)
		require.NoError(t, err)
		add(p)
	}
	return out
}

func requireClean(t testing.TB, text string) {
	t.Helper()
	for _, c := range canaries(t) {
		if strings.Contains(text, c) { // without showing it
			t.Fatal("a secret got out")
		}
	}
	require.NotContains(t, text, "xprv")
	require.NotContains(t, text, string(passphrase))
}

// TestK02_NothingPrints: whatever prints a seed or a signer, by reflection too.
func TestK02_NothingPrints(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	w := newWorld(t, "ETH")
	type holder struct {
		s    *keys.Seed
		v    keys.Seed
		sign *keys.Signer
	}
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	text := slog.New(slog.NewTextHandler(&out, nil))
	for _, v := range []any{seed, *seed, w.signer, *w.signer, w.config, holder{seed, *seed, w.signer}, &holder{seed, *seed, w.signer}, []any{*seed}, map[string]keys.Seed{"x": *seed}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		log.Info("x", slog.Any("v", v))
		text.Info("x", slog.Any("v", v))
		if b, err := json.Marshal(v); err == nil {
			out.Write(b)
		}
	}
	requireClean(t, out.String())
}

// TestK02_ErrorsSayNothing: also where somebody put a key in the wrong place.
func TestK02_ErrorsSayNothing(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	note := func(err error) {
		require.Error(t, err)
		fmt.Fprintf(&out, "%v %+v %#v\n", err, err, err)
	}
	seed := newSeed(t)
	master, err := keys.FromBytes(seed.Bytes())
	require.NoError(t, err)
	key, err := master.PrivateKey("m")
	require.NoError(t, err)
	asText := hex.EncodeToString(key)
	_, err = seed.XPub("m/" + asText)
	note(err)
	_, err = seed.XPub("m" + asText[:40])
	note(err)
	_, err = keys.FromMnemonic(asText+" "+string(seed.Bytes()), string(passphrase))
	note(err)
	_, err = keys.NewSource([]keys.Account{{Network: "ETH", Path: "m", XPub: asText}}, encodeAll())
	note(err)
	file := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(file, []byte(asText), 0o600))
	_, err = keys.Load(file, passphrase)
	note(err)
	note(seed.Save(filepath.Join(t.TempDir(), "no", "x"), passphrase, rand.NewChaCha8([32]byte{})))

	w := newWorld(t, "ETH")
	r := w.request("w1", 1)
	r.Keys[0] = "m/" + "44'/60'/0'/0/" + "99"
	_, err = w.signer.Sign(t.Context(), r)
	note(err)
	r.Intent.FromKey, r.Keys[0] = "", ""
	_, err = w.signer.Sign(t.Context(), r)
	note(err)
	b, err := os.ReadFile(saved(t, seed))
	require.NoError(t, err)
	out.Write(b)
	requireClean(t, out.String())
}

func saved(t *testing.T, s *keys.Seed) string {
	file := filepath.Join(t.TempDir(), "seed.json")
	require.NoError(t, s.SaveQuick(file, passphrase, rand.NewChaCha8([32]byte{5})))
	return file
}
