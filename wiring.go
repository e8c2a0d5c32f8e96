package cryptopay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// What one domain needs of another passes through here: each domain says what
// it needs as a small interface of its own, and knows no other.

// joined is the store as items of work ask it.
func (a *App) joined() storage.Store { return storage.Joined(a.cfg.Store) }

// route hands a fact to the owner of the address that it happened at.
func (a *App) route(ctx context.Context, f incoming.Fact) error {
	s := f.Sighting
	switch {
	case s.Internal: // a move of our own: its attempt tells what became of it
		return a.Treasury.HandleInternal(ctx, f)
	case s.Purpose == incoming.UsePayment, s.Purpose == incoming.UseAccount: // of the account itself: no payment's
		if err := a.Payments.Handle(ctx, f); err != nil {
			return err
		}
		return a.Treasury.Lost(ctx, s)
	default:
		return a.Treasury.HandleHot(ctx, f)
	}
}

// withdrawn tells the withdrawal, or the payment of the house's, what became of its payout.
func (a *App) withdrawn(ctx context.Context, o outgoing.Outcome) error {
	if house.Is(o.Intent) {
		return a.houseMoney.HandleOutcome(ctx, o)
	}
	return a.Withdrawals.HandleOutcome(ctx, o.Tenant, withdrawal.Outcome{
		Intent: o.Intent, State: string(o.State), Reason: string(o.Reason), Tx: o.Tx, Batch: o.Batch, Confirmations: o.Confirmations,
		Amount: o.Amount, Cost: o.Cost, CostTx: o.CostTx, At: o.At,
	})
}

// callback refuses a callback URL, in words for the merchant.
func (a *App) callback(url string) error {
	if err := a.cfg.Callbacks.URL(url); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), webhook.ErrURL.Error()+": "))
	}
	return nil
}

// payouts is the treasury as withdrawals see it.
type payouts struct{ a *App }

func (p payouts) Submit(ctx context.Context, in chain.Intent) error {
	if p.a.tx != nil {
		return errInTx
	}
	err := p.submit(ctx, in)
	if w := (*treasury.WaitError)(nil); errors.As(err, &w) {
		return &withdrawal.WaitError{Reason: string(w.Reason)}
	}
	switch {
	case errors.Is(err, outgoing.ErrIntent):
		return fmt.Errorf("%w: %w", chain.ErrRejected, err)
	case errors.Is(err, outgoing.ErrDiffers):
		return fmt.Errorf("%w: %w", withdrawal.ErrAltered, err)
	}
	return err
}

func (p payouts) Cancel(ctx context.Context, n chain.Network, id string) (bool, error) {
	if p.a.tx != nil {
		return false, errInTx
	}
	ok, err := p.cancel(ctx, n, id)
	if errors.Is(err, outgoing.ErrNoIntent) {
		return false, fmt.Errorf("%w: %w", withdrawal.ErrNoIntent, err)
	}
	return ok, err
}

// offline is what can still be done about a network that nobody serves any more; ok is
// false where this process has a client of it, or another one serves it.
func (a *App) offline(n chain.Network) (o outgoing.Offline, ok bool) {
	_, err := a.network(n)
	return outgoing.Offline{Store: a.joined(), Network: n, Now: a.cfg.Clock.Now}, err != nil && !slices.Contains(a.cfg.Elsewhere, n)
}

func (p payouts) submit(ctx context.Context, in chain.Intent) error {
	if o, ok := p.a.offline(in.Network); ok && slices.Contains(p.a.cfg.Retire, in.Currency) {
		err := o.Submit(ctx, in)
		if errors.Is(err, outgoing.ErrIntent) {
			err = errors.Join(err, p.a.Treasury.Refused(ctx, in))
		}
		return err
	}
	return p.a.Treasury.Submit(ctx, in)
}

func (p payouts) cancel(ctx context.Context, n chain.Network, id string) (bool, error) {
	if o, ok := p.a.offline(n); ok {
		return o.Cancel(ctx, id)
	}
	return p.a.Treasury.Cancel(ctx, n, id)
}

// wanted says whether anybody gets webhooks of a type: a Notifier of the host's own gets all.
func (a *App) wanted(ctx context.Context, tenant, eventType string) (bool, error) {
	if a.cfg.Notifier != nil {
		return true, nil
	}
	return a.Webhooks.Wants(ctx, tenant, eventType)
}

// pendingPayments says whether an open payment will credit a wallet.
func (a *App) pendingPayments(ctx context.Context, tenant, id string) (bool, error) {
	n, err := a.cfg.Store.Count(ctx, storage.Query{
		Table: payment.Payments.Table, Partition: storage.Tenant(tenant), Where: []storage.Cond{
			{Column: "wallet", Op: storage.Eq, Value: id},
			{Column: "status", Op: storage.In, Value: openPayments},
		},
	})
	return n > 0, err
}

// openPayments are the statuses in which money is still expected.
var openPayments = []payment.Status{payment.Waiting, payment.PartiallyPaid, payment.Confirming}

// tenants is the wallet service as payments see it.
type tenants struct{ a *App }

func (t tenants) PaymentFees(ctx context.Context, tenant string) (payment.Fees, bool, error) {
	v, err := t.a.Wallets.Tenant(ctx, tenant)
	if errors.Is(err, wallet.ErrNoTenant) {
		return payment.Fees{}, false, nil
	}
	return payment.Fees{Percent: v.TransactionFee, ByUser: v.FeePaidByUser}, err == nil, err
}

// wallets is the wallet service as payments see it.
type wallets struct{ a *App }

func (w wallets) OpenWallet(ctx context.Context, tenant, ref string) (string, storage.Guard, bool, error) {
	if ref == wallet.Master {
		ref = "" // the id of the master account, as payments keep it
	}
	id, guard, err := w.a.Wallets.Resolve(ctx, tenant, ref)
	if errors.Is(err, wallet.ErrNotFound) {
		return "", guard, false, nil
	}
	return id, guard, err == nil, err
}

// addresses is the pool as the domains see it: nobody is shown an address of a
// network whose blocks are not being read yet, else what is paid before the
// first look at the chain would never be seen.
type addresses struct{ a *App }

func (p addresses) Take(ctx context.Context, n chain.Network, tenant string) (chain.Derived, error) {
	if err := p.a.reading(ctx, n); err != nil {
		return chain.Derived{}, err
	}
	return p.a.Addresses.Take(ctx, n, tenant)
}

// Hot is the tenant's hot address on a network, where the operator's own coins
// go; made when first asked for.
func (a *App) Hot(ctx context.Context, n chain.Network, tenant string) (chain.Address, error) {
	if err := a.reading(ctx, n); err != nil {
		return "", err
	}
	d, err := a.Addresses.Hot(ctx, n, tenant)
	return d.Address, err
}

// reading makes sure that the network's cursor is somewhere.
func (a *App) reading(ctx context.Context, n chain.Network) error {
	net, err := a.network(n)
	if err != nil {
		return err
	}
	if net.started.Load() {
		return nil
	}
	for range 2 {
		_, _, ok, err := incoming.Cursors.One(ctx, a.joined(), storage.Network(string(n)), incoming.CursorID)
		if err != nil {
			return err
		}
		if ok {
			net.started.Store(true)
			return nil
		}
		if _, err := net.in.Step(ctx); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrNotReady, n, err)
		}
	}
	return fmt.Errorf("%w: %s has no block yet", ErrNotReady, n)
}

// ErrNotReady says that a network's blocks are not being read yet, so that no address
// of it is given out.
var ErrNotReady = errors.New("cryptopay: the network is not being read yet")

// NetworkStatus is how far a network was read and whether it is halted or stuck.
func (a *App) NetworkStatus(ctx context.Context, n chain.Network) (incoming.Status, error) {
	net, err := a.network(n)
	if err != nil {
		return incoming.Status{}, err
	}
	return net.in.Status(ctx)
}

// head is how far a network was read.
func (a *App) head(ctx context.Context, n chain.Network) (incoming.Cursor, error) {
	c, _, _, err := incoming.Cursors.One(ctx, a.joined(), storage.Network(string(n)), incoming.CursorID)
	return c, err
}

// readUpTo is head as payments need it: where blocks come by themselves, what was paid is
// known up to the chain's own time and no further. A node that stands still answers too. Of a
// network that this process does not serve it is what the store has: lists show its payments.
func (a *App) readUpTo(ctx context.Context, n chain.Network) (incoming.Cursor, error) {
	c, err := a.head(ctx, n)
	if err != nil {
		return c, err
	}
	if net, err := a.network(n); err == nil && a.cfg.headAge(net.client) > 0 && c.HeadTime.Before(c.TipRead) {
		c.TipRead = c.HeadTime
	}
	return c, nil
}

// depositPrice is what a coin is worth in USD, for the confirmations that a deposit needs by its
// value. Without an answer the deposit needs the most.
func (a *App) depositPrice(ctx context.Context, c *chain.Currency) (decimal.Decimal, bool) {
	r, err := a.cfg.ratesFor("confirmations by value").Rate(storage.Apart(ctx), c.Token, "USD")
	if err != nil {
		a.cfg.Log.WarnContext(ctx, "price_unavailable", "currency", c.Code, "error", err)
		return decimal.Zero, false
	}
	return r.Price, true
}

// undecided reports at which addresses something has come that payments do not know yet.
func (a *App) undecided(ctx context.Context, n chain.Network, addresses ...string) (map[string]bool, error) {
	net, err := a.network(n)
	if err != nil {
		return nil, err
	}
	return net.in.Undecided(ctx, addresses...)
}

// waiting lists the addresses of payments that wait for a network's own coin. Where the
// store fails, rounds find what is not looked for at the block.
func (a *App) waiting(ctx context.Context, n chain.Network) []chain.Address {
	open, err := a.Payments.Open(ctx, n)
	if err != nil {
		a.cfg.Log.WarnContext(ctx, "open_payments_not_read", "network", string(n), "error", err)
	}
	return open
}

func (a *App) parse(n chain.Network, s string) (chain.Address, error) {
	net, err := a.network(n)
	if err != nil {
		return "", err
	}
	return net.client.ParseAddress(s)
}

// parseVault gives an address that no key signs for its canonical form, where its network has such.
func (a *App) parseVault(n chain.Network, s string) (chain.Address, error) {
	net, err := a.network(n)
	if err != nil {
		return "", err
	}
	if v, able := net.client.(chain.VaultParser); able {
		return v.ParseVault(s)
	}
	return net.client.ParseAddress(s)
}

// untag takes an address apart where its network's client knows how.
func (a *App) untag(n chain.Network, address chain.Address) (chain.Address, string, bool) {
	net, err := a.network(n)
	if err != nil {
		return "", "", false
	}
	if t, able := net.client.(chain.Tagger); able {
		return t.Untag(address)
	}
	return "", "", false
}

// Untag takes the address of a payment apart that carries a memo: the account, and
// the memo to give with it. ok is false for every other address.
func (a *App) Untag(n chain.Network, address chain.Address) (account chain.Address, memo string, ok bool) {
	return a.untag(n, address)
}

// deliverable refuses a recipient that the network says cannot take the payment. A
// node that does not answer refuses nobody: Build looks again.
func (a *App) deliverable(ctx context.Context, c *chain.Currency, to chain.Address, memo string, amount ledger.Amount) error {
	net, err := a.network(c.Network)
	if err != nil {
		return err
	}
	d, able := net.client.(chain.Deliverer)
	if !able {
		return nil
	}
	var bad *chain.AddressError
	if err = d.Deliverable(ctx, c.Code, to, memo, amount); errors.As(err, &bad) {
		return bad
	}
	if err != nil {
		a.cfg.Log.WarnContext(ctx, "recipient_not_looked_at", "network", string(c.Network), "error", err)
	}
	return nil
}

// own says whether an address is one of ours, and for what.
func (a *App) own(ctx context.Context, n chain.Network, address chain.Address) (string, bool, error) {
	row, ok, err := a.Addresses.Owner(ctx, n, address)
	return string(row.Use), ok && row.Use != "", err
}

// KeyOf names the key of one of this App's addresses, as the directory has it: for a
// Signer's KeyOf, which derives the address from it.
func (a *App) KeyOf(ctx context.Context, n chain.Network, address chain.Address) (chain.KeyRef, bool, error) {
	row, ok, err := a.Addresses.Owner(ctx, n, address)
	return chain.KeyRef(row.Key), ok && row.Use != "", err
}

// haltedIntent returns why an intent may not be sent now, "" where it may: its network is
// halted, or it is a payout that no withdrawal has ordered, or one that was not signed yet
// of a currency that is halted or delivered less than ordered. One that was signed goes
// on, as the payouts of every currency wait behind its nonce.
func (a *App) haltedIntent(ctx context.Context, in chain.Intent) (string, error) {
	cursor, err := a.head(ctx, in.Network)
	if err != nil || cursor.Halted != "" || in.Purpose != chain.ForWithdrawal {
		return cursor.Halted, err
	}
	pending, why, err := a.confirmed(ctx, in)
	if err != nil {
		return "", err
	}
	if why != "" {
		return string(outgoing.ReasonAltered), nil
	}
	if !pending {
		return "", nil
	}
	if house.Is(in.ID) { // customers come first
		why, err := a.haltedAsset(ctx, in.Tenant, in.Currency)
		if err == nil && why == "" {
			if listed, failure := a.houseMoney.Listed(ctx, in); failure != nil || !listed {
				return "its cold address is no longer the policy's", failure
			}
		}
		return why, err
	}
	h, _, halted, err := incoming.AssetHalts.One(ctx, a.joined(), storage.Network(string(in.Network)), in.Currency)
	if err != nil || halted {
		return h.Reason, err
	}
	if less, err := a.Withdrawals.DeliveredLess(ctx, in.Tenant, in.Currency); err != nil || !less {
		return "", err
	}
	return lessDelivered(in.Currency), nil
}

// raise is asked by the payout side for a higher bound of an order.
func (a *App) raise(ctx context.Context, in chain.Intent, most ledger.Amount) (ledger.Amount, error) {
	return a.Treasury.Grant(ctx, in, most)
}

// ordered says why an order may not be signed, whatever is halted: nobody gave it.
func (a *App) ordered(ctx context.Context, in chain.Intent) (string, error) {
	_, why, err := a.confirmed(ctx, in)
	return why, err
}

// confirmed says why an order may not be signed, and logs it, and whether what gave the order
// is pending.
func (a *App) confirmed(ctx context.Context, in chain.Intent) (pending bool, why string, err error) {
	_, pending, why, err = a.order(ctx, in)
	if why != "" {
		a.cfg.Log.ErrorContext(ctx, "order_altered", "network", string(in.Network), "tenant", in.Tenant, "withdrawal", in.ID, "reason", why)
	}
	return pending, why, err
}

// order asks what gave an order whether it still stands: a withdrawal, or a payment of the
// house's own. It returns the mandate of that.
func (a *App) order(ctx context.Context, in chain.Intent) (mandate string, pending bool, why string, err error) {
	if house.Is(in.ID) {
		var p house.Payment
		p, why, err = a.houseMoney.Confirm(ctx, in)
		mandate, pending = p.Mandate, p.Status == house.Pending
	} else {
		var w withdrawal.Withdrawal
		w, why, err = a.Withdrawals.Confirm(ctx, in)
		mandate, pending = w.Mandate, w.Status == withdrawal.Pending
	}
	if why == "" && err == nil {
		why, err = a.payer(ctx, &in)
	}
	return mandate, pending, why, err
}

// foreign returns the outpoints of those coins that are none of a tenant's: they lie at an address that is
// not his, and no operator has said that a transaction which a restored store did not know returned them.
func (a *App) foreign(ctx context.Context, n chain.Network, tenant string, coins []chain.Coin) (out []string, err error) {
	var addresses, taken []string
	for i := range coins {
		addresses = append(addresses, string(coins[i].Address))
	}
	own, err := a.tenantsOf(ctx, incoming.Addresses.Table, n, addresses, func(r storage.Row) string { return incoming.Addresses.Value(r).Tenant })
	if err != nil {
		return nil, err
	}
	for i := range coins {
		if c := &coins[i]; own[string(c.Address)] != tenant {
			tx, _, _ := strings.Cut(c.Outpoint, ":")
			out, taken = append(out, c.Outpoint), append(taken, audit.TakenID(tx))
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	returned, err := a.tenantsOf(ctx, outgoing.Operations.Table, n, taken, func(r storage.Row) string { return outgoing.Operations.Value(r).Tenant })
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(outpoint string) bool {
		tx, _, _ := strings.Cut(outpoint, ":")
		return returned[audit.TakenID(tx)] == tenant
	}), nil
}

// tenantsOf returns the tenants of a network's rows, by their ids. It has none where there is no row, or
// it cannot be read.
func (a *App) tenantsOf(ctx context.Context, t *storage.Table, n chain.Network, ids []string, tenant func(storage.Row) string) (map[string]string, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	rows, err := a.joined().Rows(ctx, t, storage.Keys(storage.Network(string(n)), ids...)...)
	var unread storage.RowErrors
	if err = unread.Take(err); err != nil {
		return nil, err
	}
	of := make(map[string]string, len(rows))
	for _, row := range rows {
		of[row.ID] = tenant(row)
	}
	return of, nil
}

// payer says why an order must not be paid from its address: it is another tenant's, or has another key.
// Where coins are outputs an order names none.
func (a *App) payer(ctx context.Context, in *chain.Intent) (why string, err error) {
	if in.From == "" {
		return "", nil
	}
	row, known, err := a.Addresses.Owner(ctx, in.Network, in.From)
	switch {
	case err != nil:
		return "", err
	case !known || row.Tenant != in.Tenant || row.Use != incoming.UseHot && row.Use != incoming.UseAccount && row.Use != incoming.UseRetired:
		return "it is to be paid from " + string(in.From) + ", which is no hot address of the tenant's", nil
	case in.FromKey != chain.KeyRef(row.Key):
		return "it is to be paid from " + string(in.From) + " with another key", nil
	}
	return "", nil
}

// haltedAsset says why paying out an asset is halted for a tenant, "" where it is not: its
// network is, an operator has halted one of them (Operate.Halt), its logs and balances differ, a
// payout or sweep of it delivered less than ordered, or a deep reorg left the tenant's house without
// equity in it.
func (a *App) haltedAsset(ctx context.Context, tenant, currency string) (why string, err error) {
	c, err := a.cfg.Registry.Currency(currency)
	if err != nil {
		return "", err
	}
	network := storage.Network(string(c.Network))
	cursor, err := a.head(ctx, c.Network)
	if err != nil || cursor.Halted != "" {
		return cursor.Halted, err
	}
	halts, _, _, err := outgoing.Halts.One(ctx, a.joined(), network, outgoing.HaltsID)
	if err != nil {
		return "", err
	}
	if h, stops := halts.Stops(chain.Intent{Purpose: chain.ForWithdrawal, Tenant: tenant, Currency: currency}); stops {
		return cmp.Or(h.Reason, "an operator has halted it"), nil
	}
	if less, err := a.Withdrawals.DeliveredLess(ctx, tenant, currency); err != nil {
		return "", err
	} else if less {
		return lessDelivered(currency), nil
	}
	if h, _, halted, err := incoming.AssetHalts.One(ctx, a.joined(), network, c.Code); err != nil {
		return "", err
	} else if halted {
		return cmp.Or(h.Reason, "the library has halted it"), nil
	}
	balances, err := storage.Tenant(tenant).HouseBalances(ctx, a.joined())
	if err != nil {
		return "", err
	}
	var equity ledger.Amount
	for _, b := range balances {
		if b.Asset == c.Asset() {
			if equity, err = equity.Add(b.Available()); err != nil {
				return "", err
			}
		}
	}
	if equity < 0 {
		return "the operator's equity in " + currency + " is below 0: top up a hot address of the tenant's", nil
	}
	return "", nil
}

// lessDelivered is why a currency is halted while nobody has decided about what a payout brought less.
func lessDelivered(currency string) string {
	return "another payout of " + currency + " delivered less than ordered"
}

// fees quotes network fees in the withdrawal's own currency.
type fees struct{ a *App }

// NetworkFee estimates what moving a payment in a currency on will cost, in
// units of that currency, rounded up: for payment.Config.NetworkFee.
func (a *App) NetworkFee(ctx context.Context, c *chain.Currency) (ledger.Amount, error) {
	least, err := c.Units(c.MinWithdrawal, ledger.Up)
	if err != nil {
		return 0, err
	}
	return fees{a}.Quote(ctx, chain.Intent{Purpose: chain.ForWithdrawal, Network: c.Network, Currency: c.Code, Amount: max(least, 1)})
}

// feeMarginNum / feeMarginDen is by what a quote multiplies the estimate: prices move
// until the withdrawal is sent, and the house bears the rest.
const (
	feeMarginNum = 12
	feeMarginDen = 10
)

func (f fees) Quote(ctx context.Context, in chain.Intent) (ledger.Amount, error) {
	c, err := f.a.cfg.Registry.Currency(in.Currency)
	if err != nil {
		return 0, err
	}
	fee, merges, err := f.estimate(ctx, in)
	if err != nil {
		return 0, err
	}
	gas, err := f.a.cfg.Registry.Currency(fee.Currency)
	if err != nil {
		return 0, err
	}
	cost, err := fee.Cost.Add(merges)
	if err != nil {
		return 0, err
	}
	cost, err = cost.MulDiv(feeMarginNum, feeMarginDen, ledger.Up)
	if err != nil {
		return 0, err
	}
	return f.inUnitsOf(ctx, cost, gas, c)
}

// maxCost is the most that the network may take for one withdrawal: what an
// estimate for the very recipient says at the worst, as some cost more than
// others (an account that is not there yet), with room to replace a stuck
// transaction. A recipient that is a contract says itself what it costs to be paid,
// and may have been cheap when its fee was quoted: the bound is what a typical one
// costs, some times over.
func (f fees) maxCost(ctx context.Context, in chain.Intent) (ledger.Amount, error) {
	to := in.To
	in.To = ""
	typical, _, err := f.estimate(ctx, in)
	if err != nil {
		return 0, err
	}
	in.To = to
	fee, _, err := f.estimate(ctx, in)
	if errors.Is(err, chain.ErrNode) {
		// The node has just answered. A recipient that is a contract can bring this about.
		return 0, fmt.Errorf("what it costs to pay this recipient: %s", err.Error())
	}
	if err != nil {
		return 0, err
	}
	most, err := typical.Max.MulDiv(dearTimes, 1, ledger.Up)
	if err != nil {
		return 0, err
	}
	return min(fee.Max, most).MulDiv(maxCostTimes, 1, ledger.Up)
}

// estimate is the fee of a withdrawal: of the coins that it would spend now, where coins
// are outputs, else of the smallest one, whatever its sender holds by now. merges is what
// merging coins costs before.
func (f fees) estimate(ctx context.Context, in chain.Intent) (fee chain.Fee, merges ledger.Amount, err error) {
	net, err := f.a.network(in.Network)
	if err != nil {
		return fee, 0, err
	}
	in = chain.Intent{Purpose: in.Purpose, Tenant: in.Tenant, Network: in.Network, Currency: in.Currency, To: in.To, Amount: in.Amount}
	c, err := f.a.cfg.Registry.Currency(in.Currency)
	if err != nil {
		return fee, 0, err
	}
	least, err := c.Units(c.MinWithdrawal, ledger.Up)
	if err != nil {
		return fee, 0, err
	}
	info, err := f.a.cfg.Registry.Network(string(in.Network))
	if in.Amount = max(in.Amount, least, 1); err == nil && info.Family != chain.UTXOFamily {
		in.Amount = max(least, 1)
	}
	return net.out.Quote(ctx, in)
}

const (
	// maxCostTimes is the room above an estimate's worst case.
	maxCostTimes = 3
	// dearTimes is how much dearer than a typical one a recipient may be. The
	// account of Tron that is not there yet is some five times as dear.
	dearTimes = 10
)

// inUnitsOf turns an amount of a gas currency into units of another currency, as convert does.
func (f fees) inUnitsOf(ctx context.Context, amount ledger.Amount, gas, c *chain.Currency) (ledger.Amount, error) {
	if gas.Code == c.Code {
		return amount, nil
	}
	return f.convert(ctx, gas.Decimal(amount), gas.Token, c)
}

// convert turns coins of one token into units of a currency, rounded up. Where one
// of them has no price now the error wraps rates.ErrUnavailable.
func (f fees) convert(ctx context.Context, coins decimal.Decimal, token string, c *chain.Currency) (ledger.Amount, error) {
	from, err := f.price(ctx, token)
	if err != nil {
		return 0, err
	}
	to, err := f.price(ctx, c.Token)
	if err != nil {
		return 0, err
	}
	return ledger.Quo(coins.Mul(from), to, c.Scale, ledger.Up)
}

func (f fees) price(ctx context.Context, token string) (decimal.Decimal, error) {
	r, err := f.a.cfg.ratesFor("network fees").Rate(storage.Apart(ctx), token, "USD")
	if err != nil {
		return decimal.Decimal{}, fmt.Errorf("pricing the network fee: %w", err)
	}
	return r.Price, nil
}

// Scale is how many places the ledger counts a currency in. A currency that Config.Registry
// lists may be on a network that this process does not serve. One that was taken out of it
// keeps the scale that the store knows it by, so that histories and balances stay readable:
// the store is asked once. Errors wrap chain.ErrCurrency where no process ever listed it.
func (a *App) Scale(code string) (uint8, error) {
	c, err := a.cfg.listed.Currency(code)
	if err != nil {
		c, err = chain.MainnetRegistry().Currency(code)
	}
	if err == nil {
		return c.Scale, nil
	}
	if known, ok := a.scales.Load(code); ok {
		return known.(uint8), nil
	}
	was, _, ok, readErr := Listings.One(context.Background(), a.cfg.Store, storage.System, code)
	switch {
	case readErr != nil:
		return 0, readErr
	case !ok || was.Scale < 0 || was.Scale > math.MaxUint8:
		return 0, fmt.Errorf("cryptopay: %w is in the books and in no listing: put it into Config.Registry", err)
	}
	scale := uint8(was.Scale)
	a.scales.Store(code, scale)
	return scale, nil
}
