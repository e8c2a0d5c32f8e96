package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/keys/signerd"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

const words = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

const everyNetwork = `{"networks": {
	"ETH": {"costs": [{"amount": "0.5", "per": "24h"}]}, "POLYGON": {"costs": [{"amount": "5", "per": "24h"}]},
	"BTC": {"costs": [{"amount": 1, "per": "24h"}]}, "LTC": {"costs": [{"amount": "1", "per": "24h"}]},
	"DOGE": {"costs": [{"amount": "1", "per": "24h"}]}, "TRX": {"costs": [{"amount": "1", "per": "24h"}]},
	"SOL": {"costs": [{"amount": "1", "per": "24h"}]}, "XRP": {"costs": [{"amount": "1", "per": "24h"}]},
	"XLM": {"costs": [{"amount": "1", "per": "24h"}]}, "ADA": {"costs": [{"amount": "1", "per": "24h"}]}
}, "currencies": {"ETH": {"pays": [{"amount": "5", "per": "24h"}, {"amount": "0.00000001", "per": "1m"}]}}}`

func write(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
	return path
}

// outputOf runs a command of the program with words on its standard input. It changes
// globals: tests that use it are not parallel.
func outputOf(t *testing.T, file, in, command string) (string, error) {
	t.Helper()
	stdin, stdout := os.Stdin, os.Stdout
	defer func() { os.Stdin, os.Stdout = stdin, stdout }()
	input, err := os.Open(write(t, t.TempDir(), "in", in, 0o600))
	require.NoError(t, err)
	defer input.Close()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	os.Stdin, os.Stdout = input, out
	failed := run(t.Context(), file, 3, strings.Fields(command))
	_, err = out.Seek(0, io.SeekStart)
	require.NoError(t, err)
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	return string(text), failed
}

// A seed that is made is never made again over the old one, its words open it, and what the
// App derives addresses from is of all networks and has no secret.
func TestFS07_SeedAndAccounts(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "signer.json", everyNetwork, 0o644)
	_, err := outputOf(t, file, "", "new")
	require.ErrorContains(t, err, "passphrase")
	secret := write(t, dir, "passphrase", "of some length", 0o644)
	_, err = outputOf(t, file, "", "new")
	require.ErrorContains(t, err, "others can read it")
	require.NoError(t, os.Chmod(secret, 0o600))

	made, err := outputOf(t, file, "", "new")
	require.NoError(t, err)
	require.Len(t, strings.Fields(made), 24)
	seed, err := os.ReadFile(filepath.Join(dir, "seed.json"))
	require.NoError(t, err)
	_, err = outputOf(t, file, words, "words")
	require.ErrorContains(t, err, "cannot be made")
	again, err := os.ReadFile(filepath.Join(dir, "seed.json"))
	require.NoError(t, err)
	require.Equal(t, seed, again)

	require.NoError(t, os.Remove(filepath.Join(dir, "seed.json")))
	_, err = outputOf(t, file, "abandon "+words, "words")
	require.ErrorIs(t, err, keys.ErrMnemonic)
	require.NotContains(t, err.Error(), "abandon")
	_, err = outputOf(t, file, words+"\n", "words")
	require.NoError(t, err)
	text, err := outputOf(t, file, "", "accounts")
	require.NoError(t, err)
	require.NotContains(t, text, "xprv")
	var public signerd.Accounts
	require.NoError(t, json.Unmarshal([]byte(text), &public))
	c, err := readConfig(file)
	require.NoError(t, err)
	encode := map[chain.Network]keys.Encode{}
	for n, client := range c.clients {
		encode[n] = client.AddressOf
	}
	source, _, err := public.Source(encode)
	require.NoError(t, err)
	for n := range encode {
		all, err := source.Derive(t.Context(), n, 0, 3)
		require.NoError(t, err)
		require.Len(t, all, 3)
		if n == "ETH" {
			require.EqualValues(t, "0x9858EfFD232B4033E47d90003D41EC34EcaEda94", all[0].Address)
		}
	}
	_, err = source.Derive(t.Context(), "SOL", 0, 4)
	require.ErrorContains(t, err, "derive more where the seed is")
	_, err = outputOf(t, file, "", "nonsense")
	require.ErrorContains(t, err, "rebuild")
}

// The policy that the page shows is one.
func TestFS07_PolicyOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/signer.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "```json\n")
	text, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	c, err := readConfig(write(t, t.TempDir(), "signer.json", text, 0o600))
	require.NoError(t, err)
	require.Len(t, c.limits.Pays["BTC"], 2)
	require.NoError(t, c.limits.Check())
}

// A policy is in units of each currency, and what it does not know is refused by its name.
func TestFS07_PolicyFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := readConfig(write(t, dir, "signer.json", everyNetwork, 0o600))
	require.NoError(t, err)
	require.Equal(t, []keys.Limit{{Amount: 5e8, Per: 24 * time.Hour}, {Amount: 1, Per: time.Minute}}, c.limits.Pays["ETH"])
	require.Equal(t, []keys.Limit{{Amount: 5e7, Per: 24 * time.Hour}}, c.limits.Costs["ETH"])
	require.Equal(t, filepath.Join(dir, "registry.db"), c.path(c.Registry))
	require.Equal(t, "/elsewhere", c.path("/elsewhere"))
	for text, want := range map[string]string{
		`{}`:                         "networks: name at least one",
		`{"network": {}}`:            `unknown field "network"`,
		everyNetwork + `{}`:          "more than one configuration",
		`{"networks": {"MOON": {}}}`: "MOON",
		`{"networks": {"ETH": {"costs": [{"amount": "1", "per": "a day"}]}}}`:                           "networks: ETH: costs",
		`{"networks": {"ETH": {"chain": "sepolia"}}}`:                                                   "chain id",
		`{"networks": {"BTC": {"chain": "moonnet"}}}`:                                                   "regtest",
		`{"networks": {"XRP": {"chain": "testnet"}}}`:                                                   "network id",
		`{"networks": {"ADA": {"chain": "preprod"}}}`:                                                   "not for ADA",
		`{"networks": {"ADA": {"stake": "addr1"}}}`:                                                     "stake address",
		`{"networks": {"ETH": {"pruned": true}}}`:                                                       "pruned is for BTC and LTC",
		`{"networks": {"BTC": {"stake": "stake1"}}}`:                                                    "stake is for ADA",
		`{"networks": {"ETH": {}}, "currencies": {"MOON": {}}}`:                                         "MOON",
		`{"networks": {"ETH": {}}, "currencies": {"USDTERC20": {"contract": "0x1"}}}`:                   "other chains than the main one",
		`{"networks": {"ETH": {"chain": "5"}}, "currencies": {"USDTERC20": {"contract": "0x1"}}}`:       "USDTERC20: contract",
		`{"networks": {"ETH": {}}, "simulated": ["BTC"]}`:                                               "not among the simulated",
		`{"networks": {"ETH": {}}, "currencies": {"ETH": {"pays": [{"amount": "1e99", "per": "1h"}]}}}`: "currencies: ETH: pays",
		`{"networks": {"ETH": {}}, "currencies": {"ETH": {"pays": [{"amount": "lots", "per": "1h"}]}}}`: "lots",
		`{"networks": {"ETH": {}}, "currencies": {"ETH": {"recipients": [{"tag": "0x"}]}}}`:             "tag",
		`{"networks": {"ETH": {}}, "currencies": {"ETH": {"recipients": []}, "ETH": {}}}`:               "duplicate",
	} {
		_, err := readConfig(write(t, dir, "wrong.json", text, 0o600))
		require.ErrorContains(t, err, want, text)
	}
	// X11: a network of a file, whose name is from the configuration's folder on.
	write(t, dir, "networks.yaml", "networks:\n  UNICHAIN:\n    like: BASE\n    name: Unichain\n    chain_id: 130\n    confirmations: 30\n"+
		"    coin: {code: ETHUNI, token: ETH, name: Ether on Unichain, min: 0.001, max: 500, dust: 0.000001}\n", 0o600)
	const own = `"networks": {"UNICHAIN": {}}, "currencies": {"ETHUNI": {"pays": [{"amount": "5", "per": "24h"}]}}}`
	c, err = readConfig(write(t, dir, "own.json", `{"networks_file": "networks.yaml", `+own, 0o600))
	require.NoError(t, err)
	require.Equal(t, []keys.Limit{{Amount: 5e8, Per: 24 * time.Hour}}, c.limits.Pays["ETHUNI"])
	_, err = readConfig(write(t, dir, "own.json", "{"+own, 0o600))
	require.ErrorContains(t, err, "UNICHAIN")
	_, err = readConfig(write(t, dir, "own.json", `{"networks_file": "own.json", `+own, 0o600))
	require.ErrorContains(t, err, "networks_file: "+filepath.Join(dir, "own.json")+":1:")
	c, err = readConfig(write(t, dir, "nobody.json", `{"networks": {"ETH": {}}, "currencies": {"ETH": {"recipients": []}, "USDTERC20": {}}}`, 0o600))
	require.NoError(t, err)
	nobody, listed := c.allow["ETH"]
	require.True(t, listed && len(nobody) == 0, "a list that was emptied is not no list: it pays nobody")
	_, listed = c.allow["USDTERC20"]
	require.False(t, listed)
}

const withModule = `{"module": {"library": %q, "token": %q, "pin": %q}, "networks": {
	"ETH": {"costs": [{"amount": "0.5", "per": "24h"}]}, "BTC": {"costs": [{"amount": "1", "per": "24h"}]}, "SOL": {"costs": [{"amount": "1", "per": "24h"}]}
}}`

// With a module there is no seed: accounts makes the keys in it, and again gives the same.
// The PIN comes from a file that others cannot read, or from the environment.
func TestFS07_ModuleAndAccounts(t *testing.T) { //nolint:paralleltest // see outputOf
	token := testenv.SoftHSM(t)
	t.Setenv("SOFTHSM2_CONF", token.Conf)
	dir := t.TempDir()
	file := write(t, dir, "signer.json", fmt.Sprintf(withModule, token.Library, token.Label, "pin"), 0o600)
	for _, command := range []string{"new", "words"} {
		_, err := outputOf(t, file, words, command)
		require.ErrorContains(t, err, "in the module")
	}
	_, err := outputOf(t, file, "", "accounts")
	require.ErrorContains(t, err, "pin")
	pin := write(t, dir, "pin", token.PIN+"\n", 0o644)
	_, err = outputOf(t, file, "", "accounts")
	require.ErrorContains(t, err, "others can read it")
	require.NoError(t, os.Chmod(pin, 0o600))
	text, err := outputOf(t, file, "", "accounts")
	require.NoError(t, err)
	file = write(t, dir, "signer.json", fmt.Sprintf(withModule, token.Library, token.Label, ""), 0o600)
	_, err = outputOf(t, file, "", "accounts")
	require.ErrorContains(t, err, "PIN")
	t.Setenv("SIGNER_PIN", token.PIN)
	again, err := outputOf(t, file, "", "accounts")
	require.NoError(t, err)
	require.Equal(t, text, again)

	var public signerd.Accounts
	require.NoError(t, json.Unmarshal([]byte(text), &public))
	require.Empty(t, public.XPubs)
	require.Len(t, public.Public, 6, "those on secp256k1")
	known := map[chain.Address]bool{}
	for n, all := range public.Ahead {
		require.Len(t, all, 3)
		for _, d := range all {
			known[d.Address] = true
			_, ok := public.Public[d.Key]
			require.Equal(t, n != "SOL", ok)
		}
	}
	require.Len(t, known, 9)

	conf, err := os.ReadFile(token.Conf)
	require.NoError(t, err)
	// SoftHSM reads over the first name of the list.
	less := write(t, dir, "less.conf", string(conf)+"slots.mechanisms = -CKM_MD5,CKM_EDDSA\n", 0o600)
	t.Setenv("SOFTHSM2_CONF", less)
	for _, command := range []string{"accounts", ""} { // "" serves
		_, err = outputOf(t, file, "", command)
		require.ErrorContains(t, err, "networks: SOL: the module cannot sign for it")
		require.ErrorContains(t, err, "CKM_EDDSA")
	}
	t.Setenv("SOFTHSM2_CONF", token.Conf)

	write(t, dir, "wrong.json", `{"module": {"library": "/x.so"}, "networks": {"ETH": {}}}`, 0o600)
	_, err = outputOf(t, filepath.Join(dir, "wrong.json"), "", "accounts")
	require.ErrorContains(t, err, "module: library and token are needed")
}

// The program builds without cgo, serves seeds, and says what a module needs.
func TestFS07_WithoutCgo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program without cgo")
	}
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "signer")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	file := write(t, dir, "signer.json", fmt.Sprintf(withModule, "/x.so", "a", ""), 0o600)
	out, err = exec.CommandContext(t.Context(), program, "-config", file).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "built without cgo")
	write(t, dir, "passphrase", "of some length", 0o600)
	file = write(t, dir, "seeded.json", everyNetwork, 0o600)
	out, err = exec.CommandContext(t.Context(), program, "-config", file, "new").CombinedOutput()
	require.NoError(t, err, string(out))
}
