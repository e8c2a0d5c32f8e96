package cryptopaytest

import (
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Tenant is a merchant.
type Tenant struct {
	ID string
	h  *Host
}

// Payment asks for so many USD in a currency. edit changes the request.
func (t *Tenant) Payment(usd, currency string, edit ...func(*payment.CreateInput)) payment.Payment {
	t.h.t.Helper()
	in := payment.CreateInput{Pricing: payment.Pricing{Amount: usd, Currency: currency}}
	for _, f := range edit {
		f(&in)
	}
	p, err := t.h.App.Payments.Create(t.h.t.Context(), t.ID, in)
	t.h.must(err)
	return p
}

// PaymentNow is what a payment has come to.
func (t *Tenant) PaymentNow(id string) payment.Payment {
	t.h.t.Helper()
	p, err := t.h.App.Payments.Get(t.h.t.Context(), t.ID, id)
	t.h.must(err)
	return p
}

// PermanentAddress is the address of somebody on the network of a currency. edit changes the
// request.
func (t *Tenant) PermanentAddress(externalID, currency string, edit ...func(*payment.AddressInput)) payment.PermanentAddress {
	t.h.t.Helper()
	in := payment.AddressInput{ExternalID: externalID, Currency: currency}
	for _, f := range edit {
		f(&in)
	}
	a, _, err := t.h.App.Payments.PermanentAddress(t.h.t.Context(), t.ID, in)
	t.h.must(err)
	return a
}

// PaymentsOf lists the payments that deposits at a permanent address made, newest first, at
// most the tenant's newest hundred.
func (t *Tenant) PaymentsOf(a payment.PermanentAddress) (out []payment.Payment) {
	t.h.t.Helper()
	page, _, _, err := t.h.App.Payments.List(t.h.t.Context(), t.ID, payment.Filter{Limit: payment.MaxPage})
	t.h.must(err)
	for _, p := range page {
		if p.AddressID == a.ID {
			out = append(out, p)
		}
	}
	return out
}

// Withdraw orders that so many coins reach a supplier, and follows it until all comes to rest.
func (t *Tenant) Withdraw(coins, currency string, edit ...func(*withdrawal.CreateInput)) withdrawal.Withdrawal {
	t.h.t.Helper()
	w := t.order(coins, currency, edit)
	t.h.Settle()
	return t.WithdrawalNow(w.ID)
}

// WithdrawStuck is Withdraw whose transactions are in no block for hours, whatever they pay. It
// returns the withdrawal as it waits: withdrawal.ShownStuck. Host.Settle lets it go on.
func (t *Tenant) WithdrawStuck(coins, currency string, edit ...func(*withdrawal.CreateInput)) withdrawal.Withdrawal {
	t.h.t.Helper()
	return t.waits(t.order(coins, currency, edit), withdrawal.ShownStuck, 10*time.Minute)
}

// WithdrawHotShort is Withdraw of so many coins more than the hot address has. A customer has
// brought them just before: they are credited, and still on the address that he paid. It
// returns the withdrawal as it waits: withdrawal.ShownHotShort. Host.Settle lets it go on. Where
// payouts spend what customers pay from where it is, as on Bitcoin, no hot address is short.
func (t *Tenant) WithdrawHotShort(coins, currency string, edit ...func(*withdrawal.CreateInput)) withdrawal.Withdrawal {
	t.h.t.Helper()
	world := t.h.world(currency)
	if world.Family() == chain.UTXOFamily {
		t.h.t.Fatalf("cryptopaytest: on %s payouts spend what customers pay from where it is: no hot address is short", world.Network())
	}
	hot, err := t.h.App.Hot(t.h.t.Context(), world.Network(), t.ID)
	t.h.must(err)
	more, err := decimal.NewFromString(coins)
	t.h.must(err)
	amount := world.Balance(hot, currency).Add(more)
	from := t.PermanentAddress("cryptopaytest hot short", currency)
	paid := func() (n int) {
		for _, p := range t.PaymentsOf(from) {
			if p.Received > 0 {
				n++
			}
		}
		return n
	}
	before := paid()
	tx, err := world.Pay(chain.Address(from.Address), currency, amount.Mul(decimal.New(2, 0))) // fees included
	t.h.must(err)
	const bound = 1000 // blocks
	t.h.Step()
	for n := 0; paid() == before; n++ {
		if n == bound {
			t.h.t.Fatalf("cryptopaytest: %s %s are not credited in %d blocks", amount, currency, bound)
		}
		t.h.block(12*time.Second, func(c *sim.Chain) { c.MineOnly(tx) })
	}
	return t.waits(t.order(amount.String(), currency, edit), withdrawal.ShownHotShort, time.Minute)
}

// WithdrawReorged is Withdraw whose transaction is in a block, and a fork takes the block and
// the transaction away when the withdrawal is completed. It returns the withdrawal as it waits:
// withdrawal.ShownReorged. Host.Settle lets it go on.
func (t *Tenant) WithdrawReorged(coins, currency string, edit ...func(*withdrawal.CreateInput)) withdrawal.Withdrawal {
	t.h.t.Helper()
	world, w := t.h.world(currency), t.order(coins, currency, edit)
	t.h.Step()
	const bound = 18 // blocks: less than what is final
	depth := 0
	for ; w.Status != withdrawal.Completed; w = t.WithdrawalNow(w.ID) {
		if depth++; depth > bound {
			t.h.t.Fatalf("cryptopaytest: a withdrawal of %s %s is %s after %d blocks, and waits for %q", coins, currency, w.Status, bound, w.WaitingReason())
		}
		t.h.Mine(1)
	}
	_, err := world.Reorg(depth, w.Tx)
	t.h.must(err)
	return t.waits(w, withdrawal.ShownReorged, 12*time.Second)
}

// waits mines blocks without transactions until a withdrawal waits for a reason.
func (t *Tenant) waits(w withdrawal.Withdrawal, reason string, pause time.Duration) withdrawal.Withdrawal {
	t.h.t.Helper()
	t.h.Step()
	const bound = 100 // blocks
	for range bound {
		if w = t.WithdrawalNow(w.ID); w.WaitingReason() == reason {
			return w
		}
		t.h.block(pause, func(c *sim.Chain) { c.MineOnly() })
	}
	t.h.t.Fatalf("cryptopaytest: the withdrawal is %s and waits for %q, and not for %q", w.Status, w.WaitingReason(), reason)
	return w
}

func (t *Tenant) order(coins, currency string, edit []func(*withdrawal.CreateInput)) withdrawal.Withdrawal {
	t.h.t.Helper()
	amount, err := decimal.NewFromString(coins)
	t.h.must(err)
	world := t.h.world(currency)
	in := withdrawal.CreateInput{Terms: withdrawal.Terms{
		Amount: &amount, FinalAmount: true, Currency: currency, Address: string(world.Customer("supplier")),
	}}
	for _, f := range edit {
		f(&in)
	}
	w, err := t.h.App.Withdrawals.Create(t.h.t.Context(), t.ID, in)
	t.h.must(err)
	return w
}

// WithdrawalNow is what a withdrawal has come to.
func (t *Tenant) WithdrawalNow(id string) withdrawal.Withdrawal {
	t.h.t.Helper()
	w, err := t.h.App.Withdrawals.Get(t.h.t.Context(), t.ID, id)
	t.h.must(err)
	return w
}

// SupplierHas is how much the supplier of Withdraw was paid in all, in whole coins.
func (h *Host) SupplierHas(currency string) decimal.Decimal {
	h.t.Helper()
	world := h.world(currency)
	return world.Balance(world.Customer("supplier"), currency)
}

func (h *Host) world(code string) *sim.Chain {
	h.t.Helper()
	c, err := chain.MainnetRegistry().Currency(code)
	h.must(err)
	world := h.Chains[c.Network]
	if world == nil {
		h.t.Fatalf("cryptopaytest: %s is on %s, which Options.Networks does not name", code, c.Network)
	}
	return world
}

// Customer pays. Each of its calls is made by somebody new, who has the coins, and returns
// what the payment has come to when all is at rest.
type Customer struct{ h *Host }

// Pays what is due, or what is still missing where a part has come.
func (c Customer) Pays(p payment.Payment) payment.Payment {
	c.h.t.Helper()
	tenant, now := c.find(p)
	at, err := c.h.App.Payments.Progress(c.h.t.Context(), tenant, []payment.Payment{now})
	c.h.must(err)
	amount := c.due(p)
	if now.Status == payment.PartiallyPaid {
		amount = at[0].Missing.Decimal(uint8(now.Scale)) //nolint:gosec // at most 8
	}
	return c.sends(p, p.Currency, amount)
}

// PaysShort half of what is due.
func (c Customer) PaysShort(p payment.Payment) payment.Payment {
	c.h.t.Helper()
	return c.sends(p, p.Currency, c.part(p, 1))
}

// PaysOver twice what is due.
func (c Customer) PaysOver(p payment.Payment) payment.Payment {
	c.h.t.Helper()
	return c.sends(p, p.Currency, c.part(p, 4))
}

// PaysLate what is due, an hour after the payment's window.
func (c Customer) PaysLate(p payment.Payment) payment.Payment {
	c.h.t.Helper()
	c.LetsExpire(p)
	return c.sends(p, p.Currency, c.due(p))
}

// LetsExpire pays nothing, until an hour after the payment's window.
func (c Customer) LetsExpire(p payment.Payment) payment.Payment {
	c.h.t.Helper()
	if left := p.ExpiresAt.Add(time.Hour).Sub(c.h.Clock.Now()); left > 0 {
		c.h.Clock.Advance(left)
	}
	c.h.Settle()
	return c.now(p)
}

// PaysWrongAsset the figure that is due, in another currency of the same network.
func (c Customer) PaysWrongAsset(p payment.Payment) payment.Payment {
	c.h.t.Helper()
	for _, other := range chain.MainnetRegistry().On(chain.Network(p.Network)) {
		if other.Code != p.Currency {
			return c.sends(p, other.Code, c.due(p))
		}
	}
	c.h.t.Fatalf("cryptopaytest: %s has one currency", p.Network)
	return p
}

// PaysAndIsReorged what is due. The transaction is in a block, and a fork takes the block
// and the transaction away for good.
func (c Customer) PaysAndIsReorged(p payment.Payment) payment.Payment {
	c.h.t.Helper()
	tx, world := c.send(p, p.Currency, c.due(p))
	c.h.Step()
	c.h.Mine(1)
	_, err := world.Reorg(1, tx)
	c.h.must(err)
	c.h.Settle()
	return c.now(p)
}

// Sends so many coins of a currency, of the payment's network, to the payment's address.
func (c Customer) Sends(p payment.Payment, coins, currency string) payment.Payment {
	c.h.t.Helper()
	amount, err := decimal.NewFromString(coins)
	c.h.must(err)
	return c.sends(p, currency, amount)
}

// SendsTo so many coins of a currency to a permanent address, until all comes to rest. What
// that has made is in Tenant.PaymentsOf.
func (c Customer) SendsTo(a payment.PermanentAddress, coins, currency string) {
	c.h.t.Helper()
	amount, err := decimal.NewFromString(coins)
	c.h.must(err)
	c.send(a.Shown(), currency, amount)
	c.h.Settle()
}

func (c Customer) sends(p payment.Payment, currency string, amount decimal.Decimal) payment.Payment {
	c.h.t.Helper()
	c.send(p, currency, amount)
	c.h.Settle()
	return c.now(p)
}

func (c Customer) send(p payment.Payment, currency string, amount decimal.Decimal) (tx string, world *sim.Chain) {
	c.h.t.Helper()
	world = c.h.world(currency)
	tx, err := world.Pay(chain.Address(p.Address), currency, amount)
	c.h.must(err)
	return tx, world
}

func (c Customer) due(p payment.Payment) decimal.Decimal { return c.part(p, 2) }

// part is so many halves of what is due, in whole coins.
func (c Customer) part(p payment.Payment, halves int64) decimal.Decimal {
	c.h.t.Helper()
	return p.DueCoins().Mul(decimal.New(halves*5, -1)).Truncate(int32(p.Scale)) //nolint:gosec // at most 8
}

// now is what the payment has come to.
func (c Customer) now(p payment.Payment) payment.Payment {
	c.h.t.Helper()
	_, p = c.find(p)
	return p
}

// find is what the payment has come to, and whose it is.
func (c Customer) find(p payment.Payment) (tenant string, now payment.Payment) {
	c.h.t.Helper()
	rows, err := c.h.Store.Find(c.h.t.Context(), storage.Query{
		Table: payment.Payments.Table, Where: []storage.Cond{{Column: storage.ColID, Op: storage.Eq, Value: p.ID}},
	})
	c.h.must(err)
	if len(rows) == 0 {
		c.h.t.Fatalf("cryptopaytest: there is no payment %s", p.ID)
	}
	tenant, _ = strings.CutPrefix(string(rows[0].Partition), string(storage.Tenant("")))
	p, err = c.h.App.Payments.Get(c.h.t.Context(), tenant, p.ID)
	c.h.must(err)
	return tenant, p
}
