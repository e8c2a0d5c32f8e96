package xrp

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/internal/nodes/xrptest"
	"github.com/cryptopay-go/cryptopay/ledger"
)

func (n *town) intent(from, to chain.Address, amount int64) chain.Intent {
	return n.Intent(from, to, amount*xrp)
}

func (n *town) sign(t testing.TB, who chaintest.Account, o chain.Order) chain.Attempt {
	t.Helper()
	return n.Sign(t, o, who)
}

func tag(n uint32) *uint32 { return &n }

func TestD10_PartialPaymentCountsForWhatItBrought(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	n.Send(xrptest.Pay{To: string(to), Drops: 1_000_000 * xrp, Delivers: 3_000_001})
	got := n.Seen(t, to)
	require.Len(t, got, 1)
	require.True(t, decimal.RequireFromString("3.000001").Equal(got[0].Amount), "%s", got[0].Amount)
	require.Equal(t, "XRP", got[0].Currency)
}

func TestD10_WhatDoesNotSayWhatItDeliveredIsUnproven(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	n.Send(xrptest.Pay{To: string(to), Drops: 5 * xrp, Delivers: 3 * xrp, Unsaid: true})
	got := n.Seen(t, to)
	require.Len(t, got, 1)
	require.True(t, got[0].Unproven)
	require.True(t, decimal.NewFromInt(3).Equal(got[0].Amount), "what arrived, by the balances: %s", got[0].Amount)
}

// TestFN04_AStrangersTransactionStopsNoLedger: whatever type a transaction is of, and
// however its server tells what it delivered, the ledger is read, what arrived is
// reported, and a payment after it is proven.
func TestFN04_AStrangersTransactionStopsNoLedger(t *testing.T) {
	t.Parallel()
	for _, clio := range []bool{false, true} {
		for _, kind := range []string{"AccountDelete", "EscrowFinish", "PaymentChannelClaim", "CheckCash", "VaultWithdraw", "TypeOfTomorrow"} {
			t.Run(fmt.Sprint(kind, " clio=", clio), func(t *testing.T) {
				t.Parallel()
				n := openTown(t)
				n.Set(func(f *xrptest.Fault) { f.Clio = clio })
				hot := n.customer(t, "hot").Address
				n.fund(t, hot, 5)
				seven, err := n.client.Multiplex(hot, 7)
				require.NoError(t, err)
				from := n.Head(t)
				n.Send(xrptest.Pay{To: string(hot), Drops: 9*xrp + 1, Kind: kind, Tag: tag(7)})
				n.Send(xrptest.Pay{To: string(hot), Drops: 2 * xrp, Tag: tag(7)})
				n.Mine(1)
				s, err := n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{hot, seven}, 9)
				require.NoError(t, err)
				var got []chain.Transfer
				for _, b := range s.Blocks {
					got = append(got, b.Transfers...)
				}
				require.Len(t, got, 2)
				strange, paid := got[0], got[1]
				require.True(t, decimal.RequireFromString("9.000001").Equal(strange.Amount), "%s", strange.Amount)
				if kind == "AccountDelete" { // its metadata says what it delivered, and its tag whom it is for
					require.False(t, strange.Unproven)
					require.Equal(t, seven, strange.To)
				} else {
					require.True(t, strange.Unproven)
					require.Equal(t, hot, strange.To)
				}
				require.False(t, paid.Unproven)
				require.Equal(t, seven, paid.To)

				again, err := n.client.History(t.Context(), strange.To, from.Height+1, n.Head(t).Height)
				require.NoError(t, err)
				at := slices.IndexFunc(again, func(x chain.Transfer) bool { return x.Tx == strange.Tx })
				require.GreaterOrEqual(t, at, 0, "and found again")
				require.Equal(t, strange.Ordinal, again[at].Ordinal)
				require.True(t, strange.Amount.Equal(again[at].Amount))
			})
		}
	}
}

// TestFN04_TwoAccountsGainByOneTransaction: each is a transfer of its own, and has the same
// identity whichever accounts are watched.
func TestFN04_TwoAccountsGainByOneTransaction(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	one, two := n.customer(t, "one").Address, n.customer(t, "two").Address
	from := n.Head(t)
	n.Send(xrptest.Pay{To: string(one), Also: []string{string(two), xrptest.Address("somebody")}, Drops: 9 * xrp, Kind: "PaymentChannelClaim"})
	n.Mine(1)
	ids := map[string]map[chain.Address]int{}
	for name, w := range map[string]follow.Only{"one": {one}, "two": {two}, "both": {one, two}} {
		s, err := n.client.Scan(t.Context(), []chain.Block{from}, w, 1)
		require.NoError(t, err)
		require.Len(t, s.Blocks[0].Transfers, len(w))
		ids[name] = map[chain.Address]int{}
		for _, x := range s.Blocks[0].Transfers {
			require.True(t, decimal.NewFromInt(9).Equal(x.Amount))
			ids[name][x.To] = x.Ordinal
		}
	}
	require.NotEqual(t, ids["both"][one], ids["both"][two])
	require.Equal(t, ids["both"][one], ids["one"][one])
	require.Equal(t, ids["both"][two], ids["two"][two])
}

func TestD10_IssuedCurrenciesAreNoXRP(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	n.fund(t, to, 5)
	n.Send(xrptest.Pay{To: string(to), Drops: 5 * xrp, Issued: "XRP"})
	n.Send(xrptest.Pay{To: string(to), Drops: 7, Issued: "USD"})
	require.Empty(t, n.Seen(t, to))
}

// TestD10_NoTagIsEverGuessed: a payment is for the address of its very tag, and for
// the bare account where that is nobody's.
func TestD10_NoTagIsEverGuessed(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	hot := n.customer(t, "hot").Address
	seven, err := n.client.Multiplex(hot, 7)
	require.NoError(t, err)
	zero, err := n.client.Multiplex(hot, 0)
	require.NoError(t, err)
	for _, x := range []struct {
		tag  *uint32
		to   chain.Address
		memo string
	}{{tag(7), seven, "7"}, {tag(8), hot, "8"}, {nil, hot, ""}, {tag(0), zero, "0"}, {tag(1<<32 - 1), hot, "4294967295"}} {
		n.Send(xrptest.Pay{To: string(hot), Drops: 5 * xrp, Tag: x.tag})
		got := n.Seen(t, hot, seven, zero)
		require.Len(t, got, 1)
		require.Equal(t, x.to, got[0].To)
		require.Equal(t, x.memo, got[0].Memo)
	}
	n.Send(xrptest.Pay{To: string(hot), Drops: 5 * xrp, Tag: tag(9)})
	require.Empty(t, n.Seen(t, n.customer(t, "other").Address, seven), "of an account that is nobody's of ours")
}

// TestD01_XRPThatComesOtherwiseIsUnproven: escrows, checks and channels carry no
// tag of the recipient's.
func TestD01_XRPThatComesOtherwiseIsUnproven(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	hot := n.customer(t, "hot").Address
	n.fund(t, hot, 5)
	for _, kind := range []string{"EscrowFinish", "PaymentChannelClaim"} {
		n.Send(xrptest.Pay{To: string(hot), Drops: 9 * xrp, Kind: kind})
		got := n.Seen(t, hot)
		require.Len(t, got, 1, kind)
		require.True(t, got[0].Unproven)
		require.True(t, decimal.NewFromInt(9).Equal(got[0].Amount), "%s", got[0].Amount)
	}
	seven, err := n.client.Multiplex(hot, 7)
	require.NoError(t, err)
	n.Send(xrptest.Pay{To: string(hot), Drops: 9 * xrp, Kind: "AccountDelete", Tag: tag(7)})
	got := n.Seen(t, hot, seven)
	require.Len(t, got, 1)
	require.Equal(t, seven, got[0].To)
	require.False(t, got[0].Unproven, "a deleted account's rest says whom it is for")
}

func TestD13_OnlyTesSUCCESSIsExecuted(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	for _, result := range []string{"tecPATH_PARTIAL", "tecNO_PERMISSION", "tesWHATEVER", "SUCCESS", ""} {
		if result == "" {
			continue
		}
		n.Send(xrptest.Pay{To: string(to), Drops: 5 * xrp, Fails: result})
		require.Empty(t, n.Seen(t, to), result)
	}
}

// TestD12_AGapOfTheNodeIsAnError: a server that was away lacks ledgers, and says
// so by an error inside HTTP 200.
func TestD12_AGapOfTheNodeIsAnError(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	from := n.Head(t)
	n.fund(t, to, 5)
	n.Mine(3)
	n.Set(func(f *xrptest.Fault) { f.Earliest = from.Height + 3 })
	s, err := n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{to}, 9)
	require.ErrorIs(t, err, chain.ErrNode)
	require.Empty(t, s.Blocks)
	_, err = n.client.History(t.Context(), to, from.Height, from.Height+4)
	require.ErrorIs(t, err, chain.ErrNode, "a list of what it has is no list of what there was")
	n.Set(func(f *xrptest.Fault) { f.Earliest = 0 })
	s, err = n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{to}, 9)
	require.NoError(t, err)
	require.Len(t, s.Blocks[0].Transfers, 1)
}

// tampered replaces texts in the answers to one method.
func (n *town) tampered(method, from, to string) {
	n.Set(func(f *xrptest.Fault) {
		f.Tamper = func(m string, body []byte) []byte {
			if m != method {
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
	from := n.Head(t)
	for range 3 {
		n.pay(t, to, decimal.NewFromInt(5), "")
	}
	n.Mine(1)
	for _, x := range [][2]string{
		{`"validated":true`, `"validated":false`},
		{`"closed":true`, `"closed":false`},
		{`"TransactionIndex":1`, `"TransactionIndex":3`}, // one is missing
		{`"TransactionIndex":1`, `"TransactionIndex":0`},
		{`"metaData":`, `"nothing":`},
		{`"ledger_index":"`, `"ledger_index":"1`},
		{`"parent_hash":"`, `"parent_hash":"00`},
		{`"parent_hash":"` + strings.ToUpper(from.Hash), `"parent_hash":"` + strings.Repeat("A", 64)},
	} {
		n.tampered("ledger", x[0], x[1])
		s, err := n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{to}, 1)
		require.ErrorIs(t, err, chain.ErrNode, "%v", x)
		require.Empty(t, s.Blocks)
	}
	n.Set(func(f *xrptest.Fault) { f.Tamper = nil })
	s, err := n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{to}, 1)
	require.NoError(t, err)
	require.Len(t, s.Blocks[0].Transfers, 3)
}

func TestD14_AnythingElseWithHTTP200IsAnError(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.customer(t, "a")
	n.fund(t, a.Address, 50)
	sent := n.sign(t, a, n.Order(t, n.intent(a.Address, chain.Address(n.Payer), 2)))
	from := n.Head(t)
	n.Mine(1)
	for _, body := range []string{
		``, `null`, `[]`, `{}`, `"rate limited"`, `slow down`, `{"result":null}`, `{"result":{}}`, `{"result":{"status":"success"}}`,
		`{"result":{"status":"error"}}`, `{"result":{"error":"slowDown","error_message":"You are placing too much load on the server."}}`,
		`{"result":{"status":"success","error":"x"}}`, `{"error":"forbidden"}`, `{"result":{"status":"success","ledger":{}}}`,
	} {
		n.Set(func(f *xrptest.Fault) { f.Tamper = func(string, []byte) []byte { return []byte(body) } })
		_, err := n.client.Tip(t.Context())
		require.ErrorIs(t, err, chain.ErrNode, body)
		s, err := n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{a.Address}, 1)
		require.ErrorIs(t, err, chain.ErrNode, body)
		require.Empty(t, s.Blocks)
		_, err = n.client.Balance(t.Context(), "XRP", a.Address)
		require.ErrorIs(t, err, chain.ErrNode, body)
		_, err = n.client.EstimateFee(t.Context(), n.intent(a.Address, a.Address, 1))
		require.ErrorIs(t, err, chain.ErrNode, body)
		err = n.Broadcast(t, sent)
		require.ErrorIs(t, err, chain.ErrNode, body)
		require.NotErrorIs(t, err, chain.ErrRejected, body)
	}
}

// TestX02_StrangersWordsAreNoRateLimit: a server repeats what it was asked, and only the
// code of its error says that it was asked too often.
func TestX02_StrangersWordsAreNoRateLimit(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	n.Set(func(f *xrptest.Fault) {
		f.Tamper = func(string, []byte) []byte {
			return []byte(`{"result":{"error":"actMalformed","error_message":"rTooBusy: rate limit","request":{"account":"rTooBusy"},"status":"error"}}`)
		}
	})
	_, err := n.client.Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrNode)
	require.NotErrorAs(t, err, new(*chain.LimitedError))
}

// TestX02_ServersThatAreAskedTooOften say so before a question is looked at, or in the
// answer to it. A server that has lost the network is not asked too often.
func TestX02_ServersThatAreAskedTooOften(t *testing.T) {
	t.Parallel()
	for _, clio := range []bool{false, true} {
		n := openTown(t)
		a, to := n.pair(t)
		sent := n.sign(t, a, n.Order(t, n.intent(a.Address, to, 2)))
		for _, change := range []func(*xrptest.Fault){
			func(f *xrptest.Fault) { *f = xrptest.Fault{Clio: clio, Busy: true} },
			func(f *xrptest.Fault) { *f = xrptest.Fault{Clio: clio, TooBusy: true} },
		} {
			n.Set(change)
			_, err := n.client.Tip(t.Context())
			clienttest.Limited(t, err, 0)
			clienttest.Limited(t, n.Broadcast(t, sent), 0)
		}
		n.Set(func(f *xrptest.Fault) { *f = xrptest.Fault{Clio: clio, Stale: true} })
		err := n.Broadcast(t, sent)
		require.ErrorIs(t, err, chain.ErrNode)
		require.NotErrorAs(t, err, new(*chain.LimitedError))
	}
}

func TestD18_WrongNetworkIsRefusedByEveryCall(t *testing.T) {
	t.Parallel()
	n := openTown(t, func(o *Options) { o.NetworkID = Devnet })
	n.WrongNet(t, n.customer(t, "a").Address)
}

// TestI06_NoAddressOfTheNodeInErrors: its URL often holds a key.
func TestI06_NoAddressOfTheNodeInErrors(t *testing.T) {
	t.Parallel()
	c, err := New(Options{Registry: registry(t), URL: "http://127.0.0.1:1/canary-key", Header: http.Header{"X-Key": {"canary-header"}}})
	clienttest.Secret(t, c, err)
}

// pair is a funded sender, and a recipient that is there.
func (n *town) pair(t testing.TB) (chaintest.Account, chain.Address) {
	t.Helper()
	a, to := n.customer(t, "from"), n.customer(t, "to").Address
	n.fund(t, a.Address, 100)
	n.fund(t, to, 5)
	return a, to
}

// TestD06_TecIsIncludedAndNotExecuted: what failed cost its fee and its sequence.
func TestD06_TecIsIncludedAndNotExecuted(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.pair(t)
	sent := n.sign(t, a, n.Order(t, n.intent(a.Address, to, 2)))
	n.Change(string(to), func(x *xrptest.Account) { x.Flags = xrptest.RequireTag })
	require.NoError(t, n.Broadcast(t, sent))
	n.Mine(1)
	st := n.Status(t, sent)
	require.Equal(t, chain.Included, st.State)
	require.False(t, st.Executed)
	require.True(t, st.Final)
	require.EqualValues(t, 12, st.Cost)
	n.tampered("tx", "tecDST_TAG_NEEDED", "xyzNEW_RESULT")
	require.Equal(t, chain.Unknown, n.Status(t, sent).State, "a result that is not known is neither")
}

// TestW16_WhatWouldBounceIsRefused before money is held for it, and again before
// it is signed.
func TestW16_WhatWouldBounceIsRefused(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.pair(t)
	nobody := n.customer(t, "nobody").Address
	for _, x := range []struct {
		name   string
		to     chain.Address
		change func(*xrptest.Account)
		memo   string
		drops  ledger.Amount
		good   bool
	}{
		{"not there, below the reserve", nobody, nil, "", xrptest.Reserve - 1, false},
		{"not there, the reserve", nobody, nil, "", xrptest.Reserve, true},
		{"wants a tag", to, func(x *xrptest.Account) { x.Flags = xrptest.RequireTag }, "", 2 * xrp, false},
		{"wants a tag and gets 0", to, func(x *xrptest.Account) { x.Flags = xrptest.RequireTag }, "0", 2 * xrp, true},
		{"wants no XRP", to, func(x *xrptest.Account) { x.Flags = xrptest.DisallowXRP }, "1", 2 * xrp, false},
		{"takes from nobody", to, func(x *xrptest.Account) { x.Flags = xrptest.DepositAuth }, "1", 2 * xrp, false},
	} {
		if x.change != nil {
			n.Change(string(x.to), x.change)
		}
		in := n.intent(a.Address, x.to, 1)
		in.Amount, in.Memo = x.drops, x.memo
		o := n.Order(t, in)
		_, err := n.client.Build(t.Context(), o)
		told := n.client.Deliverable(t.Context(), "XRP", in.To, in.Memo, in.Amount)
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

func TestW16_MemosAreTagsAndAddressesHaveNone(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.pair(t)
	o := n.Order(t, n.intent(a.Address, to, 2))
	for _, memo := range []string{"x", "007", "-1", "4294967296", " 7", "1e3"} {
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
	o.Intent.To, o.Intent.Memo = a.Address, ""
	_, err = n.client.Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrRejected, "to itself")
}

// TestW14_TheReserveIsNotSpent, nor what objects of the account bind.
func TestW14_TheReserveIsNotSpent(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.pair(t)
	n.Change(string(a.Address), func(x *xrptest.Account) { x.Owned = 3 })
	in := n.intent(a.Address, to, 1)
	free := ledger.Amount(100*xrp - xrptest.Reserve - 3*xrptest.OwnerReserve - 12)
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
	a, to := n.pair(t)
	o := n.Order(t, n.intent(a.Address, to, 2))
	n.OpenFee(90_000) // with the margin above a tenth of an XRP
	_, err := n.client.EstimateFee(t.Context(), o.Intent)
	require.ErrorIs(t, err, chain.ErrTooDear)
	o.Attempt = 60
	_, err = n.client.Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrTooDear, "however often it was replaced")
	o.Attempt = 1
	for _, params := range []string{`{"fee":-1}`, `{"fee":0}`, `{"fee":9223372036854775807}`, `x`} {
		o.Fee.Params = []byte(params)
		_, err = n.client.Build(t.Context(), o)
		require.Error(t, err, params)
	}
}

// TestW07_NoWordOfTheNodeIsARejection: whatever its preliminary result is.
func TestW07_NoWordOfTheNodeIsARejection(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.pair(t)
	sent := n.sign(t, a, n.Order(t, n.intent(a.Address, to, 2)))
	n.Set(func(f *xrptest.Fault) { f.Swallow = true })
	for _, result := range []string{"tefPAST_SEQ", "tefMAX_LEDGER", "temMALFORMED", "temBAD_SIGNATURE", "telINSUF_FEE_P", "terPRE_SEQ", "terINSUF_FEE_B", "tecNO_DST", "WHATEVER", ""} {
		n.Set(func(f *xrptest.Fault) {
			f.Tamper = func(m string, body []byte) []byte {
				if m != "submit" {
					return body
				}
				body = bytes.Replace(body, []byte("tesSUCCESS"), []byte(result), 1)
				body = bytes.Replace(body, []byte(`"applied":true`), []byte(`"applied":false`), 1)
				return bytes.Replace(body, []byte(`"broadcast":true`), []byte(`"broadcast":false`), 1)
			}
		})
		err := n.Broadcast(t, sent)
		require.ErrorIs(t, err, chain.ErrNode, result)
		require.NotErrorIs(t, err, chain.ErrRejected, result)
	}
}

// TestW07_AnAttemptToldWrongHoldsUpNoOther: it is Unknown, which is no failure.
func TestW07_AnAttemptToldWrongHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.pair(t)
	bad := n.Landed(t, n.intent(a.Address, to, 2), a)
	at, id := n.Head(t), strings.ToUpper(bad.Tx)
	good := n.Landed(t, n.intent(a.Address, to, 3), a)
	n.ToldWrong(t, bad, good, []clienttest.Spoilt{
		clienttest.As("delivers less", func() { n.tampered("tx", `"delivered_amount":"2000000"`, `"delivered_amount":"1999999"`) }),
		clienttest.As("another", func() { n.tampered("tx", id, strings.Repeat("0", 64)) }),
		clienttest.As("no transaction", func() { n.tampered("tx", id, "x") }),
		clienttest.As("not in its ledger", func() { n.tampered("ledger", id, strings.Repeat("0", 64)) }),
		clienttest.As("no ledger for it", func() { n.Set(func(f *xrptest.Fault) { f.Tamper, f.Earliest = nil, at.Height+1 }) }),
	}, func() { n.Set(func(f *xrptest.Fault) { f.Fail = true }) })
}

// TestW08_NoSilenceIsAProofOfDeath: neither the end of a transaction's time nor an
// index that forgets, only a validated one in its place.
func TestW08_NoSilenceIsAProofOfDeath(t *testing.T) {
	t.Parallel()
	n := openTown(t, func(o *Options) { o.Window = 3 })
	a, to := n.pair(t)
	o := n.Order(t, n.intent(a.Address, to, 2))
	first := n.sign(t, a, o)
	n.Mine(10) // past its last ledger by far
	require.Equal(t, chain.Unknown, n.Status(t, first).State)
	err := n.Broadcast(t, first)
	require.NotErrorIs(t, err, chain.ErrRejected)
	o.Attempt = 2
	second := n.sign(t, a, o)
	require.NoError(t, n.Broadcast(t, second))
	n.Mine(1)
	for range 4 { // so that the list of the account's has several pages
		n.fund(t, a.Address, 1)
	}
	n.Set(func(f *xrptest.Fault) { f.Forget = second.Tx })
	require.Equal(t, chain.Unknown, n.Status(t, first).State, "its sequence is taken, by what nobody shows")
	n.Set(func(f *xrptest.Fault) { f.Forget = "" })
	dead := n.Status(t, first)
	require.Equal(t, chain.Conflicted, dead.State)
	require.True(t, dead.Final)
	require.Equal(t, second.Tx, dead.By)
	n.tampered("ledger", strings.ToUpper(second.Tx), strings.Repeat("0", 64))
	require.Equal(t, chain.Unknown, n.Status(t, first).State, "its ledger must have it too")
	require.Equal(t, chain.Unknown, n.Status(t, second).State)
}

// TestW01_ThereAlreadyIsSuccess: wherever a transaction is by then, and whichever server is
// asked: Clio itself knows what is validated alone.
func TestW01_ThereAlreadyIsSuccess(t *testing.T) {
	t.Parallel()
	for _, fault := range []xrptest.Fault{{}, {Clio: true}, {Already: true}, {Clio: true, Already: true}} {
		n := openTown(t)
		a, to := n.pair(t)
		n.Set(func(f *xrptest.Fault) { *f = fault })
		queued := n.sign(t, a, n.Order(t, n.intent(a.Address, to, 2)))
		n.OpenFee(100 * xrptest.BaseFee)
		require.NoError(t, n.Broadcast(t, queued))
		require.NoError(t, n.Broadcast(t, queued), "in the queue")
		require.Equal(t, chain.Pending, n.Status(t, queued).State)
		n.OpenFee(xrptest.BaseFee)
		n.Mine(1)
		open := n.sign(t, a, n.Order(t, n.intent(a.Address, to, 2)))
		require.NoError(t, n.Broadcast(t, open))
		require.NoError(t, n.Broadcast(t, open), "in the open ledger")
		require.Equal(t, chain.Pending, n.Status(t, open).State)
		n.Mine(1)
		require.NoError(t, n.Broadcast(t, queued), "validated")
		require.NoError(t, n.Broadcast(t, open), "validated")
		require.Equal(t, chain.Included, n.Status(t, open).State)
	}
}

// TestW03_WhatTheOpenLedgerHasIsNotReplaced, whatever a replacement pays: the server says
// that its place is taken, and remembers it all the same. That is no sign that it waits.
func TestW03_WhatTheOpenLedgerHasIsNotReplaced(t *testing.T) {
	t.Parallel()
	for _, clio := range []bool{false, true} {
		n := openTown(t)
		a, to := n.pair(t)
		n.Set(func(f *xrptest.Fault) { f.Clio, f.Hold = clio, true })
		o := n.Order(t, n.intent(a.Address, to, 2))
		first := n.sign(t, a, o)
		o.Attempt = 2
		second := n.sign(t, a, o)
		require.NoError(t, n.Broadcast(t, first))
		err := n.Broadcast(t, second)
		require.ErrorIs(t, err, chain.ErrOccupied)
		require.ErrorIs(t, err, chain.ErrNode)
		require.NotErrorIs(t, err, chain.ErrRejected)
		require.ErrorContains(t, err, "tefPAST_SEQ")
		require.Equal(t, chain.Pending, n.Status(t, first).State)
		require.Equal(t, chain.Unknown, n.Status(t, second).State)

		n.Set(func(f *xrptest.Fault) { f.Cut = clio })
		require.NotEqual(t, chain.Conflicted, n.Status(t, second).State, "where Clio reaches no rippled, it says nothing of both")
		n.Set(func(f *xrptest.Fault) { f.Cut = false })

		n.Restart() // it has forgotten the first
		require.NoError(t, n.Broadcast(t, second))
		require.Equal(t, chain.Pending, n.Status(t, second).State)
		n.Set(func(f *xrptest.Fault) { f.Hold = false })
		n.Mine(1)
		require.Equal(t, chain.Included, n.Status(t, second).State)
		require.Equal(t, second.Tx, n.Status(t, first).By)
	}
}

// TestW03_WhatTheQueueHasIsReplacedByAQuarterMore, and keeps its place against less.
func TestW03_WhatTheQueueHasIsReplacedByAQuarterMore(t *testing.T) {
	t.Parallel()
	for _, clio := range []bool{false, true} {
		n := openTown(t)
		a, to := n.pair(t)
		n.Set(func(f *xrptest.Fault) { f.Clio = clio })
		o := n.Order(t, n.intent(a.Address, to, 2))
		first := n.sign(t, a, o)
		o.Attempt = 2
		second := n.sign(t, a, o)
		n.OpenFee(100 * xrptest.BaseFee)
		require.NoError(t, n.Broadcast(t, second))
		require.ErrorIs(t, n.Broadcast(t, first), chain.ErrOccupied)
		require.Equal(t, chain.Unknown, n.Status(t, first).State)
		require.Equal(t, chain.Pending, n.Status(t, second).State)
	}
}

// TestW04_NoSecondFormOfASignature: the other s of the same signature would be
// another hash.
func TestW04_NoSecondFormOfASignature(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.pair(t)
	u, err := n.client.Build(t.Context(), n.Order(t, n.intent(a.Address, to, 2)))
	require.NoError(t, err)
	sig, err := a.Sign(u.Digests[0].Hash)
	require.NoError(t, err)
	high := highS(sig)
	_, err = n.client.Assemble(u, []chain.Signature{high})
	require.Error(t, err)
	_, err = n.client.Assemble(u, []chain.Signature{sig})
	require.NoError(t, err)
}

// TestCancel_UsesTheSequenceUp and pays nobody.
func TestCancel_UsesTheSequenceUp(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.pair(t)
	o := n.Order(t, n.intent(a.Address, to, 2))
	paying := n.sign(t, a, o)
	o.Intent.Purpose, o.Intent.To, o.Intent.Amount, o.Attempt = chain.ForCancel, a.Address, 0, 2
	u, err := n.client.Build(t.Context(), o)
	require.NoError(t, err)
	require.Empty(t, u.Outputs)
	cancel := n.sign(t, a, o)
	n.OpenFee(100 * xrptest.BaseFee) // so that it waits in the queue: what the open ledger has is not replaced
	require.NoError(t, n.Broadcast(t, paying))
	require.NoError(t, n.Broadcast(t, cancel))
	n.OpenFee(xrptest.BaseFee)
	n.Mine(1)
	require.True(t, n.Status(t, cancel).Executed)
	require.Equal(t, cancel.Tx, n.Status(t, paying).By)
	b, err := hex.DecodeString(cancel.Tx)
	require.NoError(t, err)
	require.Len(t, b, 32)
}

// TestK01_OnlyTheAccountsOwnKey: a payload that names another key is refused, and
// so is a PublicKey that gives one.
func TestK01_OnlyTheAccountsOwnKey(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.pair(t)
	other := n.customer(t, "other")
	o := n.Order(t, n.intent(a.Address, to, 2))
	u, err := n.client.Build(t.Context(), o)
	require.NoError(t, err)
	forged := bytes.Replace(u.Payload, a.Key, other.Key, 1)
	_, err = n.client.Inspect(forged)
	require.ErrorIs(t, err, chain.ErrRejected)
	n.keys[a.Address] = other.Key
	_, err = n.client.Build(t.Context(), o)
	require.ErrorContains(t, err, "another account")
}

// highS is the same signature with the other s.
func highS(sig chain.Signature) chain.Signature {
	var s secp256k1.ModNScalar
	s.SetByteSlice(sig[32:64])
	s.Negate()
	b := s.Bytes()
	out := append(chain.Signature{}, sig...)
	copy(out[32:64], b[:])
	out[64] ^= 1
	return out
}

// TestD17_HistoryIsByAddress: of an X-address what came with its tag, of the bare
// account what came with none of the others'.
func TestD17_HistoryIsByAddress(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	hot := n.customer(t, "hot").Address
	from := n.Head(t).Height + 1
	for i := range uint32(8) {
		n.Send(xrptest.Pay{To: string(hot), Drops: 5 * xrp, Tag: tag(i % 2)})
		n.Mine(1)
	}
	one, err := n.client.Multiplex(hot, 1)
	require.NoError(t, err)
	got, err := n.client.History(t.Context(), one, from, from+7)
	require.NoError(t, err)
	require.Len(t, got, 4)
	got, err = n.client.History(t.Context(), hot, from, from+7)
	require.NoError(t, err)
	require.Len(t, got, 8, "whose tags these are, the account alone does not tell")
}
