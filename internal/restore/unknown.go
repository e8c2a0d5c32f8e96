package restore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// ErrUndecided reports that a person must say what an unknown transaction was for.
var ErrUndecided = errors.New("restore: it is not known what the transaction was for: name the wallet that bears it")

// Tx is a transaction of our keys that the store knows nothing of.
type Tx struct {
	Network chain.Network
	Tx      string
	Block   chain.Block
	Final   bool
	From    chain.Address // "" where coins are outputs
	Tenant  string        // whose address or coins it spent; "" = unknown
	sure    bool          // Tenant had them when the backup was made, too
	Spends  []string
	Moves   []Move
	Taken   bool // Take has booked it
}

// Move is what a Tx moved to one address.
type Move struct {
	Ordinal  int
	To       chain.Address
	Memo     string
	Currency string          // "" = none that is listed
	Amount   decimal.Decimal // in whole coins
	Ours     bool            // the address is ours: nothing has left
	// Withdrawal is the order that it has paid, as address, currency and amount agree; ""
	// = none is known. Tenant, Status and Wallet are its.
	Withdrawal string
	Tenant     string
	Status     withdrawal.Status
	Wallet     string
}

// everything is a Watch of all addresses.
type everything struct{}

func (everything) Sync(context.Context) error  { return nil }
func (everything) Contains(chain.Address) bool { return true }
func (everything) Open() []chain.Address       { return nil }

// scanAtOnce is how many blocks are asked for at a time.
const scanAtOnce = 50

// Unknown reads the blocks of a network from where the restore found the store, and
// lists the transactions that our keys made and the store knows nothing of, the oldest first.
// It shows which withdrawals they have paid. It reads every transfer of those blocks from the
// node; progress gets the height that was read and the tip, and may be nil. The error wraps ErrNoRestore.
func (s *Steps) Unknown(ctx context.Context, n chain.Network, progress func(height, of int64)) ([]Tx, error) {
	r, _, ok, err := s.restoring(ctx)
	if err == nil && !ok {
		err = ErrNoRestore
	}
	if err != nil {
		return nil, err
	}
	client, err := s.client(n)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(r.Networks, func(at Network) bool { return at.Network == n })
	if i < 0 || r.Networks[i].From.Hash == "" {
		return nil, nil // nothing was ever read, and nothing sent
	}
	l := &lookout{s: s, client: client, made: map[string]string{}}
	if err := l.scan(ctx, r.Networks[i].From, progress); err != nil {
		return nil, err
	}
	return l.found, l.match(ctx, r.Begun)
}

// lookout looks for transactions of our keys.
type lookout struct {
	s      *Steps
	client chain.Client
	found  []Tx
	made   map[string]string // tenant of outputs that transactions in found return to us
}

func (l *lookout) part() storage.Partition { return storage.Network(string(l.client.Network())) }

func (l *lookout) scan(ctx context.Context, from chain.Block, progress func(height, of int64)) error {
	tip, err := l.client.Tip(ctx)
	if err != nil {
		return err
	}
	for trail := []chain.Block{from}; ; {
		s, err := l.client.Scan(ctx, trail, everything{}, scanAtOnce)
		if err != nil {
			return fmt.Errorf("restore: reading %s from block %d: %w", l.client.Network(), trail[len(trail)-1].Height, err)
		}
		if s.Rewound >= len(trail) {
			return fmt.Errorf("restore: reading %s: %w", l.client.Network(), chain.ErrDeepFork)
		}
		trail = trail[:len(trail)-s.Rewound]
		at := trail[len(trail)-1].Height
		l.found = slices.DeleteFunc(l.found, func(u Tx) bool { return u.Block.Height > at })
		for i := range s.Blocks {
			if err := l.block(ctx, &s.Blocks[i], tip); err != nil {
				return err
			}
			trail = append(trail, s.Blocks[i].Block)
		}
		if progress != nil {
			progress(trail[len(trail)-1].Height, tip.Head.Height)
		}
		if len(s.Blocks) == 0 {
			return nil
		}
		trail = slices.Clone(trail[max(0, len(trail)-500):])
	}
}

// block takes in what one block moved from us.
func (l *lookout) block(ctx context.Context, b *chain.ScannedBlock, tip chain.Tip) error {
	var addresses, spent, txs []string
	for i := range b.Transfers {
		t := &b.Transfers[i]
		addresses = append(addresses, string(t.From), string(t.To))
		spent, txs = append(spent, t.Spends...), append(txs, t.Tx)
	}
	coins, err := l.rows(ctx, outgoing.Coins.Table, spent)
	if err != nil {
		return err
	}
	for _, row := range coins {
		addresses = append(addresses, string(outgoing.Coins.Value(row).Address))
	}
	ours, err := l.rows(ctx, incoming.Addresses.Table, addresses)
	if err != nil {
		return err
	}
	known, err := l.rows(ctx, outgoing.Attempts.Table, txs)
	if err != nil {
		return err
	}
	for i := range b.Transfers {
		t := &b.Transfers[i]
		if _, made := known[t.Tx]; made || slices.ContainsFunc(t.Spends, func(s string) bool { return booked(coins[s], t.Tx) }) {
			continue
		}
		from, mine := ours[string(t.From)]
		tenant, sure := "", false
		if mine = mine && t.From != ""; mine {
			tenant, sure = incoming.Addresses.Value(from).Tenant, ofOld(from)
		}
		for _, s := range t.Spends {
			if row, ok := coins[s]; ok {
				c := outgoing.Coins.Value(row)
				if mine = true; !sure {
					tenant, sure = c.Tenant, ofOld(ours[string(c.Address)])
				}
			} else if of, ok := l.made[s]; ok {
				if mine = true; !sure {
					tenant = of
				}
			}
		}
		if !mine {
			continue
		}
		to, back := ours[string(t.To)]
		if back && t.From != "" {
			if a := incoming.Addresses.Value(to); a.Use == incoming.UseHot || a.Use == incoming.UseRetired {
				tenant, sure = a.Tenant, false // it was swept for him, whoever has the address now
			}
		}
		l.add(b.Block, t, tenant, sure, back, l.final(t, b.Height, tip))
	}
	return nil
}

// booked reports whether an order has spent a coin for good: tx is its transaction under another
// hash.
func booked(coin storage.Row, tx string) bool {
	if coin.Table == nil {
		return false
	}
	v := outgoing.Coins.Value(coin)
	return v.State == outgoing.CoinSpent && v.Intent != audit.TakenID(tx)
}

// ofOld reports whether an address has been its tenant's since before the restore: no other
// use is withheld.
func ofOld(row storage.Row) bool {
	return row.Table != nil && incoming.Addresses.Value(row).Use != incoming.UsePayment
}

func (l *lookout) add(b chain.Block, t *chain.Transfer, tenant string, sure, back, final bool) {
	i := slices.IndexFunc(l.found, func(u Tx) bool { return u.Tx == t.Tx })
	if i < 0 {
		i = len(l.found)
		l.found = append(l.found, Tx{Network: l.client.Network(), Tx: t.Tx, Block: b, Final: true, From: t.From, Tenant: tenant, sure: sure, Spends: t.Spends})
	}
	u := &l.found[i]
	u.Final = u.Final && final
	u.Moves = append(u.Moves, Move{Ordinal: t.Ordinal, To: t.To, Memo: t.Memo, Currency: t.Currency, Amount: t.Amount, Ours: back})
	if back {
		l.made[incoming.Key(t.Tx, t.Ordinal)] = tenant
	}
}

// final reports whether what is in a block of this height can be booked.
func (l *lookout) final(t *chain.Transfer, height int64, tip chain.Tip) bool {
	c, err := l.s.cfg.Registry.Currency(t.Currency)
	if err != nil {
		c, err = l.s.cfg.Registry.Gas(l.client.Network())
	}
	return tip.Final >= height || err == nil && !c.WaitFinal && tip.Head.Height-height+1 >= c.Confirmations
}

// rows reads rows of the network by id.
func (l *lookout) rows(ctx context.Context, t *storage.Table, ids []string) (map[string]storage.Row, error) {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	out := map[string]storage.Row{}
	for some := range slices.Chunk(ids, page) {
		rows, err := l.s.cfg.Store.Rows(ctx, t, storage.Keys(l.part(), some...)...)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			out[r.ID] = r
		}
	}
	return out, nil
}

// match finds the withdrawals that were paid. Each is found once.
func (l *lookout) match(ctx context.Context, begun time.Time) error {
	var ids []string
	for i := range l.found {
		ids = append(ids, audit.TakenID(l.found[i].Tx))
	}
	taken, err := l.rows(ctx, outgoing.Operations.Table, ids)
	if err != nil {
		return err
	}
	orders, used := []withdrawal.Withdrawal(nil), map[string]bool{}
	for i := range l.found {
		if _, l.found[i].Taken = taken[audit.TakenID(l.found[i].Tx)]; !l.found[i].Taken && orders == nil {
			if orders, err = l.orders(ctx, begun); err != nil {
				return err
			}
		}
	}
	for i := range l.found {
		u := &l.found[i]
		for k := range u.Moves {
			m := &u.Moves[k]
			best := -1
			for at := range orders {
				w := &orders[at]
				if u.Taken || m.Ours || used[w.ID] || u.sure && w.Tenant != u.Tenant || !paid(w, u, m, l.s.cfg.Registry) {
					continue
				}
				if best < 0 || orders[best].Tenant != u.Tenant && w.Tenant == u.Tenant {
					best = at
				}
			}
			if best >= 0 {
				w := &orders[best]
				used[w.ID] = true
				m.Withdrawal, m.Tenant, m.Status, m.Wallet = w.ID, w.Tenant, w.Status, w.Wallet
			}
		}
	}
	return nil
}

// paid reports whether a move is what a withdrawal ordered.
func paid(w *withdrawal.Withdrawal, u *Tx, m *Move, r *chain.Registry) bool {
	c, err := r.Currency(w.Currency)
	return err == nil && w.Network == string(u.Network) && w.Currency == m.Currency && w.Address == string(m.To) &&
		c.Decimal(w.Amount).Equal(m.Amount) && (w.SentMemo == "" || w.SentMemo == m.Memo) &&
		(w.Status != withdrawal.Completed || w.Tx == u.Tx)
}

// orders are the withdrawals of the network that an unknown transaction may have paid, the
// oldest first: those that are open, and those that have ended since the restore began.
func (l *lookout) orders(ctx context.Context, begun time.Time) (out []withdrawal.Withdrawal, err error) {
	on := storage.Cond{Column: "network", Op: storage.Eq, Value: string(l.client.Network())}
	for _, where := range [][]storage.Cond{
		{on, {Column: "status", Op: storage.In, Value: []withdrawal.Status{withdrawal.Pending, withdrawal.Processing}}},
		{
			on,
			{Column: "status", Op: storage.In, Value: []withdrawal.Status{withdrawal.Completed, withdrawal.Failed, withdrawal.Cancelled}},
			{Column: "updated_at", Op: storage.Ge, Value: begun},
		},
	} {
		for p, err := range cryptopay.Partitions(ctx, l.s.cfg.Store) {
			if err != nil {
				return nil, err
			}
			if !strings.HasPrefix(string(p), string(storage.Tenant(""))) {
				continue
			}
			err := each(ctx, l.s.cfg.Store, storage.Query{Table: withdrawal.Withdrawals.Table, Partition: p, Where: where}, func(row storage.Row) error {
				w := withdrawal.Withdrawals.Value(row)
				w.ID = row.ID
				out = append(out, w)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(out, func(x, y withdrawal.Withdrawal) int { return x.CreatedAt.Compare(y.CreatedAt) })
	return out, nil
}

// Take books what Unknown has found, so that it is never paid again:
// a withdrawal that it paid is completed by it, or taken from its wallet where it has ended;
// what it paid to anybody else is taken from the wallet that b names; what a wallet does not
// have is owed by it; what the network took is a cost of the operator; coins that it spent are
// spent. It may be called again, with the same wallet. A dry run writes nothing. Errors: ErrUndecided where a wallet must be named; *withdrawal.StateError where a
// withdrawal was signed here too: cancel its transaction first.
func (s *Steps) Take(ctx context.Context, u Tx, b Bearer, c cryptopay.Call) error {
	if err := check(c); err != nil {
		return err
	}
	client, err := s.client(u.Network)
	if err != nil || u.Taken {
		return err
	}
	b, err = s.bearer(ctx, &u, b)
	if err != nil {
		return err
	}
	cost, err := s.costOf(ctx, client, &u)
	if err != nil {
		return err
	}
	if _, err := s.spentBy(ctx, &u); err != nil || c.DryRun {
		return err
	}
	if b.Wallet != "" {
		if err := s.choose(ctx, &u, b, c); err != nil {
			return err
		}
	}
	for i := range u.Moves {
		switch m := &u.Moves[i]; {
		case m.Ours || m.Currency == "":
		case m.Withdrawal != "" && (m.Status == withdrawal.Pending || m.Status == withdrawal.Completed):
			by := s.recorded(ctx, storage.Tenant(m.Tenant), OpTake, u.Network, m.Tenant, m.Withdrawal, c)
			_, err = s.App.Withdrawals.Found(ctx, m.Tenant, m.Withdrawal, u.Tx, func(before, after withdrawal.Withdrawal) ([]storage.Row, []storage.Event, error) {
				return by.Rows(statusOf(&before), statusOf(&after))
			})
		case m.Withdrawal != "":
			err = s.bookPaid(ctx, &u, m, Bearer{m.Tenant, m.Wallet}, c)
		default:
			err = s.bookPaid(ctx, &u, m, b, c)
		}
		if err != nil {
			return err
		}
	}
	if cost > 0 {
		if err := s.App.Treasury.BookCost(ctx, outgoing.Outcome{Network: string(u.Network), Tenant: u.Tenant, Intent: audit.TakenID(u.Tx), Cost: cost, CostTx: u.Tx}); err != nil {
			return err
		}
	}
	var by *outgoing.Recorded
	err = storage.Decide(ctx, s.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		rows, err := s.spentBy(ctx, &u)
		if err != nil {
			return storage.Change{}, err
		}
		by = s.under(ctx, storage.Network(string(u.Network)), audit.TakenID(u.Tx), OpTake, c)
		by.Op.Network, by.Op.Tenant, by.Op.Object = u.Network, u.Tenant, u.Tx
		change := storage.Change{ID: audit.TakenID(u.Tx), Partition: storage.Network(string(u.Network)), Put: rows}
		return change, by.Add(&change, "unknown", "booked")
	})
	if err == nil {
		s.done(ctx, by)
	}
	return err
}

func statusOf(w *withdrawal.Withdrawal) any {
	return struct {
		Status withdrawal.Status `json:"status"`
		Tx     string            `json:"tx"`
	}{w.Status, w.Tx}
}

// Bearer is whose wallet (id or external id, "" = none is named) bears what was paid to somebody
// whom no withdrawal names. Tenant "" is the tenant whose address or coins were spent.
type Bearer struct{ Tenant, Wallet string }

// bearer checks that it is known who bears each move, and is who bears those of which no
// withdrawal is known, with the id of the wallet.
func (s *Steps) bearer(ctx context.Context, u *Tx, b Bearer) (Bearer, error) {
	if !u.Final {
		return b, fmt.Errorf("restore: %s of %s is not final yet: it may be replaced", u.Tx, u.Network)
	}
	if b.Tenant == "" {
		b.Tenant = u.Tenant
	}
	for i := range u.Moves {
		switch m := &u.Moves[i]; {
		case m.Ours:
		case m.Status == withdrawal.Processing:
			return b, &withdrawal.StateError{ID: m.Withdrawal, Current: m.Status}
		case m.Withdrawal != "":
			u.Tenant = m.Tenant // it was his address, whoever has it now
		case m.Currency != "" && b.Wallet == "":
			return b, fmt.Errorf("%w: %s of %s paid %s %s to %s", ErrUndecided, u.Tx, u.Network, m.Amount, m.Currency, m.To)
		}
	}
	if b.Wallet != "" {
		if _, err := s.App.Wallets.Tenant(ctx, b.Tenant); err != nil {
			return b, err
		}
		u.Tenant = b.Tenant
		ref := b.Wallet
		if ref == wallet.Master {
			ref = "" // as wallets name it
		}
		id, _, err := s.App.Wallets.Resolve(ctx, b.Tenant, ref)
		return Bearer{b.Tenant, id}, err
	}
	if u.Tenant == "" {
		return b, fmt.Errorf("%w: %s of %s spent from %s, which nobody was given when the backup was made: withhold addresses first", ErrUndecided, u.Tx, u.Network, u.From)
	}
	return b, nil
}

// choose records who bears a transaction, before anything is booked for it: a ledger refuses to
// book it twice, and each tenant has a ledger of its own. The error says who was chosen before.
func (s *Steps) choose(ctx context.Context, u *Tx, b Bearer, c cryptopay.Call) error {
	p := storage.Network(string(u.Network))
	by := s.under(ctx, p, audit.TakenID(u.Tx)+"/bearer", OpTake, c)
	by.Op.Network, by.Op.Tenant, by.Op.Object = u.Network, b.Tenant, u.Tx
	bears := "wallet " + b.Wallet + " of " + b.Tenant
	if err := s.note(ctx, by, by.ID+"/"+s.cfg.NewID(), "", bears); err != nil {
		return err
	}
	chosen, _, _, err := outgoing.Operations.One(ctx, s.cfg.Store, p, by.ID)
	if err == nil && chosen.After != bears {
		err = fmt.Errorf("restore: %s bears %s of %s, as %s has said: name that wallet", chosen.After, u.Tx, u.Network, chosen.By)
	}
	return err
}

// costOf is what the network took for a transaction.
func (s *Steps) costOf(ctx context.Context, client chain.Client, u *Tx) (ledger.Amount, error) {
	all, err := client.Status(ctx, chain.Attempt{Tx: u.Tx, Spends: u.Spends})
	if err != nil {
		return 0, err
	}
	if len(all) != 1 || all[0].State != chain.Included {
		return 0, fmt.Errorf("%w: it does not say what %s of %s has cost: ask again", chain.ErrNode, u.Tx, u.Network)
	}
	info, err := s.cfg.Registry.Network(string(u.Network))
	if err == nil && info.Family == chain.UTXOFamily && all[0].Cost == 0 {
		err = fmt.Errorf("restore: the node of %s keeps no index of transactions, and cannot say what %s has cost: connect one that does", u.Network, u.Tx)
	}
	return all[0].Cost, err
}

// bookPaid takes what was paid from a wallet, and what that does not have from what it owes.
func (s *Steps) bookPaid(ctx context.Context, u *Tx, m *Move, b Bearer, c cryptopay.Call) error {
	cur, err := s.cfg.Registry.Currency(m.Currency)
	if err != nil {
		return err
	}
	amount, err := cur.Units(m.Amount, ledger.Up)
	if err != nil {
		return err
	}
	id := "restored/" + string(u.Network) + "/" + u.Tx + "/" + strconv.Itoa(m.Ordinal)
	by := s.recorded(ctx, storage.Tenant(b.Tenant), OpTake, u.Network, b.Tenant, u.Tx, c)
	for has := amount; ; {
		legs := []ledger.Leg{{Account: ledger.Chain(string(u.Network)), Asset: cur.Asset(), Delta: amount}}
		if has > 0 {
			legs = append(legs, ledger.Leg{Account: ledger.Wallet(b.Wallet), Asset: cur.Asset(), Delta: -has})
		}
		if has < amount {
			legs = append(legs, ledger.Leg{Account: ledger.Receivable(b.Wallet), Asset: cur.Asset(), Delta: has - amount})
		}
		post := []ledger.Tx{{ID: id, Kind: ledger.KindAdjustment, Ref: u.Tx, At: s.cfg.Clock.Now(), Legs: legs}}
		paid := fmt.Sprintf("%s %s to %s", m.Amount, m.Currency, m.To)
		err := storage.Decide(ctx, s.cfg.Store, func(context.Context) (storage.Change, error) {
			change := storage.Change{ID: id, Partition: storage.Tenant(b.Tenant), Post: post, Count: tally.Entries(post)}
			return change, by.Add(&change, "", "wallet "+b.Wallet+" bears "+paid)
		})
		var short *ledger.InsufficientFundsError
		if !errors.As(err, &short) || has == 0 {
			return err
		}
		has = min(max(short.Available, 0), has-1)
	}
}

// spentBy are the rows of a network that say what a transaction spent: its coins, and the
// deposits that it forwarded.
func (s *Steps) spentBy(ctx context.Context, u *Tx) (out []storage.Row, err error) {
	p := storage.Network(string(u.Network))
	coins, err := s.cfg.Store.Rows(ctx, outgoing.Coins.Table, storage.Keys(p, u.Spends...)...)
	if err != nil {
		return nil, err
	}
	for _, row := range coins {
		spent, ok, err := outgoing.Coins.Value(row).Taken(row, u.Tx, audit.TakenID(u.Tx), func(order string) bool { return paidBy(u, order) })
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, spent)
		}
	}
	back, err := s.returned(ctx, u)
	if err != nil {
		return nil, err
	}
	out = append(out, back...)
	from, _, ok, err := incoming.Addresses.One(ctx, s.cfg.Store, p, string(u.From))
	if err != nil || len(back) > 0 || u.From == "" || !ok || from.Use != incoming.UsePayment {
		return out, err
	}
	for _, m := range u.Moves {
		if m.Ours && m.Currency != "" {
			out = append(out, s.App.Treasury.Swept(u.Tenant, u.Network, u.From, from.Key, m.Currency, u.Tx, u.Block.Time))
		}
	}
	return out, nil
}

// returned are the coins that a transaction has returned to our addresses. They are of whose
// coins it spent, whoever has the address now.
func (s *Steps) returned(ctx context.Context, u *Tx) (out []storage.Row, err error) {
	info, err := s.cfg.Registry.Network(string(u.Network))
	if err != nil || info.Family != chain.UTXOFamily {
		return nil, err
	}
	p := storage.Network(string(u.Network))
	for i := range u.Moves {
		m := &u.Moves[i]
		c, err := s.cfg.Registry.Currency(m.Currency)
		if !m.Ours || err != nil {
			continue
		}
		outpoint := incoming.Key(u.Tx, m.Ordinal)
		owner, _, ok, err := incoming.Addresses.One(ctx, s.cfg.Store, p, string(m.To))
		if err != nil || !ok {
			return nil, err
		}
		_, _, there, err := outgoing.Coins.One(ctx, s.cfg.Store, p, outpoint)
		if err != nil {
			return nil, err
		}
		amount, err := c.Units(m.Amount, ledger.Down)
		if err != nil {
			return nil, err
		}
		if !there {
			out = append(out, outgoing.CoinRow(u.Tenant, chain.Coin{Outpoint: outpoint, Address: m.To, Key: chain.KeyRef(owner.Key), Amount: amount}))
		}
	}
	return out, nil
}

// paidBy reports whether a transaction has paid a withdrawal.
func paidBy(u *Tx, id string) bool {
	return slices.ContainsFunc(u.Moves, func(m Move) bool { return m.Withdrawal == id })
}
