package cryptopay

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// newRefills builds what brings cold coins back.
func (a *App) newRefills(clients map[chain.Network]chain.Client) (err error) {
	c := a.cfg
	a.saidShort = new(sync.Map)
	a.refills, err = refill.New(refill.Config{
		Store: c.Store, Registry: c.Registry, Clients: clients, Seals: mandates{a, false}, Now: c.Clock.Now, Log: c.Log, Source: a.coldSource,
		Worth: func(ctx context.Context, currency string, amount ledger.Amount) (ledger.Amount, error) {
			return a.Treasury.Worth(ctx, currency, amount)
		},
	})
	return err
}

// coldMoves is how many of the newest moves to a cold address are looked at for its coins.
const coldMoves = 1000

// coldSource tells where a tenant's cold coins of a currency lie, and of those that the books know: what
// moves brought there, and what proposals gave back. On a network of accounts it tells how much.
func (a *App) coldSource(ctx context.Context, tenant string, c *chain.Currency) (s refill.Source, err error) {
	v, err := a.Policies.Get(ctx, tenant)
	if err != nil {
		return s, err
	}
	accounts, err := a.accounts(c.Network)
	if err != nil {
		return s, err
	}
	for i := range v.Cold {
		if v.Cold[i].Currency != c.Code {
			continue
		}
		s.Address, s.Descriptor = chain.Address(v.Cold[i].Address), v.Cold[i].Descriptor
		if accounts {
			s.Descriptor = v.Cold[i].Address
		}
	}
	if s.Descriptor == "" {
		return s, refill.ErrUnable
	}
	if s.Hot, err = a.Hot(ctx, c.Network, tenant); err != nil {
		return s, err
	}
	if accounts {
		noted, _, err := treasury.ColdOf(ctx, a.cfg.Store, tenant, c.Code)
		s.Lies = noted.Amount
		return s, err
	}
	if s.Coins, err = a.refills.Change(ctx, tenant, c.Code, s.Address); err != nil {
		return s, err
	}
	moves, err := a.cfg.Store.Find(ctx, storage.Query{
		Table: house.Payments.Table, Partition: storage.Tenant(tenant), Limit: coldMoves,
		Where: []storage.Cond{
			{Column: "status", Op: storage.Eq, Value: house.Completed},
			{Column: "source", Op: storage.Eq, Value: "cold/" + string(c.Network)},
			{Column: "address", Op: storage.Eq, Value: string(s.Address)},
		},
		Order: []storage.Order{{Column: "created_at", Desc: true}},
	})
	if err != nil {
		return s, err
	}
	keys := make([]storage.Key, len(moves))
	for i, r := range moves {
		keys[i] = storage.Keys(storage.Network(string(c.Network)), house.Payments.Value(r).Tx)[0]
	}
	for some := range slices.Chunk(keys, 100) {
		sent, err := a.cfg.Store.Rows(ctx, outgoing.Attempts.Table, some...)
		if err != nil {
			return s, err
		}
		for _, r := range sent {
			made := outgoing.Attempts.Value(r)
			for i, o := range made.Outputs {
				if o.To == s.Address && made.Tenant == tenant {
					s.Coins = append(s.Coins, chain.Coin{Outpoint: r.ID + ":" + strconv.Itoa(i), Address: s.Address, Amount: o.Amount})
				}
			}
		}
	}
	return s, nil
}

// accounts reports whether a network keeps value in accounts.
func (a *App) accounts(n chain.Network) (bool, error) {
	info, err := a.cfg.Registry.Network(string(n))
	return err == nil && info.Family == chain.AccountFamily, err
}

// cancelledPause is how long no refill is proposed by itself after a person cancelled one.
const cancelledPause = 6 * time.Hour

// proposeRefill proposes a refill where hot coins lack. It is tried again where it cannot be. Without
// needed it waits until nothing is on its way, as transactions give change back.
func (a *App) proposeRefill(ctx context.Context, tenant, currency string, lack ledger.Amount, needed bool) {
	last, ok, err := a.refills.Last(ctx, tenant, currency)
	if err == nil && ok && last.Status == refill.Cancelled && a.cfg.Clock.Now().Before(last.UpdatedAt.Add(cancelledPause)) {
		return
	}
	if err == nil && !needed {
		var under bool
		if under, err = a.sending(ctx, tenant, currency); under {
			return
		}
	}
	var p refill.Proposal
	if err == nil {
		p, err = a.propose(ctx, tenant, currency, lack, true, "cold policy", false, nil)
	}
	said := []slog.Attr{slog.String("tenant", tenant), slog.String("currency", currency)}
	busy := (*refill.StateError)(nil)
	switch {
	case err == nil:
		a.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "refill_proposed", append(said, slog.String("proposal", p.ID))...)
	case errors.As(err, &busy), errors.Is(err, refill.ErrUnable), errors.Is(err, chain.ErrTooDear), errors.Is(err, chain.ErrOccupied), errors.Is(err, ErrUpgrade):
	case errors.Is(err, chain.ErrShort) && !a.saysShort(tenant, currency):
	default:
		a.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "refill_not_proposed", append(said, slog.Any("error", err))...)
	}
}

// saysShort reports whether to say that a cold address has too little: on a network of accounts, where
// it may lack the gas alone, and a person has to send that; once an hour.
func (a *App) saysShort(tenant, currency string) bool {
	c, err := a.cfg.Registry.Currency(currency)
	if err != nil {
		return true
	}
	if accounts, err := a.accounts(c.Network); err == nil && !accounts {
		return false
	}
	now, key := a.cfg.Clock.Now(), tenant+"/"+currency
	if last, ok := a.saidShort.Load(key); ok && now.Before(last.(time.Time).Add(time.Hour)) {
		return false
	}
	a.saidShort.Store(key, now)
	return true
}

// sending reports whether a transaction of a tenant's is signed and not final.
func (a *App) sending(ctx context.Context, tenant, currency string) (bool, error) {
	c, err := a.cfg.Registry.Currency(currency)
	if err != nil {
		return false, err
	}
	rows, err := a.cfg.Store.Find(ctx, storage.Query{
		Table: outgoing.Intents.Table, Partition: storage.Network(string(c.Network)), Limit: 1,
		Where: []storage.Cond{
			{Column: "tenant", Op: storage.Eq, Value: tenant},
			{Column: "state", Op: storage.In, Value: []outgoing.State{outgoing.Signed, outgoing.Executed}},
		},
	})
	return len(rows) > 0, err
}

func (a *App) propose(ctx context.Context, tenant, currency string, amount ledger.Amount, less bool, who string, dry bool, by *outgoing.Recorded) (refill.Proposal, error) {
	c, err := a.cfg.Registry.Currency(currency)
	if err != nil {
		return refill.Proposal{}, err
	}
	accounts, err := a.accounts(c.Network)
	if err != nil {
		return refill.Proposal{}, err
	}
	needs := abilityRefills
	if accounts {
		needs = abilityAccounts
	}
	on, err := a.able(ctx, needs)
	if err == nil && !on {
		err = ErrUpgrade
	}
	if err != nil {
		return refill.Proposal{}, err
	}
	return a.refills.Propose(ctx, tenant, currency, amount, less, who, dry, by)
}

// ProposeRefill makes the transaction that brings an amount, in units of a currency, from the tenant's
// cold address to its hot one. A person signs its Payload elsewhere, and gives it to TakeRefill. It
// returns the proposal, and the id of the record, "" for a dry run. Errors are those of
// refill.Service.Propose, and ErrUpgrade.
func (o *Operate) ProposeRefill(ctx context.Context, tenant, currency string, amount ledger.Amount, c Call) (refill.Proposal, string, error) {
	if err := c.check(); err != nil {
		return refill.Proposal{}, "", err
	}
	if err := o.tenant(ctx, tenant); err != nil {
		return refill.Proposal{}, "", err
	}
	cur, err := o.a.cfg.Registry.Currency(currency)
	if err != nil {
		return refill.Proposal{}, "", err
	}
	by := o.recorded(ctx, storage.Tenant(tenant), outgoing.OpRefill, cur.Network, tenant, "", c)
	p, err := o.a.propose(ctx, tenant, currency, amount, false, c.By, c.DryRun, by)
	if err != nil {
		return p, "", err
	}
	return p, o.done(ctx, by), nil
}

// TakeRefill takes back what a person signed for a proposal: the transaction, or a PSBT. It is
// checked against the proposal and stored; a worker sends it. Asked again with the same it is the same
// proposal. It returns the proposal, and the id of the record, "" where this call has made none. Errors
// are those of refill.Service.Take.
func (o *Operate) TakeRefill(ctx context.Context, tenant, id string, signed []byte, c Call) (refill.Proposal, string, error) {
	return o.refill(ctx, tenant, id, c, func(by *outgoing.Recorded) (refill.Proposal, bool, error) {
		return o.a.refills.Take(ctx, tenant, id, signed, c.DryRun, by)
	})
}

// CancelRefill ends a proposal that did not come back. Errors are those of refill.Service.Cancel.
func (o *Operate) CancelRefill(ctx context.Context, tenant, id string, c Call) (refill.Proposal, string, error) {
	return o.refill(ctx, tenant, id, c, func(by *outgoing.Recorded) (refill.Proposal, bool, error) {
		return o.a.refills.Cancel(ctx, tenant, id, c.DryRun, by)
	})
}

func (o *Operate) refill(ctx context.Context, tenant, id string, c Call, do func(by *outgoing.Recorded) (refill.Proposal, bool, error)) (refill.Proposal, string, error) {
	if err := c.check(); err != nil {
		return refill.Proposal{}, "", err
	}
	p, err := o.a.refills.Get(ctx, tenant, id)
	if err != nil {
		return p, "", err
	}
	by := o.recorded(ctx, storage.Tenant(tenant), outgoing.OpRefill, p.Network, tenant, id, c)
	p, made, err := do(by)
	if err != nil || !made {
		return p, "", err
	}
	return p, o.done(ctx, by), nil
}

// Refills lists the proposals of a tenant, newest first, and says how many there are.
func (o *Operate) Refills(ctx context.Context, tenant string, limit, offset int) (page []refill.Proposal, total int64, err error) {
	return o.a.refills.List(ctx, tenant, limit, offset)
}

// Refill is one of them. The error wraps refill.ErrNotFound.
func (o *Operate) Refill(ctx context.Context, tenant, id string) (refill.Proposal, error) {
	return o.a.refills.Get(ctx, tenant, id)
}

// ShowRefill writes what is to be signed of a proposal as JSON, for people; nil on networks of outputs.
func (o *Operate) ShowRefill(p *refill.Proposal) ([]byte, error) { return o.a.refills.Show(p) }

// editedRefills finds proposals that somebody edited.
func (a *App) editedRefills(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	err = each(ctx, a.cfg.Store, storage.Query{Table: refill.Proposals.Table, Partition: p}, func(row storage.Row) error {
		v := refill.Proposals.Value(row)
		why, err := a.refills.Contradicts(ctx, p, row.ID, &v)
		if err == nil && why != "" {
			out = append(out, Contradiction{ofRefill, row.ID, why})
		}
		return err
	})
	return out, err
}

// resealProposals makes the seals of a tenant's proposals that the newest key has not made.
func (a *App) resealProposals(ctx context.Context, p storage.Partition, r *Resealed) error {
	q := storage.Query{Table: refill.Proposals.Table, Partition: p, Limit: page}
	return storage.Pages(ctx, a.cfg.Store, q, func(rows []storage.Row) error {
		n, err := a.resealRows(ctx, rows, ofRefill, r, func(ctx context.Context, row storage.Row) (storage.Row, string, error) {
			v, now, ok, err := refill.Proposals.One(ctx, a.joined(), p, row.ID)
			if err != nil || !ok || a.mandateKeys.Newest(v.Seal) {
				return storage.Row{}, "", err
			}
			why, err := a.refills.Contradicts(ctx, p, row.ID, &v)
			if err == nil && why == "" {
				err = a.refills.Authorize(&v)
			}
			return refill.Proposals.Row(row.ID, now.Version, now.Due, v), why, err
		})
		r.Withdrawals += n
		return err
	})
}
