package payment

import (
	"context"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Progress is what has come for a payment so far, in units of its currency.
type Progress struct {
	Received ledger.Amount // counted deposits that are final
	Pending  ledger.Amount // counted deposits that are not final yet
	Missing  ledger.Amount // what the customer still has to send; 0 once enough has come
	// Confirmations is the lowest among the deposits that are needed.
	Confirmations int64
	// Required is how many make the payment's deposits final: by what is due or has come, and
	// what each deposit was given when it came, whichever is more. 0 for a currency that is no longer
	// configured.
	Required int64
}

// Progress says how far the payments of a page have come, in their order. It reads
// the deposits of all of them together, and each network's head once.
func (s *Service) Progress(ctx context.Context, tenant string, page []Payment) ([]Progress, error) {
	deposits, err := s.counted(ctx, tenant, page)
	if err != nil {
		return nil, err
	}
	given, err := s.givenTo(ctx, deposits)
	if err != nil {
		return nil, err
	}
	heads := map[string]int64{}
	out := make([]Progress, len(page))
	for i := range page {
		p := &page[i]
		if _, known := heads[p.Network]; !known && len(deposits[p.ID]) > 0 {
			cursor, err := s.c.Head(ctx, chain.Network(p.Network))
			if err != nil {
				return nil, err
			}
			heads[p.Network] = cursor.Head
		}
		out[i] = s.progress(p, deposits[p.ID], heads[p.Network], given)
	}
	return out, nil
}

// counted reads the deposits of those payments for which something came.
func (s *Service) counted(ctx context.Context, tenant string, page []Payment) (map[string][]*entry, error) {
	const most = 1000
	var ids []string
	for i := range page {
		if page[i].Live > 0 {
			ids = append(ids, page[i].ID)
		}
	}
	out := map[string][]*entry{}
	if len(ids) == 0 {
		return out, nil
	}
	for r, err := range storage.All(ctx, s.c.Store, storage.Query{
		Table: Deposits.Table, Partition: storage.Tenant(tenant), Limit: most,
		Where: []storage.Cond{{Column: "payment", Op: storage.In, Value: ids}},
	}) {
		if err != nil {
			return nil, err
		}
		e := stored(r)
		out[e.d.Payment] = append(out[e.d.Payment], e)
	}
	return out, nil
}

func (s *Service) progress(p *Payment, deposits []*entry, head int64, given map[string]int64) Progress {
	x := decision{p: *p, env: env{rules: s.rules(p.Network)}, deposits: deposits}
	v := Progress{Required: s.Required(p)}
	for _, e := range x.deposits {
		if !e.d.Role.counted() || !e.d.live() {
			continue
		}
		if e.d.Proven {
			v.Received = addUp(v.Received, e.d.Amount)
		} else {
			v.Pending = addUp(v.Pending, e.d.Amount)
		}
		v.Required = max(v.Required, given[e.d.ID])
		at := incoming.Sighting{Height: e.d.Height, State: e.d.State}
		e.d.Confirmations = at.Confirmations(head)
	}
	v.Confirmations = x.confirmations()
	if live, _, _ := x.weights(); !x.enough(live) {
		v.Missing = max(0, p.Due-live)
	}
	return v
}

// Uncounted lists what came to a payment's address and does not count for it: late,
// of another asset, or not provable; the oldest 100. What a person has already dealt with is
// left out, as is what is too little to be booked.
func (s *Service) Uncounted(ctx context.Context, tenant string, p *Payment) ([]Deposit, error) {
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Deposits.Table, Partition: storage.Tenant(tenant),
		Where: append(p.arrived(),
			storage.Cond{Column: "booking", Op: storage.In, Value: []Booking{InSuspense, Unbooked}},
			storage.Cond{Column: "role", Op: storage.In, Value: suspenseRoles},
			storage.Cond{Column: "state", Op: storage.Ne, Value: incoming.Gone}),
		Order: []storage.Order{{Column: "created_at"}}, Limit: storage.DefaultLimit,
	})
	if err != nil {
		return nil, err
	}
	var out []Deposit
	for _, r := range rows {
		d := Deposits.Value(r)
		if d.Booking == InSuspense || d.live() {
			out = append(out, d)
		}
	}
	return out, nil
}
