package cryptopay_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/cryptopay-go/cryptopay"

// closure is every package that importing these compiles, standard library left out.
func closure(t *testing.T, packages ...string) []string {
	t.Helper()
	args := append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}, packages...)
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	require.NoError(t, err)
	all := strings.Fields(string(out))
	slices.Sort(all)
	return all
}

// outside are the modules of other people in a closure.
func outside(all []string) []string {
	var out []string
	for _, p := range all {
		if strings.HasPrefix(p, module) {
			continue
		}
		parts := strings.Split(p, "/")
		m := strings.Join(parts[:min(3, len(parts))], "/")
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// TestEmbeddingIsLight is golden: who imports the root, the memory store and the
// simulated chain compiles no chain SDK, no database driver and no HTTP API.
func TestEmbeddingIsLight(t *testing.T) {
	t.Parallel()
	all := closure(t, module, module+"/storage/memory", module+"/chain/sim")
	require.Equal(t, []string{
		"github.com/decred/dcrd",
		"github.com/google/uuid",
		"github.com/shopspring/decimal",
		"golang.org/x/sync",
	}, outside(all))
	for _, p := range all {
		require.NotContains(t, p, "/httpapi")
		require.NotContains(t, p, module+"/operator")
		require.NotContains(t, p, "/sqlstore")
		require.NotContains(t, p, "/chain/evm")
	}
}

// TestOneProgramLinksWithCgo: only the signer's program knows hardware modules.
func TestOneProgramLinksWithCgo(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{if .Imports}}{{.ImportPath}} {{.Imports}}{{end}}", "./...").Output()
	require.NoError(t, err)
	var with []string
	for line := range strings.Lines(string(out)) {
		of, imports, _ := strings.Cut(line, " ")
		if strings.Contains(imports, module+"/chain/keys/hsm") || strings.Contains(imports, "github.com/miekg/pkcs11") {
			with = append(with, strings.TrimPrefix(of, module+"/"))
		}
	}
	require.Equal(t, []string{"chain/keys/hsm", "examples/signer"}, with)
}

// TestWalls holds every room to what it may know; see design in CONTRIBUTING.
func TestWalls(t *testing.T) {
	t.Parallel()
	for room, allowed := range map[string][]string{
		"ledger":         {},
		"storage":        {"ledger"},
		"storage/seal":   {"storage", "internal/audit", "ledger"},
		"storage/stream": {"storage", "ledger"},
		"storage/tally":  {"storage", "ledger"},
		"storage/memory": {"storage", "storage/verdict", "ledger"},
		"report/journal": {"storage", "ledger"},
		"report": {
			"chain", "chain/mandate", "chain/internal/proof", "chain/incoming", "chain/rates", "internal/audit", "ledger", "payment", "storage", "storage/stream", "storage/tally", "webhook", "withdrawal",
			"internal/fairpool", "internal/fault", "internal/fsm", "internal/person", "internal/recall", "internal/safehttp", "internal/secret",
		},
		"chain":          {"ledger", "chain/internal/proof"},
		"chain/incoming": {"chain", "chain/internal/proof", "storage", "storage/stream", "ledger"},
		"chain/outgoing": {"chain", "chain/internal/proof", "chain/mandate", "storage", "storage/stream", "internal/audit", "ledger", "internal/fsm"},
		"chain/refill": {
			"chain", "chain/incoming", "chain/internal/proof", "chain/mandate", "chain/outgoing", "storage", "storage/stream", "internal/audit", "ledger", "internal/fsm",
		},
		"chain/mandate": {"chain", "chain/internal/proof", "ledger"},
		"chain/rates":   {"ledger", "internal/safehttp"},
		"chain/keys":    {"chain", "chain/internal/bip32ed", "chain/mandate", "chain/internal/proof", "storage", "ledger", "internal/secret"},
		"chain/keys/signerd": {
			"chain", "chain/internal/bip32ed", "chain/internal/proof", "chain/keys", "chain/mandate", "internal/safehttp", "internal/secret", "ledger", "storage",
		},
		"chain/keys/hsm":   {"chain", "chain/internal/bip32ed", "chain/internal/proof", "chain/keys", "chain/mandate", "internal/secret", "ledger", "storage"},
		"chain/sim":        {"chain", "chain/internal/proof", "storage", "ledger"},
		"chain/several":    {"chain", "chain/internal/proof", "ledger"},
		"chain/evm":        {"chain", "chain/internal/follow", "chain/internal/proof", "chain/internal/transport", "internal/recall", "internal/safehttp", "ledger"},
		"webhook":          {"storage", "storage/tally", "ledger", "internal/audit", "internal/fairpool", "internal/fault", "internal/safehttp", "internal/secret"},
		"chain/sim/remote": {"chain", "chain/internal/proof", "chain/sim", "internal/safehttp", "storage", "ledger"},
		"payment": {
			"chain", "chain/internal/proof", "chain/incoming", "chain/rates", "internal/audit", "ledger", "storage", "storage/stream", "storage/tally", "webhook", "internal/fairpool", "internal/fault", "internal/fsm", "internal/safehttp", "internal/secret",
		},
		"withdrawal": {
			"chain", "chain/mandate", "chain/internal/proof", "chain/incoming", "chain/rates", "internal/audit", "ledger", "storage", "storage/stream", "storage/tally", "webhook", "internal/fairpool", "internal/fault", "internal/fsm", "internal/person", "internal/recall", "internal/safehttp", "internal/secret",
		},
		"withdrawal/policy": {
			"chain", "chain/mandate", "chain/internal/proof", "chain/incoming", "chain/rates", "internal/audit", "ledger", "storage", "storage/stream", "storage/tally", "webhook", "withdrawal", "internal/fairpool", "internal/fault", "internal/fsm", "internal/person", "internal/recall", "internal/safehttp", "internal/secret",
		},
		"refund": {
			"chain", "chain/mandate", "chain/internal/proof", "chain/incoming", "chain/rates", "internal/audit", "ledger", "payment", "storage", "storage/stream", "storage/tally", "webhook", "withdrawal",
			"internal/fairpool", "internal/fault", "internal/fsm", "internal/person", "internal/recall", "internal/safehttp", "internal/secret",
		},
		"wallet":                   {"chain", "chain/internal/proof", "chain/incoming", "chain/rates", "internal/audit", "ledger", "storage", "storage/stream", "storage/tally", "webhook", "internal/fairpool", "internal/fault", "internal/fsm", "internal/safehttp", "internal/secret"},
		"httpapi/auth":             {"storage", "internal/audit", "ledger", "internal/fault"},
		"httpapi/limit":            {},
		"httpapi/limit/redislimit": {"httpapi/limit"},
		"chain/internal/follow":    {"chain", "chain/internal/proof", "chain/internal/transport", "internal/safehttp", "ledger"},
		"chain/address":            {"chain", "chain/internal/proof", "ledger"},
		"chain/tron":               {"chain", "chain/address", "chain/internal/follow", "chain/internal/proof", "chain/internal/transport", "internal/recall", "internal/safehttp", "ledger"},
		"chain/solana":             {"chain", "chain/address", "chain/internal/follow", "chain/internal/proof", "chain/internal/transport", "internal/safehttp", "ledger"},
		"chain/xrp":                {"chain", "chain/address", "chain/internal/follow", "chain/internal/proof", "chain/internal/transport", "internal/safehttp", "ledger"},
		"chain/stellar":            {"chain", "chain/address", "chain/internal/follow", "chain/internal/proof", "chain/internal/transport", "internal/safehttp", "ledger"},
		"chain/cardano":            {"chain", "chain/address", "chain/internal/bip32ed", "chain/internal/follow", "chain/internal/proof", "chain/internal/transport", "internal/safehttp", "ledger"},
		"chain/utxo":               {"chain", "chain/address", "chain/internal/follow", "chain/internal/proof", "chain/internal/transport", "internal/recall", "internal/safehttp", "ledger"},
		"chain/networks": {
			"chain", "chain/address", "chain/evm", "chain/internal/follow", "chain/internal/proof", "chain/internal/transport", "chain/utxo", "internal/recall", "internal/safehttp", "internal/yamlfile", "ledger",
		},
		// What App links, what its host adds to it, and no store, no network, no server.
		"operator": {
			"chain", "chain/incoming", "chain/internal/proof", "chain/mandate", "chain/outgoing", "chain/rates", "chain/refill", "httpapi/auth", "internal/fairpool", "internal/fault", "internal/fsm", "internal/person",
			"internal/recall", "internal/safehttp", "internal/restore", "internal/secret", "internal/audit", "ledger", "payment", "refund", "report", "report/journal", "storage", "storage/move", "storage/seal", "storage/stream", "storage/tally", "wallet", "wallet/house", "wallet/reconcile", "wallet/treasury",
			"webhook", "withdrawal", "withdrawal/policy",
		},
		"wallet/reconcile": {
			"chain", "chain/internal/proof", "chain/incoming", "chain/mandate", "chain/outgoing", "internal/fsm", "internal/audit", "ledger", "storage", "storage/stream",
		},
		"wallet/treasury": {
			"chain", "chain/internal/proof", "chain/incoming", "chain/mandate", "chain/outgoing", "chain/rates", "chain/refill", "internal/fsm", "internal/safehttp", "internal/audit", "ledger", "storage", "storage/stream",
		},
	} {
		for _, p := range closure(t, module+"/"+room) {
			in, ours := strings.CutPrefix(p, module+"/")
			if ours && in != room {
				require.Contains(t, allowed, in, "%s must not know %s", room, in)
			}
		}
	}
}
