package incoming

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Bounds of what a chain may make us store.
const (
	maxText   = 500 // bytes of a memo, contract or sender: what stores keep in an index
	maxTx     = 160 // bytes of a tx hash
	maxPlaces = 128 // digits before or after the point of an exact amount
	maxSpends = 256 // inputs remembered of one tx
	readChunk = 1000
)

// validTransfer reports whether a transfer names its transaction.
func validTransfer(t *chain.Transfer) bool {
	return t.Tx != "" && len(t.Tx) <= maxTx && clean(t.Tx) == t.Tx
}

// ownable reports whether an address can be one of ours: a stranger pays whatever he
// likes, and a client may report it.
func ownable(a chain.Address) bool { return a != "" && clean(string(a)) == string(a) }

// clean is s as every store can keep it: valid UTF-8 without NUL, and bounded.
func clean(s string) string {
	s = s[:min(len(s), maxText)]
	if utf8.ValidString(s) && !strings.ContainsRune(s, 0) {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "�") // which may be longer
	end := min(len(s), maxText)
	for end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// sighted is a Sighting being changed.
type sighted struct {
	Sighting
	version int64
	dirty   bool

	least    int64 // confirmations that the transfer itself needs, of whatever value
	returned bool  // a fork threw it back, or it was gone
	fresh    bool  // it was not in this block before

	unlisted bool // it was described without a currency now
	coins    bool // … and Exact counts whole coins
}

// source is where transfers were read.
type source uint8

const (
	fromBlocks source = iota + 1
	fromMempool
	fromHistory // of one address, on demand
)

// merge works out what transfers, all of one source, do to the stored
// Sightings. It returns the rows to put.
func (n *Network) merge(ctx context.Context, found []chain.Transfer, src source) ([]storage.Row, error) {
	mine, owners, err := n.ours(ctx, found, src)
	if err != nil || len(mine) == 0 {
		return nil, err
	}
	b, err := n.load(ctx, mine)
	if err != nil {
		return nil, err
	}
	internal := make([]bool, len(mine))
	if n.cfg.Internal != nil {
		if internal, err = n.cfg.Internal(ctx, n.name, mine); err != nil {
			return nil, fmt.Errorf("incoming: asking which transfers are our own: %w", err)
		}
		if len(internal) != len(mine) {
			return nil, fmt.Errorf("incoming: Config.Internal answered %d of %d", len(internal), len(mine))
		}
	}
	now := n.cfg.Now()
	var contradicted []chain.Transfer
	for i := range mine {
		t := &mine[i]
		s := b.get(t)
		if !n.see(s, t, now) {
			n.again(s, t)
			continue
		}
		if t.Contradicted {
			contradicted = append(contradicted, *t)
		}
		n.describe(s, t, owners[t.To], internal[i])
		b.inherit(s)
		if t.Block.Hash != "" {
			b.conflict(s)
		}
	}
	if err := n.weigh(ctx, b); err != nil {
		return nil, err
	}
	halts, err := n.contradicted(ctx, contradicted)
	if err != nil {
		return nil, err
	}
	marks, err := n.unlistedRows(ctx, b)
	return append(append(n.rows(b, now), halts...), marks...), err
}

// ours leaves of the transfers those that move something to an address of the
// directory, at most so many unlisted ones per block.
func (n *Network) ours(ctx context.Context, found []chain.Transfer, src source) (mine []chain.Transfer, owners map[chain.Address]AddressRow, err error) {
	asked := map[chain.Address]bool{}
	var ids []string
	for i := range found {
		if to := found[i].To; found[i].Amount.IsPositive() && ownable(to) && !asked[to] {
			asked[to] = true
			ids = append(ids, string(to))
		}
	}
	owners = make(map[chain.Address]AddressRow, len(ids))
	for part := range slices.Chunk(ids, readChunk) {
		rows, err := n.cfg.Store.Rows(ctx, Addresses.Table, storage.Keys(n.part, part...)...)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range rows {
			owners[chain.Address(r.ID)] = Addresses.Value(r)
		}
	}
	unlisted := map[string]int{}
	var known map[string]bool // contracts that another process lists
	for _, t := range found {
		o, ok := owners[t.To]
		if !ok || !t.Amount.IsPositive() || src == fromBlocks && ended(o, t.Block.Time) {
			continue
		}
		if n.currency(&t) == nil {
			if unlisted[t.Block.Hash]++; src == fromMempool {
				continue
			}
			if unlisted[t.Block.Hash] > n.cfg.MaxUnlisted {
				if known, err = n.known(ctx, known); err != nil {
					return nil, nil, err
				}
				if !known[contractKey(n.lists.info, t.Contract)] {
					continue
				}
			}
		}
		mine = append(mine, t)
	}
	for hash, count := range unlisted {
		if src != fromMempool && count > n.cfg.MaxUnlisted {
			n.log.Warn("unlisted_tokens_not_recorded", slog.String("block", hash), slog.Int("count", count-n.cfg.MaxUnlisted))
		}
	}
	return mine, owners, nil
}

func ended(o AddressRow, at time.Time) bool {
	return !o.WatchUntil.IsZero() && at.After(o.WatchUntil)
}

// currency is the registered currency of a transfer, nil where it is none of
// this network's.
func (n *Network) currency(t *chain.Transfer) *chain.Currency { return n.listed(t.Currency) }

func (n *Network) listed(code string) *chain.Currency {
	if code == "" {
		return nil
	}
	c, err := n.cfg.Registry.Currency(code)
	if err != nil || c.Network != n.name {
		return nil
	}
	return c
}

// known reads which contracts of the network other processes list, once.
func (n *Network) known(ctx context.Context, have map[string]bool) (map[string]bool, error) {
	if have != nil || n.cfg.Known == nil {
		return have, nil
	}
	contracts, err := n.cfg.Known(ctx)
	if err != nil {
		return nil, fmt.Errorf("incoming: %s: reading what other processes list: %w", n.name, err)
	}
	have = make(map[string]bool, len(contracts))
	for _, c := range contracts {
		have[contractKey(n.lists.info, c)] = true
	}
	return have, nil
}

// confirmations that a transfer needs; those of the native coin where it is of
// no currency of ours.
func (n *Network) confirmations(t *chain.Transfer) int64 {
	return max(n.depth(n.currency(t)), t.Confirmable)
}

// again describes a Sighting that is known in this block already, where it was stored
// without a currency and the client now names one: it was read by a process that did not
// list it.
func (n *Network) again(s *sighted, t *chain.Transfer) {
	c := n.currency(t)
	if c == nil || s.Currency != "" || s.BlockHash == "" || s.BlockHash != t.Block.Hash {
		return
	}
	n.list(&s.Sighting, c, t.Amount)
	s.dirty = true
}

// see moves the state to what the transfer says: in its block, or in the
// mempool. It reports whether there was anything new in it.
func (n *Network) see(s *sighted, t *chain.Transfer, now time.Time) bool {
	mined := t.Block.Hash != ""
	switch {
	case s.State == Included || s.State == Final:
		if mined && s.BlockHash != t.Block.Hash {
			n.log.Error("transfer_is_in_two_blocks", slog.String("sighting", s.Key()),
				slog.String("block", s.BlockHash), slog.String("other", t.Block.Hash))
		}
		return false
	case s.State == Seen && !mined:
		return false
	case s.State == "":
		s.Generation, s.FirstSeen = 1, now
		if mined && t.Block.Time.Before(now) && !t.Block.Time.IsZero() {
			s.FirstSeen = t.Block.Time
		}
	case s.State == Gone && s.FinalAt > 0: // had been final: this is another life
		s.Generation++
		s.Forward, s.ForwardTx, s.ForwardFee = ForwardNone, "", ""
	}
	s.dirty = true
	s.returned = s.returned || s.State == Gone || s.FinalAt > 0
	s.State, s.Height, s.BlockHash, s.BlockTime, s.FinalAt = Seen, 0, "", time.Time{}, 0
	if mined {
		s.State, s.Height, s.BlockHash, s.BlockTime = Included, t.Block.Height, t.Block.Hash, t.Block.Time
		s.FinalAt = t.Block.Height + n.confirmations(t) - 1
		s.fresh, s.least = true, max(1, t.Confirmable)
	}
	return true
}

// describe writes what was moved, from whom and to whom: a tx that is executed
// again on another branch may do something else.
func (n *Network) describe(s *sighted, t *chain.Transfer, owner AddressRow, internal bool) {
	s.Network, s.Tx, s.Ordinal = string(n.name), t.Tx, t.Ordinal
	s.Address, s.Tenant, s.Purpose = string(t.To), owner.Tenant, owner.Use
	s.From, s.Memo, s.Contract = clean(string(t.From)), clean(t.Memo), clean(t.Contract)
	s.Internal, s.Unproven = internal, t.Unproven
	s.Spends = nil
	for _, x := range t.Spends[:min(len(t.Spends), maxSpends)] {
		s.Spends = append(s.Spends, clean(x))
	}
	s.Exact = t.Amount
	if t.Amount.Exponent() > maxPlaces || t.Amount.Exponent() < -maxPlaces || t.Amount.NumDigits() > maxPlaces {
		s.Exact = decimal.Zero // no store should have to keep it
	}
	c := n.currency(t)
	if c == nil { // nobody forwards it until a process that lists it describes it
		s.Currency, s.Amount, s.Forward = "", 0, NotNeeded
		s.unlisted, s.coins = true, t.Currency != ""
		return
	}
	if s.Currency == "" && (s.Forward == NotNeeded || s.Forward == Deferred) {
		s.Forward = ForwardNone
	}
	s.Currency, s.Amount = c.Code, credit(c, t.Amount)
}

// credit is an exact amount in ledger units, rounded down; −1 where it is above
// what one deposit may be, or finer than the currency can be.
func credit(c *chain.Currency, exact decimal.Decimal) ledger.Amount {
	if exact.Exponent() > maxPlaces || exact.Exponent() < -maxPlaces || !exact.Equal(exact.Truncate(int32(c.Decimals))) {
		return -1
	}
	a, err := c.Units(exact, ledger.Down)
	if err != nil || a > ledger.MaxCredit || a < 0 {
		return -1
	}
	return a
}

// batch is the Sightings that one merge touches.
type batch struct {
	byKey  map[string]*sighted
	order  []string
	rivals map[rivalry][]*sighted // those that are not mined
}

// rivalry is what two transfers share where one replaces the other.
type rivalry struct{ address, spends string }

// load reads what is stored of these transfers, and of others to the same
// addresses that wait to be mined.
func (n *Network) load(ctx context.Context, mine []chain.Transfer) (*batch, error) {
	b := &batch{byKey: make(map[string]*sighted, len(mine)), rivals: map[rivalry][]*sighted{}}
	var keys, addresses []string
	spends := map[string]bool{}
	for i := range mine {
		keys = append(keys, Key(mine[i].Tx, mine[i].Ordinal))
		if to := string(mine[i].To); len(mine[i].Spends) > 0 && !spends[to] {
			spends[to] = true
			addresses = append(addresses, to)
		}
	}
	slices.Sort(keys)
	for part := range slices.Chunk(slices.Compact(keys), readChunk) {
		rows, err := n.cfg.Store.Rows(ctx, Sightings.Table, storage.Keys(n.part, part...)...)
		if err != nil {
			return nil, err
		}
		b.put(rows)
	}
	for part := range slices.Chunk(addresses, readChunk) {
		rows, err := n.find(ctx,
			storage.Cond{Column: "address", Op: storage.In, Value: part},
			storage.Cond{Column: "state", Op: storage.In, Value: []State{Seen, Gone}})
		if err != nil {
			return nil, err
		}
		for _, s := range b.put(rows) {
			for _, x := range s.Spends {
				k := rivalry{s.Address, x}
				b.rivals[k] = append(b.rivals[k], s)
			}
		}
	}
	return b, nil
}

// put adds stored rows that are not there yet, and returns all of them.
func (b *batch) put(rows []storage.Row) []*sighted {
	out := make([]*sighted, len(rows))
	for i, r := range rows {
		s := b.byKey[r.ID]
		if s == nil {
			s = &sighted{Sighting: Sightings.Value(r), version: r.Version}
			b.byKey[r.ID] = s
			b.order = append(b.order, r.ID)
		}
		out[i] = s
	}
	return out
}

func (b *batch) get(t *chain.Transfer) *sighted {
	key := Key(t.Tx, t.Ordinal)
	s := b.byKey[key]
	if s == nil {
		s = &sighted{}
		b.byKey[key] = s
		b.order = append(b.order, key)
	}
	return s
}

// inherit takes over the first sighting of what s replaces.
func (b *batch) inherit(s *sighted) {
	for _, x := range s.Spends {
		for _, r := range b.rivals[rivalry{s.Address, x}] {
			if r.Tx != s.Tx && r.FirstSeen.Before(s.FirstSeen) {
				s.FirstSeen, s.InheritedFrom = r.FirstSeen, r.Tx
			}
		}
	}
}

// conflict takes down what can no longer be mined since s was.
func (b *batch) conflict(s *sighted) {
	for _, x := range s.Spends {
		for _, r := range b.rivals[rivalry{s.Address, x}] {
			if r.State == Seen && r.Tx != s.Tx {
				r.State, r.FinalAt, r.dirty = Gone, 0, true
			}
		}
	}
}

// rows are those that changed, due for the Handler.
func (n *Network) rows(b *batch, now time.Time) []storage.Row {
	var out []storage.Row
	for _, key := range b.order {
		if s := b.byKey[key]; s.dirty {
			out = append(out, n.row(s.Sighting, s.version, now))
		}
	}
	return out
}

// row makes a changed Sighting due, unless it is for nobody: dust, which is
// recorded and no more, or an address that no tenant was given.
func (n *Network) row(s Sighting, version int64, now time.Time) storage.Row {
	if c := n.listed(s.Currency); s.Tenant == "" || c != nil && s.Exact.LessThan(c.Dust) && s.Amount >= 0 {
		now = time.Time{}
	}
	return Sightings.Row(s.Key(), version, now, s)
}

// find reads all Sightings that match, page by page.
func (n *Network) find(ctx context.Context, where ...storage.Cond) ([]storage.Row, error) {
	return n.findIn(ctx, Sightings.Table, where...)
}

func (n *Network) findIn(ctx context.Context, table *storage.Table, where ...storage.Cond) ([]storage.Row, error) {
	q := storage.Query{Table: table, Partition: n.part, Where: where, Limit: readChunk}
	if slices.ContainsFunc(where, func(c storage.Cond) bool { return c.Column == anyForward.Column }) {
		q.Order = []storage.Order{{Column: "final_at"}} // by id SQLite would read all rows, in that order
	}
	var all []storage.Row
	at := map[string]int{}
	for r, err := range storage.All(ctx, n.cfg.Store, q) {
		if err != nil {
			return nil, err
		}
		if i, met := at[r.ID]; met { // it was final later meanwhile
			all[i] = r
			continue
		}
		at[r.ID] = len(all)
		all = append(all, r)
	}
	return all, nil
}
