package chaintest

import (
	"errors"
	"sync"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

func abilityCases() []testCase {
	return []testCase{
		{"D15_PendingIsTheTransferWithoutABlock", able[chain.Mempool]("Mempool"), pendingTransfer},
		{"BalanceIsWhatWasPaid", able[chain.Balancer]("Balancer"), balances},
		{"NonceCountsOnlyBlocks", all(accounts, able[chain.Noncer]("Noncer")), nonces},
		{"HistoryIsWhatScanSaw", able[chain.Historian]("Historian"), history},
		{"BlockAtFollowsTheChain", able[chain.Locator]("Locator"), blockAt},
		{"CallsCanBeConcurrent", nothing, concurrent},
	}
}

func pendingTransfer(k *kit) {
	a, other := k.account().Address, k.account().Address
	m := k.Client.(chain.Mempool)
	k.start()
	tx := k.pay(a)
	k.pay(other)
	w := watch()
	w.learn = func() []chain.Address { return []chain.Address{a} }
	waiting, err := m.Pending(k.ctx, w)
	require.NoError(k.t, err)
	require.Len(k.t, waiting, 1, "watched addresses alone, those of Sync included")
	p := waiting[0]
	require.Equal(k.t, tx, p.Tx)
	require.Equal(k.t, chain.Block{}, p.Block)
	require.NotEmpty(k.t, p.Spends, "a replacement is known by what it shares")
	k.Mine(k.t, 1)
	k.catchUp(watch(a))
	x := k.only(tx)
	require.Equal(k.t, x.Ordinal, p.Ordinal, "it keeps its identity in the block")
	require.Equal(k.t, x.Currency, p.Currency)
	require.Equal(k.t, x.Spends, p.Spends)
	require.True(k.t, x.Amount.Equal(p.Amount))
	waiting, err = m.Pending(k.ctx, watch(a))
	require.NoError(k.t, err)
	require.Empty(k.t, waiting, "what is in a block does not wait")
}

func balances(k *kit) {
	a := k.account().Address
	zero, _ := k.balance(k.Native, a)
	require.True(k.t, zero.IsZero())
	k.pay(a)
	waiting, _ := k.balance(k.Native, a)
	require.True(k.t, waiting.IsZero(), "what waits is not there yet")
	k.Mine(k.t, 1)
	got, _ := k.balance(k.Native, a)
	require.True(k.t, k.Amount.Equal(got), "%s", got)
	many, able := k.Client.(chain.ManyBalancer)
	other := k.account().Address
	if able {
		all, err := many.Balances(k.ctx, k.Native, []chain.Address{other, a, other, a})
		if able = !errors.Is(err, errors.ErrUnsupported); able { // a pool of nodes of which none can
			require.NoError(k.t, err)
			require.Equal(k.t, []string{"0", got.String(), "0", got.String()}, texts(all))
		}
	}
	if k.Token == "" || k.Family == chain.UTXOFamily {
		return
	}
	k.Pay(k.t, Payment{To: a, Currency: k.Token, Amount: k.Amount})
	k.Mine(k.t, 1)
	got, _ = k.balance(k.Token, a)
	require.True(k.t, k.Amount.Equal(got), "%s", got)
	if able {
		all, err := many.Balances(k.ctx, k.Token, []chain.Address{a, other, a, other, a})
		require.NoError(k.t, err)
		require.Equal(k.t, []string{got.String(), "0", got.String(), "0", got.String()}, texts(all))
		all, err = many.Balances(k.ctx, k.Token, []chain.Address{a})
		require.NoError(k.t, err)
		require.Equal(k.t, []string{got.String()}, texts(all))
	}
}

func texts(all []*decimal.Decimal) (out []string) {
	for _, d := range all {
		out = append(out, d.String())
	}
	return out
}

func nonces(k *kit) {
	s := k.sender()
	a, _ := s.attempt(s.order(s.intent(k.Native, k.account().Address)))
	require.NoError(k.t, k.broadcast(a))
	require.Equal(k.t, s.nonce, k.nonce(s.Address), "what waits is not counted")
	k.landed(a)
	require.Equal(k.t, s.nonce+1, k.nonce(s.Address))
}

func history(k *kit) {
	h := k.Client.(chain.Historian)
	a := k.account().Address
	k.start()
	from := k.trail[0].Height
	for range 3 {
		k.pay(a)
		k.pay(k.account().Address)
		k.Mine(k.t, 1)
	}
	k.catchUp(watch(a))
	got, err := h.History(k.ctx, a, from, from+3)
	require.NoError(k.t, err)
	require.ElementsMatch(k.t, k.seen, got)
	got, err = h.History(k.ctx, a, from+2, from+2)
	require.NoError(k.t, err)
	require.Len(k.t, got, 1, "both heights are included")
	_, err = h.History(k.ctx, a, from, from+100)
	require.Error(k.t, err, "blocks that the node does not have are not empty")
}

func blockAt(k *kit) {
	l := k.Client.(chain.Locator)
	k.start()
	k.Mine(k.t, 3)
	k.catchUp(watch())
	for _, b := range k.trail {
		got, err := l.BlockAt(k.ctx, b.Height)
		require.NoError(k.t, err)
		require.True(k.t, k.same(b, got))
	}
	_, err := l.BlockAt(k.ctx, k.trail[len(k.trail)-1].Height+10)
	require.Error(k.t, err)
}

// concurrent asks many things at once of a chain that stands still. Run with
// -race it also finds shared state.
func concurrent(k *kit) {
	s, to := k.sender(), k.account().Address
	k.start()
	a, _ := s.attempt(s.order(s.intent(k.Native, to)))
	require.NoError(k.t, k.broadcast(a))
	k.landed(a)
	want, err := k.Client.Scan(k.ctx, k.trail, k.few(watch(to)), 10)
	require.NoError(k.t, err)
	var wg sync.WaitGroup
	failed := make(chan string, 64)
	check := func(good bool, what string) {
		if !good {
			failed <- what
		}
	}
	for range 8 {
		wg.Go(func() {
			got, err := k.Client.Scan(k.ctx, k.trail, k.few(watch(to)), 10)
			check(err == nil && len(got.Blocks) == len(want.Blocks), "Scan")
			tip, err := k.Client.Tip(k.ctx)
			check(err == nil && k.same(tip.Head, want.Blocks[len(want.Blocks)-1].Block), "Tip")
			all, err := k.Client.Status(k.ctx, a)
			check(err == nil && len(all) == 1 && all[0].State == chain.Included, "Status")
			check(k.broadcast(a) == nil, "Broadcast")
			_, err = k.Client.ParseAddress(string(to))
			check(err == nil, "ParseAddress")
		})
	}
	wg.Wait()
	close(failed)
	for what := range failed {
		require.Fail(k.t, what+" failed beside others")
	}
}
