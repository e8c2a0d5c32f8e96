package cryptopay

import (
	"context"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// CreditSuspense gives money that a tenant has in suspense to one of his wallets (wallet_id
// or external_id, "" = the master account): see payment.Service.Resolve. It returns the
// deposit as it is afterwards, and the id of the record. A dry run returns the deposit as it is
// now, and no id. Errors: *payment.NotFoundError; *payment.StateError where the deposit does
// not wait for a decision.
func (o *Operate) CreditSuspense(ctx context.Context, tenant, deposit, walletID string, c Call) (payment.Suspended, string, error) {
	return o.decide(ctx, tenant, deposit, outgoing.OpCreditSuspense, c, func(by ...payment.Recorded) error {
		if c.DryRun {
			_, _, ok, err := wallets{o.a}.OpenWallet(ctx, tenant, walletID)
			if err == nil && (!ok || walletID == wallet.Master) {
				err = &payment.NotFoundError{Field: "wallet_id", ID: walletID}
			}
			return err
		}
		_, err := o.a.Payments.Resolve(ctx, tenant, deposit, walletID, by...)
		return err
	})
}

// IgnoreSuspense leaves money where it is, and nobody is asked about it any more: see
// payment.Service.Ignore. Returns and errors as of CreditSuspense.
func (o *Operate) IgnoreSuspense(ctx context.Context, tenant, deposit string, c Call) (payment.Suspended, string, error) {
	return o.decide(ctx, tenant, deposit, outgoing.OpIgnoreSuspense, c, func(by ...payment.Recorded) error {
		if c.DryRun {
			return nil
		}
		_, err := o.a.Payments.Ignore(ctx, tenant, deposit, by...)
		return err
	})
}

// RefundSuspense books that a person sends the money back outside of this library: see
// payment.Service.Refund. Returns and errors as of CreditSuspense.
func (o *Operate) RefundSuspense(ctx context.Context, tenant, deposit string, c Call) (payment.Suspended, string, error) {
	return o.decide(ctx, tenant, deposit, outgoing.OpRefundSuspense, c, func(by ...payment.Recorded) error {
		if c.DryRun {
			return nil
		}
		_, err := o.a.Payments.Refund(ctx, tenant, deposit, by...)
		return err
	})
}

// PayOutSuspense refunds money that a tenant has in suspense by a withdrawal to an address that
// the customer named, with memo where its network needs one: see refund.Service.OfSuspense. It
// returns the refund and the id of the record. A dry run makes nothing, and returns no id.
// Errors are those of CreditSuspense and of refund.Service.OfSuspense.
func (o *Operate) PayOutSuspense(ctx context.Context, tenant, deposit, address, memo string, c Call) (refund.Refund, string, error) {
	var made refund.Refund
	_, id, err := o.decide(ctx, tenant, deposit, outgoing.OpPayOutSuspense, c, func(by ...payment.Recorded) (err error) {
		in := refund.SuspenseInput{Deposit: deposit, Address: address, Memo: memo, By: c.By}
		if c.Merchant {
			in.Reason = c.Reason // merchants read it: an operator's stands in the record alone
		}
		if c.DryRun {
			return o.a.Refunds.CheckSuspense(ctx, tenant, in)
		}
		made, err = o.a.Refunds.OfSuspense(ctx, tenant, in, by...)
		return err
	})
	return made, id, err
}

// ReleaseSuspense has money count that payment.Config.Screen has held for a person, as if the
// Screen had allowed it: see payment.Service.Release. Returns and errors as of CreditSuspense;
// a *payment.StateError also where it is not held.
func (o *Operate) ReleaseSuspense(ctx context.Context, tenant, deposit string, c Call) (payment.Suspended, string, error) {
	return o.decide(ctx, tenant, deposit, outgoing.OpReleaseSuspense, c, func(by ...payment.Recorded) error {
		if c.DryRun {
			return o.a.Payments.CheckRelease(ctx, tenant, deposit)
		}
		_, err := o.a.Payments.Release(ctx, tenant, deposit, by...)
		return err
	})
}

// decide records a decision about a deposit in suspense in the Change of the decision.
func (o *Operate) decide(ctx context.Context, tenant, deposit string, kind outgoing.OperationKind, c Call, do func(...payment.Recorded) error) (payment.Suspended, string, error) {
	if err := c.check(); err != nil {
		return payment.Suspended{}, "", err
	}
	d, err := o.a.Payments.SuspendedDeposit(ctx, tenant, deposit)
	if err != nil {
		return d, "", err
	}
	if status := d.SuspenseStatus(); status != payment.SuspenseOpen {
		return d, "", &payment.StateError{Status: payment.Status(status), Reason: "it does not wait in suspense"}
	}
	if err := c.mayDecide(&d.Deposit); err != nil {
		return d, "", err
	}
	by := o.recorded(ctx, storage.Tenant(tenant), kind, chain.Network(d.Network), tenant, d.ID, c)
	err = do(func(before, after payment.Deposit) ([]storage.Row, []storage.Event, error) {
		if err := c.mayDecide(&before); err != nil {
			return nil, nil, err
		}
		d.Deposit = after
		return by.Rows(suspenseNote(&before), suspenseNote(&after))
	})
	if err != nil {
		return d, "", err
	}
	return d, o.done(ctx, by), nil
}

// mayDecide refuses a merchant where the host's screening has spoken.
func (c *Call) mayDecide(d *payment.Deposit) error {
	if c.Merchant && (d.Role == payment.RoleHeld || d.Role == payment.RoleRefused) {
		return &payment.StateError{Status: payment.Status(payment.SuspenseOpen), Reason: "the operator decides about it"}
	}
	return nil
}

// suspenseNote is a deposit as the record of a decision about it shows it.
func suspenseNote(d *payment.Deposit) any {
	return struct {
		Booking  payment.Booking `json:"booking"`
		Role     payment.Role    `json:"role"`
		WalletID string          `json:"wallet_id"`
		Currency string          `json:"currency"`
		Amount   string          `json:"amount"`
	}{d.Booking, d.Role, d.Wallet, d.Currency, d.Exact.String()}
}
