package cryptopay_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// till is a host with what tests of refunds ask of it.
type till struct {
	*cryptopaytest.Host
	t *testing.T
}

// onTills runs a test of refunds on memory, SQLite, Postgres and Redis. all is true on memory.
func onTills(t *testing.T, test func(t *testing.T, h *till, all bool)) {
	t.Helper()
	on := func(t *testing.T, all bool, open func(*testing.T) storage.Store) {
		test(t, &till{cryptopaytest.Open(t, cryptopaytest.Options{Store: open(t), Networks: []chain.Network{"ETH"}}), t}, all)
	}
	onStores(t, on)
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		skipServer(t)
		on(t, false, func(t *testing.T) storage.Store { return onRedis(t) })
	})
}

// onAllTills is onTills on MariaDB too.
func onAllTills(t *testing.T, test func(t *testing.T, h *till, all bool)) {
	t.Helper()
	onTills(t, test)
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		skipServer(t)
		store, err := mysql.Open(onMariaDB(t), mysql.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		test(t, &till{cryptopaytest.Open(t, cryptopaytest.Options{Store: store, Networks: []chain.Network{"ETH"}}), t}, false)
	})
}

// paid is a payment of so many USDT, credited to the master account.
func (h *till) paid(usdt string) payment.Payment {
	h.t.Helper()
	p := h.Customer.Pays(h.Payment(usdt, "USDTERC20"))
	require.Equal(h.t, payment.Completed, p.Status)
	return p
}

func (h *till) customer() chain.Address { return h.Chains["ETH"].Customer("refunded") }

// has is what the customer was given back.
func (h *till) has() string { return h.Chains["ETH"].Balance(h.customer(), "USDTERC20").String() }

// gives asks for a refund. "all" is all that is left.
func (h *till) gives(p payment.Payment, usdt string, edit ...func(*refund.CreateInput)) (refund.Refund, error) {
	in := refund.CreateInput{Payment: p.ID, Address: string(h.customer())}
	if in.All = usdt == "all"; !in.All {
		in.Amount = ptr(dec(usdt))
	}
	for _, f := range edit {
		f(&in)
	}
	return h.App.Refunds.Create(h.t.Context(), h.ID, in)
}

func byLink(in *refund.CreateInput) { in.Address = "" }

// refused requires an error that names a field, in words.
func refused(t *testing.T, err error, field, words string) {
	t.Helper()
	var bad *refund.InvalidError
	require.ErrorAs(t, err, &bad)
	require.Contains(t, strings.Join(bad.Fields[field], " "), words)
}

func (h *till) refund(id string) refund.Refund {
	h.t.Helper()
	r, err := h.App.Refunds.Get(h.t.Context(), h.ID, id)
	require.NoError(h.t, err)
	return r
}

func (h *till) left(p payment.Payment) string {
	h.t.Helper()
	left, err := h.App.Refunds.Left(h.t.Context(), h.ID, p.ID)
	require.NoError(h.t, err)
	return left.Decimal(uint8(p.Scale)).String() //nolint:gosec // a scale
}

// balance is what an account of the ledger has, posted and held, in USDT.
func (h *till) balance(a ledger.Account) (posted, held string) {
	h.t.Helper()
	all, err := h.Store.Balances(h.t.Context(), storage.Tenant(h.ID), a)
	require.NoError(h.t, err)
	var sum ledger.Balance
	for _, b := range all {
		if b.Asset == "USDTERC20" {
			sum = b
		}
	}
	return sum.Posted.Decimal(6).String(), sum.Held.Decimal(6).String()
}

// A payment is refunded in parts and then whole. What leaves the wallet is what was asked for,
// the withdrawal's fee comes off it, and no more than what was received ever leaves. Each
// refund is an ordinary withdrawal, and changes with it.
func TestRefund_InPartsAndAll(t *testing.T) {
	t.Parallel()
	onAllTills(t, func(t *testing.T, h *till, _ bool) {
		h.paid("50") // of others
		p := h.paid("100")
		_, err := h.gives(p, "100.000001")
		refused(t, err, "amount", "more than is left to refund: 100 USDTERC20")
		first, err := h.gives(p, "30", func(in *refund.CreateInput) { in.Key, in.Reason, in.By = "k", "too large", "ann" })
		require.NoError(t, err)
		again, err := h.gives(p, "30", func(in *refund.CreateInput) { in.Key, in.Reason, in.By = "k", "too large", "bob" })
		require.NoError(t, err)
		require.True(t, again.Replayed)
		require.Equal(t, first.ID, again.ID)
		_, err = h.gives(p, "31", func(in *refund.CreateInput) { in.Key, in.Reason = "k", "too large" })
		require.ErrorIs(t, err, storage.ErrIdempotencyMismatch)
		require.Equal(t, refund.Pending, first.Status)
		require.Equal(t, "70", h.left(p))
		w := h.WithdrawalNow(first.Withdrawal)
		require.Equal(t, []string{"30", "ann", "refund/" + first.ID + "/" + p.ID}, []string{w.Requested.Decimal(6).String(), w.RequestedBy, w.Parent()})

		h.Settle()
		require.Equal(t, refund.Completed, h.refund(first.ID).Status)
		require.Equal(t, w.Amount.Decimal(6).String(), h.has(), "30 less the fee")
		require.Less(t, w.Amount, w.Requested)

		rest, err := h.gives(p, "all")
		require.NoError(t, err)
		require.Equal(t, "70", rest.Coins().String())
		_, err = h.gives(p, "all")
		refused(t, err, "amount", "nothing is left")
		_, err = h.gives(p, "0.000001")
		refused(t, err, "amount", "")
		h.Settle()
		require.Equal(t, refund.Completed, h.refund(rest.ID).Status)
		require.Equal(t, "0", h.left(p))
		posted, held := h.balance(ledger.Wallet(wallet.Master))
		require.Equal(t, []string{"50", "0"}, []string{posted, held})

		page, total, err := h.App.Refunds.List(t.Context(), h.ID, refund.Filter{Payment: p.ID})
		require.NoError(t, err)
		require.Equal(t, int64(2), total)
		require.Equal(t, []string{rest.ID, first.ID}, []string{page[0].ID, page[1].ID})
		other := h.NewTenant("another")
		_, err = h.App.Refunds.Get(t.Context(), other.ID, rest.ID)
		require.ErrorIs(t, err, refund.ErrNotFound)
		_, err = h.App.Refunds.Create(t.Context(), other.ID, refund.CreateInput{Payment: p.ID, All: true, Address: string(h.customer())})
		require.ErrorIs(t, err, payment.ErrNotFound)
		h.Verify()

		var told []string
		for _, e := range h.Events() {
			if b, ok := e.Body.(refund.Changed); ok && b.RefundID == first.ID {
				told = append(told, string(b.From)+">"+string(b.To))
			}
		}
		require.Equal(t, []string{">pending", "pending>processing", "processing>completed"}, told)
		var sent []refund.Update
		for _, d := range h.Webhooks() {
			var body struct {
				Event string
				Data  refund.Update
			}
			require.NoError(t, json.Unmarshal(d.Body, &body))
			if body.Event == webhook.RefundUpdate && body.Data.RefundID == first.ID {
				sent = append(sent, body.Data)
			}
		}
		require.Len(t, sent, 2, "the host's own Notifier gets all")
		require.Equal(t, []any{refund.Processing, refund.Completed, "30.00000000"}, []any{sent[1].PreviousStatus, sent[1].Status, sent[1].Amount})
	})
}

// Fifty at once never give back more than came, and all that is left goes to one of many who
// ask for it.
func TestRefund_ManyAtOnce(t *testing.T) {
	t.Parallel()
	onAllTills(t, func(t *testing.T, h *till, _ bool) {
		h.paid("500")
		p, q := h.paid("100"), h.paid("40")
		var all sync.WaitGroup
		errs, whole := make([]error, 50), make([]error, 10)
		for i := range errs {
			all.Go(func() { _, errs[i] = h.gives(p, "7") })
		}
		for i := range whole {
			all.Go(func() { _, whole[i] = h.gives(q, "all") })
		}
		all.Wait()
		made := func(errs []error) (n int) {
			for _, err := range errs {
				if err == nil {
					n++
				} else if !errors.Is(err, storage.ErrConflict) {
					refused(t, err, "amount", "left")
				}
			}
			return n
		}
		require.Equal(t, 14, made(errs), "14 × 7 ≤ 100 < 15 × 7")
		require.Equal(t, 1, made(whole))
		require.Equal(t, []string{"2", "0"}, []string{h.left(p), h.left(q)})
		h.Settle()
		h.Verify()
		posted, held := h.balance(ledger.Wallet(wallet.Master))
		require.Equal(t, []string{"502", "0"}, []string{posted, held})
	})
}

// A refund that is cancelled, is refused or fails on the chain gives back what it took, in the
// wallet and of what is left.
func TestRefund_WhatEndsUnpaidIsGivenBack(t *testing.T) {
	t.Parallel()
	onTills(t, func(t *testing.T, h *till, _ bool) {
		ctx := t.Context()
		p := h.paid("100")
		r, err := h.gives(p, "all")
		require.NoError(t, err)
		r, err = h.App.Refunds.Cancel(ctx, h.ID, r.ID)
		require.NoError(t, err)
		require.Equal(t, refund.Cancelled, r.Status)
		again, err := h.App.Refunds.Cancel(ctx, h.ID, r.ID)
		require.NoError(t, err)
		require.Equal(t, r.Status, again.Status)
		require.Equal(t, "100", h.left(p))

		r, err = h.gives(p, "all", func(in *refund.CreateInput) { in.By = "ann" })
		require.NoError(t, err)
		_, err = h.App.Withdrawals.Refuse(ctx, h.ID, r.Withdrawal, "ann", "no")
		require.ErrorIs(t, err, withdrawal.ErrOwnRequest)
		_, err = h.App.Withdrawals.Refuse(ctx, h.ID, r.Withdrawal, "bob", "not him")
		require.NoError(t, err)
		r = h.refund(r.ID)
		require.Equal(t, []any{refund.Failed, "not him"}, []any{r.Status, r.Failure})

		r, err = h.gives(p, "all")
		require.NoError(t, err)
		h.Step() // signed and sent
		require.Equal(t, refund.Processing, h.refund(r.ID).Status)
		_, err = h.App.Refunds.Cancel(ctx, h.ID, r.ID)
		var state *refund.StateError
		require.ErrorAs(t, err, &state)
		_, err = h.App.Operate.CancelTransaction(ctx, "ETH", r.Withdrawal, cryptopay.Call{By: "op", Reason: "a test"})
		require.NoError(t, err)
		h.Settle()
		require.Equal(t, refund.Failed, h.refund(r.ID).Status)
		require.Equal(t, "100", h.left(p))
		posted, held := h.balance(ledger.Wallet(wallet.Master))
		require.Equal(t, []string{"100", "0"}, []string{posted, held})
		require.Equal(t, "0", h.has())
		h.Verify()
	})
}

// After a fork has taken a deposit away no more is refunded of it, and when it is back not
// twice.
func TestRefund_ReorgAfterARefund(t *testing.T) {
	t.Parallel()
	onTills(t, func(t *testing.T, h *till, all bool) {
		if !all {
			return // memory shows it
		}
		ctx, eth := t.Context(), h.Chains["ETH"]
		h.paid("500") // of others
		p := h.Payment("100", "USDTERC20")
		before := eth.Height()
		tx, err := eth.Pay(chain.Address(p.Address), "USDTERC20", dec("100"))
		require.NoError(t, err)
		for h.PaymentNow(p.ID).Received == 0 {
			h.Mine(1)
		}
		r, err := h.gives(p, "30")
		require.NoError(t, err)
		_, err = eth.Reorg(int(eth.Height()-before), tx)
		require.NoError(t, err)
		h.Clock.Advance(time.Minute)
		_ = h.App.Step(ctx) // the network is halted
		_, err = h.App.Operate.ResumeNetwork(ctx, "ETH", before, cryptopay.Call{By: "op", Reason: "a deep fork"})
		require.NoError(t, err)
		h.Step()
		require.Zero(t, h.PaymentNow(p.ID).Received, "it is reversed")
		require.Equal(t, "0", h.left(p))
		var state *refund.StateError
		_, err = h.gives(p, "1")
		require.ErrorAs(t, err, &state)
		_, err = h.gives(p, "all")
		require.ErrorAs(t, err, &state)

		require.NoError(t, eth.Resend(tx))
		h.Settle()
		require.Equal(t, refund.Completed, h.refund(r.ID).Status)
		require.Equal(t, "70", h.left(p))
		_, err = h.gives(p, "71")
		refused(t, err, "amount", "left to refund: 70 ")
		h.Verify()
	})
}

// What comes in under, over and to a permanent address is refunded up to what came, in its own
// currency. Nothing is where nothing came, where the wallet has spent it, or where the fee
// would take it.
func TestRefund_OfUnusualPayments(t *testing.T) {
	t.Parallel()
	onTills(t, func(t *testing.T, h *till, all bool) {
		if !all {
			return // memory shows it
		}
		ctx := t.Context()
		var state *refund.StateError
		p := h.Payment("100", "USDTERC20")
		_, err := h.gives(p, "1")
		require.ErrorAs(t, err, &state, "nothing came")
		p = h.Customer.PaysShort(p)
		h.Customer.LetsExpire(p)
		require.Equal(t, "50", h.left(p))
		over := h.Customer.PaysOver(h.Payment("100", "USDTERC20"))
		require.Equal(t, "200", h.left(over))
		a := h.PermanentAddress("ann", "USDTERC20")
		h.Customer.SendsTo(a, "40", "USDTERC20")
		permanent := h.PaymentsOf(a)[0]
		require.Equal(t, "40", h.left(permanent))
		for _, of := range []payment.Payment{p, over, permanent} {
			_, err := h.gives(of, "all")
			require.NoError(t, err)
		}
		h.Settle()

		p = h.paid("100")
		for _, edit := range []func(*refund.CreateInput){func(*refund.CreateInput) {}, byLink} {
			_, err = h.gives(p, "0.000001", edit)
			refused(t, err, "amount", "")
			_, err = h.gives(p, "-1", edit)
			refused(t, err, "amount", "greater than 0")
			_, err = h.gives(p, "1.0000001", edit)
			refused(t, err, "amount", "places")
			_, err = h.gives(p, "1", edit, func(in *refund.CreateInput) { in.All = true })
			refused(t, err, "amount", "give an amount, or all")
			_, err = h.gives(p, "1", edit, func(in *refund.CreateInput) { in.Payment = "none" })
			require.ErrorIs(t, err, payment.ErrNotFound)
		}
		_, err = h.gives(p, "1", byLink, func(in *refund.CreateInput) { in.Memo = "7" })
		refused(t, err, "memo", "belongs to an address")
		var address *chain.AddressError
		_, err = h.gives(p, "1", func(in *refund.CreateInput) { in.Address = "0xnobody" })
		require.ErrorAs(t, err, &address)
		h.Withdraw("90", "USDTERC20")
		var short *withdrawal.InsufficientError
		for _, edit := range []func(*refund.CreateInput){func(*refund.CreateInput) {}, byLink} {
			_, err = h.gives(p, "all", edit)
			require.ErrorAs(t, err, &short)
			require.Equal(t, "100", short.Requested.String())
		}
		require.Equal(t, "100", h.left(p), "what was refused took nothing")

		// A wallet that was closed: the master account has what it had.
		sub, err := h.App.Wallets.Create(ctx, h.ID, wallet.CreateInput{Name: "sub", ExternalID: "sub"})
		require.NoError(t, err)
		of := h.Customer.Pays(h.Payment("60", "USDTERC20", func(in *payment.CreateInput) { in.WalletID = sub.ID }))
		r, err := h.gives(of, "20")
		require.NoError(t, err)
		require.Equal(t, sub.ID, r.Wallet)
		h.Settle()
		_, err = h.App.Wallets.CreateTransfer(ctx, h.ID, wallet.TransferInput{Direction: wallet.ToMaster, WalletID: sub.ID, Currency: "USDTERC20", Amount: dec("40")})
		require.NoError(t, err)
		require.NoError(t, h.App.Wallets.Delete(ctx, h.ID, sub.ID))
		r, err = h.gives(of, "all")
		require.NoError(t, err)
		require.Equal(t, wallet.Master, r.Wallet)
		h.Settle()
		require.Equal(t, refund.Completed, h.refund(r.ID).Status)
		h.Verify()
	})
}

// The customer names his address by the link, once. Whoever has no link, an old one or a used
// one is told the same. What the wallet cannot pay waits, and the link stays.
func TestRefund_ClaimLink(t *testing.T) {
	t.Parallel()
	onAllTills(t, func(t *testing.T, h *till, _ bool) {
		ctx, app := t.Context(), func() *refund.Service { return h.App.Refunds }
		p := h.paid("100")
		r, err := h.gives(p, "60", byLink, func(in *refund.CreateInput) { in.By = "ann" })
		require.NoError(t, err)
		require.Equal(t, []any{refund.AwaitingAddress, refund.WaitingAddress, ""}, []any{r.Status, r.Waiting, r.Withdrawal})
		require.Equal(t, "40", h.left(p))
		token := app().Token(&r)
		require.Len(t, token, 43)
		stored, err := json.Marshal(r)
		require.NoError(t, err)
		require.NotContains(t, string(stored), token)
		h.Restart()
		require.Equal(t, token, app().Token(ptr(h.refund(r.ID))), "it follows from the keys")

		c, err := app().Offered(ctx, token)
		require.NoError(t, err)
		require.Equal(t, refund.Claim{Amount: r.Amount, Scale: 6, Currency: "USDTERC20", Status: refund.AwaitingAddress}, c)
		for _, wrong := range []string{"", "x", token + "x", strings.ToUpper(token), strings.Repeat("a", 43), r.Claim} {
			_, err = app().Offered(ctx, wrong)
			require.ErrorIs(t, err, refund.ErrNoClaim)
			_, err = app().Claim(ctx, wrong, string(h.customer()), "")
			require.ErrorIs(t, err, refund.ErrNoClaim)
		}
		var address *chain.AddressError
		_, err = app().Claim(ctx, token, "nowhere", "")
		require.ErrorAs(t, err, &address)
		_, err = app().Claim(ctx, token, "", "")
		refused(t, err, "address", "is required")

		// The wallet has spent it meanwhile.
		w := h.Withdraw("80", "USDTERC20")
		require.Equal(t, withdrawal.Completed, w.Status)
		_, err = app().Claim(ctx, token, string(h.customer()), "")
		require.ErrorIs(t, err, refund.ErrNotNow)
		require.NotContains(t, err.Error(), "19", "the merchant's balance is not the customer's to know")
		require.Equal(t, refund.WaitingFunds, h.refund(r.ID).Waiting)
		h.paid("100")

		// Many at once: one wins, and gets the money once.
		var all sync.WaitGroup
		errs := make([]error, 10)
		for i := range errs {
			all.Go(func() { _, errs[i] = app().Claim(ctx, token, string(h.customer()), "") })
		}
		all.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, storage.ErrConflict) {
				require.ErrorIs(t, err, refund.ErrNoClaim)
			}
		}
		require.Equal(t, 1, won)
		_, err = app().Offered(ctx, token)
		require.ErrorIs(t, err, refund.ErrNoClaim, "it was used")
		require.Empty(t, app().Token(ptr(h.refund(r.ID))))
		h.Settle()
		r = h.refund(r.ID)
		require.Equal(t, []any{refund.Completed, string(h.customer()), ""}, []any{r.Status, r.Address, r.Waiting})
		w = h.WithdrawalNow(r.Withdrawal)
		require.Equal(t, "ann", w.RequestedBy, "who asked for it may not approve it")
		require.Equal(t, w.Amount.Decimal(6).String(), h.has())

		// One that is cancelled and one that nobody uses.
		cancelled, err := h.gives(p, "10", byLink)
		require.NoError(t, err)
		old, err := h.gives(p, "30", byLink)
		require.NoError(t, err)
		tokens := []string{app().Token(&cancelled), app().Token(&old)}
		_, err = app().Cancel(ctx, h.ID, cancelled.ID)
		require.NoError(t, err)
		h.Clock.Advance(refund.ClaimFor - time.Second)
		_, err = app().Offered(ctx, tokens[1])
		require.NoError(t, err)
		h.Clock.Advance(time.Second)
		for _, token := range tokens {
			_, err = app().Claim(ctx, token, string(h.customer()), "")
			require.ErrorIs(t, err, refund.ErrNoClaim)
		}
		h.Step()
		old = h.refund(old.ID)
		require.Equal(t, []any{refund.Cancelled, refund.FailureExpired}, []any{old.Status, old.Failure})
		require.Equal(t, "40", h.left(p))
		_, err = h.gives(p, "40", byLink)
		require.NoError(t, err, "the level has it, too")
		_, err = h.gives(p, "0.5", byLink)
		refused(t, err, "amount", "")
		h.Verify()
	})
}

// Money in suspense is refunded whole, less the fee, through a wallet of the refund's own.
// Where that ends unpaid it waits in suspense again, and can be decided about anew.
func TestRefund_OfSuspense(t *testing.T) {
	t.Parallel()
	onAllTills(t, func(t *testing.T, h *till, _ bool) {
		ctx := t.Context()
		h.Customer.PaysLate(h.Payment("30", "USDTERC20"))
		h.Settle()
		list, err := h.App.Payments.Suspense(ctx, h.ID, 10, 0)
		require.NoError(t, err)
		d, to := list[0], string(h.customer())
		call := cryptopay.Call{By: "ann", Reason: "ticket 42"}
		suspense := func() string { posted, _ := h.balance(ledger.Suspense); return posted }
		var address *chain.AddressError
		_, _, err = h.App.Operate.PayOutSuspense(ctx, h.ID, d.ID, "nowhere", "", call)
		require.ErrorAs(t, err, &address)
		_, _, err = h.App.Operate.PayOutSuspense(ctx, h.ID, "ETH/none:0", to, "", call)
		require.ErrorIs(t, err, payment.ErrNotFound)
		dry := call
		dry.DryRun = true
		r, id, err := h.App.Operate.PayOutSuspense(ctx, h.ID, d.ID, to, "", dry)
		require.NoError(t, err)
		require.Equal(t, []string{"", "", "30"}, []string{r.ID, id, suspense()})

		r, id, err = h.App.Operate.PayOutSuspense(ctx, h.ID, d.ID, to, "", call)
		require.NoError(t, err)
		require.NotEmpty(t, id)
		own := ledger.Wallet("refund-" + r.ID)
		posted, held := h.balance(own)
		require.Equal(t, []string{"0", "30", "30"}, []string{suspense(), posted, held})
		var state *payment.StateError
		_, _, err = h.App.Operate.CreditSuspense(ctx, h.ID, d.ID, "", call)
		require.ErrorAs(t, err, &state)
		_, _, err = h.App.Operate.PayOutSuspense(ctx, h.ID, d.ID, to, "", call)
		require.ErrorAs(t, err, &state)
		h.Verify()
		r, err = h.App.Refunds.Cancel(ctx, h.ID, r.ID)
		require.NoError(t, err)
		require.Equal(t, refund.Cancelled, r.Status)
		posted, held = h.balance(own)
		require.Equal(t, []string{"30", "0", "0"}, []string{suspense(), posted, held})
		list, err = h.App.Payments.Suspense(ctx, h.ID, 10, 0)
		require.NoError(t, err)
		require.Len(t, list, 1, "it is open again")
		h.Verify()

		r, _, err = h.App.Operate.PayOutSuspense(ctx, h.ID, d.ID, to, "", call)
		require.NoError(t, err)
		h.Settle()
		require.Equal(t, refund.Completed, h.refund(r.ID).Status)
		posted, held = h.balance(ledger.Wallet("refund-" + r.ID))
		require.Equal(t, []string{"0", "0", "0"}, []string{suspense(), posted, held})
		require.Equal(t, h.WithdrawalNow(r.Withdrawal).Amount.Decimal(6).String(), h.has())
		got, err := h.App.Payments.SuspendedDeposit(ctx, h.ID, d.ID)
		require.NoError(t, err)
		require.Equal(t, payment.SuspenseRefunded, got.SuspenseStatus())
		page, _, err := h.App.Refunds.List(ctx, h.ID, refund.Filter{Deposit: d.ID, Status: refund.Completed})
		require.NoError(t, err)
		require.Len(t, page, 1)
		p := h.paid("100")
		h.Clock.Advance(time.Second)
		newest, err := h.gives(p, "10")
		require.NoError(t, err)
		of := func(payment string, deposits ...string) (out []refund.Status) {
			list, err := h.App.Refunds.Of(ctx, h.ID, payment, deposits...)
			require.NoError(t, err)
			for i := range list {
				require.Contains(t, []string{payment, ""}, list[i].Payment)
				out = append(out, list[i].Status)
			}
			return out
		}
		require.Equal(t, []refund.Status{newest.Status}, of(p.ID))
		require.Equal(t, []refund.Status{newest.Status, refund.Completed, refund.Cancelled}, of(p.ID, "ETH/none:0", d.ID))
		require.Equal(t, []refund.Status{refund.Completed, refund.Cancelled}, of("none", d.ID))
		require.Empty(t, of("none", "ETH/none:0"))
		h.Settle()
		h.Verify()
		kept, err := h.App.Operate.List(ctx, "ETH", 10, 0)
		require.NoError(t, err)
		require.Equal(t, outgoing.OpPayOutSuspense, kept[0].Kind)
	})
}

// A fork takes the deposit away while its refund is under way: the house bears it, payouts of
// the currency halt, and what the refund does not pay goes to the house.
func TestRefund_ReorgOfWhatWasInSuspense(t *testing.T) {
	t.Parallel()
	h := &till{cryptopaytest.Open(t, cryptopaytest.Options{Networks: []chain.Network{"ETH"}}), t}
	ctx, eth := t.Context(), h.Chains["ETH"]
	h.paid("500")
	p := h.Payment("30", "USDTERC20")
	h.Customer.LetsExpire(p)
	before := eth.Height()
	tx, err := eth.Pay(chain.Address(p.Address), "USDTERC20", dec("30"))
	require.NoError(t, err)
	h.Mine(25)
	list, err := h.App.Payments.Suspense(ctx, h.ID, 10, 0)
	require.NoError(t, err)
	require.Len(t, list, 1)
	r, _, err := h.App.Operate.PayOutSuspense(ctx, h.ID, list[0].ID, string(h.customer()), "", cryptopay.Call{By: "ann", Reason: "late"})
	require.NoError(t, err)
	_, err = eth.Reorg(int(eth.Height()-before), tx)
	require.NoError(t, err)
	h.Clock.Advance(time.Minute)
	_ = h.App.Step(ctx) // the network is halted
	_, err = h.App.Operate.ResumeNetwork(ctx, "ETH", before, cryptopay.Call{By: "op", Reason: "a deep fork"})
	require.NoError(t, err)
	h.Mine(25)
	adjustment := func() string { posted, _ := h.balance(ledger.Adjustment); return posted }
	require.Equal(t, "-30", adjustment())
	require.Equal(t, withdrawal.WaitingHalted, h.WithdrawalNow(r.Withdrawal).Waiting)
	require.Equal(t, "0", h.has())
	_, err = h.App.Refunds.Cancel(ctx, h.ID, r.ID)
	require.NoError(t, err)
	require.Equal(t, "0", adjustment())
	posted, _ := h.balance(ledger.Suspense)
	require.Equal(t, "0", posted, "the deposit is gone")
	h.Verify()
	require.NoError(t, eth.Resend(tx))
	h.Mine(25)
	posted, _ = h.balance(ledger.Suspense)
	require.Equal(t, "30", posted, "and back")
	h.Verify()
}

// Each commit of each step of a refund meets each fault, and the process is made anew. Money
// is given back once or not at all, and the books are right.
func TestRefund_FaultAtEachCommit(t *testing.T) {
	t.Parallel()
	steps := map[string]func(h *till, p payment.Payment, d payment.Deposit) error{
		"create": func(h *till, p payment.Payment, _ payment.Deposit) error {
			_, err := h.gives(p, "60", func(in *refund.CreateInput) { in.Key = "once" })
			return err
		},
		"suspense": func(h *till, _ payment.Payment, d payment.Deposit) error {
			_, _, err := h.App.Operate.PayOutSuspense(h.t.Context(), h.ID, d.ID, string(h.customer()), "", cryptopay.Call{By: "ann", Reason: "late"})
			if state := (*payment.StateError)(nil); errors.As(err, &state) {
				err = nil // it is done
			}
			return err
		},
		"claim": func(h *till, p payment.Payment, _ payment.Deposit) error {
			r, err := h.gives(p, "60", byLink, func(in *refund.CreateInput) { in.Key = "once" })
			if err != nil {
				return err
			}
			_, err = h.App.Refunds.Claim(h.t.Context(), h.App.Refunds.Token(&r), string(h.customer()), "")
			if errors.Is(err, refund.ErrNoClaim) {
				err = nil // it is done
			}
			return err
		},
		"cancel": func(h *till, p payment.Payment, _ payment.Deposit) error {
			r, err := h.gives(p, "60", func(in *refund.CreateInput) { in.Key = "once" })
			if err != nil {
				return err
			}
			if _, err = h.App.Refunds.Cancel(h.t.Context(), h.ID, r.ID); err != nil {
				return err
			}
			_, err = h.gives(p, "60", func(in *refund.CreateInput) { in.Key = "again" })
			return err
		},
	}
	for name, step := range steps {
		for _, fault := range []failing.Fault{failing.Busy, failing.Conflict, failing.Unheard, failing.Undone, failing.Late} {
			t.Run(name+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				for at := 1; ; at++ {
					f := &failing.Commits{Store: memory.New()}
					h := &till{cryptopaytest.Open(t, cryptopaytest.Options{Store: f, Networks: []chain.Network{"ETH"}}), t}
					p := h.paid("100")
					var d payment.Deposit
					if name == "suspense" {
						h.Customer.PaysLate(h.Payment("60", "USDTERC20"))
						list, err := h.App.Payments.Suspense(t.Context(), h.ID, 1, 0)
						require.NoError(t, err)
						d = list[0]
					}
					f.Counts = func(c *storage.Change) bool { return c.Partition == storage.Tenant(h.ID) }
					f.Seen, f.At = 0, map[int]failing.Fault{at: fault}
					for try := 0; ; try++ {
						err := step(h, p, d)
						if err == nil {
							break
						}
						require.True(t, failing.Ours(err) || errors.Is(err, storage.ErrUnknown), "%v", err)
						require.Less(t, try, 3)
						h.Restart()
					}
					met := len(f.Met) > 0
					f.At = nil
					h.Settle()
					page, total, err := h.App.Refunds.List(t.Context(), h.ID, refund.Filter{Status: refund.Completed})
					require.NoError(t, err)
					require.Equal(t, int64(1), total, "%v", f.Met)
					require.Equal(t, h.WithdrawalNow(page[0].Withdrawal).Amount.Decimal(6).String(), h.has(), "%v", f.Met)
					if name != "suspense" {
						require.Equal(t, "40", h.left(p), "%v", f.Met)
					}
					h.Verify()
					if !met {
						require.Greater(t, at, 1)
						return
					}
				}
			})
		}
	}
}

// Somebody who writes to the database makes no claim link worth more, another's, or new again.
func TestFS02_EditedClaimLinkPaysNothing(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	ctx := t.Context()
	p, _, _, err := i.app.Payments.List(ctx, i.tenant, payment.Filter{Limit: 1, Currency: "USDTERC20"})
	require.NoError(t, err)
	made := func(usdt string) (refund.Refund, string) {
		r, err := i.app.Refunds.Create(ctx, i.tenant, refund.CreateInput{Payment: p[0].ID, Amount: ptr(dec(usdt))})
		require.NoError(t, err)
		return r, i.app.Refunds.Token(&r)
	}
	r, token := made("10")
	for _, column := range strings.Fields(classes["refunds"].authority) {
		undo, ok := i.change(refund.Refunds.Table, r.ID, column)
		require.True(t, ok, column)
		_, err := i.app.Refunds.Claim(ctx, token, string(i.thief), "")
		require.Error(t, err, column)
		require.True(t, i.finds(r.ID), column)
		undo()
	}
	stolen, thiefs := made("5")
	require.True(t, i.edit("UPDATE cryptopay_refunds SET claim = ? WHERE id = ?", stolen.Claim, r.ID))
	require.True(t, i.edit("UPDATE cryptopay_refunds SET claim = '' WHERE id = ?", stolen.ID))
	_, err = i.app.Refunds.Claim(ctx, thiefs, string(i.thief), "")
	require.ErrorIs(t, err, refund.ErrAltered)
	require.True(t, i.edit("UPDATE cryptopay_refunds SET claim = ? WHERE id = ?", r.Claim, r.ID))

	// A new key seals it anew, and one that is used is not new again.
	old := i.configure
	i.configure = func(c *cryptopay.Config) {
		old(c)
		c.Keys, c.Key = [][]byte{[]byte(strings.Repeat("n", 32)), c.Key}, nil
	}
	i.restart()
	resealed, err := i.app.Reseal(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, resealed.Refunds, "the other one is edited: %v", resealed.Left)
	to := i.chains["ETH"].Customer("refunded")
	_, err = i.app.Refunds.Claim(ctx, token, string(to), "")
	require.NoError(t, err)
	require.True(t, i.edit("UPDATE cryptopay_refunds SET status = 'awaiting_address' WHERE id = ?", r.ID))
	_, err = i.app.Refunds.Claim(ctx, token, string(i.thief), "")
	require.Error(t, err)
	i.work(30)
	require.Zero(t, i.chains["ETH"].Balance(i.thief, "USDTERC20").Sign())
}
