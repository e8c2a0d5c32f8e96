package chaintest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

func addressCases() []testCase {
	return []testCase{
		{"AddressesRoundTrip", nothing, addressesRoundTrip},
		{"BadAddressesAreRefused", nothing, badAddresses},
	}
}

func addressesRoundTrip(k *kit) {
	seen := map[chain.Address]bool{}
	for range 20 {
		a := k.account().Address
		require.False(k.t, seen[a], "two keys, one address")
		seen[a] = true
		again, err := k.Client.ParseAddress(string(a))
		require.NoError(k.t, err)
		require.Equal(k.t, a, again, "an address of our own is canonical")
	}
}

func badAddresses(k *kit) {
	good := string(k.account().Address)
	bad := append([]string{
		"", " ", " " + good, good + " ", good + "\n", good + "\x00", "\t" + good, good[:len(good)/2], good + good,
		strings.Repeat("a", 10_000), "\xff\xfe", "null", "\u202e" + good,
	}, k.BadAddresses...)
	if !k.NoChecksum {
		bad = append(bad, good[:len(good)-1])
		for _, at := range []int{len(good) / 2, len(good) - 2, len(good) - 1} {
			bad = append(bad, damaged(good, at))
		}
	}
	for _, s := range bad {
		a, err := k.Client.ParseAddress(s)
		var why *chain.AddressError
		require.ErrorAs(k.t, err, &why, "%q must be refused with a *chain.AddressError, not read as %q", s, a)
		require.Equal(k.t, k.Client.Network(), why.Network)
		require.NotEmpty(k.t, why.Reason)
	}
	_, err := k.Client.AddressOf(chain.PublicKey("not a key"))
	require.Error(k.t, err)
}

// damaged puts another character of the address in the place of one.
func damaged(s string, at int) string {
	for _, r := range s[len(s)/2:] {
		if !strings.EqualFold(string(r), s[at:at+1]) {
			return s[:at] + string(r) + s[at+1:]
		}
	}
	return s + "x"
}

func scanCases() []testCase {
	return []testCase{
		{"TipIsTheHead", nothing, tipIsTheHead},
		{"EmptyTrailStartsAtTheHead", nothing, func(k *kit) { k.pay(k.account().Address); k.Mine(k.t, 1); k.start() }},
		{"NothingNewIsNothing", nothing, nothingNew},
		{"CatchesUpWithoutAGap", nothing, catchesUp},
		{"ScanIsRepeatable", nothing, repeatable},
		{"OnlyWatchedAddresses", nothing, onlyWatched},
		{"SyncsBeforeItMatches", nothing, syncsBeforeMatch},
		{"FailedSyncFailsTheScan", nothing, failedSync},
		{"AmountsAreExact", nothing, amountsAreExact},
		{"NativeTransfer", nothing, nativeTransfer},
		{"TokenTransfer", tokens, tokenTransfer},
		{"MemoIsReported", memos, memoIsReported},
		{"D09_SeveralTransfersOfOneTransaction", batches, severalTransfers},
	}
}

func tipIsTheHead(k *kit) {
	before, err := k.Client.Tip(k.ctx)
	require.NoError(k.t, err)
	k.start()
	require.Equal(k.t, k.trail[0], before.Head, "Tip and Scan agree on the head")
	k.Mine(k.t, 2)
	after, err := k.Client.Tip(k.ctx)
	require.NoError(k.t, err)
	require.Equal(k.t, before.Head.Height+2, after.Head.Height)
	require.LessOrEqual(k.t, after.Safe, after.Head.Height)
	require.LessOrEqual(k.t, after.Final, after.Head.Height)
	if k.Finality < 0 {
		require.EqualValues(k.t, -1, after.Final, "no notion of finality is −1")
		return
	}
	require.GreaterOrEqual(k.t, after.Final, before.Final, "finality does not go back")
	require.LessOrEqual(k.t, after.Final, after.Safe, "what is final is safe")
}

func nothingNew(k *kit) {
	k.start()
	s, err := k.Client.Scan(k.ctx, k.trail, k.few(watch()), 3)
	require.NoError(k.t, err)
	require.Empty(k.t, s.Blocks)
	require.Zero(k.t, s.Rewound)
}

func catchesUp(k *kit) {
	a := k.account().Address
	k.start()
	from := k.trail[0].Height
	var want []string
	for range 8 {
		want = append(want, k.pay(a))
		k.Mine(k.t, 1)
	}
	k.Mine(k.t, 2)
	require.Zero(k.t, k.catchUp(watch(a)))
	require.Equal(k.t, from+10, k.trail[len(k.trail)-1].Height)
	var got []string
	for _, x := range k.seen {
		got = append(got, x.Tx)
	}
	require.Equal(k.t, want, got, "every payment, once, in the order of the blocks")
}

func repeatable(k *kit) {
	a := k.account().Address
	k.start()
	k.pay(a)
	k.Mine(k.t, 2)
	first, err := k.Client.Scan(k.ctx, k.trail, k.few(watch(a)), 10)
	require.NoError(k.t, err)
	again, err := k.Client.Scan(k.ctx, k.trail, k.few(watch(a)), 10)
	require.NoError(k.t, err)
	require.Equal(k.t, first, again, "the same question, the same answer")
}

func onlyWatched(k *kit) {
	ours, other := k.account().Address, k.account().Address
	k.start()
	mine := k.pay(ours)
	theirs := k.pay(other)
	k.Mine(k.t, 1)
	k.catchUp(watch(ours))
	require.Equal(k.t, ours, k.only(mine).To)
	require.Empty(k.t, k.of(theirs))
}

func syncsBeforeMatch(k *kit) {
	a := k.account().Address
	k.start()
	tx := k.pay(a)
	k.Mine(k.t, 1)
	w := watch()
	w.learn = func() []chain.Address { return []chain.Address{a} }
	k.catchUp(w)
	require.Positive(k.t, w.syncs)
	require.Equal(k.t, a, k.only(tx).To, "an address that Sync brings is matched in the same answer")
}

func failedSync(k *kit) {
	a := k.account().Address
	k.start()
	k.pay(a)
	k.Mine(k.t, 1)
	w := watch(a)
	w.err = errors.New("the store is away")
	s, err := k.Client.Scan(k.ctx, k.trail, k.few(w), 3)
	require.ErrorIs(k.t, err, w.err)
	require.Empty(k.t, s.Blocks, "no block without a fresh watch")
}

func amountsAreExact(k *kit) {
	code := k.Native
	if k.Token != "" {
		code = k.Token
	}
	a, c := k.account().Address, k.currency(code)
	exact := k.Amount.Truncate(int32(c.Decimals)).Add(decimal.New(1, -int32(c.Decimals)))
	k.start()
	tx := k.Pay(k.t, Payment{To: a, Currency: code, Amount: exact})
	k.Mine(k.t, 1)
	k.catchUp(watch(a))
	require.True(k.t, exact.Equal(k.only(tx).Amount), "sent %s, seen %s", exact, k.only(tx).Amount)
}

func nativeTransfer(k *kit) {
	a := k.account().Address
	k.start()
	tx := k.pay(a)
	k.Mine(k.t, 1)
	k.catchUp(watch(a))
	x := k.only(tx)
	require.Equal(k.t, k.Native, x.Currency)
	require.Equal(k.t, a, x.To)
	require.True(k.t, k.Amount.Equal(x.Amount))
	require.False(k.t, x.Unproven)
	require.NotEmpty(k.t, x.Spends, "a transfer says what its transaction consumed")
	if k.Family == chain.AccountFamily {
		require.Equal(k.t, -1, x.Ordinal, "the transaction's own value")
		require.NotEmpty(k.t, x.From)
		return
	}
	require.GreaterOrEqual(k.t, x.Ordinal, 0, "the output's index")
}

func tokenTransfer(k *kit) {
	a := k.account().Address
	k.start()
	tx := k.Pay(k.t, Payment{To: a, Currency: k.Token, Amount: k.Amount})
	k.Mine(k.t, 1)
	k.catchUp(watch(a))
	x := k.only(tx)
	require.Equal(k.t, k.Token, x.Currency)
	require.Equal(k.t, k.currency(k.Token), k.Registry.ByContract(k.Client.Network(), x.Contract), "Contract names the token")
	require.True(k.t, k.Amount.Equal(x.Amount))
	require.GreaterOrEqual(k.t, x.Ordinal, 0)
	require.NotEmpty(k.t, x.From)
}

func memoIsReported(k *kit) {
	a := k.account().Address
	k.start()
	tx := k.Pay(k.t, Payment{To: a, Currency: k.Native, Amount: k.Amount, Memo: "12345"})
	k.Mine(k.t, 1)
	k.catchUp(watch(a))
	require.Equal(k.t, "12345", k.only(tx).Memo)
}

// batch pays two addresses three times in one transaction.
func (k *kit) batch() (tx string, a, b chain.Address, double decimal.Decimal) {
	k.t.Helper()
	a, b = k.account().Address, k.account().Address
	code := k.batchCurrency()
	double = k.Amount.Add(k.Amount)
	tx = k.Pay(k.t,
		Payment{To: a, Currency: code, Amount: k.Amount},
		Payment{To: a, Currency: code, Amount: double},
		Payment{To: b, Currency: code, Amount: k.Amount})
	return tx, a, b, double
}

func severalTransfers(k *kit) {
	k.start()
	tx, a, b, double := k.batch()
	k.Mine(k.t, 1)
	k.catchUp(watch(a, b))
	got := k.of(tx)
	require.Len(k.t, got, 3, "equal address and amount do not make two transfers one")
	require.Len(k.t, ordinals(got), 3, "each has an ordinal of its own")
	sum := map[chain.Address]decimal.Decimal{}
	for _, x := range got {
		sum[x.To] = sum[x.To].Add(x.Amount)
	}
	require.True(k.t, k.Amount.Add(double).Equal(sum[a]))
	require.True(k.t, k.Amount.Equal(sum[b]))
}

// ordinals lists the different ordinals, sorted.
func ordinals(all []chain.Transfer) []int {
	var out []int
	for _, x := range all {
		out = append(out, x.Ordinal)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func effectCases() []testCase {
	out := []testCase{
		{"D03_ForeignContractIsNoCurrency", all(tokens, effects(Foreign)), foreignContract},
		{"D01_InternalTransferIsFound", effects(Internal), internalTransfer},
		{"FN04_WhatNoClientKnowsStopsNothing", effects(Strange), strangeTransaction},
	}
	for e, name := range map[Effect]string{
		Reverted: "D01_RevertedIsNoTransfer", InnerReverted: "D01_RevertedInnerCallIsNoTransfer", ReturnsFalse: "D02_FalseReturnIsNoTransfer",
	} {
		out = append(out, testCase{name, effects(e), func(k *kit) { movesNothing(k, e) }})
	}
	slices.SortFunc(out, func(a, b testCase) int { return strings.Compare(a.name, b.name) })
	return out
}

func movesNothing(k *kit, e Effect) {
	a := k.account().Address
	codes := []string{k.Native}
	if k.Token != "" {
		codes = append(codes, k.Token)
	}
	switch e {
	case ReturnsFalse:
		codes = codes[1:]
	case InnerReverted:
		codes = codes[:1]
	}
	k.start()
	for _, code := range codes {
		tx := k.Pay(k.t, Payment{To: a, Currency: code, Amount: k.Amount, Effect: e})
		good := k.pay(a)
		k.Mine(k.t, 1)
		k.catchUp(watch(a))
		require.Empty(k.t, k.of(tx), "%s of %s moved nothing", e, code)
		k.only(good)
	}
}

func foreignContract(k *kit) {
	a := k.account().Address
	k.start()
	tx := k.Pay(k.t, Payment{To: a, Currency: k.Token, Amount: k.Amount, Effect: Foreign})
	k.Mine(k.t, 1)
	k.catchUp(watch(a))
	for _, x := range k.of(tx) { // a client may leave unknown tokens out
		require.Empty(k.t, x.Currency, "a currency is its contract, not its symbol")
		require.Equal(k.t, k.Contract, x.Contract)
	}
}

func strangeTransaction(k *kit) {
	a := k.account().Address
	k.start()
	for range 2 {
		tx := k.Pay(k.t, Payment{To: a, Currency: k.Native, Amount: k.Amount, Effect: Strange})
		beside := k.pay(a)
		k.Mine(k.t, 1)
		later := k.pay(a)
		k.Mine(k.t, 1)
		k.catchUp(watch(a))
		require.False(k.t, k.only(beside).Unproven, "what is in the same block")
		require.False(k.t, k.only(later).Unproven)
		for _, x := range k.of(tx) {
			require.True(k.t, x.Unproven, "seen, and not understood")
			require.True(k.t, k.Amount.Equal(x.Amount))
			require.Equal(k.t, a, x.To)
		}
	}
	if h, ok := k.Client.(chain.Historian); ok {
		_, err := h.History(k.ctx, a, k.trail[0].Height+1, k.trail[len(k.trail)-1].Height)
		require.NoError(k.t, err)
	}
}

func internalTransfer(k *kit) {
	a := k.account().Address
	k.start()
	tx := k.Pay(k.t, Payment{To: a, Currency: k.Native, Amount: k.Amount, Effect: Internal})
	k.Mine(k.t, 1)
	k.catchUp(watch(a))
	require.Len(k.t, k.seen, 1)
	x := k.seen[0]
	require.Equal(k.t, k.Native, x.Currency)
	require.True(k.t, k.Amount.Equal(x.Amount))
	require.Equal(k.t, a, x.To)
	require.True(k.t, x.Unproven || x.Tx == tx, "either it is proven by its transaction, or it is unproven")
}

// neverEmpty expects a scan of the trail to be an error and no answer.
func (k *kit) neverEmpty(w chain.Watch, want error) {
	k.t.Helper()
	s, err := k.Client.Scan(k.ctx, k.trail, k.few(w), 3)
	require.ErrorIs(k.t, err, want)
	require.Empty(k.t, s.Blocks)
}

// canceled is a context that has ended.
func (k *kit) canceled() context.Context {
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	return ctx
}
