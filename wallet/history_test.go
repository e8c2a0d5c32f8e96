package wallet_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// TestFP05_APageFarBackIsFoundWithoutReadingAllBefore: the pages are those of a history that is read from its
// beginning, whatever the clocks of processes said, and beyond the last page nothing is read.
func TestFP05_APageFarBackIsFoundWithoutReadingAllBefore(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	s := &failing.Store{Store: memory.New()}
	w := newWorldOn(t, s)
	const entries = 60_000
	type posted struct {
		at   time.Time
		code string
	}
	lines := map[string][]posted{} // the oldest first
	now := w.clock()
	var txs []ledger.Tx
	for i := range entries {
		code := usdt
		switch {
		case i > entries-4000: // a currency that is used of late alone
			code = "TRX"
		case random.IntN(10) == 0:
			code = "BTC"
		}
		c, err := registry.Currency(code)
		require.NoError(t, err)
		if i%1000 != 0 { // some come at one moment
			now = now.Add(time.Duration(random.IntN(600)) * time.Second)
		}
		at := now.Add(time.Duration(random.IntN(60)) * time.Second) // clocks differ
		lines[code] = append(lines[code], posted{at, code})
		txs = append(txs, ledger.Tx{ID: fmt.Sprint("tx-", i), Kind: ledger.KindDeposit, At: at, Legs: []ledger.Leg{
			{Account: ledger.Chain(string(c.Network)), Asset: c.Asset(), Delta: -1}, {Account: ledger.Wallet(wallet.Master), Asset: c.Asset(), Delta: 1},
		}})
		if len(txs) == 100 {
			require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{ID: fmt.Sprint("c-", i), Partition: storage.Tenant(tenant), Post: txs}))
			txs = nil
		}
	}
	var all []posted // as they are merged, the newest first
	for len(all) < entries {
		best := ""
		for code, l := range lines {
			if len(l) == 0 {
				continue
			}
			if best == "" {
				best = code
				continue
			}
			a, b := l[len(l)-1], lines[best][len(lines[best])-1]
			if cmp.Or(a.at.Compare(b.at), -cmp.Compare(code, best)) > 0 {
				best = code
			}
		}
		l := lines[best]
		all, lines[best] = append(all, l[len(l)-1]), l[:len(l)-1]
	}
	offsets := []int{0, 1, 299, 300, 999, 1000, entries - 101, entries - 100, entries - 1, entries, entries + 1, math.MaxInt32}
	for range 60 {
		offsets = append(offsets, random.IntN(entries))
	}
	for _, offset := range offsets {
		s.Calls = 0
		page, total, err := w.History(w.ctx, tenant, wallet.HistoryFilter{Limit: 100, Offset: offset})
		require.NoError(t, err)
		require.EqualValues(t, entries, total)
		want := all[min(offset, entries):min(offset+100, entries)]
		require.Len(t, page, len(want), "offset %d", offset)
		for i := range page {
			got := posted{page[i].At, page[i].Currency}
			require.Equal(t, want[i], got, "offset %d, entry %d", offset, i)
		}
		require.LessOrEqual(t, s.Calls, 160, "offset %d", offset)
		if offset >= entries {
			require.LessOrEqual(t, s.Calls, 1, "offset %d", offset)
		}
	}
}
