package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/internal/sqltest"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

var galera = mysql.Options{Galera: true, LockTimeout: time.Second}

// The suite on a cluster of three: another handle is on another node. Then the
// cluster loses a node, and then its quorum. One test, for starting a cluster takes
// longer than all else here.
func TestGalera(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster of its own takes seconds")
	}
	nodes := testenv.Galera(t, 3)
	admin := hostPool(t, nodes[0].MySQLDSN("test"))
	var n int
	require.Eventually(t, func() bool {
		var name string
		return admin.QueryRow("SHOW STATUS LIKE 'wsrep_cluster_size'").Scan(&name, &n) == nil && n == 3
	}, time.Minute, 50*time.Millisecond)

	var count atomic.Int64
	lent := sqltest.Places{
		Empty: func(t testing.TB) string {
			name := fmt.Sprint("g", count.Add(1))
			_, err := admin.Exec("CREATE DATABASE " + name)
			require.NoError(t, err)
			return nodes[0].MySQLDSN(name)
		},
		Migrate: func(dsn string, tables ...*storage.Table) error { return mysql.Migrate(ctx, dsn, galera, tables...) },
		Pool:    hostPool,
	}
	database := func(dsn string) string { _, name, _ := strings.Cut(dsn, "/"); return name }
	place := func(t testing.TB) string { return database(lent.Migrated(t)) }
	on := func(t testing.TB, node int, name string) storage.Store {
		return at(t, nodes[node].MySQLDSN(name), galera)
	}
	client := func(t testing.TB, node int, name string) storage.Store {
		return resender{on(t, node, name).(*mysql.Store), t}
	}
	nameOf := func(t testing.TB, s storage.Store) string { return database(places.Of(t, s.(resender).Store)) }
	t.Run("Conformance", func(t *testing.T) {
		storagetest.Run(t, storagetest.Harness{
			Open:   func(t testing.TB) storage.Store { return client(t, 0, place(t)) },
			Second: func(t testing.TB, s storage.Store) storage.Store { return client(t, 1, nameOf(t, s)) },
			Reopen: func(t testing.TB, s storage.Store) storage.Store {
				require.NoError(t, s.Close())
				return client(t, 2, nameOf(t, s))
			},
			Rounds: 5,
		})
	})
	t.Run("L04_C05_TwoNodes", func(t *testing.T) {
		name := place(t)
		stores := []storage.Store{on(t, 0, name), on(t, 1, name)}
		for _, s := range stores {
			require.NoError(t, s.Open(ctx, storagetest.Tables()...))
		}
		sqltest.WriteSkew(t, stores[0], stores[1])
		sqltest.ReadsAreCurrent(t, stores[0], stores[1])
	})
	t.Run("L08_Refused", func(t *testing.T) {
		s, err := mysql.Open(nodes[0].MySQLDSN("g1"), mysql.Options{})
		require.NoError(t, err)
		err = s.Open(ctx)
		require.ErrorIs(t, err, mysql.ErrUnsafe)
		require.ErrorContains(t, err, "Options.Galera")
		require.NoError(t, s.Close())
		s, err = mysql.OpenDB(hostPool(t, nodes[0].MySQLDSN("g1")), galera)
		require.NoError(t, err)
		require.ErrorContains(t, s.Open(ctx), "wsrep_sync_wait", "reads of other nodes would be stale")
	})
	t.Run("L08_NodesLost", func(t *testing.T) { galeraLoss(t, nodes, place(t)) })
}

// resender sends a Change again, as a client does, where a node that stalls left it
// undone or unknown. Seen once on 10.11: for fifty seconds, the server's own
// innodb_lock_wait_timeout, no database of one node took a commit. Without a cluster
// the suite runs on the store itself.
type resender struct {
	*mysql.Store
	t testing.TB
}

// Commit sends the whole call again while all of it is unsettled: a part of it might
// be judged differently after the rest. What does not wait is not sent again.
func (r resender) Commit(ctx context.Context, changes ...storage.Change) []error {
	for try := 1; ; try++ {
		errs := r.Store.Commit(ctx, changes...)
		for i, err := range errs {
			if err == nil || storage.Final(err) || errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrClosed) || changes[i].NoWait {
				return errs
			}
		}
		if len(errs) == 0 || ctx.Err() != nil || try == 50 {
			return errs
		}
		r.t.Logf("%s is sent again: %v", changes[0].ID, errs[0])
	}
}

// A node is killed in the middle of a run, then another. What was acknowledged is
// there; without a quorum nothing is acknowledged.
func galeraLoss(t *testing.T, nodes []*testenv.Process, name string) {
	var stores []storage.Store
	for _, n := range nodes {
		s := at(t, n.MySQLDSN(name), galera)
		require.NoError(t, s.Open(ctx, storagetest.Tables()...))
		stores = append(stores, s)
	}
	deposit := func(id string) storage.Change {
		return storage.Change{
			ID: id, Partition: "p",
			Put:  []storage.Row{storagetest.Notes.Row(id, 0, time.Time{}, storagetest.Note{Text: id})},
			Post: []ledger.Tx{{ID: id, Legs: []ledger.Leg{{Account: "chain/net", Asset: "C", Delta: -1}, {Account: "wallet/w", Asset: "C", Delta: 1}}}},
		}
	}
	var mu sync.Mutex
	var acked []string
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			for k := range 40 {
				c := deposit(fmt.Sprint(i, "-", k))
				s := stores[i]
				for try := 0; ; try++ {
					if err := s.Commit(ctx, c)[0]; err == nil {
						break
					} else if storage.Final(err) || errors.Is(err, storage.ErrConflict) || try > 500 {
						t.Errorf("%s: %v", c.ID, err)
						return
					}
					s = stores[try%2] // the client goes to a node that lives, with the same Change
				}
				mu.Lock()
				acked = append(acked, c.ID)
				n := len(acked)
				mu.Unlock()
				if n == 30 {
					nodes[2].Kill()
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, acked, 120)
	rows, err := stores[0].Rows(ctx, storagetest.Notes.Table, storage.Keys("p", acked...)...)
	require.NoError(t, err)
	for _, r := range rows {
		acked = slices.DeleteFunc(acked, func(id string) bool { return id == r.ID })
	}
	require.Empty(t, acked, "acknowledged, and gone")
	b, err := stores[1].Balances(ctx, "p", "wallet/w")
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(120), b[0].Posted)
	storagetest.Audit(t, stores[1], "p")

	nodes[1].Kill() // one of three is no quorum
	c := deposit("alone")
	err = stores[0].Commit(ctx, c)[0]
	require.Error(t, err)
	require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict), "%v", err)
	s := at(t, nodes[0].MySQLDSN(name), galera)
	require.Error(t, s.Open(ctx, storagetest.Tables()...))
}
