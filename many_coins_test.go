package cryptopay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A shop takes many small payments and pays out once: the payout needs as many coins as it
// had payments. It is paid, and quoted for what it costs: neither less nor half as much
// again.
func TestFN02_PayoutOfManySmallCoins(t *testing.T) {
	t.Parallel()
	for _, coins := range []int{3, 6, 20, 60} {
		t.Run(fmt.Sprint(coins, " coins"), func(t *testing.T) {
			t.Parallel()
			h := newHost(t, uint64(70+coins), "BTC")
			for range 10 {
				h.float("BTC", "0.0005")
			}
			world := h.chains["BTC"]
			btc, err := chain.MainnetRegistry().Currency("BTC")
			require.NoError(t, err)
			for range coins {
				p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "60", Currency: "BTC"}})
				require.NoError(t, err)
				_, err = world.Pay(chain.Address(p.Address), "BTC", btc.Decimal(p.Due))
				require.NoError(t, err)
				h.mine(1)
			}
			h.mine(15)
			amount := h.credited("BTC") * 9 / 10
			payee := world.Customer("payee")
			terms := withdrawal.Terms{Amount: ptr(btc.Decimal(amount)), Currency: "BTC", Address: string(payee)}
			w, err := h.app.Withdrawals.Create(t.Context(), h.tenant, withdrawal.CreateInput{Terms: terms}, storage.Once{})
			require.NoError(t, err)
			for range 40 {
				h.clock.Advance(15 * time.Minute)
				h.mine(1)
			}
			w, err = h.app.Withdrawals.Get(t.Context(), h.tenant, w.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, w.Status, "waits for %q", w.WaitingReason())
			require.Equal(t, btc.Decimal(w.Amount).String(), world.Balance(payee, "BTC").String())
			st, err := world.Outcome(w.Tx)
			require.NoError(t, err)
			paid := st.Cost
			t.Logf("quoted %d, paid %d", w.NetworkFee, paid)
			require.GreaterOrEqual(t, w.NetworkFee, paid)
			require.LessOrEqual(t, w.NetworkFee, paid*3/2)
			h.sound()
		})
	}
}

// A payout needs more coins than one transaction holds. They are merged first, and the
// merchant sees that it waits for this and since when. Then one transaction pays.
func TestFT04_PayoutOfMoreCoinsThanOneTransactionHolds(t *testing.T) {
	t.Parallel()
	h := newHost(t, 51, "BTC")
	for range 20 {
		h.float("BTC", "0.004")
	}
	h.coins(2000, "0.005")
	world := h.chains["BTC"]
	payee := world.Customer("payee")
	w := h.payOut(payee, "9.5")
	h.clock.Advance(time.Minute)
	h.step()
	w = h.withdrawal(w.ID)
	require.Equal(t, withdrawal.Pending, w.Status)
	require.Equal(t, withdrawal.ShownConsolidating, w.WaitingReason())
	require.False(t, w.WaitingSince.IsZero())
	quoted := w.NetworkFee
	for range 40 {
		h.clock.Advance(15 * time.Minute)
		h.mine(1)
	}
	w = h.withdrawal(w.ID)
	require.Equal(t, withdrawal.Completed, w.Status, "waits for %q", w.WaitingReason())
	btc, err := chain.MainnetRegistry().Currency("BTC")
	require.NoError(t, err)
	require.Equal(t, btc.Decimal(w.Amount).String(), world.Balance(payee, "BTC").String(), "paid once")
	merges, paid := 0, ledger.Amount(0)
	for intent, list := range h.attempts("BTC") {
		for _, a := range list {
			require.LessOrEqual(t, len(a.Spends), 200, intent)
			if a.Fate == outgoing.Landed {
				paid += a.MaxCost
				if outgoing.IsMerge(intent) {
					merges++
				}
			}
		}
	}
	require.Equal(t, 9, merges, "as many as are needed")
	t.Logf("quoted %d, paid %d", quoted, paid)
	require.GreaterOrEqual(t, quoted, paid)
	require.LessOrEqual(t, quoted, paid*3/2)
	h.mine(25)
	h.nothingReserved("BTC")
	h.sound()
}

// coins has payments come in as so many coins of an amount of BTC.
func (h *host) coins(count int, amount string) {
	h.t.Helper()
	btc, err := chain.MainnetRegistry().Currency("BTC")
	require.NoError(h.t, err)
	price := dec(amount).Mul(dec("60000"))
	for left := count; left > 0; {
		parts := min(left, 50)
		left -= parts
		p, err := h.app.Payments.Create(h.t.Context(), h.tenant, payment.CreateInput{
			Pricing: payment.Pricing{Amount: price.Mul(decimal.New(int64(parts), 0)).String(), Currency: "BTC"},
		})
		require.NoError(h.t, err)
		require.Equal(h.t, dec(amount).Mul(decimal.New(int64(parts), 0)).String(), btc.Decimal(p.Due).String())
		for range parts {
			_, err = h.chains["BTC"].Pay(chain.Address(p.Address), "BTC", dec(amount))
			require.NoError(h.t, err)
		}
		h.mine(1)
	}
	h.mine(15)
}

// payOut orders an amount of BTC.
func (h *host) payOut(payee chain.Address, amount string) withdrawal.Withdrawal {
	h.t.Helper()
	terms := withdrawal.Terms{Amount: ptr(dec(amount)), Currency: "BTC", Address: string(payee)}
	w, err := h.app.Withdrawals.Create(h.t.Context(), h.tenant, withdrawal.CreateInput{Terms: terms}, storage.Once{})
	require.NoError(h.t, err)
	return w
}

func (h *host) withdrawal(id string) withdrawal.Withdrawal {
	h.t.Helper()
	w, err := h.app.Withdrawals.Get(h.t.Context(), h.tenant, id)
	require.NoError(h.t, err)
	return w
}

// nothingReserved requires that every coin is free or spent, and that every order has ended.
func (h *host) nothingReserved(n chain.Network) {
	h.t.Helper()
	p := storage.Network(string(n))
	held, err := h.store.Count(h.t.Context(), storage.Query{Table: outgoing.Reservations.Table, Partition: p})
	require.NoError(h.t, err)
	require.Zero(h.t, held)
	open, err := h.store.Count(h.t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: p, Where: []storage.Cond{
		{Column: "state", Op: storage.In, Value: []outgoing.State{outgoing.Queued, outgoing.Waiting, outgoing.Signed, outgoing.Executed}},
	}})
	require.NoError(h.t, err)
	require.Zero(h.t, open)
	for _, s := range []outgoing.CoinState{outgoing.CoinReserved, outgoing.CoinGone, outgoing.CoinUnmined, outgoing.CoinDisputed} {
		coins, err := h.store.Count(h.t.Context(), storage.Query{Table: outgoing.Coins.Table, Partition: p, Where: []storage.Cond{{Column: "state", Op: storage.Eq, Value: s}}})
		require.NoError(h.t, err)
		require.Zero(h.t, coins, s)
	}
}
