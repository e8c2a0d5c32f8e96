package incoming

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// UnlistedRow marks a Sighting that was stored without a currency, because the process
// that read it does not list its contract. It is in the network's partition, under the
// Sighting's id. A process that lists the contract describes the Sighting again.
type UnlistedRow struct {
	Contract string `db:"contract"` // in lower case where the network's addresses have no case
	// Coins says that Sighting.Exact counts whole coins. Otherwise it counts the token's
	// smallest units, because the client did not know its decimals.
	Coins bool `db:"coins"`
}

// Unlisted is the table of Sightings without a currency, in network partitions.
var Unlisted = storage.NewTable[UnlistedRow]("unlisted", storage.Index("contract"))

// contractKey is a contract as UnlistedRow.Contract holds it.
func contractKey(info chain.NetworkInfo, contract string) string {
	if info.AddressType == "EVM" {
		return strings.ToLower(contract)
	}
	return contract
}

// listing is what this process lists on its network.
type listing struct {
	info      chain.NetworkInfo
	codes     []string                   // and "": what no currency is known of
	contracts []string                   // of tokens, as contractKey writes them
	tokens    map[string]*chain.Currency // by contract
}

func listingOf(r *chain.Registry, info chain.NetworkInfo) listing {
	l := listing{info: info, codes: []string{""}, tokens: map[string]*chain.Currency{}}
	for _, c := range r.On(info.Code) {
		l.codes = append(l.codes, c.Code)
		if !c.Native() {
			key := contractKey(info, c.Contract)
			l.contracts, l.tokens[key] = append(l.contracts, key), c
		}
	}
	return l
}

// mine is the condition on Sightings that this process may decide about. Those in a
// currency that it does not list are left to a process that does.
func (l *listing) mine() storage.Cond {
	return storage.Cond{Column: "currency", Op: storage.In, Value: l.codes}
}

// unlistedRows are the marks of changed Sightings without a currency that have none yet.
func (n *Network) unlistedRows(ctx context.Context, b *batch) ([]storage.Row, error) {
	var ids []string
	for _, key := range b.order {
		if s := b.byKey[key]; s.unlisted {
			ids = append(ids, key)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	marked := map[string]storage.Row{}
	for len(ids) > 0 {
		part := ids[:min(len(ids), readChunk)]
		rows, err := n.cfg.Store.Rows(ctx, Unlisted.Table, storage.Keys(n.part, part...)...)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			marked[r.ID] = r
		}
		ids = ids[len(part):]
	}
	var put []storage.Row
	for _, key := range b.order {
		s := b.byKey[key]
		row := UnlistedRow{Contract: contractKey(n.lists.info, s.Contract), Coins: s.coins}
		if old, there := marked[key]; s.unlisted && (!there || Unlisted.Value(old) != row) {
			put = append(put, Unlisted.Row(key, old.Version, time.Time{}, row))
		}
	}
	return put, nil
}

// relist describes again what was stored without a currency and is of a contract that
// this process lists. Each is judged again by its owner, at the depth that its currency needs.
func (n *Network) relist(ctx context.Context) (worked int, err error) {
	if len(n.lists.contracts) == 0 {
		return 0, nil
	}
	err = storage.Decide(ctx, n.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		worked = 0
		rows, err := n.cfg.Store.Find(ctx, storage.Query{
			Table: Unlisted.Table, Partition: n.part, Limit: settleChunk,
			Where: []storage.Cond{{Column: "contract", Op: storage.In, Value: n.lists.contracts}},
		})
		if err != nil || len(rows) == 0 {
			return storage.Change{}, err
		}
		_, version, err := n.cursor(ctx)
		if err != nil || version == 0 {
			return storage.Change{}, err
		}
		ids := make([]string, len(rows))
		marks := make(map[string]UnlistedRow, len(rows))
		for i, r := range rows {
			ids[i], marks[r.ID] = r.ID, Unlisted.Value(r)
		}
		found, err := n.cfg.Store.Rows(ctx, Sightings.Table, storage.Keys(n.part, ids...)...)
		if err != nil {
			return storage.Change{}, err
		}
		var put []storage.Row
		for _, r := range found {
			s, mark := Sightings.Value(r), marks[r.ID]
			if s.Currency != "" {
				continue
			}
			c := n.lists.tokens[mark.Contract]
			exact := s.Exact
			if !mark.Coins {
				exact = exact.Shift(-int32(c.Decimals))
			}
			n.list(&s, c, exact)
			n.log.Warn("sighting_relisted", slog.String("sighting", s.Generated()), slog.String("currency", c.Code))
			put = append(put, n.row(s, r.Version, n.cfg.Now()))
		}
		worked = len(rows)
		// A fork that is followed at this moment must find the Sightings as they were.
		c := n.change("relist", []storage.Guard{Cursors.Guard(CursorID, version)}, put...)
		c.ID, c.Drop = changeID("relist", append(put[:len(put):len(put)], rows...)), rows
		return c, nil
	})
	return worked, err
}

// list gives a Sighting that was stored without a currency its currency. It becomes
// final again at the depth, and by the network's word, that the currency asks for.
func (n *Network) list(s *Sighting, c *chain.Currency, exact decimal.Decimal) {
	s.Currency, s.Exact, s.Amount = c.Code, exact, credit(c, exact)
	if s.State == Final {
		s.State = Included
	}
	if s.Forward == NotNeeded || s.Forward == Deferred { // an earlier version deferred it
		s.Forward = ForwardNone
	}
	s.FinalAt = n.finalAt(s)
}

// finalAt is the height at which an included Sighting is final: the one that was
// stored with it, or the one that today's configuration asks for where that is higher.
func (n *Network) finalAt(s *Sighting) int64 {
	if s.State != Included {
		return s.FinalAt
	}
	c := n.listed(s.Currency)
	if stepped(c, s) {
		return max(s.FinalAt, s.Height+c.Steps[0].Confirmations-1)
	}
	return max(s.FinalAt, s.Height+n.depth(c)-1)
}

// depth is the number of confirmations that a currency needs; nil stands for one that
// is not listed, which needs those of the native coin.
func (n *Network) depth(c *chain.Currency) int64 {
	if c == nil {
		c, _ = n.cfg.Registry.Gas(n.Name())
	}
	if c == nil {
		return 1
	}
	return max(1, c.Confirmations)
}

// Undecided reports which of these addresses got something that is not decided yet: its
// owner has not handled the last change of a Sighting, or a Sighting of the network waits
// to be described with a currency that this process lists. A payment must not expire before.
func (n *Network) Undecided(ctx context.Context, addresses ...string) (map[string]bool, error) {
	out := map[string]bool{}
	if len(n.lists.contracts) > 0 {
		marks, err := n.cfg.Store.Find(ctx, storage.Query{
			Table: Unlisted.Table, Partition: n.part, Limit: 1,
			Where: []storage.Cond{{Column: "contract", Op: storage.In, Value: n.lists.contracts}},
		})
		if err != nil {
			return nil, err
		}
		if len(marks) > 0 {
			for _, a := range addresses {
				out[a] = true
			}
			return out, nil
		}
	}
	rows, err := n.find(ctx,
		storage.Cond{Column: "address", Op: storage.In, Value: addresses},
		storage.Cond{Column: storage.ColDue, Op: storage.Ne, Value: time.Time{}})
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		s := Sightings.Value(r)
		out[s.Address] = true
	}
	return out, nil
}
