package seal_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/seal"
)

// hashed is the hash that an Inclusion leads to.
func hashed(in *seal.Inclusion) []byte {
	leaf := sha256.Sum256(in.Leaf)
	root := sha256.Sum256(slices.Concat(in.Before, leaf[:], in.After))
	return root[:]
}

// On each backend every account's newest sealed entry leads to the hash of the seal that
// covers it, also when others were sealed since, and what came after is in none.
func TestInclude_LeadsToTheSeal(t *testing.T) {
	for name := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := opened(t, name)
			keys := [][]byte{key}
			_, ok, err := seal.Include(ctx, s, here, ledger.Wallet("w1"), "ETH", keys)
			require.NoError(t, err)
			require.False(t, ok, "there is nothing")
			pays(t, s, 1, 9)
			_, ok, err = seal.Include(ctx, s, here, ledger.Wallet("w1"), "ETH", keys)
			require.NoError(t, err)
			require.False(t, ok, "nothing is sealed")
			first, _, err := seal.Next(ctx, s, here, key, day)
			require.NoError(t, err)
			pay(t, s, 12) // of w0
			second, _, err := seal.Next(ctx, s, here, key, day.Add(time.Hour))
			require.NoError(t, err)
			pays(t, s, 13, 15)
			for account, want := range map[ledger.Account]struct {
				seal  seal.Seal
				seq   int64
				after ledger.Amount
			}{
				ledger.Wallet("w0"): {second, 4, 4 * 97}, ledger.Wallet("w1"): {first, 3, 3 * 97}, ledger.Wallet("w2"): {first, 3, 3 * 97},
				ledger.Chain("ETH"): {second, 10, -1000}, ledger.FeesPlatform: {second, 10, 30},
			} {
				in, ok, err := seal.Include(ctx, s, here, account, "ETH", keys)
				require.NoError(t, err, account)
				require.True(t, ok, account)
				require.Equal(t, want.seal.Number, in.Seal.Number, account)
				require.Equal(t, want.seal.Hash, hashed(&in), account)
				require.Equal(t, want.seq, in.Entry.Seq, account)
				require.Equal(t, want.after, in.Entry.After, account)
			}
			_, _, err = seal.Include(ctx, s, here, ledger.Wallet("w1"), "ETH", [][]byte{seal.Key([]byte("another"))})
			require.ErrorIs(t, err, seal.ErrBroken)
			for _, l := range [][2]string{{"w1", "BTC"}, {"w9", "ETH"}} {
				_, ok, err = seal.Include(ctx, s, here, ledger.Wallet(l[0]), ledger.Asset(l[1]), keys)
				require.NoError(t, err)
				require.False(t, ok)
			}
			_, ok, err = seal.Include(ctx, s, "tenant/there", ledger.Wallet("w1"), "ETH", keys)
			require.NoError(t, err)
			require.False(t, ok, "it is another merchant's")
		})
	}
}

// readings counts what is read of a store.
type readings struct {
	storage.Store
	calls, entries atomic.Int64
}

func (r *readings) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	r.calls.Add(1)
	return r.Store.Rows(ctx, t, keys...)
}

func (r *readings) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	r.calls.Add(1)
	return r.Store.Find(ctx, q)
}

func (r *readings) Balances(ctx context.Context, p storage.Partition, a ...ledger.Account) ([]ledger.Balance, error) {
	r.calls.Add(1)
	return r.Store.Balances(ctx, p, a...)
}

func (r *readings) Entries(ctx context.Context, p storage.Partition, a ledger.Account, asset ledger.Asset, before int64, limit int) ([]ledger.Entry, error) {
	r.calls.Add(1)
	got, err := r.Store.Entries(ctx, p, a, asset, before, limit)
	r.entries.Add(int64(len(got)))
	return got, err
}

// What a proof reads depends on the seal that it is of, and never on how many there are, nor on
// how long the journal is. At the most it is MaxEntries entries, of as many histories.
func TestInclude_ReadsNoMoreWithTime(t *testing.T) {
	t.Parallel()
	s := &readings{Store: memory.New()}
	require.NoError(t, s.Open(ctx, seal.Tables()...))
	read := func(account ledger.Account) (calls, entries int64) {
		c, e := s.calls.Load(), s.entries.Load()
		in, ok, err := seal.Include(ctx, s, here, account, "ETH", nil)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, in.Seal.Hash, hashed(&in))
		return s.calls.Load() - c, s.entries.Load() - e
	}
	pays(t, s, 1, 3)
	_, _, err := seal.Next(ctx, s, here, nil, day)
	require.NoError(t, err)
	calls, entries := read(ledger.Wallet("w1"))
	require.LessOrEqual(t, calls, int64(7))
	for n := range 200 {
		pay(t, s, 3*(n+2)) // of w0
		_, _, err = seal.Next(ctx, s, here, nil, day)
		require.NoError(t, err)
	}
	again, more := read(ledger.Wallet("w1"))
	require.Equal(t, [2]int64{calls, entries}, [2]int64{again, more}, "it has not moved since")
	again, more = read(ledger.Wallet("w0"))
	require.LessOrEqual(t, again, calls+1, "and the newest seal is like the first")
	require.LessOrEqual(t, more, entries)

	// The widest seal: as many wallets as it may have entries.
	var legs []ledger.Leg
	for n := range seal.MaxEntries + 1 {
		legs = append(legs, ledger.Leg{Account: ledger.Wallet(fmt.Sprint("many", n)), Asset: "ETH", Delta: 1})
	}
	legs = append(legs, ledger.Leg{Account: "zz", Asset: "ETH", Delta: -ledger.Amount(len(legs))})
	require.NoError(t, storage.CommitOne(ctx, s, storage.Change{ID: "many", Partition: here, Post: []ledger.Tx{{ID: "many", At: day, Legs: legs}}}))
	for n := 1; n > 0; {
		_, n, err = seal.Next(ctx, s, here, nil, day)
		require.NoError(t, err)
	}
	calls, entries = read(ledger.Wallet("many100"))
	require.LessOrEqual(t, calls, int64(seal.MaxEntries+3))
	require.EqualValues(t, seal.MaxEntries, entries)
}
