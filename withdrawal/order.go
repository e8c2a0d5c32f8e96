package withdrawal

import (
	"context"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Order is a withdrawal that another domain orders, such as a refund. It is an ordinary
// withdrawal, but for what is said here.
type Order struct {
	CreateInput        // without Key and AccountID
	ID          string // of the withdrawal: never one that was used
	// Parent says what the withdrawal is a part of. Its mandate covers it, and Config.Follow
	// hears of its changes.
	Parent string
	Wallet string // id of the ledger's wallet that pays
}

// Draft is an Order that was checked and priced, and is not made yet.
type Draft struct {
	s    *Service
	w    Withdrawal
	from payer
	c    *chain.Currency
}

// Draft checks and prices an order, and writes nothing. Errors are those of Create.
func (s *Service) Draft(ctx context.Context, tenant string, o Order) (*Draft, error) {
	w, from, err := s.draft(ctx, tenant, o.CreateInput, payer{id: o.Wallet, parent: o.Parent})
	if err != nil {
		return nil, err
	}
	w.ID = o.ID
	c, err := s.c.Registry.Currency(w.Currency)
	return &Draft{s: s, w: w, from: from, c: c}, err
}

// Change is the Change that makes the withdrawal and holds its cost, while open holds: the
// guard that the wallet is open, the zero Guard where nobody could close it. Whoever ordered it
// adds what belongs to it, and commits both at once. What the store says then goes to Explain.
func (d *Draft) Change(ctx context.Context, open storage.Guard) (storage.Change, Withdrawal, error) {
	from := d.from
	from.open = open
	return d.s.creation(ctx, d.w, from, d.c, d.s.now())
}

// Explain turns what the store says of a Draft's Change into the errors of Create. Others it
// returns as they are.
func (d *Draft) Explain(err error) error { return explain(err, d.c) }
