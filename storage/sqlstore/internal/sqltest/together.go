package sqltest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/lane"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// settled commits until the outcome is known.
func settled(s storage.Store, c storage.Change) error {
	for {
		err := s.Commit(ctx, c)[0]
		if err == nil || storage.Final(err) || errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
}

// WriteSkew lets two processes commit for one partition at once. What one relies on
// and does not write, the other may not change meanwhile.
func WriteSkew(t *testing.T, a, b storage.Store) {
	t.Helper()
	stores := []storage.Store{a, b}
	for round := range 25 {
		x, y := fmt.Sprint("x", round), fmt.Sprint("y", round)
		var wg sync.WaitGroup
		var won [2]bool
		for i, s := range stores {
			mine, other := []string{x, y}[i], []string{y, x}[i]
			wg.Go(func() { // each may be there only while the other is not
				err := settled(s, storage.Change{
					ID: mine, Partition: here,
					Require: []storage.Guard{storagetest.Notes.Guard(other, 0)},
					Put:     []storage.Row{storagetest.Notes.Row(mine, 0, time.Time{}, storagetest.Note{Text: mine})},
				})
				won[i] = err == nil
				if err != nil && !errors.Is(err, storage.ErrConflict) {
					t.Errorf("%s: %v", mine, err)
				}
			})
		}
		wg.Wait()
		require.NotEqual(t, won[0], won[1], "round %d: exactly one", round)
		for _, s := range stores {
			rows, err := s.Rows(ctx, storagetest.Notes.Table, storage.Keys(here, x, y)...)
			require.NoError(t, err)
			require.Len(t, rows, 1, "both see it")
		}
	}
}

// ReadsAreCurrent checks that what one process was told is committed every other
// sees at once.
func ReadsAreCurrent(t *testing.T, a, b storage.Store) {
	t.Helper()
	for i := range 200 {
		id := fmt.Sprint("seen ", i)
		require.NoError(t, settled(a, deposit(there, id)))
		rows, err := b.Rows(ctx, storagetest.Notes.Table, storage.Keys(there, id)...)
		require.NoError(t, err)
		require.Len(t, rows, 1, "commit %d", i)
		balances, err := b.Balances(ctx, there, "wallet/w")
		require.NoError(t, err)
		require.EqualValues(t, i+1, balances[0].Posted)
	}
}

// A claim and a write of one row each raise its version, and never the same one: a
// write that came after a claim it had not seen would act under a lease that is
// another's.
func claimAgainstPut(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	a, b := e.store(t, dsn), e.store(t, dsn)
	due := time.Unix(1, 0)
	require.NoError(t, a.Commit(ctx, storage.Change{ID: "make", Partition: here, Put: []storage.Row{storagetest.Notes.Row("r", 0, due, storagetest.Note{})}})[0])
	var mu sync.Mutex
	raised := int64(1)
	var wg sync.WaitGroup
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		raised += int64(n)
	}
	wg.Go(func() {
		for i := range 150 { // each lease is over when the next asks
			rows, err := b.Claim(ctx, storage.Claim{Table: storagetest.Notes.Table, Now: time.Unix(int64(10+2*i), 0), Until: time.Unix(int64(11+2*i), 0), Max: 1})
			if err != nil {
				t.Errorf("claim: %v", err)
			}
			count(len(rows))
		}
	})
	wg.Go(func() {
		for i := range 150 {
			_, row, _, err := storagetest.Notes.One(ctx, a, here, "r")
			if err != nil {
				t.Errorf("read: %v", err)
				return
			}
			err = settled(a, storage.Change{ID: fmt.Sprint("put ", i), Partition: here, Put: []storage.Row{storagetest.Notes.Row("r", row.Version, due, storagetest.Note{N: int64(i)})}})
			if err == nil {
				count(1)
			} else if !errors.Is(err, storage.ErrConflict) {
				t.Errorf("put: %v", err)
			}
		}
	})
	wg.Wait()
	_, row, _, err := storagetest.Notes.One(ctx, a, here, "r")
	require.NoError(t, err)
	require.Equal(t, raised, row.Version)
}

// A batch whose partition is locked elsewhere waits for nothing of it and holds
// nothing: not for its rows either, which whoever has the partition may have locked
// before or want next, so that two such would wait for each other.
func lockedPartition(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	s := e.store(t, dsn)
	require.NoError(t, s.Commit(ctx, deposit(here, "row"))[0])
	tx, err := e.Pool(t, dsn).Beginx()
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // where the test fails
	_, err = tx.Exec(tx.Rebind(e.Lock), string(here))
	require.NoError(t, err)
	var id string
	require.NoError(t, tx.Get(&id, tx.Rebind("SELECT id FROM cryptopay_"+storagetest.Notes.Table.Name+" WHERE part = ? AND id = 'row' FOR UPDATE"), string(here)))
	again := storage.Change{ID: "again", Partition: here, Put: []storage.Row{storagetest.Notes.Row("row", 1, time.Time{}, storagetest.Note{Text: "again"})}}
	unique := storage.Change{ID: "unique", Partition: here, Put: []storage.Row{storagetest.Things.Row("x", 0, time.Time{}, storagetest.Thing{Name: "x"})}}
	for _, c := range []storage.Change{again, unique} {
		verdicts, err := s.(lane.Target).Write(ctx, false, []storage.Change{c})
		require.NoError(t, err)
		require.ErrorIs(t, verdicts[0], lane.ErrSkipped)
	}
	require.NoError(t, tx.Rollback())
	for _, c := range []storage.Change{again, unique} {
		require.NoError(t, s.Commit(ctx, c)[0])
	}
}

// A partition's first row waits for somebody's transaction that makes it too. That is an
// error in time, not a verdict, and the partition is not taken for one that is there.
func newPartition(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	s := e.store(t, dsn)
	tx, err := e.Pool(t, dsn).Beginx()
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // where the test fails
	_, err = tx.Exec(tx.Rebind("INSERT INTO cryptopay_parts (part) VALUES (?)"), string(here))
	require.NoError(t, err)
	err = s.Commit(ctx, deposit(here, "held"))[0]
	require.Error(t, err)
	require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict), "%v", err)
	require.NoError(t, s.Commit(ctx, deposit(there, "free"))[0])
	require.NoError(t, tx.Rollback())
	require.NoError(t, s.Commit(ctx, deposit(here, "held"))[0])
	require.Equal(t, 1, whole(t, s, here, []string{"held"}))
}

// A statement in the middle of a batch gives up: some databases undo no more than
// that. Nothing of the batch is there.
func lockedRow(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	s := e.store(t, dsn)
	require.NoError(t, s.Commit(ctx, deposit(here, "before"))[0])
	tx, err := e.Pool(t, dsn).Beginx()
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // where the test fails
	var held int64
	require.NoError(t, tx.Get(&held, tx.Rebind("SELECT held FROM cryptopay_balances WHERE part = ? AND account = 'wallet/w' AND asset = 'COIN' FOR UPDATE"), string(here)))
	err = s.Commit(ctx, deposit(here, "stuck"))[0]
	require.Error(t, err)
	require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict), "%v", err)
	require.NoError(t, s.Commit(ctx, deposit(there, "other"))[0])
	require.Equal(t, 1, whole(t, s, here, []string{"before"}))
	require.NoError(t, tx.Rollback())
	require.Equal(t, 1, whole(t, s, here, []string{"before"}))
	require.NoError(t, storage.CommitOne(ctx, s, deposit(here, "stuck")))
	require.Equal(t, 2, whole(t, s, here, []string{"before", "stuck"}))
}
