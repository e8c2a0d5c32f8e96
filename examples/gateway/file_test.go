package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/networks"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/examples/internal/nodes"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

// written is a settings file.
func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pay.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// TestA08_ExampleFile: the example has every field, is taken as it stands, and means what the
// environment would.
func TestA08_ExampleFile(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("example.yaml")
	require.NoError(t, err)
	for file, secret := range map[string]string{"seed.txt": strings.Repeat("abandon ", 11) + "about", "bakery.secret": "a-bakery-secret-0123"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(secret+"\n"), 0o600))
		text = []byte(strings.ReplaceAll(string(text), "file:"+file, "file:"+filepath.Join(dir, file)))
	}
	env := map[string]string{
		"PAY_STORE": "sqlite:x.db", "PAY_ETH_NODE": "http://node/eth", "BAKERY_WEBHOOK_SECRET": "a-webhook-secret-0123", "BAKERY_TILL_KEY": "a-bakery-key-0123456", "BAKERY_ANN_SECRET": "a-secret-of-ann-0123",
		"FLORIST_KEY": "a-florist-key-012345", "CRYPTOPAY_LOG": "warn",
	}
	s, err := readSettings([]string{"-config", written(t, string(text)), "-addr", "127.0.0.1:1"}, func(k string) string { return env[k] })
	require.NoError(t, err)
	require.Equal(t, []any{"127.0.0.1:1", "127.0.0.1:9090", "sqlite:x.db", "WARN"}, []any{s.addr, s.metrics, s.store, s.logLevel.String()}, "a flag and the environment win")
	require.Equal(t, "http://node/eth", s.nodes.At["ETH"].URL)
	require.Equal(t, map[string]string{"BTC": "60000", "ETH": "2500", "USDC": "1"}, s.prices)
	require.Equal(t, []string{"bakery", "florist"}, s.ids())
	require.Equal(t, "0.75", s.tenants[0].fees.TransactionFee.String())
	require.Equal(t, []any{"bakery-office", "a-bakery-secret-0123"}, []any{s.tenants[0].apps[0].id, s.tenants[0].apps[0].secret})
	require.Equal(t, auth.Approver, s.tenants[0].apps[1].role)
	for field := range fields {
		_, key, _ := strings.Cut(field, ".")
		if key == "" {
			key = field
		}
		if field != "simulated" { // has no place beside nodes
			require.Contains(t, string(text), key+":", "the example lacks %s", field)
		}
	}
}

// TestA08_WrongFile: what is wrong is refused by line, column and field, all of it at once,
// before anything is opened, and without what may be secret.
func TestA08_WrongFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string // after the name of the file
	}{
		"no YAML":             {"listen: [a\nstore: x", []string{"is no YAML"}},
		"a list":              {"- a", []string{":1:1:  must be a mapping"}},
		"an unknown name":     {"store: memory\nlistn: 127.0.0.1:0", []string{":2:1: listn is no setting; the nearest is listen"}},
		"a network's name":    {"networks:\n  ETH:\n    nod: http://x", []string{":3:5: networks.ETH.nod is no setting; the nearest is node"}},
		"an unknown network":  {"networks:\n  ETHH:\n    node: http://x", []string{":2:3: networks.ETHH is no setting; the nearest is ETH"}},
		"a node without URL":  {"networks:\n  ETH:\n    node: secret-thing", []string{":3:11: networks.ETH.node"}},
		"a chain in words":    {"networks:\n  ETH:\n    node: http://node/secret-thing\n    chain: sepolia", []string{":4:12: networks.ETH.chain must be a chain id"}},
		"no node":             {"networks:\n  ETH:\n    chain: 5", []string{":3:12: networks.ETH.chain says something of a node, and networks.ETH.node names none"}},
		"a fee":               {"fees:\n  transaction: half", []string{":2:16: fees.transaction"}},
		"a poll":              {"poll: often", []string{":1:7: poll must be between"}},
		"a store":             {"store: oracle://secret-thing", []string{":1:8: store must be memory"}},
		"open to the world":   {"listen: 0.0.0.0:80", []string{":1:9: listen: all chains are simulated, as no networks.….node names a node"}},
		"a variable":          {"mnemonic: env:NO_SUCH_VARIABLE", []string{":1:11: mnemonic names the variable NO_SUCH_VARIABLE, which is not set"}},
		"a file":              {"mnemonic: file:/no/such/file", []string{":1:11: mnemonic names a file that cannot be read"}},
		"a limit":             {"rate_limits: maybe", []string{":1:14: rate_limits must be true or false"}},
		"a nested value":      {"listen:\n  at: x", []string{"listen must be one value"}},
		"no list of tenants":  {"tenants:\n  id: a", []string{"tenants must be a list"}},
		"a tenant of nothing": {"tenants:\n  - name: A", []string{":2:5: tenants[0] needs id"}},
		"two of one id":       {"tenants:\n  - id: a\n    name: A\n  - id: a\n    name: B", []string{":4:9: tenants[1] has the id a of another tenant"}},
		"a weak key":          {"tenants:\n  - id: a\n    name: A\n    keys:\n      - name: k\n        key: secret", []string{":6:14: tenants[0].keys[0].key"}},
		"half an application": {"tenants:\n  - id: a\n    name: A\n    applications:\n      - name: k\n        client_id: b", []string{"tenants[0].applications[0] needs client_id and client_secret"}},
		"a role":              {"tenants:\n  - id: a\n    name: A\n    keys:\n      - name: k\n        key: 0123456789abcdefgh\n        role: king", []string{":7:15: tenants[0].keys[0].role must be tenant_admin"}},
		"a scope":             {"tenants:\n  - id: a\n    name: A\n    keys:\n      - name: k\n        key: 0123456789abcdefgh\n        scopes: [rule]", []string{"tenants[0].keys[0].scopes must be of read, write and admin"}},
		"half a webhook":      {"tenants:\n  - id: a\n    name: A\n    webhook:\n      url: https://a.example", []string{":4:5: tenants[0].webhook needs url and secret"}},
		"a private webhook":   {"tenants:\n  - id: a\n    name: A\n    webhook:\n      url: http://127.0.0.1/\n      secret: 0123456789abcdefgh", []string{"tenants[0].webhook.url"}},
		"much at once":        {"poll: often\nfees:\n  transaction: half\nlog: loud", []string{":1:7: poll", ":3:16: fees.transaction"}},
	} {
		file := written(t, c.text)
		_, err := readSettings([]string{"-config", file}, func(string) string { return "" })
		for _, want := range c.want {
			require.ErrorContains(t, err, want, name)
			require.ErrorContains(t, err, file, name)
		}
		require.NotContains(t, err.Error(), "secret-thing", name)
		require.NotContains(t, err.Error(), settingPrefix+"RPC", name)
	}
	_, err := readSettings([]string{"-config", "/no/such/file"}, func(string) string { return "" })
	require.ErrorContains(t, err, "-config")
	_, err = readSettings([]string{"-config", written(t, "tenants:\n  - id: a\n    name: A")}, func(k string) string {
		return map[string]string{"CRYPTOPAY_API_KEY": "0123456789abcdefgh"}[k]
	})
	require.ErrorContains(t, err, "CRYPTOPAY_API_KEY is of the one tenant")
}

// TestA08_EveryNodeSettingIsAField: what the environment can say of a node a file can, too.
func TestA08_EveryNodeSettingIsAField(t *testing.T) {
	t.Parallel()
	names := fieldNames(networks.Shipped())
	for _, name := range nodes.Settings() {
		require.Contains(t, names, fmt.Sprintf("%s%s_%s", settingPrefix, name, chain.Network("ETH")))
	}
}

// TestFA08_ApproversOfTheFile: a file lists approvers as the operator's command does, in a process
// as it is built.
func TestFA08_ApproversOfTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := `
listen: 127.0.0.1:0
store: sqlite:pay.db
key_file: pay.key
simulated: [BTC]
tenants:
  - id: bakery
    name: Bakery
    applications:
      - {name: office, client_id: bakery-office, client_secret: bakery-key-0123456789}
      - {name: ann, client_id: ann, client_secret: ann-key-0123456789xy, role: approver}
      - {name: bob, client_id: bob, client_secret: bob-key-0123456789xy, role: "approver:finance"}
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pay.yaml"), []byte(text), 0o600))
	g := start(t, dir, nil, "-config", "pay.yaml")
	require.NotEmpty(t, g.base, g.errors.String())
	for id, want := range map[string]int{"bakery-office": http.StatusForbidden, "ann": http.StatusNotFound, "bob": http.StatusNotFound} {
		secret := map[string]string{"bakery-office": "bakery-key-0123456789", "ann": "ann-key-0123456789xy", "bob": "bob-key-0123456789xy"}[id]
		who, status := login(t, g.base, id, secret)
		require.Equal(t, http.StatusOK, status)
		status, answer := who.do("POST", "/withdrawal/01890a5d-ac96-774b-bcce-000000000002/approve/", body{})
		require.Equal(t, want, status, "%s: %v", id, answer)
	}
	g.stop(t)
	for _, role := range []string{"approver:", "approver:Finance Dept", "approvers", "king"} {
		file := written(t, strings.ReplaceAll(text, `"approver:finance"`, "\""+role+"\""))
		_, err := readSettings([]string{"-config", file}, func(string) string { return "" })
		require.ErrorContains(t, err, ":12:80: tenants[0].applications[2].role must be tenant_admin, global_admin, approver or approver:NAME", role)
	}
}
