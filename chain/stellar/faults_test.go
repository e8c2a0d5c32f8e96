package stellar

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/internal/nodes/stellartest"
	"github.com/cryptopay-go/cryptopay/ledger"
)

func (n *town) intent(from, to chain.Address, amount int64) chain.Intent {
	return n.Intent(from, to, amount*lumen)
}

func (n *town) sign(t testing.TB, who chaintest.Account, o chain.Order) chain.Attempt {
	t.Helper()
	return n.Sign(t, o, who)
}

// pair is a funded sender, and a recipient that is there.
func (n *town) two(t testing.TB) (chaintest.Account, chain.Address) {
	t.Helper()
	a, to := n.customer(t, "from"), n.customer(t, "to").Address
	n.fund(t, a.Address, 100)
	n.fund(t, to, 5)
	return a, to
}

func id(n uint64) *uint64 { return &n }

// TestD10_NoMemoIsEverGuessed: a payment is for the muxed account of its very id,
// however that is written, and for the bare account where that is nobody's.
func TestD10_NoMemoIsEverGuessed(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	hot := n.customer(t, "hot").Address
	n.fund(t, hot, 5)
	seven, err := n.client.Multiplex(hot, 7)
	require.NoError(t, err)
	for _, x := range []struct {
		pay  stellartest.Pay
		to   chain.Address
		memo string
	}{
		{stellartest.Pay{MemoType: "id", Memo: "7"}, seven, "7"},
		{stellartest.Pay{MuxedID: id(7)}, seven, "7"},
		{stellartest.Pay{MemoType: "text", Memo: "7"}, seven, "7"},
		{stellartest.Pay{MuxedID: id(7), MemoType: "id", Memo: "8"}, seven, "7"},
		{stellartest.Pay{MuxedID: id(8), MemoType: "id", Memo: "7"}, hot, "8"},
		{stellartest.Pay{MuxedID: id(7), Kind: "invoke_host_function"}, seven, "7"},
		{stellartest.Pay{MuxedID: id(8), Kind: "invoke_host_function"}, hot, "8"},
		{stellartest.Pay{MemoType: "text", Memo: "07"}, hot, "07"},
		{stellartest.Pay{MemoType: "text", Memo: " 7"}, hot, " 7"},
		{stellartest.Pay{MemoType: "text", Memo: "7\u0000"}, hot, "7\u0000"},
		{stellartest.Pay{MemoType: "hash", Memo: "7"}, hot, "7"},
		{stellartest.Pay{MemoType: "return", Memo: "7"}, hot, "7"},
		{stellartest.Pay{MemoType: "id", Memo: "18446744073709551615"}, hot, "18446744073709551615"},
		{stellartest.Pay{}, hot, ""},
	} {
		x.pay.To, x.pay.Stroops = string(hot), 5*lumen
		n.Send(x.pay)
		got := n.Seen(t, hot, seven)
		require.Len(t, got, 1)
		require.Equal(t, x.to, got[0].To, "%+v", x.pay)
		require.Equal(t, x.memo, got[0].Memo)
	}
}

// TestD10_PathPaymentsCountForWhatArrived, not for what was sent, and other assets
// for nothing.
func TestD10_PathPaymentsCountForWhatArrived(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	n.fund(t, to, 5)
	for _, kind := range []string{"path_payment_strict_send", "path_payment_strict_receive"} {
		n.Send(stellartest.Pay{To: string(to), Stroops: 3, Kind: kind})
		got := n.Seen(t, to)
		require.Len(t, got, 1, kind)
		require.True(t, decimal.RequireFromString("0.0000003").Equal(got[0].Amount))
		require.False(t, got[0].Unproven)
		n.Send(stellartest.Pay{To: string(to), Stroops: 3, Kind: kind, Asset: "XLM"})
		require.Empty(t, n.Seen(t, to), "another asset of the same name")
	}
	n.Send(stellartest.Pay{To: string(to), Stroops: 3, Asset: "USD"})
	n.Send(stellartest.Pay{To: string(to), Stroops: 3, Kind: "create_claimable_balance"})
	require.Empty(t, n.Seen(t, to))
}

// TestD01_LumensThatComeOtherwise: what a merge leaves is told by its effect; what a
// contract moved is unproven.
func TestD01_LumensThatComeOtherwise(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	n.fund(t, to, 5)
	n.Send(stellartest.Pay{To: string(to), Stroops: 9 * lumen, Kind: "account_merge", MemoType: "id", Memo: "4"})
	got := n.Seen(t, to)
	require.Len(t, got, 1)
	require.True(t, decimal.NewFromInt(9).Equal(got[0].Amount))
	require.Equal(t, "4", got[0].Memo)
	require.False(t, got[0].Unproven)
	n.Send(stellartest.Pay{To: string(to), Stroops: 8 * lumen, Kind: "invoke_host_function"})
	got = n.Seen(t, to)
	require.Len(t, got, 1)
	require.True(t, got[0].Unproven)
	from := n.Head(t)
	n.Send(stellartest.Pay{To: string(to), Stroops: 9 * lumen, Kind: "account_merge"})
	n.Mine(1)
	n.tampered("/effects", "account_credited", "account_other")
	_, err := n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{to}, 1)
	require.ErrorIs(t, err, chain.ErrNode, "a merge of which nobody says what it left")
}

// tampered replaces the first text in the answers to paths that end so.
func (n *town) tampered(path, from, to string) {
	n.Set(func(f *stellartest.Fault) {
		f.Tamper = func(p string, body []byte) []byte {
			if !strings.HasSuffix(p, path) {
				return body
			}
			return bytes.Replace(body, []byte(from), []byte(to), 1)
		}
	})
}

func TestD07_LedgersThatAreNotWholeAreErrors(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	n.fund(t, to, 5)
	from := n.Head(t)
	for range 3 {
		n.Send(payment(to, decimal.NewFromInt(5), ""))
	}
	n.Mine(1)
	for _, x := range [][3]string{
		{"/operations", `"transaction_successful":true`, `"transaction_successful":false`},
		{"/operations", `"id":"21474`, `"id":"31474`}, // of another ledger
		{"/operations", `"_embedded"`, `"_embedder"`},
		{"", `"operation_count":3`, `"operation_count":4`},
		{"", `"operation_count":3`, `"operation_count":2`},
		{"", `"operation_count":3`, `"operation_count":0`},
		{"", `"prev_hash":"` + from.Hash, `"prev_hash":"` + strings.Repeat("a", 64)},
		{"", `"prev_hash"`, `"previous"`},
	} {
		n.tampered(x[0], x[1], x[2])
		s, err := n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{to}, 1)
		require.ErrorIs(t, err, chain.ErrNode, "%v", x)
		require.Empty(t, s.Blocks)
	}
}

// TestD09_ALedgerOfManyPagesIsReadWhole: Horizon gives 200 operations at once.
func TestD09_ALedgerOfManyPagesIsReadWhole(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	n.fund(t, to, 5)
	for range 7 {
		var all []stellartest.Pay
		for range 100 {
			all = append(all, payment(to, decimal.NewFromInt(1), ""))
		}
		n.Send(all...)
	}
	got := n.Seen(t, to)
	require.Len(t, got, 700)
	ids := map[string]map[int]bool{}
	for _, x := range got {
		if ids[x.Tx] == nil {
			ids[x.Tx] = map[int]bool{}
		}
		ids[x.Tx][x.Ordinal] = true
	}
	require.Len(t, ids, 7)
	for _, all := range ids {
		require.Len(t, all, 100)
		require.True(t, all[-1] && all[99])
	}
}

func TestD14_AnythingElseWithHTTP200IsAnError(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.two(t)
	sent := n.sign(t, a, n.Order(t, n.intent(a.Address, to, 2)))
	from := n.Head(t)
	n.Mine(1)
	for _, body := range []string{
		``, `null`, `[]`, `{}`, `"rate limited"`, `slow down`, `{"status":429,"title":"Rate Limit Exceeded"}`, `{"status":404}x`,
		`{"_embedded":{}}`, `{"_embedded":{"records":[]}}`, `{"_embedded":{"records":[{}]}}`, `<html>`,
	} {
		n.Set(func(f *stellartest.Fault) { f.Tamper = func(string, []byte) []byte { return []byte(body) } })
		_, err := n.client.Tip(t.Context())
		require.ErrorIs(t, err, chain.ErrNode, body)
		s, err := n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{a.Address}, 1)
		require.ErrorIs(t, err, chain.ErrNode, body)
		require.Empty(t, s.Blocks)
		_, err = n.client.Balance(t.Context(), "XLM", a.Address)
		require.ErrorIs(t, err, chain.ErrNode, body)
		_, err = n.client.EstimateFee(t.Context(), n.intent(a.Address, to, 1))
		require.ErrorIs(t, err, chain.ErrNode, body)
		err = n.Broadcast(t, sent)
		require.ErrorIs(t, err, chain.ErrNode, body)
		require.NotErrorIs(t, err, chain.ErrRejected, body)
	}
}

func TestX02_ServersThatAreAskedTooOften(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	n.Set(func(f *stellartest.Fault) { f.Problem = "rate_limit_exceeded" })
	_, err := n.client.Tip(t.Context())
	clienttest.Limited(t, err, 36*time.Second)
}

// TestX02_StrangersWordsAreNoRateLimit: Horizon sends a transaction back in some problems,
// with the memo that a recipient chose.
func TestX02_StrangersWordsAreNoRateLimit(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	for _, problem := range []string{"timeout", "transaction_submission_invalid_status"} {
		n.Set(func(f *stellartest.Fault) {
			f.Problem = problem
			f.Tamper = func(_ string, body []byte) []byte {
				return append(body[:len(body)-1], `,"extras":{"envelope_xdr":"AAAAslowdown","memo":"rate limit"}}`...)
			}
		})
		_, err := n.client.Tip(t.Context())
		require.ErrorIs(t, err, chain.ErrNode, problem)
		require.NotErrorAs(t, err, new(*chain.LimitedError), problem)
	}
}

func TestD18_WrongNetworkIsRefusedByEveryCall(t *testing.T) {
	t.Parallel()
	n := openTown(t, func(o *Options) { o.Passphrase = Testnet })
	n.WrongNet(t, n.customer(t, "a").Address)
}

// TestI06_NoAddressOfTheNodeInErrors: its URL often holds a key.
func TestI06_NoAddressOfTheNodeInErrors(t *testing.T) {
	t.Parallel()
	c, err := New(Options{Registry: registry(t), URL: "http://127.0.0.1:1/canary-key", Header: http.Header{"X-Key": {"canary-header"}}})
	clienttest.Secret(t, c, err)
}

// TestD06_FailedIsIncludedAndNotExecuted: what failed cost its fee and its number.
func TestD06_FailedIsIncludedAndNotExecuted(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.two(t)
	nobody := n.customer(t, "nobody").Address
	creating := n.sign(t, a, n.Order(t, n.intent(a.Address, nobody, 2)))
	n.fund(t, nobody, 5) // somebody was faster: the account is there now
	require.NoError(t, n.Broadcast(t, creating))
	n.Mine(1)
	st := n.Status(t, creating)
	require.Equal(t, chain.Included, st.State)
	require.False(t, st.Executed)
	require.True(t, st.Final)
	require.EqualValues(t, stellartest.BaseFee, st.Cost, "what it took, not what it bid")
	paying := n.Landed(t, n.intent(a.Address, to, 2), a)
	require.True(t, n.Status(t, paying).Executed)
}

// TestW16_WhatWouldFailIsRefused before money is held for it, and again before it is
// signed.
func TestW16_WhatWouldFailIsRefused(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.two(t)
	nobody := n.customer(t, "nobody").Address
	n.Change(string(to), func(x *stellartest.Account) { x.Memo = true })
	for _, x := range []struct {
		name  string
		to    chain.Address
		memo  string
		units ledger.Amount
		good  bool
	}{
		{"not there, below the reserve", nobody, "1", 2*stellartest.BaseReserve - 1, false},
		{"not there, the reserve", nobody, "1", 2 * stellartest.BaseReserve, true},
		{"wants a memo", to, "", lumen, false},
		{"wants a memo and gets one", to, "rent", lumen, true},
	} {
		in := n.intent(a.Address, x.to, 1)
		in.Amount, in.Memo = x.units, x.memo
		_, err := n.client.Build(t.Context(), n.Order(t, in))
		told := n.client.Deliverable(t.Context(), "XLM", in.To, in.Memo, in.Amount)
		if x.good {
			require.NoError(t, err, x.name)
			require.NoError(t, told, x.name)
			continue
		}
		require.ErrorIs(t, err, chain.ErrRejected, x.name)
		var bad *chain.AddressError
		require.ErrorAs(t, told, &bad, x.name)
	}
}

func TestW16_MemosHaveOneWritingAndAddressesNone(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.two(t)
	o := n.Order(t, n.intent(a.Address, to, 2))
	for _, memo := range []string{"", "7", "07", "18446744073709551615", "18446744073709551616", "order 42", strings.Repeat("é", 14)} {
		o.Intent.Memo = memo
		u, err := n.client.Build(t.Context(), o)
		require.NoError(t, err, memo)
		require.Equal(t, memo, u.Memo)
		b, err := decode(u.Payload)
		require.NoError(t, err)
		want := map[bool]uint32{true: memoID, false: memoText}[memo == "7" || memo == "18446744073709551615"]
		if memo != "" {
			require.Equal(t, want, b.memoKind, memo)
		}
	}
	for _, memo := range []string{strings.Repeat("x", 29), strings.Repeat("é", 15), "\xff", "a\x00"} {
		o.Intent.Memo = memo
		_, err := n.client.Build(t.Context(), o)
		require.ErrorIs(t, err, chain.ErrRejected, memo)
	}
	var err error
	o.Intent.Memo = "7"
	o.Intent.To, err = n.client.Multiplex(to, 7)
	require.NoError(t, err)
	_, err = n.client.Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrRejected, "one destination has one writing")
	b := &body{source: account{1}, fee: 1, sequence: 1, until: 1, memoKind: memoText, text: "7", op: opPayment, to: account{2}, amount: 1}
	_, err = n.client.Inspect(b.encode())
	require.ErrorIs(t, err, chain.ErrRejected, "digits are an id")
}

// TestW14_TheReserveIsNotSpent, nor what offers have promised.
func TestW14_TheReserveIsNotSpent(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.two(t)
	n.Change(string(a.Address), func(x *stellartest.Account) { x.Entries, x.Selling = 3, 7*lumen })
	in := n.intent(a.Address, to, 1)
	free := ledger.Amount(100*lumen - 5*stellartest.BaseReserve - 7*lumen - 120)
	in.Amount = free + 1
	_, err := n.client.Build(t.Context(), n.Order(t, in))
	require.ErrorIs(t, err, chain.ErrShort)
	in.Amount = free
	sent := n.Landed(t, in, a)
	require.True(t, n.Status(t, sent).Executed, "all but the reserve can be sent")
}

func TestW14_AbsurdFeesAreRefused(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.two(t)
	o := n.Order(t, n.intent(a.Address, to, 2))
	n.P99(900_000) // with the margin above a tenth of a lumen
	_, err := n.client.EstimateFee(t.Context(), o.Intent)
	require.ErrorIs(t, err, chain.ErrTooDear)
	o.Attempt = 90
	_, err = n.client.Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrTooDear, "however often it was replaced")
	o.Attempt = 1
	for _, params := range []string{`{"fee":-1}`, `{"fee":0}`, `{"fee":9223372036854775807}`, `x`} {
		o.Fee.Params = []byte(params)
		_, err = n.client.Build(t.Context(), o)
		require.Error(t, err, params)
	}
}

// TestW07_NoWordOfTheNodeIsARejection: whatever it answers.
func TestW07_NoWordOfTheNodeIsARejection(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.two(t)
	sent := n.sign(t, a, n.Order(t, n.intent(a.Address, to, 2)))
	n.Set(func(f *stellartest.Fault) { f.Swallow = true })
	for _, status := range []string{"ERROR", "TRY_AGAIN_LATER", "FILTERED", "", "WHATEVER"} {
		n.tampered("/transactions_async", "PENDING", status)
		err := n.Broadcast(t, sent)
		require.ErrorIs(t, err, chain.ErrNode, status)
		require.NotErrorIs(t, err, chain.ErrRejected, status)
	}
	n.tampered("/transactions_async", "PENDING", "DUPLICATE")
	require.NoError(t, n.Broadcast(t, sent))
	n.tampered("/transactions_async", sent.Tx, strings.Repeat("0", 64))
	require.ErrorIs(t, n.Broadcast(t, sent), chain.ErrNode, "it took another")
}

// TestW07_AnAttemptToldWrongHoldsUpNoOther: it is Unknown, which is no failure.
func TestW07_AnAttemptToldWrongHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.two(t)
	bad := n.Landed(t, n.intent(a.Address, to, 2), a)
	at := n.Head(t).Height
	good := n.Landed(t, n.intent(a.Address, to, 3), a)
	tx := "/transactions/" + bad.Tx
	n.ToldWrong(t, bad, good, []clienttest.Spoilt{
		clienttest.As("costs more than it bid", func() { n.tampered(tx, `"fee_charged":"`, `"fee_charged":"999`) }),
		clienttest.As("costs less than none", func() { n.tampered(tx, `"fee_charged":"`, `"fee_charged":"-`) }),
		clienttest.As("another", func() { n.tampered(tx, bad.Tx, good.Tx) }),
		clienttest.As("another ledger", func() { n.tampered(fmt.Sprint("/ledgers/", at), fmt.Sprint(`"sequence":`, at), `"sequence":7`) }),
		clienttest.As("no ledger for it", func() { n.Set(func(f *stellartest.Fault) { f.Tamper, f.Earliest = nil, at+1 }) }),
	}, func() { n.Set(func(f *stellartest.Fault) { f.Fail = true }) })
}

// TestW08_NoSilenceIsAProofOfDeath: neither the end of a transaction's time nor an
// index that forgets, only another one in its place.
func TestW08_NoSilenceIsAProofOfDeath(t *testing.T) {
	t.Parallel()
	n := openTown(t, func(o *Options) { o.Expiry = 30 * time.Second })
	a, to := n.two(t)
	o := n.Order(t, n.intent(a.Address, to, 2))
	first := n.sign(t, a, o)
	n.Mine(10) // past its time
	require.Equal(t, chain.Unknown, n.Status(t, first).State)
	require.NotErrorIs(t, n.Broadcast(t, first), chain.ErrRejected)
	o.Attempt = 2
	second := n.sign(t, a, o)
	require.NoError(t, n.Broadcast(t, second))
	n.Mine(1)
	n.Set(func(f *stellartest.Fault) { f.Forget = second.Tx })
	require.Equal(t, chain.Unknown, n.Status(t, first).State, "its number is taken, by what nobody shows")
	n.Set(func(f *stellartest.Fault) { f.Forget = "" })
	dead := n.Status(t, first)
	require.Equal(t, chain.Conflicted, dead.State)
	require.True(t, dead.Final)
	require.Equal(t, second.Tx, dead.By)
}

// TestCancel_UsesTheNumberUp and pays nobody.
func TestCancel_UsesTheNumberUp(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.two(t)
	o := n.Order(t, n.intent(a.Address, to, 2))
	paying := n.sign(t, a, o)
	o.Intent.Purpose, o.Intent.To, o.Intent.Amount, o.Attempt = chain.ForCancel, a.Address, 0, 2
	u, err := n.client.Build(t.Context(), o)
	require.NoError(t, err)
	require.Empty(t, u.Outputs)
	cancel := n.sign(t, a, o)
	require.NoError(t, n.Broadcast(t, cancel))
	n.Mine(1)
	require.True(t, n.Status(t, cancel).Executed)
	require.Equal(t, cancel.Tx, n.Status(t, paying).By)
	b := &body{source: account{1}, fee: 1, sequence: 1, until: 1, op: opBump, amount: 1 << 60}
	_, err = n.client.Inspect(b.encode())
	require.ErrorIs(t, err, chain.ErrRejected, "a number far ahead would lock the account")
}

// TestD17_HistoryIsByAddress: of a muxed account what came with its id.
func TestD17_HistoryIsByAddress(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	hot := n.customer(t, "hot").Address
	n.fund(t, hot, 5)
	from := n.Head(t).Height + 1
	for i := range uint64(8) {
		n.Send(stellartest.Pay{To: string(hot), Stroops: 5 * lumen, MuxedID: id(i % 2)})
		n.Mine(1)
	}
	one, err := n.client.Multiplex(hot, 1)
	require.NoError(t, err)
	got, err := n.client.History(t.Context(), one, from, from+7)
	require.NoError(t, err)
	require.Len(t, got, 4)
	n.Set(func(f *stellartest.Fault) { f.Earliest = from + 3 })
	_, err = n.client.History(t.Context(), one, from, from+7)
	require.ErrorIs(t, err, chain.ErrNode, "a list of what it has is no list of what there was")
	key, ok := address.StellarKey(hot)
	require.True(t, ok)
	require.Equal(t, hot, address.StellarAccount(key))
}

// TestW04_AFeeBumpOfAStrangerChangesNothing: anybody can wrap a transaction of ours
// in one that pays its fee. It is then listed under another hash, and it is ours.
func TestW04_AFeeBumpOfAStrangerChangesNothing(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from, to := n.two(t)
	a := n.sign(t, from, n.Order(t, n.intent(from.Address, to, 3)))
	require.NoError(t, n.Broadcast(t, a))
	outer := n.Bump(a.Tx, 5*lumen) // more than we would ever pay
	before := n.Of(string(from.Address)).Stroops
	n.Mine(1)
	require.Equal(t, before-3*lumen, n.Of(string(from.Address)).Stroops)

	s := n.Status(t, a)
	require.Equal(t, chain.Included, s.State)
	require.True(t, s.Executed && s.Final)
	require.Zero(t, s.Cost, "the stranger paid")

	// A node behind a balancer that does not know the transaction, or not by the hash
	// within, must not make another out of it that took its number.
	n.Set(func(f *stellartest.Fault) { f.Forget = a.Tx })
	s = n.Status(t, a)
	require.NotEqual(t, chain.Conflicted, s.State, "outer hash %s", outer)
	require.Equal(t, chain.Included, s.State)
	require.Zero(t, s.Cost)
	n.Set(func(f *stellartest.Fault) { f.Forget = "" })

	// What a replacement took, it took by its own name.
	o := n.Order(t, n.intent(from.Address, to, 3))
	first := n.sign(t, from, o)
	o.Attempt = 2
	second := n.sign(t, from, o)
	require.NoError(t, n.Broadcast(t, second))
	n.Bump(second.Tx, 300)
	n.Mine(1)
	require.Equal(t, second.Tx, n.Status(t, first).By)
}

// TestD09_WhatCameInAFeeBumpIsSeenOnce, under the hash that ledgers list.
func TestD09_WhatCameInAFeeBumpIsSeenOnce(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	hot := n.customer(t, "hot").Address
	n.fund(t, hot, 5)
	seven, err := n.client.Multiplex(hot, 7)
	require.NoError(t, err)
	outer := n.Bump(n.Send(stellartest.Pay{To: string(hot), Stroops: 3 * lumen, MemoType: "id", Memo: "7"}), 200)
	at := n.Head(t).Height + 1
	got := n.Seen(t, hot, seven)
	require.Len(t, got, 1)
	require.Equal(t, outer, got[0].Tx)
	require.Equal(t, seven, got[0].To)
	again, err := n.client.History(t.Context(), seven, at, at)
	require.NoError(t, err)
	require.Equal(t, got, again)
}
