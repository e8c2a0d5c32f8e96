package outgoing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// binding is a row of the table InputReservations as it was loaded: the intent that alone
// may spend a nonce or an outpoint. Its methods alone write that table.
type binding struct {
	InputReservation
	input   string // the slot of a nonce, or an outpoint
	version int64  // 0 = no intent has it
}

// unbound is a nonce or an outpoint that no intent has. A Change that binds it conflicts
// where one has.
func unbound(input string) *binding { return &binding{input: input} }

func bindingOf(r storage.Row) binding {
	return binding{InputReservation: InputReservations.Value(r), input: r.ID, version: r.Version}
}

func loadBinding(ctx context.Context, store storage.Store, part storage.Partition, input string) (*binding, error) {
	v, row, _, err := InputReservations.One(ctx, store, part, input)
	return &binding{InputReservation: v, input: input, version: row.Version}, err
}

func (n *Sender) loadBinding(ctx context.Context, input string) (*binding, error) {
	return loadBinding(ctx, n.Store, n.part, input)
}

func (b *binding) guard() storage.Guard { return InputReservations.Guard(b.input, b.version) }

func (b *binding) of(intent string) bool { return b.version > 0 && b.Intent == intent }

// bind has an intent reserve the input, unless it has done so already. It refuses what
// another intent has.
func (b *binding) bind(intent string, at time.Time, s *transition) error {
	switch {
	case b.of(intent):
		return nil
	case b.version > 0:
		return errBusy
	}
	s.with = append(s.with, InputReservations.Row(b.input, 0, time.Time{}, InputReservation{Intent: intent, At: at}))
	return nil
}

// unbind drops the reservations that an intent has of these inputs.
func (n *Sender) unbind(ctx context.Context, inputs []string, intent string, s *transition) error {
	if len(inputs) == 0 {
		return nil
	}
	rows, err := n.Store.Rows(ctx, InputReservations.Table, storage.Keys(n.part, inputs...)...)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if b := bindingOf(r); b.of(intent) {
			s.drop = append(s.drop, storage.Row{Table: InputReservations.Table, ID: b.input, Version: b.version})
		}
	}
	return nil
}

// bindAgain reserves for an intent that had settled what its open attempts spend, unless another intent has it.
func (n *Sender) bindAgain(ctx context.Context, j *claimedIntent, atts []*attempt, s *transition) error {
	var inputs []string
	for _, a := range atts {
		if a.v.State == Open {
			inputs = append(inputs, a.v.Spends...)
		}
	}
	if n.lapses() || len(inputs) == 0 {
		return nil
	}
	slices.Sort(inputs)
	inputs = slices.Compact(inputs)
	rows, err := n.Store.Rows(ctx, InputReservations.Table, storage.Keys(n.part, inputs...)...)
	if err != nil {
		return err
	}
	taken := make(map[string]bool, len(rows))
	for _, r := range rows {
		taken[r.ID] = true
	}
	inputs = slices.DeleteFunc(inputs, func(input string) bool { return taken[input] })
	for _, input := range inputs {
		if err := unbound(input).bind(j.id, n.Now(), s); err != nil {
			return err
		}
	}
	return n.moveCoins(ctx, inputs, j.id, s, func(string) CoinState { return CoinReserved })
}

// heldCoins lists the outpoints that an intent has reserved, nil where coins are
// no outputs.
func (n *Sender) heldCoins(ctx context.Context, intent string) ([]string, error) {
	if n.info.Family != chain.UTXOFamily {
		return nil, nil
	}
	var out []string
	for r, err := range storage.All(ctx, n.Store, storage.Query{
		Table: InputReservations.Table, Partition: n.part,
		Where: []storage.Cond{{Column: "intent", Op: storage.Eq, Value: intent}},
	}) {
		if err != nil {
			return nil, fmt.Errorf("outgoing: reading reservations: %w", err)
		}
		out = append(out, r.ID)
	}
	return out, nil
}

// coin is a row of the table Coins as it was loaded. Its methods alone write that table.
type coin struct {
	CoinValue
	outpoint string
	version  int64 // 0 = it has no row yet
}

func coinOf(r storage.Row) coin {
	return coin{CoinValue: Coins.Value(r), outpoint: r.ID, version: r.Version}
}

func coinsIn(rows []storage.Row, err error) ([]coin, error) {
	out := make([]coin, len(rows))
	for i, r := range rows {
		out[i] = coinOf(r)
	}
	return out, err
}

// loadCoins reads those of the coins that have a row.
func (n *Sender) loadCoins(ctx context.Context, outpoints ...string) ([]coin, error) {
	return coinsIn(n.Store.Rows(ctx, Coins.Table, storage.Keys(n.part, outpoints...)...))
}

// newCoin is an output of ours that has no row yet.
func newCoin(tenant string, c chain.Coin) coin {
	return coin{outpoint: c.Outpoint, CoinValue: CoinValue{
		Tenant: tenant, Address: c.Address, Key: c.Key, Amount: c.Amount, State: CoinFree,
	}}
}

// CoinRow makes the row that gives a final output of ours to coin selection:
// for whoever learns of one (treasury). It inserts; a coin that is known
// already makes the Change's commit a *storage.DuplicateError or ErrConflict.
func CoinRow(tenant string, c chain.Coin) storage.Row {
	made := newCoin(tenant, c)
	return made.row()
}

// row is the coin as it stands, also where only others who decide on it are to conflict.
func (c *coin) row() storage.Row {
	return Coins.Row(c.outpoint, c.version, time.Time{}, c.CoinValue)
}

// remove drops the row of an output that does not exist.
func (c *coin) remove(s *transition) {
	s.drop = append(s.drop, storage.Row{Table: Coins.Table, ID: c.outpoint, Version: c.version})
}

// input is the coin as builders take it.
func (c *coin) input() chain.Coin {
	return chain.Coin{Outpoint: c.outpoint, Address: c.Address, Key: c.Key, Amount: c.Amount}
}

// reserve binds a coin to an intent. It refuses one that is not free.
func (c *coin) reserve(intent string, at time.Time, s *transition) error {
	if c.State != CoinFree {
		return fmt.Errorf("outgoing: coin %s is %s", c.outpoint, c.State)
	}
	c.State, c.Intent = CoinReserved, intent
	s.with = append(s.with, c.row())
	return unbound(c.outpoint).bind(intent, at, s)
}

// expect gives a new output that is in no block yet to the child that spends it.
func (c *coin) expect(child string, at time.Time, s *transition) error {
	c.State, c.Intent = CoinUnmined, child
	s.with = append(s.with, c.row())
	return unbound(c.outpoint).bind(child, at, s)
}

// arrive has an unmined output be in a block for good. It stays its child's.
func (c *coin) arrive(s *transition) {
	if c.State == CoinUnmined {
		c.State = CoinReserved
		s.with = append(s.with, c.row())
	}
}

// leaveBlock has an output that a merge returned be in no block any more. One that an
// intent spends may come back to it.
func (c *coin) leaveBlock(s *transition) {
	switch c.State {
	case CoinFree:
		c.remove(s)
	case CoinReserved:
		c.State = CoinGone
		s.with = append(s.with, c.row())
	}
}

// becomes changes the state of a coin that the intent has. What is gone stays so unless it
// was spent. A coin of another intent stays as it is.
func (c *coin) becomes(next CoinState, intent string, s *transition) {
	if c.Intent != intent {
		return
	}
	if c.State != CoinGone || next == CoinSpent {
		c.State = next
	}
	if next == CoinFree {
		c.Intent = ""
	}
	s.with = append(s.with, c.row())
}

// moveCoins changes the states of coins that the intent has.
func (n *Sender) moveCoins(ctx context.Context, outpoints []string, intent string, s *transition, to func(outpoint string) CoinState) error {
	if len(outpoints) == 0 || n.info.Family != chain.UTXOFamily {
		return nil
	}
	coins, err := n.loadCoins(ctx, outpoints...)
	for i := range coins {
		coins[i].becomes(to(coins[i].outpoint), intent, s)
	}
	return err
}

// Lost is the row of a coin that a deep reorg has taken away, and the guard that its Change
// requires. ok is false where the coin is not known, or where it could not be spent anyway.
func Lost(ctx context.Context, store storage.Store, part storage.Partition, outpoint string) (row storage.Row, guard storage.Guard, ok bool, err error) {
	v, loaded, known, err := Coins.One(ctx, store, part, outpoint)
	if err != nil || !known {
		return row, guard, false, err
	}
	c := coin{CoinValue: v, outpoint: outpoint, version: loaded.Version}
	held, err := loadBinding(ctx, store, part, outpoint)
	// What a merge has spent that is not final is reserved for it still. What a settled intent has spent is
	// spent no more: its transaction is gone with the coin.
	spent := c.State == CoinSpent && held.of(c.Intent)
	if err == nil && c.State == CoinSpent && !spent {
		spent, err = settled(ctx, store, part, c.Intent)
	}
	if err != nil || !spent && c.State != CoinFree && c.State != CoinReserved {
		return row, guard, false, err
	}
	c.State = CoinGone
	return c.row(), held.guard(), true, nil
}

// Found is the row of a coin that was gone and is in a block again, as it goes back to whom it
// was taken from, and the guard that its Change requires.
func Found(ctx context.Context, store storage.Store, part storage.Partition, row storage.Row) (storage.Row, storage.Guard, error) {
	c := coinOf(row)
	held, err := loadBinding(ctx, store, part, c.outpoint)
	switch {
	case err != nil:
		return storage.Row{}, storage.Guard{}, err
	case c.Intent == "":
		c.State = CoinFree
	case held.of(c.Intent):
		c.State = CoinReserved
	default: // its intent has ended without it, or has spent it and is in a block again, too
		spent, err := spentBy(ctx, store, part, c.Intent, c.outpoint)
		if err != nil {
			return storage.Row{}, storage.Guard{}, err
		}
		if c.State = CoinDisputed; spent {
			c.State = CoinSpent
		}
	}
	return c.row(), held.guard(), nil
}

// spentBy reports whether a transaction of an intent that has landed spends a coin.
func spentBy(ctx context.Context, store storage.Store, part storage.Partition, intent, coin string) (bool, error) {
	rows, err := store.Find(ctx, storage.Query{Table: Attempts.Table, Partition: part, Limit: 1000, Where: []storage.Cond{{Column: "intent", Op: storage.Eq, Value: intent}}})
	return slices.ContainsFunc(rows, func(r storage.Row) bool {
		a := Attempts.Value(r)
		return a.State == AttemptFinal && slices.Contains(a.Spends, coin)
	}), err
}

// settled reports whether an intent is settled.
func settled(ctx context.Context, store storage.Store, part storage.Partition, intent string) (bool, error) {
	v, _, ok, err := Intents.One(ctx, store, part, intent)
	return ok && v.State == Final, err
}

// Taken returns the row of a coin, loaded as row, that tx has spent: a transaction by our keys
// that no order of this store made. record is the id of what was decided about it. ok is false
// where the coin is spent already. An error wraps ErrHelp where an order has the coin, unless
// pays says that tx has paid that order.
func (v CoinValue) Taken(row storage.Row, tx, record string, pays func(order string) bool) (spent storage.Row, ok bool, err error) {
	switch v.State {
	case CoinSpent:
		return storage.Row{}, false, nil
	case CoinReserved, CoinUnmined:
		if v.Intent != "" && !pays(v.Intent) {
			return storage.Row{}, false, fmt.Errorf("%w: %s spent the coin %s, which the order %s has: cancel that order's transaction first", ErrHelp, tx, row.ID, v.Intent)
		}
	case CoinFree, CoinGone, CoinDisputed:
	}
	v.State, v.Intent = CoinSpent, record
	return Coins.Row(row.ID, row.Version, time.Time{}, v), true, nil
}
