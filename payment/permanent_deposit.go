package payment

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
)

// atPermanent is what the decision about a deposit at a permanent address stands on while
// there is no payment for the deposit.
type atPermanent struct {
	v       PermanentAddress
	row     storage.Row
	minimum decimal.Decimal // of the deposit's currency, in whole coins
	waiting []*entry        // small deposits of that currency in suspense, greatest first
	scale   int
}

// maxWaiting is how many small deposits are added up in one payment: the greatest. What is
// beyond waits for the next one, or for a person.
const maxWaiting = 500

// inUse reports whether a deposit of a time came before the address was retired.
func (at *atPermanent) inUse(t time.Time) bool {
	return at.v.RetiredAt.IsZero() || t.Before(at.v.RetiredAt)
}

// small reports whether a deposit is below the minimum.
func (at *atPermanent) small(d *Deposit) bool {
	return d.Amount.Decimal(uint8(at.scale)).LessThan(at.minimum) //nolint:gosec // a scale is at most 8
}

// paymentID is the id of the payment that a deposit at a permanent address makes: a UUID of
// version 8, made of the deposit's id.
func paymentID(depositID string) string {
	b := sha256.Sum256([]byte("payment of deposit " + depositID))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// loadPermanent is load for an address that no payment has to itself. Where it is a permanent
// one, the deposit has a payment of its own already, or the decision is whether it makes one.
func (s *Service) loadPermanent(ctx context.Context, tenant string, sg *incoming.Sighting) (*decision, error) {
	part, id := storage.Tenant(tenant), DepositID(sg)
	x := &decision{}
	rows, err := s.c.Store.Rows(ctx, PermanentAddresses.Table, storage.Key{
		Partition: part, Unique: []string{"network", "address"}, Values: []any{sg.Network, sg.Address},
	})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return x, s.fill(ctx, tenant, sg.Network, x, id)
	}
	d, _, _, err := Deposits.One(ctx, s.c.Store, part, id)
	if err != nil {
		return nil, err
	}
	of := orElse(d.Payment, paymentID(id))
	p, row, ok, err := Payments.One(ctx, s.c.Store, part, of)
	if err != nil {
		return nil, err
	}
	if ok {
		x.p, x.version = p, row.Version
		return x, s.fill(ctx, tenant, sg.Network, x, id)
	}
	if err := s.fill(ctx, tenant, sg.Network, x, id); err != nil {
		return nil, err
	}
	c := s.currency(sg.Currency)
	if c == nil {
		return x, nil
	}
	x.at = &atPermanent{v: PermanentAddresses.Value(rows[0]), row: rows[0], scale: int(c.Scale)}
	x.draft(of, id, c)
	return x, s.loadWaiting(ctx, part, x)
}

// draft is the payment that a deposit makes if it makes one. What it owes to prices is
// filled in by terms and begin.
func (x *decision) draft(payment, deposit string, c *chain.Currency) {
	a := &x.at.v
	x.p = Payment{
		ID: payment, Network: a.Network, Address: a.Address, AddressID: a.ID, Slot: deposit, Currency: c.Code, Token: c.Token, Scale: int(c.Scale),
		PriceCurrency: usd, Wallet: a.Wallet, WalletRef: a.WalletRef, CallbackURL: a.CallbackURL,
		CreatedAt: x.now, UpdatedAt: x.now, ExpiresAt: x.now.Add(holdFor), Closed: true,
	}
}

// loadWaiting reads the small deposits that wait at the address. Whoever changes what waits
// writes the address's row, so that of two who add up one decides again.
func (s *Service) loadWaiting(ctx context.Context, part storage.Partition, x *decision) error {
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Deposits.Table, Partition: part, Limit: maxWaiting,
		Where: []storage.Cond{
			{Column: "network", Op: storage.Eq, Value: x.p.Network},
			{Column: "address", Op: storage.Eq, Value: x.p.Address},
			{Column: "booking", Op: storage.Eq, Value: InSuspense},
			{Column: "role", Op: storage.Eq, Value: RoleSmall},
			{Column: "currency", Op: storage.Eq, Value: x.p.Currency},
		},
		// Where there are more, tiny ones that anybody may have sent keep no greater one out.
		Order: []storage.Order{{Column: "amount", Desc: true}},
	})
	for _, r := range rows {
		x.at.waiting = append(x.at.waiting, stored(r))
	}
	return err
}

// terms asks for the minimum of a payment, and what fees it pays.
func (s *Service) terms(ctx context.Context, tenant string, x *decision) error {
	c := s.currency(x.p.Currency)
	f, err := s.fees(ctx, tenant)
	if err != nil {
		return err
	}
	least, err := s.Minimums(ctx, c)
	if err != nil {
		return err
	}
	x.at.minimum = least[c.Code]
	x.p.FeePercent, x.p.FeeByUser = f.Percent, f.ByUser
	if x.p.NetworkFee, err = s.c.NetworkFee(ctx, c); err == nil && x.p.NetworkFee < 0 {
		err = fmt.Errorf("payment: the network fee of %s was quoted below 0", c.Code)
	}
	return err
}

// begin makes the payment of a deposit, where the deposit is enough by itself or together with
// what waits at the address. made is false, and there is no payment, where it is not.
func (x *decision) begin(e *entry) (made bool, err error) {
	mine := []*entry{e}
	if e.d.Role == RoleSmall && x.reaches(e) {
		for _, o := range x.at.waiting {
			if o.d.ID != e.d.ID {
				mine = append(mine, o)
				x.deposits = append(x.deposits, o)
			}
		}
		for _, o := range mine {
			o.d.Role, o.d.Payment = RoleInTime, x.p.ID
			if err := x.value(&o.d); err != nil {
				return false, err
			}
		}
	}
	if !e.d.Role.counted() {
		x.p = Payment{}
		return false, nil
	}
	if x.p.Rate.Sign() <= 0 {
		return false, errNoPrice // nothing is written: the fact is due again
	}
	x.p.Wallet = x.wallet
	x.order()
	x.sums()
	slices.SortStableFunc(mine, func(a, b *entry) int { return a.d.FirstSeen.Compare(b.d.FirstSeen) })
	for _, o := range mine {
		if err := x.received(o); err != nil {
			return false, err
		}
	}
	return true, x.move(onDeposit, Confirming)
}

// reaches reports whether a small deposit is final and makes up the minimum together with what
// waits.
func (x *decision) reaches(e *entry) bool {
	released := e.d.Booking == InSuspense && e.was.Role == RoleHeld
	if !e.d.Proven || e.d.Booking != Unbooked && e.d.Booking != Reversed && !released {
		return false
	}
	sum := e.d.Amount
	for _, o := range x.at.waiting {
		if o.d.ID != e.d.ID {
			sum = addUp(sum, o.d.Amount)
		}
	}
	return !sum.Decimal(uint8(x.at.scale)).LessThan(x.at.minimum) //nolint:gosec // a scale is at most 8
}

// waitingMoved reports whether the decision changes what waits at a permanent address.
func (x *decision) waitingMoved() bool {
	return x.at != nil && slices.ContainsFunc(x.deposits, func(e *entry) bool {
		small := e.d.Role == RoleSmall || e.was.Role == RoleSmall
		released := e.was.Role == RoleHeld && e.d.Role != RoleHeld
		return small && (released || e.d.Booking != e.was.Booking)
	})
}

// follow keeps what is due for a payment at a permanent address at what came, until that is
// credited: what a transaction brings may change until it is in a block.
func (x *decision) follow() {
	if x.p.AddressID == "" || x.p.Live <= 0 || slices.Contains(paid, x.p.Status) {
		return
	}
	x.p.Due = x.p.Live
	x.p.Price = x.p.DueCoins().Mul(x.p.Rate).RoundDown(2)
}
