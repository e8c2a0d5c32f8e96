package payment

import (
	"context"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// load reads what a decision about a fact stands on: the payment that has the address, what
// counts for that, and the deposit that the fact is about.
func (s *Service) load(ctx context.Context, tenant string, sg *incoming.Sighting) (*decision, error) {
	rows, err := s.c.Store.Rows(ctx, Payments.Table, ownAddress(storage.Tenant(tenant), sg.Network, sg.Address))
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return s.loadPermanent(ctx, tenant, sg)
	}
	x := &decision{p: Payments.Value(rows[0]), version: rows[0].Version}
	return x, s.fill(ctx, tenant, sg.Network, x, DepositID(sg))
}

// ownAddress is the key of the payment that has an address to itself.
func ownAddress(part storage.Partition, network, address string) storage.Key {
	return storage.Key{Partition: part, Unique: []string{"network", "address", "slot"}, Values: []any{network, address, ""}}
}

// fill adds what counts for the payment of x, the deposit asked for, and the rules.
func (s *Service) fill(ctx context.Context, tenant, network string, x *decision, depositID string) error {
	x.was = x.p
	x.env = env{rules: s.rules(network), now: s.now(), available: ledger.MaxAmount, wallet: x.p.Wallet}
	if x.p.ID != "" {
		rows, err := s.deposits(ctx, tenant, x.p.ID)
		if err != nil {
			return err
		}
		for _, r := range rows {
			x.deposits = append(x.deposits, stored(r))
		}
	}
	for _, e := range x.deposits {
		if depositID == "" || e.d.ID == depositID {
			depositID = ""
			break
		}
	}
	if depositID != "" {
		rows, err := s.c.Store.Rows(ctx, Deposits.Table, storage.Keys(storage.Tenant(tenant), depositID)...)
		if err != nil {
			return err
		}
		for _, r := range rows {
			x.deposits = append(x.deposits, stored(r))
		}
	}
	x.order()
	return nil
}

func stored(r storage.Row) *entry {
	d := Deposits.Value(r)
	return &entry{d: d, was: d, version: r.Version}
}

// deposits reads all that counts for a payment.
func (s *Service) deposits(ctx context.Context, tenant, payment string) (all []storage.Row, err error) {
	for r, err := range storage.All(ctx, s.c.Store, storage.Query{
		Table: Deposits.Table, Partition: storage.Tenant(tenant), Limit: storage.DefaultLimit, // as others ask, so that they are asked together
		Where: []storage.Cond{{Column: "payment", Op: storage.Eq, Value: payment}},
	}) {
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func (s *Service) rules(network string) rules {
	n, _ := s.c.Registry.Network(network)
	return rules{
		creditLate: s.c.Late == LateCredit, maxUSD: *s.c.MaxCreditUSD, maxDeposits: s.c.MaxDeposits,
		screens: s.c.Screen != nil, utxo: n.Family == chain.UTXOFamily, watch: *s.c.WatchAfter, currency: s.currency,
	}
}

// currency is nil for a code that is none of ours.
func (s *Service) currency(code string) *chain.Currency {
	c, err := s.c.Registry.Currency(code)
	if err != nil {
		return nil
	}
	return c
}

// change writes a decision down. It is empty, so that nothing is committed,
// where the decision found nothing left to do.
func (s *Service) change(ctx context.Context, tenant string, x *decision) (storage.Change, error) {
	part := storage.Tenant(tenant)
	c := storage.Change{Partition: part, Post: x.posts, Count: tally.Entries(x.posts)}
	webhook.Put(&c, x.events...)
	var told []storage.Row // nothing is new but how new: an older fact may be on its way
	for _, e := range x.deposits {
		if e.changed() {
			if err := s.announce(ctx, tenant, x, e, &c); err != nil {
				return c, err
			}
			e.d.UpdatedAt = x.now
			c.Put = append(c.Put, Deposits.Row(e.d.ID, e.version, time.Time{}, e.d))
			events, err := e.tell(x.now)
			if err != nil {
				return c, err
			}
			c.Tell = append(c.Tell, events...)
		} else if e.d.FactVersion != e.was.FactVersion {
			told = append(told, Deposits.Row(e.d.ID, e.version, time.Time{}, e.d))
		}
	}
	for _, record := range x.by {
		rows, events, err := record(x.decides.was, x.decides.d)
		if err != nil {
			return c, err
		}
		c.Put, c.Tell = append(c.Put, rows...), append(c.Tell, events...)
	}
	c.Count = append(c.Count, x.suspended()...)
	if x.waitingMoved() {
		c.Put = append(c.Put, PermanentAddresses.Row(x.at.v.ID, x.at.row.Version, x.at.row.Due, x.at.v))
	}
	if x.p.ID != "" && (x.touched || len(c.Put) > 0 || !same(&x.p, &x.was)) {
		if len(c.Put) > 0 || !same(&x.p, &x.was) {
			x.p.UpdatedAt = x.now
		}
		var was *tally.Item
		if x.version > 0 {
			was = x.was.counted()
		}
		c.Count = append(c.Count, Tally.Moved(was, x.p.counted())...)
		c.Put = append(c.Put, Payments.Row(x.p.ID, x.version, x.due(), x.p))
		row, changed, err := storage.ActivityRow(ctx, s.c.Store, part, x.p.ID, x.activity())
		if err != nil {
			return c, err
		}
		if changed {
			c.Put = append(c.Put, row)
		}
	}
	if c.Put = append(c.Put, told...); len(c.Put) == 0 {
		return c, nil
	}
	c.ID, c.Tell = s.c.NewID(), append(c.Tell, x.told...)
	return c, s.guardWallets(ctx, tenant, x, &c)
}

// announce adds the payment_deposit of a deposit to a Change, where somebody gets it.
func (s *Service) announce(ctx context.Context, tenant string, x *decision, e *entry, c *storage.Change) error {
	if !e.shows() {
		return nil
	}
	if wanted, err := s.c.Wanted(ctx, tenant, webhook.PaymentDeposit); err != nil || !wanted {
		return err
	}
	row, err := x.depositEvent(e)
	if err == nil {
		webhook.Put(c, row)
	}
	return err
}

// guardWallets makes the Change depend on each wallet that it posts to being
// open.
func (s *Service) guardWallets(ctx context.Context, tenant string, x *decision, c *storage.Change) error {
	done := map[string]bool{}
	for _, tx := range x.posts {
		for _, l := range tx.Legs {
			id, ok := l.Account.WalletID()
			if !ok || done[id] {
				continue
			}
			done[id] = true
			_, guard, ok, err := s.c.Wallets.OpenWallet(ctx, tenant, id)
			if err != nil {
				return err
			}
			if !ok { // closed, so nothing is left to take; nothing new is credited to it
				return &ledger.InsufficientFundsError{Account: l.Account, Asset: l.Asset, Requested: -l.Delta}
			}
			c.Require = append(c.Require, guard)
		}
	}
	return nil
}

// changed says whether there is anything new of the deposit. What is only a number
// of the fact itself does not count: the same fact again is nothing new.
func (e *entry) changed() bool {
	if e.version == 0 {
		return true
	}
	d, was := e.d, e.was
	d.FactVersion, d.Confirmations = was.FactVersion, was.Confirmations
	return !equalDeposit(d, was)
}

// equalDeposit compares what == cannot: times and decimals.
func equalDeposit(a, b Deposit) bool {
	if !a.Exact.Equal(b.Exact) || !a.Rate.Equal(b.Rate) || !a.BlockTime.Equal(b.BlockTime) || !a.FirstSeen.Equal(b.FirstSeen) {
		return false
	}
	a.Exact, a.Rate, a.BlockTime, a.FirstSeen = b.Exact, b.Rate, b.BlockTime, b.FirstSeen
	if !a.ScreenedAt.Equal(b.ScreenedAt) || !a.ScreenNext.Equal(b.ScreenNext) {
		return false
	}
	a.ScreenedAt, a.ScreenNext, a.CreatedAt, a.UpdatedAt = b.ScreenedAt, b.ScreenNext, b.CreatedAt, b.UpdatedAt
	return a == b
}

// same says that a decision left the payment as it was, apart from numbers that
// only follow.
func same(a, b *Payment) bool {
	return a.Status == b.Status && a.Type == b.Type && a.Live == b.Live && a.Tx == b.Tx && a.Events == b.Events &&
		a.Received == b.Received && a.Closed == b.Closed && a.Cancelled == b.Cancelled
}

// activity is the payment's line in the unified history: what is live, or what
// is due before anything came, and how it is split.
func (x *decision) activity() storage.Activity {
	p := &x.p
	amount := p.Live
	if amount == 0 {
		amount = p.Due
	}
	parts, err := p.divide(amount)
	if err != nil {
		parts.net = amount
	}
	return storage.Activity{
		Kind: storage.ActivityPayment, Status: string(p.Shown()), Currency: ledger.Asset(p.Currency),
		Amount: amount, Fee: amount - parts.net, Net: parts.net, Address: p.Address, TxHash: p.Tx, Reference: p.OrderID,
		CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt, Metadata: p.metadata(),
	}
}
