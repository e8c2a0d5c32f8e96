package memory_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// A Change's kind of verdict.
const (
	verdictNone      = "applied"
	verdictMalformed = "malformed"
	verdictDuplicate = "duplicate"
	verdictFunds     = "funds"
	verdictOverflow  = "overflow"
)

type slot struct {
	account ledger.Account
	asset   ledger.Asset
}

// book is one balance and its history, in integers without an end.
type book struct {
	posted, held big.Int
	deltas       []*big.Int
}

// books is the ledger as it would be written by somebody who knows only what it
// promises: each Change whole or not at all, sums, floors, and 64 bits.
type books struct {
	of     map[slot]*book
	posted map[string]string // Tx.ID → Change.ID
}

func (b *books) at(s slot) *book {
	if b.of[s] == nil {
		b.of[s] = &book{}
	}
	return b.of[s]
}

func wellFormed(c *storage.Change) bool {
	if len(c.Post) == 0 {
		return false
	}
	ids := map[string]bool{}
	for _, tx := range c.Post {
		sums, met := map[ledger.Asset]*big.Int{}, map[slot]bool{}
		for _, l := range tx.Legs {
			if met[slot{l.Account, l.Asset}] || l.Delta == 0 && l.Hold == 0 {
				return false
			}
			met[slot{l.Account, l.Asset}] = true
			if sums[l.Asset] == nil {
				sums[l.Asset] = new(big.Int)
			}
			sums[l.Asset].Add(sums[l.Asset], big.NewInt(int64(l.Delta)))
		}
		for _, sum := range sums {
			if sum.Sign() != 0 {
				return false
			}
		}
		if ids[tx.ID] || len(tx.Legs) == 0 {
			return false
		}
		ids[tx.ID] = true
	}
	return true
}

// commit is what the Change comes to.
func (b *books) commit(c *storage.Change) string {
	if !wellFormed(c) {
		return verdictMalformed
	}
	taken := false
	for _, tx := range c.Post {
		switch by, ok := b.posted[tx.ID]; {
		case ok && by == c.ID:
			return verdictNone
		case ok:
			taken = true
		}
	}
	if taken {
		return verdictDuplicate
	}
	after := map[slot]*book{}
	for _, tx := range c.Post {
		for _, l := range tx.Legs {
			s := slot{l.Account, l.Asset}
			if after[s] == nil {
				was := b.at(s)
				after[s] = &book{deltas: slices.Clone(was.deltas)}
				after[s].posted.Set(&was.posted)
				after[s].held.Set(&was.held)
			}
			k := after[s]
			k.posted.Add(&k.posted, big.NewInt(int64(l.Delta)))
			k.held.Add(&k.held, big.NewInt(int64(l.Hold)))
			if l.Delta != 0 {
				k.deltas = append(k.deltas, big.NewInt(int64(l.Delta)))
			}
			switch _, wallet := l.Account.WalletID(); {
			case !k.posted.IsInt64() || !k.held.IsInt64():
				return verdictOverflow
			case wallet && (k.held.Sign() < 0 || k.posted.Cmp(&k.held) < 0):
				return verdictFunds
			}
		}
	}
	for s, k := range after {
		b.of[s] = k
	}
	for _, tx := range c.Post {
		b.posted[tx.ID] = c.ID
	}
	return verdictNone
}

func verdictOf(err error) string {
	var (
		dup   *storage.DuplicateError
		funds *ledger.InsufficientFundsError
	)
	switch {
	case err == nil:
		return verdictNone
	case errors.As(err, &dup):
		return verdictDuplicate
	case errors.As(err, &funds):
		return verdictFunds
	case errors.Is(err, ledger.ErrOverflow):
		return verdictOverflow
	case errors.Is(err, storage.ErrMalformed), errors.Is(err, ledger.ErrMalformed), errors.Is(err, ledger.ErrUnbalanced):
		return verdictMalformed
	}
	return err.Error()
}

var (
	fuzzAccounts = []ledger.Account{ledger.Wallet("a"), ledger.Wallet("b"), ledger.Chain("net"), ledger.Suspense, ledger.FeesPlatform, ledger.Receivable("a")}
	fuzzAssets   = []ledger.Asset{"COIN", "USDT"}
	borders      = []int64{0, 1, -1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, 1 << 62, -1 << 62}
)

// script reads Changes from bytes: each what a caller could send, mostly sound.
type script struct{ b []byte }

func (s *script) byte() byte {
	if len(s.b) == 0 {
		return 0
	}
	c := s.b[0]
	s.b = s.b[1:]
	return c
}

func (s *script) amount() int64 {
	switch c := s.byte(); {
	case c < 128:
		return int64(int8(s.byte()))
	case c < 192:
		return borders[int(c)%len(borders)]
	default:
		var b [8]byte
		s.b = s.b[copy(b[:], s.b):]
		return int64(binary.BigEndian.Uint64(b[:]))
	}
}

func (s *script) change() storage.Change {
	c := storage.Change{ID: fmt.Sprint("c", s.byte()%16), Partition: storage.Tenant("t")}
	for range 1 + s.byte()%3 {
		tx := ledger.Tx{ID: fmt.Sprint("t", s.byte()%24), Kind: ledger.KindTransfer, At: time.UnixMicro(1)}
		shape, sum := s.byte(), ledger.Amount(0)
		asset := fuzzAssets[int(shape>>6)%len(fuzzAssets)]
		for range shape & 3 {
			l := ledger.Leg{Account: fuzzAccounts[int(s.byte())%len(fuzzAccounts)], Asset: asset, Delta: ledger.Amount(s.amount())}
			if shape&4 != 0 {
				l.Hold = ledger.Amount(s.amount())
			}
			if shape&8 != 0 && s.byte()&1 != 0 {
				l.Asset = fuzzAssets[0]
			}
			sum += l.Delta // may wrap: then it only looks balanced
			tx.Legs = append(tx.Legs, l)
		}
		if shape&16 == 0 {
			tx.Legs = append(tx.Legs, ledger.Leg{Account: ledger.Float, Asset: asset, Delta: -sum})
		}
		c.Post = append(c.Post, tx)
	}
	return c
}

func agreesWithBooks(t *testing.T, data []byte) {
	ctx, part := t.Context(), storage.Tenant("t")
	store := memory.New()
	require.NoError(t, store.Open(ctx))
	b := &books{of: map[slot]*book{}, posted: map[string]string{}}
	in := &script{data}
	for n := 0; len(in.b) > 0 && n < 60; n++ {
		changes := []storage.Change{in.change()}
		if in.byte()&1 != 0 {
			changes = append(changes, in.change())
		}
		errs := store.Commit(ctx, changes...)
		for i := range changes {
			require.Equal(t, b.commit(&changes[i]), verdictOf(errs[i]), "%+v: %v", changes[i], errs[i])
		}
	}
	balances, err := store.Balances(ctx, part)
	require.NoError(t, err)
	sums, seen := map[ledger.Asset]*big.Int{}, map[slot]bool{}
	for _, a := range balances {
		s := slot{a.Account, a.Asset}
		k := b.at(s)
		seen[s] = true
		require.Equal(t, []string{k.posted.String(), k.held.String()}, []string{fmt.Sprint(int64(a.Posted)), fmt.Sprint(int64(a.Held))}, "%v", s)
		require.Len(t, k.deltas, int(a.Seq), "%v", s)
		if sums[a.Asset] == nil {
			sums[a.Asset] = new(big.Int)
		}
		sums[a.Asset].Add(sums[a.Asset], &k.posted)
		entries, err := store.Entries(ctx, part, a.Account, a.Asset, 0, 1000)
		require.NoError(t, err)
		require.Len(t, entries, len(k.deltas))
		after := new(big.Int).Set(&k.posted)
		for i, e := range entries { // newest first
			d := k.deltas[len(k.deltas)-1-i]
			require.Equal(t, int64(len(k.deltas)-i), e.Seq)
			require.Equal(t, []string{d.String(), after.String()}, []string{fmt.Sprint(int64(e.Delta)), fmt.Sprint(int64(e.After))})
			after.Sub(after, d)
		}
		require.Zero(t, after.Sign())
	}
	for s, k := range b.of {
		require.True(t, seen[s] || k.posted.Sign() == 0 && k.held.Sign() == 0 && len(k.deltas) == 0, "%v is not in the store", s)
	}
	for asset, sum := range sums {
		require.Zero(t, sum.Sign(), "%s sums to %s", asset, sum)
	}
}

func FuzzPost(f *testing.F) {
	f.Add([]byte{1, 0, 1, 1, 0, 0, 100, 0})
	f.Add([]byte{1, 0, 1, 1, 0, 0, 100, 0, 2, 0, 2, 1, 0, 0, 0x9c, 0, 3, 0, 3, 1, 0, 0, 0xff, 1, 4, 0, 4, 5, 0, 0, 1, 0, 7, 0})
	f.Add([]byte{1, 1, 1, 2, 2, 131, 0, 0, 1, 2, 34, 1, 0, 5, 4, 0, 255, 1, 2, 3, 4, 5, 6, 7, 8, 1, 9, 0, 9, 18, 2, 130, 3, 132, 0})
	f.Add([]byte{5, 2, 1, 7, 0, 0, 50, 0, 20, 1, 0, 60, 0, 0xf0, 2, 0, 7, 0, 9, 4, 3, 6, 0, 0, 50, 0, 20, 3, 76, 1, 0, 9, 1, 2, 0, 3, 1})
	f.Fuzz(agreesWithBooks)
}

// TestPostAgainstBigInt: long random runs, the same every time.
func TestPostAgainstBigInt(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		data := make([]byte, 800)
		for i := range data {
			seed = seed*6364136223846793005 + 1442695040888963407
			data[i] = byte(seed >> 56)
			if seed>>40&7 == 0 {
				data[i] &= 3
			}
		}
		agreesWithBooks(t, data)
	}
}
