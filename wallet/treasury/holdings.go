package treasury

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// place says where coins are kept.
type place string

// The places.
const (
	placeHot     place = "hot"     // addresses that withdrawals are paid from, or were until they were replaced
	placeCold    place = "cold"    // addresses of the operator's that this App only watches
	placeCustody place = "custody" // accounts of a Custodian
)

// holdingRow is what was last read of one address or account in one currency.
// Currency "" stands for a Custodian's account itself.
type holdingRow struct {
	Tenant   string          `db:"tenant"`
	Place    place           `db:"place"`
	Holder   string          `db:"holder"` // address, or the custodian's id of the account
	Name     string          `db:"name"`
	External string          `db:"external_id"`
	Active   bool            `db:"active"`
	Network  string          `db:"network"`
	Currency string          `db:"currency"`
	Amount   decimal.Decimal `db:"amount"`  // exact, in whole coins
	ReadAt   time.Time       `db:"read_at"` // zero: never yet
}

// holdingRows is in tenant partitions. It says what the chain said, not what the
// books say, and nothing is decided by it.
var holdingRows = storage.NewTable[holdingRow]("treasury_holdings")

// Holdings is what is held for tenants, in the order of network, token and name.
type Holdings struct {
	Totals   []Total
	Wallets  []WalletHolding
	Accounts []AccountHolding
	// Updated is when the newest of it was read; zero = never.
	Updated time.Time
}

// Total is one currency's sum over all addresses and accounts, in whole coins.
type Total struct {
	Currency *chain.Currency
	Hot      decimal.Decimal
	Cold     decimal.Decimal
	// Custody is what lies on deposit addresses and was not forwarded, as of now,
	// and the accounts of the Custodian, as last read.
	Custody decimal.Decimal
}

// Sum is all of it.
func (t *Total) Sum() decimal.Decimal { return t.Hot.Add(t.Cold).Add(t.Custody) }

// WalletHolding is one address in one currency.
type WalletHolding struct {
	ID       string // network and address: "ETH:0x…"
	Name     string
	Network  chain.Network
	Address  chain.Address
	Cold     bool
	Currency *chain.Currency
	Amount   decimal.Decimal
	ReadAt   time.Time
}

// AccountHolding is one account of the Custodian.
type AccountHolding struct {
	CustodyAccount
	ReadAt time.Time // zero: never yet
}

// Holdings returns what Sync last read for the tenants, and what lies on their
// deposit addresses now. It asks no chain. The work is that of the deposits
// which were not forwarded, however many addresses are watched. A transfer
// between two places counts in both, or in none, from its block until the next
// Sync.
func (t *Treasury) Holdings(ctx context.Context, tenants ...string) (Holdings, error) {
	b := &bookkeeper{registry: t.cfg.Registry, totals: map[string]*Total{}}
	if err := t.lastRead(ctx, b, tenants); err != nil {
		return Holdings{}, err
	}
	for n := range t.cfg.Clients {
		for some := range slices.Chunk(tenants, askAtOnce) {
			if err := t.deposits(ctx, b, n, some); err != nil {
				return Holdings{}, err
			}
		}
	}
	return b.holdings(), nil
}

// askAtOnce is how many values one question to the store names.
const askAtOnce = 500

// pageSize is how many rows are taken of the store at once.
const pageSize = 1000

// each calls f with every row that a query selects, page by page in the order
// of ids, so that rows which come and go meanwhile do not shift the pages.
func (t *Treasury) each(ctx context.Context, q storage.Query, f func(storage.Row) error) error {
	q.Limit = pageSize
	for r, err := range storage.All(ctx, t.cfg.Store, q) {
		if err == nil {
			err = f(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lastRead takes in what Sync stored.
func (t *Treasury) lastRead(ctx context.Context, b *bookkeeper, tenants []string) error {
	for _, tenant := range tenants {
		err := t.each(ctx, storage.Query{Table: holdingRows.Table, Partition: storage.Tenant(tenant)}, func(r storage.Row) error {
			b.read(holdingRows.Value(r))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deposits takes in what lies on the deposit addresses of one network: deposits
// that no sweep has moved, and where coins are outputs the unspent ones.
func (t *Treasury) deposits(ctx context.Context, b *bookkeeper, n chain.Network, tenants []string) error {
	part := storage.Network(string(n))
	swept := map[spot]*lying{} // those that a sweep has, and those that came a second time
	err := t.each(ctx, storage.Query{Table: incoming.Sightings.Table, Partition: part, Where: []storage.Cond{
		{Column: "forward", Op: storage.In, Value: []incoming.Forward{incoming.ForwardNone, incoming.Forwarding, incoming.Deferred}},
		{Column: "state", Op: storage.In, Value: []incoming.State{incoming.Included, incoming.Final}},
		{Column: "purpose", Op: storage.Eq, Value: incoming.UsePayment},
		{Column: "internal", Op: storage.Eq, Value: false},
		{Column: "tenant", Op: storage.In, Value: tenants},
	}}, func(r storage.Row) error {
		s := incoming.Sightings.Value(r)
		if s.Forward == incoming.ForwardNone && s.Generation <= 1 {
			b.custody(s.Currency, s.Exact)
			return nil
		}
		k := spot{s.Address, s.Currency}
		if swept[k] == nil {
			swept[k] = &lying{}
		}
		swept[k].deposits = swept[k].deposits.Add(s.Exact)
		return nil
	})
	if err != nil {
		return err
	}
	if err := t.atSweeps(ctx, part, swept); err != nil {
		return err
	}
	for k, l := range swept {
		b.custody(k.currency, l.sum())
	}
	info, err := t.cfg.Registry.Network(string(n))
	if err != nil || info.Family != chain.UTXOFamily {
		return err
	}
	return t.outputs(ctx, b, info, tenants)
}

// lying is what came to one spot and what is known to be there still.
type lying struct {
	deposits decimal.Decimal // that no sweep is known to have moved
	held     decimal.Decimal // by the sweeps that are at work there
	open     bool            // there is such a sweep
	done     bool            // a sweep of the spot has landed
}

// sum is what is counted. After a deep reorg a deposit may be mined again whose sweep
// is, too: where one has landed, what was read from the chain since counts.
func (l *lying) sum() decimal.Decimal {
	switch {
	case l.open:
		return decimal.Min(l.deposits, l.held)
	case l.done:
		return decimal.Zero
	}
	return l.deposits
}

// atSweeps takes in what the sweeps of some spots know.
func (t *Treasury) atSweeps(ctx context.Context, part storage.Partition, at map[spot]*lying) error {
	var addresses []string
	for k := range at {
		addresses = append(addresses, k.address)
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	open := map[string]spot{}
	for some := range slices.Chunk(addresses, askAtOnce) {
		err := t.each(ctx, storage.Query{Table: Sweeps.Table, Partition: part, Where: []storage.Cond{
			{Column: "address", Op: storage.In, Value: some},
		}}, func(r storage.Row) error {
			s := Sweeps.Value(r)
			k := spot{s.Address, s.Currency}
			switch l := at[k]; {
			case l == nil || s.State == SweepReplaced || s.State == sweepGivenUp:
			case s.State == SweepDone:
				l.done = true
			default:
				open[r.ID] = k
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for some := range slices.Chunk(slices.Collect(maps.Keys(open)), askAtOnce) {
		rows, err := t.cfg.Store.Rows(ctx, SweepNotes.Table, storage.Keys(part, some...)...)
		if err != nil {
			return err
		}
		for _, r := range rows {
			note, l := SweepNotes.Value(r), at[open[r.ID]]
			if c, err := t.cfg.Registry.Currency(note.Currency); err == nil {
				l.open, l.held = true, l.held.Add(c.Decimal(note.Amount))
			}
		}
	}
	return nil
}

// outputs takes in the unspent outputs of deposit addresses: on such a network
// they are spent where they are. Those of hot and change addresses are read
// from the chain.
func (t *Treasury) outputs(ctx context.Context, b *bookkeeper, info chain.NetworkInfo, tenants []string) error {
	own, err := t.hotAddresses(ctx, info.Code, tenants)
	if err != nil {
		return err
	}
	return t.each(ctx, storage.Query{Table: outgoing.Coins.Table, Partition: storage.Network(string(info.Code)), Where: []storage.Cond{
		{Column: "tenant", Op: storage.In, Value: tenants},
		{Column: "state", Op: storage.In, Value: []outgoing.CoinState{outgoing.CoinFree, outgoing.CoinReserved}},
	}}, func(r storage.Row) error {
		c := outgoing.Coins.Value(r)
		if gas, err := t.cfg.Registry.Currency(info.Gas); err == nil && own[string(c.Address)].Use == "" {
			b.custody(gas.Code, gas.Decimal(c.Amount))
		}
		return nil
	})
}

// hotAddresses are the tenants' hot and change addresses that were made so far, with those that were replaced.
func (t *Treasury) hotAddresses(ctx context.Context, n chain.Network, tenants []string) (map[string]incoming.AddressRow, error) {
	out := map[string]incoming.AddressRow{}
	err := t.each(ctx, storage.Query{Table: incoming.Addresses.Table, Partition: storage.Network(string(n)), Where: []storage.Cond{
		{Column: "tenant", Op: storage.In, Value: tenants},
		{Column: "use_for", Op: storage.In, Value: []incoming.Use{incoming.UseHot, incoming.UseRetired, incoming.UseChange}},
	}}, func(r storage.Row) error {
		out[r.ID] = incoming.Addresses.Value(r)
		return nil
	})
	return out, err
}

// bookkeeper adds up.
type bookkeeper struct {
	registry *chain.Registry
	totals   map[string]*Total
	out      Holdings
}

// total is a currency's sum so far, nil for one that is none of this App's.
func (b *bookkeeper) total(code string) *Total {
	if t := b.totals[code]; t != nil {
		return t
	}
	c, err := b.registry.Currency(code)
	if err != nil {
		return nil
	}
	b.totals[code] = &Total{Currency: c}
	return b.totals[code]
}

func (b *bookkeeper) custody(code string, amount decimal.Decimal) {
	if t := b.total(code); t != nil {
		t.Custody = t.Custody.Add(amount)
	}
}

// read takes in one row of what was last read.
func (b *bookkeeper) read(h holdingRow) {
	if h.ReadAt.After(b.out.Updated) {
		b.out.Updated = h.ReadAt
	}
	if h.Place == placeCustody && h.Currency == "" {
		b.out.Accounts = append(b.out.Accounts, AccountHolding{
			CustodyAccount: CustodyAccount{ID: h.Holder, Name: h.Name, ExternalID: h.External, Active: h.Active}, ReadAt: h.ReadAt,
		})
		return
	}
	t := b.total(h.Currency)
	switch {
	case t == nil: // a currency that was taken out of the configuration
		return
	case h.Place == placeCustody:
		t.Custody = t.Custody.Add(h.Amount)
		return
	case h.Place == placeCold:
		t.Cold = t.Cold.Add(h.Amount)
	default:
		t.Hot = t.Hot.Add(h.Amount)
	}
	b.out.Wallets = append(b.out.Wallets, WalletHolding{
		ID: walletID(h.Network, h.Holder), Name: h.Name, Network: chain.Network(h.Network), Address: chain.Address(h.Holder),
		Cold: h.Place == placeCold, Currency: t.Currency, Amount: h.Amount, ReadAt: h.ReadAt,
	})
}

func walletID(network, address string) string { return network + ":" + address }

// holdings is the sum of it all, in order.
func (b *bookkeeper) holdings() Holdings {
	for _, t := range b.totals {
		b.out.Totals = append(b.out.Totals, *t)
	}
	slices.SortFunc(b.out.Totals, func(x, y Total) int { return byCurrency(x.Currency, y.Currency) })
	slices.SortStableFunc(b.out.Wallets, func(x, y WalletHolding) int {
		return cmp.Or(byCurrency(x.Currency, y.Currency), strings.Compare(x.Name, y.Name), strings.Compare(x.ID, y.ID))
	})
	slices.SortStableFunc(b.out.Accounts, func(x, y AccountHolding) int { return strings.Compare(x.ID, y.ID) })
	return b.out
}

func byCurrency(x, y *chain.Currency) int {
	return cmp.Or(cmp.Compare(x.Network, y.Network), strings.Compare(x.Token, y.Token))
}
