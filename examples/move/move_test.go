package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// source is a file of the library's and the gateway's tables with some tenants.
func source(t *testing.T, tables []*storage.Table) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "source.db")
	require.NoError(t, sqlite.Migrate(t.Context(), file, tables...))
	s, err := sqlite.Open(file, sqlite.Options{})
	require.NoError(t, err)
	defer s.Close() //nolint:errcheck // a test's end
	require.NoError(t, s.Open(t.Context(), tables...))
	for i := range 30 {
		id := fmt.Sprintf("tenant%02d", i)
		errs := s.Commit(t.Context(), storage.Change{
			ID: id, Partition: storage.System,
			Put: []storage.Row{wallet.TenantRows.Row(id, 0, time.Time{}, wallet.Tenant{Name: id})},
		}, storage.Change{
			ID: id, Partition: storage.Tenant(id),
			Post: []ledger.Tx{{ID: "topup", Kind: ledger.KindAdjustment, Legs: []ledger.Leg{
				{Account: ledger.Chain("ETH"), Asset: "ETH", Delta: -100}, {Account: ledger.Float, Asset: "ETH", Delta: 100},
			}}},
		})
		require.Equal(t, []error{nil, nil}, errs)
	}
	if len(tables) > len(libraryTables()) {
		seed := storage.TableOf[gatewaySeed]{Table: hostTables[0]}
		require.NoError(t, s.Commit(t.Context(), storage.Change{ID: "seed", Partition: storage.System, Put: []storage.Row{
			seed.Row("seed", 0, time.Time{}, gatewaySeed{Words: []byte{1, 2, 3}}),
		}})[0])
	}
	return "sqlite:" + file
}

func TestMoveAll(t *testing.T) {
	t.Parallel()
	for name, tables := range map[string][]*storage.Table{"gateway": allTables(), "another host": libraryTables()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			from, mid, to := source(t, tables), "stream:"+filepath.Join(dir, "copy"), "sqlite:"+filepath.Join(dir, "to.db")
			for _, hop := range [][2]string{{from, mid}, {mid, to}, {from, to}} { // the last finds all there
				var out, progress bytes.Buffer
				require.NoError(t, run(t.Context(), []string{"-from", hop[0], "-to", hop[1]}, &out, &progress), "%s", out.String())
				require.Contains(t, out.String(), "EQUAL")
				require.Contains(t, progress.String(), "copying")
				if hop[1] == to {
					require.Contains(t, out.String(), "PROVEN: the books of 30 tenants")
				}
			}
		})
	}
}

func TestMoveToRedis(t *testing.T) {
	t.Parallel()
	p := testenv.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	var out bytes.Buffer
	to := fmt.Sprintf("redis://127.0.0.1:%d/0", p.Port)
	require.NoError(t, run(t.Context(), []string{"-quiet", "-from", source(t, allTables()), "-to", to}, &out, io.Discard), "%s", out.String())
	require.Contains(t, out.String(), "PROVEN")
}

func TestMoveToServers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("servers of their own take seconds")
	}
	for name, dsn := range map[string]func(t *testing.T) string{
		"postgres": func(t *testing.T) string { return testenv.Postgres(t).DSN("postgres") },
		"mysql":    func(t *testing.T) string { return "mysql://root@" + testenv.MariaDB(t).Address() + "/test" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := dsn(t)
			for _, hop := range [][2]string{{source(t, allTables()), to}, {to, "sqlite:" + filepath.Join(t.TempDir(), "back.db")}} {
				var out bytes.Buffer
				require.NoError(t, run(t.Context(), []string{"-quiet", "-from", hop[0], "-to", hop[1]}, &out, io.Discard), "%s", out.String())
				require.Contains(t, out.String(), "PROVEN")
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	from := source(t, allTables())
	for _, args := range [][]string{
		{},
		{"-from", from},
		{"-from", from, "-to", from},
		{"-from", "memory:", "-to", from},
		{"-from", from, "-to", "memory:"},
		{"-from", from, "-to", "redis://user:hidden@host:port/0"},
		{"-from", "sqlite:" + filepath.Join(t.TempDir(), "none.db"), "-to", from},
		{"-from", from, "-to", source(t, allTables())}, // not empty
	} {
		var out bytes.Buffer
		err := run(t.Context(), append(args, "-quiet"), &out, io.Discard)
		require.Error(t, err, "%v", args)
		require.NotContains(t, err.Error(), "hidden")
		require.NotContains(t, out.String(), "may be used")
	}
}
