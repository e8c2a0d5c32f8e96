package refund

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Claim is what a claim link tells whom has it.
type Claim struct {
	Amount   ledger.Amount // what is sent, less the network's fee
	Scale    int
	Currency string
	Status   Status
}

func (r *Refund) claim() Claim {
	return Claim{Amount: r.Amount, Scale: r.Scale, Currency: r.Currency, Status: r.Status}
}

// Offered is what a claim link gives, or ErrNoClaim.
func (s *Service) Offered(ctx context.Context, token string) (Claim, error) {
	_, r, err := s.claimed(ctx, token)
	return r.claim(), err
}

// maxToken is longer than any token.
const maxToken = 100

// claimed finds the refund of a claim link that can be used, and its tenant.
func (s *Service) claimed(ctx context.Context, token string) (tenant string, r Refund, err error) {
	if token == "" || len(token) > maxToken {
		return "", r, ErrNoClaim
	}
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Refunds.Table, Limit: 1, Where: []storage.Cond{{Column: "claim", Op: storage.Eq, Value: digest(token)}},
	})
	if err == nil && len(rows) == 0 {
		err = ErrNoClaim
	}
	if err != nil {
		return "", r, err
	}
	r = values(rows)[0]
	if !s.open(&r) {
		return "", Refund{}, ErrNoClaim
	}
	return strings.TrimPrefix(string(rows[0].Partition), string(storage.Tenant(""))), r, nil
}

// open reports whether the claim link of a refund can be used.
func (s *Service) open(r *Refund) bool {
	return r.Status == AwaitingAddress && r.Claim != "" && s.now().Before(r.ExpiresAt)
}

// Altered says why nothing may be done by the claim link of a refund, "" = it may: somebody
// edited its row.
func (s *Service) Altered(ctx context.Context, tenant string, r *Refund) (string, error) {
	if r.Status != AwaitingAddress {
		return "", nil
	}
	err := s.c.Seals.Check(ctx, r.Seal, r.terms(tenant))
	if errors.Is(err, mandate.ErrMissing) || errors.Is(err, mandate.ErrForged) || errors.Is(err, mandate.ErrKey) {
		return err.Error(), nil
	}
	return "", err
}

func (s *Service) intact(ctx context.Context, tenant string, r *Refund) error {
	why, err := s.Altered(ctx, tenant, r)
	if err == nil && why != "" {
		s.c.Log.LogAttrs(ctx, slog.LevelError, "refund_altered", slog.String("tenant", tenant), slog.String("refund", r.ID), slog.String("reason", why))
		err = ErrAltered
	}
	return err
}

// Authorize gives a refund its Seal anew, under a new key. It writes nothing.
func (s *Service) Authorize(tenant string, r *Refund) (err error) {
	r.Seal, err = s.c.Seals.Make(r.terms(tenant))
	return err
}

// Claim orders the refund of a claim link to an address. The link is used then. Errors:
// ErrNoClaim; *InvalidError of address and memo; *chain.AddressError; ErrNotNow; ErrAltered.
func (s *Service) Claim(ctx context.Context, token, address, memo string) (Claim, error) {
	bad := &InvalidError{}
	if address == "" {
		bad.Add("address", "is required")
	}
	tenant, r, err := s.claimed(ctx, token)
	if err == nil {
		err = bad.Err()
	}
	if err == nil {
		err = s.intact(ctx, tenant, &r)
	}
	if err != nil {
		return Claim{}, err
	}
	out, err := s.pay(ctx, tenant, r, address, memo)
	if why := notNow(err); why != "" {
		s.c.Log.LogAttrs(ctx, slog.LevelWarn, "refund_not_paid", slog.String("tenant", tenant), slog.String("refund", r.ID), slog.String("reason", err.Error()))
		err = errors.Join(ErrNotNow, s.waits(ctx, tenant, r.ID, why))
	}
	return out.claim(), err
}

// notNow is why a refund waits on although its customer has named a good address, "" = the
// error is about the request, or of the store.
func notNow(err error) string {
	var (
		short   *withdrawal.InsufficientError
		bad     *InvalidError
		address *chain.AddressError
	)
	switch {
	case err == nil, errors.As(err, &address):
		return ""
	case errors.As(err, &short):
		return WaitingFunds
	case errors.As(err, &bad):
		for field := range bad.Fields {
			if field != "address" && field != "memo" {
				return WaitingPayout
			}
		}
		return ""
	case errors.Is(err, withdrawal.ErrFee), errors.Is(err, chain.ErrCurrency), errors.Is(err, errClosed), errors.Is(err, errGone):
		return WaitingPayout
	}
	return ""
}

// errGone: a fork has taken away what the payment had received.
var errGone = errors.New("refund: the payment has not received as much any more")

// pay makes the withdrawal of a refund that has waited for its address.
func (s *Service) pay(ctx context.Context, tenant string, r Refund, address, memo string) (Refund, error) {
	wallet, _, err := s.wallet(ctx, tenant, r.Wallet)
	if err != nil {
		return Refund{}, err
	}
	paying := r
	paying.Wallet = wallet // the master account, where that of the refund was closed
	d, err := s.draft(ctx, tenant, &paying, address, memo)
	if err != nil {
		return Refund{}, err
	}
	p, sent := storage.Tenant(tenant), "" // the Change of the decision before
	err = storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		now, row, err := s.load(ctx, p, r.ID)
		if err != nil {
			return storage.Change{}, err
		}
		if sent != "" && row.Change == sent { // it has happened, unheard
			paying = now
			return storage.Change{}, nil
		}
		if !s.open(&now) {
			return storage.Change{}, ErrNoClaim
		}
		if err := s.intact(ctx, tenant, &now); err != nil {
			return storage.Change{}, err
		}
		now.Wallet = wallet
		paying = now
		of, at, err := s.payment(ctx, p, now.Payment)
		if err != nil {
			return storage.Change{}, err
		}
		if left, err := s.over(ctx, tenant, &of); err != nil || left < 0 {
			return storage.Change{}, cmp.Or(err, errGone)
		}
		sent = s.c.NewID()
		change := storage.Change{
			ID: sent, Partition: p, Level: []storage.Level{spent(r.ID)}, Require: []storage.Guard{payment.Payments.Guard(of.ID, at.Version)},
		}
		return change, s.begin(ctx, tenant, &paying, d, onClaim, &change, row)
	})
	return paying, s.explain(err, &paying, d)
}

// waits notes why a refund could not be paid to the address that was named.
func (s *Service) waits(ctx context.Context, tenant, id, why string) error {
	p := storage.Tenant(tenant)
	return storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		r, row, err := s.load(ctx, p, id)
		if err != nil || r.Status != AwaitingAddress || r.Waiting == why {
			return storage.Change{}, err
		}
		was, now := r.Waiting, s.now()
		r.Waiting, r.WaitingSince = why, now
		told, err := stream.Tell(WaitChanged{RefundID: id, PaymentID: r.Payment, Reason: why, Was: was, Since: now}, id, now)
		return storage.Change{
			ID: s.c.NewID(), Partition: p, Put: []storage.Row{Refunds.Row(id, row.Version, row.Due, r)}, Tell: []storage.Event{told},
		}, err
	})
}
