package cryptopay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A token begins to log more than it moves: the deposit is in suspense and credited to
// nobody, payouts of that token wait and others do not, also after a restart, and all
// goes on when an operator lifts the halt.
func TestFM03_TokenThatLogsMoreThanItMovesIsHalted(t *testing.T) {
	t.Parallel()
	h := newHost(t, 31, "ETH")
	world := h.chains["ETH"]
	hot, err := h.app.Hot(t.Context(), "ETH", h.tenant)
	require.NoError(t, err)
	_, err = world.Fund(hot, "ETH", dec("1"))
	require.NoError(t, err)
	pay := func(currency, amount string) payment.Payment {
		p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: currency}})
		require.NoError(t, err)
		_, err = world.Pay(chain.Address(p.Address), currency, dec(amount))
		require.NoError(t, err)
		return p
	}
	good, other := pay("USDTERC20", "300"), pay("USDCERC20", "300")
	h.mine(60)
	require.Equal(t, payment.Completed, h.payment(good.ID).Status)
	require.Equal(t, payment.Completed, h.payment(other.ID).Status)

	usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
	require.NoError(t, err)
	world.SetBehaviour(usdt.Contract, sim.Behaviour{Overstates: 1000})
	lie := pay("USDTERC20", "0.3")
	h.mine(60)
	require.Zero(t, h.payment(lie.ID).Received, "0.3 is not 300")
	suspense, err := h.app.Payments.Suspense(t.Context(), h.tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, suspense, 1)
	require.Equal(t, payment.RoleUnproven, suspense[0].Role)
	world.SetBehaviour(usdt.Contract, sim.Behaviour{})

	h.restart()
	halted, err := h.app.Operate.Halts(t.Context())
	require.NoError(t, err)
	require.Len(t, halted, 1)
	require.Equal(t, []any{"USDTERC20", incoming.ReasonContradicted, cryptopay.Library}, []any{halted[0].Currency, halted[0].Reason, halted[0].By})
	payout := func(currency string) string {
		w, err := h.app.Withdrawals.Create(t.Context(), h.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{PriceAmount: ptr(dec("100")), Currency: currency, Address: string(world.Customer("supplier"))},
		})
		require.NoError(t, err)
		return w.ID
	}
	status := func(id string) (withdrawal.Status, string) {
		w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
		require.NoError(t, err)
		return w.Status, w.Waiting
	}
	waits, goes := payout("USDTERC20"), payout("USDCERC20")
	h.mine(40)
	state, why := status(waits)
	require.Equal(t, withdrawal.Pending, state)
	require.Equal(t, withdrawal.WaitingHalted, why)
	w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, waits)
	require.NoError(t, err)
	require.Equal(t, incoming.ReasonContradicted, w.Reason)
	state, _ = status(goes)
	require.Equal(t, withdrawal.Completed, state)

	h.lift("USDTERC20")
	h.lift("USDTERC20") // twice is once
	h.mine(60)
	state, why = status(waits)
	require.Equal(t, withdrawal.Completed, state, why)
	h.sound()
}

// distrust halts a token of ETH as the library does where its logs and balances differ.
func (h *host) distrust(currency string) {
	h.t.Helper()
	put := []storage.Row{incoming.AssetHalts.Row(currency, 0, time.Time{}, incoming.AssetHalt{Reason: incoming.ReasonContradicted, Since: h.clock.Now()})}
	require.NoError(h.t, h.store.Commit(h.t.Context(), storage.Change{ID: "distrusted " + currency, Partition: storage.Network("ETH"), Put: put})[0])
}

// lift ends the halts of a currency.
func (h *host) lift(currency string) {
	h.t.Helper()
	_, err := h.app.Operate.Lift(h.t.Context(), cryptopay.HaltScope{Currency: currency}, because("looked at it"))
	require.NoError(h.t, err)
}

// The library's own halt of a currency also stops what was handed over and not signed yet.
func TestFT05_HaltStopsWhatIsNotSigned(t *testing.T) {
	t.Parallel()
	h := rich(t, 35)
	h.configure = func(cfg *cryptopay.Config) { cfg.Signer = nil }
	h.restart()
	id := h.withdraw("20", usdt)
	h.step() // handed over, and not signed
	h.distrust(usdt)
	h.configure = nil
	h.restart()
	h.mine(30)
	w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
	require.NoError(t, err)
	require.Equal(t, []any{withdrawal.Pending, withdrawal.WaitingHalted}, []any{w.Status, w.Waiting})
	h.lift(usdt)
	h.mine(40)
	w, err = h.app.Withdrawals.Get(t.Context(), h.tenant, id)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Completed, w.Status)
	h.sound()
}

// The halt of one token does not stop the payouts of another: a payout that was signed
// before the halt is replaced when fees rise, as the nonces behind it wait for its own.
func TestFT05_SignedPayoutOfAHaltedCurrencyIsReplaced(t *testing.T) {
	t.Parallel()
	h := newHost(t, 33, "ETH")
	world := h.chains["ETH"]
	hot, err := h.app.Hot(t.Context(), "ETH", h.tenant)
	require.NoError(t, err)
	_, err = world.Fund(hot, "ETH", dec("1"))
	require.NoError(t, err)
	for currency, coins := range map[string]string{"USDTERC20": "2000", "ETH": "1"} {
		p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "2000", Currency: currency}})
		require.NoError(t, err)
		_, err = world.Pay(chain.Address(p.Address), currency, dec(coins))
		require.NoError(t, err)
	}
	h.mine(60)
	payout := func(currency, amount string) string {
		w, err := h.app.Withdrawals.Create(t.Context(), h.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{Amount: ptr(dec(amount)), Currency: currency, Address: string(world.Customer("supplier"))},
		})
		require.NoError(t, err)
		return w.ID
	}
	status := func(id string) string {
		w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
		require.NoError(t, err)
		return string(w.Status) + " " + w.Waiting
	}
	signed := payout("USDTERC20", "100")
	for range 5 {
		h.step()
	}
	require.Equal(t, "processing ", status(signed))
	level := world.FeeLevel()
	world.SetFeeLevel(5 * level / 2)
	h.distrust("USDTERC20")
	waits, behind := payout("USDTERC20", "50"), payout("ETH", "0.1")
	h.mine(150)
	require.Equal(t, []string{"completed ", "completed ", "pending halted"}, []string{status(signed), status(behind), status(waits)})
	h.lift("USDTERC20")
	h.mine(40)
	require.Equal(t, "completed ", status(waits))
	h.sound()
}

// A token does something else in the block than its transaction said in the mempool, or in
// the block of another branch than in the first: it takes a fee, or logs more than it
// moves. What is credited is what arrived in the block that counts.
func TestFM03_DepositIsWhatItsLastBlockSays(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int{"after the mempool": 0, "on another branch": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, 32, "ETH")
			world := h.chains["ETH"]
			usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
			require.NoError(t, err)
			for _, c := range []struct {
				issuer   sim.Behaviour
				received ledger.Amount
				status   payment.Status
				role     payment.Role
			}{
				{sim.Behaviour{FeeBasisPoints: 200}, 294_000_000, payment.Expired, payment.RoleInTime},
				{sim.Behaviour{Overstates: 1000}, 0, payment.Expired, payment.RoleUnproven},
			} {
				world.SetBehaviour(usdt.Contract, sim.Behaviour{})
				p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: usdt.Code}})
				require.NoError(t, err)
				_, err = world.Pay(chain.Address(p.Address), usdt.Code, dec("300"))
				require.NoError(t, err)
				h.step()
				h.mine(at)
				require.Equal(t, payment.Confirming, h.payment(p.ID).Status)
				world.SetBehaviour(usdt.Contract, c.issuer)
				if at > 0 {
					_, err = world.Reorg(at)
					require.NoError(t, err)
				}
				h.mine(40)
				h.clock.Advance(time.Hour)
				h.mine(40)
				got := h.payment(p.ID)
				require.Equal(t, c.received, got.Received)
				require.Equal(t, c.status, got.Status)
				deposits, err := h.app.Payments.Deposits(t.Context(), h.tenant, p.ID)
				require.NoError(t, err)
				suspense, err := h.app.Payments.Suspense(t.Context(), h.tenant, 10, 0)
				require.NoError(t, err)
				all := append(deposits, suspense...)
				require.Equal(t, c.role, all[len(all)-1].Role)
			}
			h.sound()
		})
	}
}
