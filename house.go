package cryptopay

import (
	"context"
	"errors"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// ErrUpgrade reports that a call would make what a process of an older version spoils: see
// App.Upgraded.
var ErrUpgrade = errors.New("cryptopay: call App.Upgraded first, once no process of an older version runs on this store")

// abilityHouse says that every process knows payments of the house's own.
const abilityHouse outgoing.Ability = "house_payments"

// parseKeyed is parse of an address that may be paid from the house's money: one that is known to
// have no key is refused, as it is for a withdrawal.
func (a *App) parseKeyed(n chain.Network, address string) (chain.Address, error) {
	to, err := a.parse(n, address)
	if err == nil {
		err = a.Withdrawals.Burned(n, to)
	}
	return to, err
}

// newHouse builds what moves the house's own money.
func (a *App) newHouse() (err error) {
	c := a.cfg
	notify := counted(a, kindOfNotice, c.Withdrawals.Notify)
	a.houseMoney, err = house.New(house.Config{
		StuckAfter: c.Withdrawals.StuckAfter, Notify: func(ctx context.Context, p house.Payment) {
			notify(ctx, withdrawal.Notice{
				Tenant: p.Tenant, Withdrawal: p.ID, Kind: withdrawal.NoticeHouse, Detail: "it waits since " + webhook.Timestamp(p.WaitingSince) + ": " + p.Waiting,
			})
		},
		Store: c.Store, Registry: c.Registry, Treasury: a.Treasury, Mandates: mandates{a, false}, Now: c.Clock.Now, NewID: c.NewID, Log: c.Log,
		Addresses: c.HouseAddresses, Cold: ceilings{a}, Parse: a.parseKeyed, MaxCost: fees{a}.maxCost, Halted: a.haltedAsset, Lease: c.Withdrawals.Lease, RetryDelay: c.Withdrawals.RetryDelay,
		Own: func(ctx context.Context, n chain.Network, address chain.Address) (bool, error) {
			_, ours, err := a.own(ctx, n, address)
			return ours, err
		},
		Wallet: func(ctx context.Context, tenant, id string) (bool, error) {
			ref := id
			if id == wallet.Master {
				ref = ""
			}
			found, _, err := a.Wallets.Resolve(ctx, tenant, ref)
			if errors.Is(err, wallet.ErrNotFound) {
				return false, nil
			}
			return err == nil && found == id, err
		},
	})
	return err
}

// PayOutFees takes fees that the operator has earned of a tenant out, by a payment on the
// network to one of Config.HouseAddresses. It is never more than was earned and not taken
// yet, and leaves enough for what is owed to customers and for gas that is set aside. Its
// amount is held at once; a worker hands it over; what the network takes is booked as that of
// every payout. One that fails is given back. Asked again with the same house.Take.Key it is
// the same payment. It returns the payment as it stands, and the id of the record, "" where
// this call has made none. Errors are those of house.Service.Take, and ErrUpgrade.
func (o *Operate) PayOutFees(ctx context.Context, t house.Take, c Call) (house.Payment, string, error) {
	return o.take(ctx, ledger.FeesPlatform, outgoing.OpPayOutFees, t, c)
}

// WithdrawOperatorFunds takes the operator's own coins out, which were put in by top-ups. Gas
// that is set aside for what is in flight stays. Else it is as PayOutFees.
func (o *Operate) WithdrawOperatorFunds(ctx context.Context, t house.Take, c Call) (house.Payment, string, error) {
	return o.take(ctx, ledger.Float, outgoing.OpWithdrawFloat, t, c)
}

func (o *Operate) take(ctx context.Context, source ledger.Account, kind outgoing.OperationKind, t house.Take, c Call) (house.Payment, string, error) {
	if err := c.check(); err != nil {
		return house.Payment{}, "", err
	}
	if err := o.tenant(ctx, t.Tenant); err != nil {
		return house.Payment{}, "", err
	}
	on, err := o.a.able(ctx, abilityHouse)
	if err == nil && !on {
		err = ErrUpgrade
	}
	if err != nil {
		return house.Payment{}, "", err
	}
	currency, err := o.a.cfg.Registry.Currency(t.Currency)
	if err != nil {
		return house.Payment{}, "", err
	}
	by := o.recorded(ctx, storage.Tenant(t.Tenant), kind, currency.Network, t.Tenant, "", c)
	p, made, err := o.a.houseMoney.Take(ctx, source, t, c.By, c.DryRun, by)
	if err != nil || !made {
		return p, "", err
	}
	return p, o.done(ctx, by), nil
}

// tenant is an error where there is no such tenant.
func (o *Operate) tenant(ctx context.Context, id string) error {
	_, err := o.a.Wallets.Tenant(ctx, id)
	return err
}

// HousePayments lists what was taken out of a tenant's fees and float, newest first.
func (o *Operate) HousePayments(ctx context.Context, tenant string, limit, offset int) ([]house.Payment, error) {
	return o.a.houseMoney.List(ctx, tenant, limit, offset)
}

// HousePayment is one of them. The error wraps house.ErrNotFound.
func (o *Operate) HousePayment(ctx context.Context, tenant, id string) (house.Payment, error) {
	return o.a.houseMoney.Get(ctx, tenant, id)
}

// CancelHousePayment ends a payment of the house's of which nothing was signed, and gives its
// amount back. It returns the payment and the id of the record. CancelTransaction is for one
// that was signed. Errors are those of house.Service.Cancel.
func (o *Operate) CancelHousePayment(ctx context.Context, tenant, id string, c Call) (house.Payment, string, error) {
	if err := c.check(); err != nil {
		return house.Payment{}, "", err
	}
	p, err := o.a.houseMoney.Get(ctx, tenant, id)
	if err == nil && c.DryRun && p.Status != house.Pending {
		err = &house.StateError{ID: id, Current: p.Status}
	}
	if err != nil || c.DryRun || p.Status == house.Cancelled {
		return p, "", err
	}
	by := o.recorded(ctx, storage.Tenant(tenant), outgoing.OpCancelHouse, chain.Network(p.Network), tenant, id, c)
	if p, err = o.a.houseMoney.Cancel(ctx, tenant, id, by); err != nil {
		return p, "", err
	}
	return p, o.done(ctx, by), nil
}

// Adjust corrects the books of a tenant: what a token took as a fee or took away by rebasing,
// what somebody paid from outside of this library. The first call notes who asks and why. A
// call by another person with the same adjustment within a day books it. Both are recorded;
// the second record has the balances before and after. It returns what became of it, and the
// id of this call's record, "" where it has made none. Errors are those of
// house.Service.Adjust.
func (o *Operate) Adjust(ctx context.Context, a house.Adjustment, c Call) (house.Adjusted, string, error) {
	if err := c.check(); err != nil {
		return house.Adjusted{}, "", err
	}
	if err := o.tenant(ctx, a.Tenant); err != nil {
		return house.Adjusted{}, "", err
	}
	currency, err := o.a.cfg.Registry.Currency(a.Currency)
	if err != nil {
		return house.Adjusted{}, "", err
	}
	ask := o.recorded(ctx, storage.Tenant(a.Tenant), outgoing.OpAskAdjustment, currency.Network, a.Tenant, "", c)
	book := o.recorded(ctx, storage.Tenant(a.Tenant), outgoing.OpAdjust, currency.Network, a.Tenant, "", c)
	out, err := o.a.houseMoney.Adjust(ctx, a, c.By, c.DryRun, ask, book)
	if err != nil || !out.Made {
		return out, "", err
	}
	if out.Booked() {
		return out, o.done(ctx, book), nil
	}
	return out, o.done(ctx, ask), nil
}

// editedHouse finds payments of the house's that somebody edited.
func (a *App) editedHouse(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	err = storage.Pages(ctx, a.cfg.Store, storage.Query{Table: house.Payments.Table, Partition: p, Limit: page}, func(rows []storage.Row) error {
		var unread storage.RowErrors
		for _, row := range rows {
			v := house.Payments.Value(row)
			why, err := a.houseMoney.Contradicts(ctx, p, row.ID, &v)
			if err = unread.Take(err); err != nil {
				return err
			}
			if why != "" {
				out = append(out, Contradiction{ofHouse, row.ID, why})
			}
		}
		lost, err := a.lostHouseOrders(ctx, p, rows)
		out = append(out, lost...)
		return unread.With(err)
	})
	return out, err
}

// resealHouse makes the mandates of a tenant's house payments that the newest key has not
// made.
func (a *App) resealHouse(ctx context.Context, p storage.Partition, r *Resealed) error {
	q := storage.Query{Table: house.Payments.Table, Partition: p, Limit: page}
	return storage.Pages(ctx, a.cfg.Store, q, func(rows []storage.Row) error {
		n, err := a.resealRows(ctx, rows, ofHouse, r, func(ctx context.Context, row storage.Row) (storage.Row, string, error) {
			v, now, ok, err := house.Payments.One(ctx, a.joined(), p, row.ID)
			if err != nil || !ok || a.mandateKeys.Newest(v.Mandate) {
				return storage.Row{}, "", err
			}
			why, err := a.houseMoney.Contradicts(ctx, p, row.ID, &v)
			if err == nil && why == "" {
				err = a.houseMoney.Authorize(&v)
			}
			return house.Payments.Row(row.ID, now.Version, now.Due, v), why, err
		})
		r.Withdrawals += n
		return err
	})
}
