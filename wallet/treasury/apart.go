package treasury

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// A cold address is one more address of the tenant's, so a move there and a refill from there
// have no legs: chain/<network> is minus what is held at all of them. What lies at cold addresses
// is noted beside the ledger, in TopUps, in the Change that completes a move or books a refill:
//
//	cold/<currency>               what lies there by the books; Tx is the last move that began
//	cold-at/<network>/<address>   an address that a move was made to
//	refill/<transfer>             what came back from there
//	apart/<transfer>              what came and may have come from there: it is in suspense; Tx is why
//	spent/<cost>                  what the network took of them for a refill
//	need/<currency>               how much an operator was asked to bring back
const (
	coldPrefix   = "cold/"
	coldAt       = "cold-at/"
	refillPrefix = "refill/"
	apartPrefix  = "apart/"
	spentPrefix  = "spent/"
	needPrefix   = "need/"
)

func past(prefix string) string { return prefix[:len(prefix)-1] + "0" } // behind every id with the prefix

// ColdOf is what lies at a tenant's cold addresses by the books, and the row to write it back.
func ColdOf(ctx context.Context, s storage.Store, tenant, currency string) (TopUp, storage.Row, error) {
	v, row, _, err := TopUps.One(ctx, s, storage.Tenant(tenant), coldPrefix+currency)
	v.Currency = currency
	return v, row, err
}

// ColdRow is a note of ColdOf to be written.
func ColdRow(row storage.Row, v TopUp) storage.Row {
	return TopUps.Row(coldPrefix+v.Currency, row.Version, time.Time{}, v)
}

// ColdAt is the row that makes an address one of the tenant's cold ones; ok is false where it is
// already.
func ColdAt(ctx context.Context, s storage.Store, tenant, network, address, move string) (row storage.Row, ok bool, err error) {
	id := coldAt + network + "/" + address
	_, _, known, err := TopUps.One(ctx, s, storage.Tenant(tenant), id)
	return TopUps.Row(id, 0, time.Time{}, TopUp{Tx: move}), err == nil && !known, err
}

// coldState is what is stored of a top-up and of cold coins of its currency.
type coldState struct {
	booked bool // as a top-up, a refill or apart
	cold   TopUp
	row    storage.Row // of cold
}

func (t *Treasury) coldState(ctx context.Context, s *incoming.Sighting) (c coldState, err error) {
	g, note := s.Generated(), coldPrefix+s.Currency
	rows, err := t.cfg.Store.Rows(ctx, TopUps.Table, storage.Keys(storage.Tenant(s.Tenant), "topup/"+g, refillPrefix+g, apartPrefix+g, note)...)
	c.cold.Currency = s.Currency
	for _, r := range rows {
		if r.ID != note {
			c.booked = true
			continue
		}
		c.cold, c.row = TopUps.Value(r), r
	}
	return c, err
}

// returned books a top-up of a tenant that has coins at cold addresses, and says whether it did:
// what came from there is a refill. Where that cannot be known, or more came than is there, it
// stays in suspense until a person says whose it is.
func (t *Treasury) returned(ctx context.Context, s incoming.Sighting) (done bool, err error) {
	g, why := s.Generated(), ""
	err = storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		done, why = false, ""
		at, err := t.coldState(ctx, &s)
		if err != nil || at.booked || at.cold.Amount == 0 {
			done = at.booked
			return storage.Change{}, err
		}
		from, known, err := t.fromCold(ctx, &s)
		if err != nil || known && !from {
			return storage.Change{}, err
		}
		done = true
		c := storage.Change{ID: refillPrefix + g, Partition: storage.Tenant(s.Tenant), Require: append(notReturned(s),
			TopUps.Guard(reversal(s), 0), TopUps.Guard("topup/"+g, 0))}
		if from && s.Amount <= at.cold.Amount {
			at.cold.Amount -= s.Amount
			c.Put = []storage.Row{ColdRow(at.row, at.cold), TopUps.Row(refillPrefix+g, 0, time.Time{}, TopUp{Tx: s.Tx, Currency: s.Currency, Amount: s.Amount})}
			return c, nil
		}
		if c.ID, why = apartPrefix+g, ApartUnknown; from {
			why = ApartMore
		}
		c.Require = append(c.Require, TopUps.Guard(at.row.ID, at.row.Version))
		c.Put = []storage.Row{TopUps.Row(apartPrefix+g, 0, time.Time{}, TopUp{Tx: why, Currency: s.Currency, Amount: s.Amount})}
		c.Post = []ledger.Tx{t.apartTx(apartPrefix, &s, s.Currency, s.Amount, ledger.Leg{Account: ledger.Chain(s.Network), Delta: -s.Amount})}
		return c, nil
	})
	if err == nil && why != "" {
		t.tellApart(ctx, &s, why)
	}
	return done, err
}

// notReturned demands that another process has not booked a transfer as a refill or apart.
func notReturned(s incoming.Sighting) []storage.Guard {
	g := s.Generated()
	return []storage.Guard{TopUps.Guard(refillPrefix+g, 0), TopUps.Guard(apartPrefix+g, 0)}
}

// apartTx moves money that is held apart: suspense by amount, and the other legs.
func (t *Treasury) apartTx(what string, s *incoming.Sighting, currency string, amount ledger.Amount, legs ...ledger.Leg) ledger.Tx {
	legs = append(legs, ledger.Leg{Account: ledger.Suspense, Delta: amount})
	for i := range legs {
		legs[i].Asset = ledger.Asset(currency)
	}
	return ledger.Tx{ID: what + s.Generated(), Kind: ledger.KindAdjustment, Ref: s.Generated(), At: t.cfg.Now(), Legs: legs}
}

// fromCold says whether a transfer came from a cold address; known is false where its sender
// cannot be told. Where coins are outputs it is told of those alone that a move made.
func (t *Treasury) fromCold(ctx context.Context, s *incoming.Sighting) (cold, known bool, err error) {
	info, err := t.cfg.Registry.Network(s.Network)
	if err != nil {
		return false, false, err
	}
	from := map[string]bool{}
	switch {
	case s.Unproven:
		return false, false, nil
	case info.Family == chain.UTXOFamily:
		if from, err = t.spenders(ctx, s); err != nil {
			return false, false, err
		}
	case s.From != "":
		from[s.From] = true
	}
	if len(from) == 0 || from[""] {
		return false, false, nil
	}
	var ids []string
	for a := range from {
		ids = append(ids, coldAt+s.Network+"/"+a)
	}
	rows, err := t.cfg.Store.Rows(ctx, TopUps.Table, storage.Keys(storage.Tenant(s.Tenant), ids...)...)
	switch {
	case err != nil:
		return false, false, err
	case len(rows) == len(from):
		return true, true, nil
	case info.Family == chain.UTXOFamily:
		return false, false, nil
	}
	named, err := t.named(ctx, s)
	return false, !named, err
}

// named reports whether a sender is one of the tenant's cold wallets, though no move was made to
// it: somebody may have taken coins there from another.
func (t *Treasury) named(ctx context.Context, s *incoming.Sighting) (bool, error) {
	if t.cfg.Cold == nil {
		return false, nil
	}
	list, err := t.cfg.Cold(storage.Apart(ctx), s.Tenant)
	if err != nil {
		return false, err
	}
	for _, w := range list {
		client := t.cfg.Clients[w.Network]
		if string(w.Network) != s.Network || client == nil {
			continue
		}
		if a, err := client.ParseAddress(string(w.Address)); err == nil && string(a) == s.From {
			return true, nil
		}
	}
	return false, nil
}

// spenders are the addresses whose outputs a transfer spent, of those that transactions of this
// store made. "" stands for all others.
func (t *Treasury) spenders(ctx context.Context, s *incoming.Sighting) (map[string]bool, error) {
	made := map[string]bool{}
	for _, o := range s.Spends {
		tx, _, _ := strings.Cut(o, ":")
		made[tx] = true
	}
	var txs []string
	for tx := range made {
		txs = append(txs, tx)
	}
	slices.Sort(txs)
	by := map[string][]chain.Output{}
	for part := range slices.Chunk(txs, askAtOnce) {
		rows, err := t.cfg.Store.Rows(ctx, outgoing.Attempts.Table, storage.Keys(storage.Network(s.Network), part...)...)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if v := outgoing.Attempts.Value(r); v.Tenant == s.Tenant {
				by[r.ID] = v.Outputs
			}
		}
	}
	out := map[string]bool{}
	for _, o := range s.Spends {
		tx, place, _ := strings.Cut(o, ":")
		at, err := strconv.Atoi(place)
		if err != nil || at < 0 || at >= len(by[tx]) {
			return map[string]bool{"": true}, nil
		}
		out[string(by[tx][at].To)] = true
	}
	return out, nil
}

// NoticeApart is the Kind of a Notice: coins came to a hot address, and may have come from a cold
// one. They are in suspense until a person says whose they are.
const NoticeApart = "top_up_held"

// Why coins that came to a hot address are held apart.
const (
	ApartUnknown = "sender_unknown"       // they may have come from a cold address
	ApartMore    = "more_than_cold_holds" // they came from a cold address that has less by the books
)

func (t *Treasury) tellApart(ctx context.Context, s *incoming.Sighting, why string) {
	n := Notice{
		Kind: NoticeApart, Tenant: s.Tenant, Network: chain.Network(s.Network), Currency: s.Currency, Reason: why, Since: t.cfg.Now(),
		Detail: fmt.Sprintf("%s came with %s: say whether it is a refill from cold or the operator's own", s.Exact, s.Tx),
	}
	t.cfg.Log.LogAttrs(ctx, slog.LevelWarn, NoticeApart, slog.String("tenant", n.Tenant), slog.String("currency", n.Currency), slog.String("top_up", s.Generated()))
	t.notify(ctx, n)
}

func (t *Treasury) notify(ctx context.Context, n Notice) {
	if t.cfg.Notify != nil {
		t.cfg.Notify(storage.Apart(ctx), n)
	}
}

// Apart is money that came to a hot address of a tenant with coins at cold addresses. Nobody can
// say yet whether it came back from there, so it is in suspense: it pays for no network fee,
// and WithdrawOperatorFunds does not take it.
type Apart struct {
	ID       string // of the transfer
	Network  chain.Network
	Currency string
	Amount   ledger.Amount // units
	Address  chain.Address // that it came to
	From     chain.Address // "" = unknown
	Tx       string
	Reason   string    // ApartUnknown or ApartMore
	Since    time.Time // when it was first seen
}

// Apart lists what is held apart of a tenant's, by id, behind one ("" = from the first). Each
// waits for ResolveApart.
func (t *Treasury) Apart(ctx context.Context, tenant, behind string, limit int) ([]Apart, error) {
	rows, err := t.cfg.Store.Find(ctx, storage.Query{
		Table: TopUps.Table, Partition: storage.Tenant(tenant), Limit: limit,
		Where: []storage.Cond{{Column: storage.ColID, Op: storage.Gt, Value: apartPrefix + behind}, {Column: storage.ColID, Op: storage.Lt, Value: past(apartPrefix)}},
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	keys := make([]storage.Key, len(rows))
	for i, r := range rows {
		network, key := transferOf(r.ID)
		keys[i] = storage.Keys(storage.Network(network), key)[0]
	}
	seen, err := t.cfg.Store.Rows(ctx, incoming.Sightings.Table, keys...)
	if err != nil {
		return nil, err
	}
	byKey := map[string]incoming.Sighting{}
	for _, r := range seen {
		v := incoming.Sightings.Value(r)
		byKey[v.Network+"/"+v.Key()] = v
	}
	out := make([]Apart, len(rows))
	for i, r := range rows {
		network, key := transferOf(r.ID)
		v, s := TopUps.Value(r), byKey[network+"/"+key]
		out[i] = Apart{
			ID: strings.TrimPrefix(r.ID, apartPrefix), Network: chain.Network(network), Currency: v.Currency, Amount: v.Amount,
			Address: chain.Address(s.Address), From: chain.Address(s.From), Tx: s.Tx, Reason: v.Tx, Since: s.FirstSeen,
		}
	}
	return out, nil
}

// transferOf is the network and the Sighting's key of a row's id.
func transferOf(id string) (network, key string) {
	_, rest, _ := strings.Cut(id, "/")
	network, rest, _ = strings.Cut(rest, "/")
	return network, rest[:max(strings.LastIndex(rest, "/"), 0)]
}

// ApartIs says whose money that was held apart is.
type ApartIs string

// The answers.
const (
	// IsRefill: it came from a cold address. What is more than lies there by the books is the
	// operator's.
	IsRefill ApartIs = "refill"
	// IsOperators: it is the operator's own, and tops his funds up.
	IsOperators ApartIs = "operator_funds"
)

// Errors of ResolveApart and RefillCost.
var (
	ErrNotApart     = errors.New("treasury: nothing with this id is held apart")
	ErrApartIs      = errors.New("treasury: say refill or operator_funds")
	ErrNothingCold  = errors.New("treasury: by the books it does not lie at a cold address")
	ErrApartAltered = errors.New("treasury: what is held apart is not what came: somebody edited its row")
	// ErrOwnCost: what a transaction of this store's took is booked when it lands.
	ErrOwnCost = errors.New("treasury: give the hash of a transaction that this store did not send: the cost of its own is booked when they land")
)

// ResolveApart books money that is held apart as what a person says it is, in one Change with the
// record by. With dry everything is checked and nothing is done. It returns the money as it was.
func (t *Treasury) ResolveApart(ctx context.Context, tenant, id string, is ApartIs, dry bool, by *outgoing.Recorded) (TopUp, error) {
	if is != IsRefill && is != IsOperators {
		return TopUp{}, fmt.Errorf("%w, not %q", ErrApartIs, is)
	}
	var was TopUp
	part := storage.Tenant(tenant)
	err := storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		v, row, ok, err := TopUps.One(ctx, t.cfg.Store, part, apartPrefix+id)
		if err == nil && !ok {
			err = fmt.Errorf("%w: %q", ErrNotApart, id)
		}
		if err != nil {
			return storage.Change{}, err
		}
		was = v
		network, key := transferOf(row.ID)
		came, _, _, err := incoming.Sightings.One(ctx, t.cfg.Store, storage.Network(network), key)
		if err == nil && (came.Tenant != tenant || came.Currency != v.Currency || came.Amount != v.Amount) {
			err = fmt.Errorf("%w: %q", ErrApartAltered, id)
		}
		if err != nil {
			return storage.Change{}, err
		}
		sent := key[:max(strings.LastIndex(key, ":"), 0)]
		cold, note, err := ColdOf(ctx, t.cfg.Store, tenant, v.Currency)
		if err != nil {
			return storage.Change{}, err
		}
		back := ledger.Amount(0)
		if is == IsRefill {
			if back = min(v.Amount, cold.Amount); back == 0 {
				return storage.Change{}, ErrNothingCold
			}
		}
		c := storage.Change{ID: "apart-" + string(is) + "/" + id, Partition: part, Drop: []storage.Row{row}}
		tx := ledger.Tx{ID: "apart-end/" + id, Kind: ledger.KindAdjustment, Ref: id, At: t.cfg.Now()}
		leg := func(a ledger.Account, delta ledger.Amount) {
			if delta != 0 {
				tx.Legs = append(tx.Legs, ledger.Leg{Account: a, Asset: ledger.Asset(v.Currency), Delta: delta})
			}
		}
		leg(ledger.Suspense, -v.Amount)
		leg(ledger.Chain(network), back)
		leg(ledger.Float, v.Amount-back)
		c.Post = []ledger.Tx{tx}
		for prefix, amount := range map[string]ledger.Amount{refillPrefix: back, "topup/": v.Amount - back} {
			if amount > 0 {
				c.Put = append(c.Put, TopUps.Row(prefix+id, 0, time.Time{}, TopUp{Tx: sent, Currency: v.Currency, Amount: amount}))
			}
		}
		if back > 0 {
			cold.Amount -= back
			c.Put = append(c.Put, ColdRow(note, cold))
		}
		rows, events, err := by.Rows("held apart", string(is))
		c.Put, c.Tell = append(c.Put, rows...), append(c.Tell, events...)
		if dry {
			return storage.Change{}, err
		}
		return c, err
	})
	return was, err
}

// NoticeRefill is the Kind of a Notice: withdrawals wait as hot_short, and coins lie at cold
// addresses. Detail says how much is to be brought back, and where to.
const NoticeRefill = "refill_needed"

// NeedRefill tells the operator once how much of a currency is to come back from cold for
// withdrawals that wait, and again where it has become more. need 0 = nothing waits any more. Nobody
// is told where nothing lies at cold addresses.
func (t *Treasury) NeedRefill(ctx context.Context, tenant, currency string, need ledger.Amount, since time.Time) error {
	c, err := t.cfg.Registry.Currency(currency)
	if err != nil {
		return err
	}
	part, id := storage.Tenant(tenant), needPrefix+currency
	var tell bool
	var cold TopUp
	err = storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		tell = false
		told, row, known, err := TopUps.One(ctx, t.cfg.Store, part, id)
		if err != nil {
			return storage.Change{}, err
		}
		if cold, _, err = ColdOf(ctx, t.cfg.Store, tenant, currency); err != nil {
			return storage.Change{}, err
		}
		change := storage.Change{ID: fmt.Sprintf("%s/%d/%d", id, row.Version, need), Partition: part}
		switch {
		case need == 0 && known:
			change.ID, change.Drop = fmt.Sprintf("%s/%d/%s", id, row.Version, row.Change), []storage.Row{row}
		case need > told.Amount && cold.Amount > 0:
			tell = true
			change.ID += "/" + strconv.FormatInt(since.UnixNano(), 36)
			change.Put = []storage.Row{TopUps.Row(id, row.Version, time.Time{}, TopUp{Currency: currency, Amount: need})}
		default:
			return storage.Change{}, nil
		}
		return change, nil
	})
	if err != nil || !tell {
		return err
	}
	hot, err := t.cfg.Addresses.Hot(ctx, c.Network, tenant)
	if err != nil {
		return err
	}
	n := Notice{
		Kind: NoticeRefill, Tenant: tenant, Network: c.Network, Currency: currency, Reason: string(outgoing.ReasonHotBalance), Since: since,
		Detail: fmt.Sprintf("withdrawals wait: send %s %s from cold to %s; by the books %s lies at cold addresses", c.Decimal(need), currency, hot.Address, c.Decimal(cold.Amount)),
	}
	t.cfg.Log.LogAttrs(ctx, slog.LevelWarn, NoticeRefill, slog.String("tenant", tenant), slog.String("currency", currency), slog.String("amount", c.Decimal(need).String()))
	t.notify(ctx, n)
	return nil
}

// ColdBooks compares the notes of what lies at cold addresses. It returns, by currency, what the
// note says, and what came back or was spent; and what is held apart, by transfer.
func ColdBooks(ctx context.Context, s storage.Store, p storage.Partition) (noted, back, apart map[string]ledger.Amount, err error) {
	noted, back, apart = map[string]ledger.Amount{}, map[string]ledger.Amount{}, map[string]ledger.Amount{}
	for _, of := range []struct {
		prefix string
		take   func(id string, v TopUp) error
	}{
		{coldPrefix, func(_ string, v TopUp) error { noted[v.Currency] = v.Amount; return nil }},
		{refillPrefix, func(_ string, v TopUp) (err error) {
			back[v.Currency], err = back[v.Currency].Add(v.Amount)
			return err
		}},
		{spentPrefix, func(_ string, v TopUp) (err error) {
			back[v.Currency], err = back[v.Currency].Add(v.Amount)
			return err
		}},
		{apartPrefix, func(id string, v TopUp) error { apart[id] = v.Amount; return nil }},
	} {
		err = cmp.Or(err, storage.Pages(ctx, s, storage.Query{
			Table: TopUps.Table, Partition: p, Where: []storage.Cond{
				{Column: storage.ColID, Op: storage.Ge, Value: of.prefix}, {Column: storage.ColID, Op: storage.Lt, Value: past(of.prefix)},
			},
		}, func(rows []storage.Row) error {
			if of.prefix == refillPrefix {
				if rows, err = came(ctx, s, p, rows); err != nil {
					return err
				}
			}
			for _, r := range rows {
				if err := of.take(strings.TrimPrefix(r.ID, of.prefix), TopUps.Value(r)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return noted, back, apart, err
}

// came are the rows of refills that are no more than a transfer brought which the network's part of
// the store has. What somebody wrote beside them came from nowhere, and counts as nothing.
func came(ctx context.Context, s storage.Store, p storage.Partition, rows []storage.Row) ([]storage.Row, error) {
	keys := make([]storage.Key, len(rows))
	for i, r := range rows {
		network, key := transferOf(r.ID)
		keys[i] = storage.Keys(storage.Network(network), key)[0]
	}
	seen, err := s.Rows(ctx, incoming.Sightings.Table, keys...)
	if err != nil {
		return nil, err
	}
	brought := map[string]incoming.Sighting{}
	for _, r := range seen {
		v := incoming.Sightings.Value(r)
		brought[v.Generated()] = v
	}
	return slices.DeleteFunc(rows, func(r storage.Row) bool {
		v, row := brought[strings.TrimPrefix(r.ID, refillPrefix)], TopUps.Value(r)
		return storage.Tenant(v.Tenant) != p || v.Currency != row.Currency || row.Amount < 0 || row.Amount > v.Amount
	}), nil
}

// undoReturned is the Change that takes back what returned or ResolveApart booked; found is false
// where neither did. was is the part that was booked as the operator's, and row its row.
func (t *Treasury) undoReturned(ctx context.Context, s incoming.Sighting, was TopUp, row storage.Row) (c storage.Change, found bool, err error) {
	part, g, id := storage.Tenant(s.Tenant), s.Generated(), reversal(s)
	rows, err := t.cfg.Store.Rows(ctx, TopUps.Table, storage.Keys(part, refillPrefix+g, apartPrefix+g)...)
	if err != nil || len(rows) == 0 {
		return c, false, err
	}
	v := TopUps.Value(rows[0]) // the other one is never there, too
	c = storage.Change{
		ID: id, Partition: part, Drop: rows, Put: []storage.Row{TopUps.Row(id, 0, time.Time{}, TopUp{Tx: s.Tx, Currency: v.Currency})},
		Require: []storage.Guard{TopUps.Guard("topup/"+g, row.Version)},
	}
	if rows[0].ID == apartPrefix+g {
		c.Post = []ledger.Tx{t.apartTx("apart-reverse/", &s, v.Currency, -v.Amount, ledger.Leg{Account: ledger.Chain(s.Network), Delta: v.Amount})}
		return c, true, nil
	}
	cold, note, err := ColdOf(ctx, t.cfg.Store, s.Tenant, v.Currency)
	if err == nil {
		cold.Amount, err = cold.Amount.Add(v.Amount)
	}
	c.Put = append(c.Put, ColdRow(note, cold))
	if was.Amount > 0 {
		c.Post = t.floats(id, s, was.Currency, -was.Amount).Post
	}
	return c, true, err
}

// RefillCost books what the network took for a refill, or for another transaction that cold coins
// paid for: N −, c + as for each transaction of the tenant's, and less lies at cold addresses. tx
// is its hash; a second call for it does nothing, with made false. cost is in units of the network's gas currency.
// The error is ErrNothingCold where less than that lies there, and ErrOwnCost where tx is none, or this
// store has sent it.
func (t *Treasury) RefillCost(ctx context.Context, tenant string, n chain.Network, tx string, cost ledger.Amount, dry bool, by *outgoing.Recorded) (made bool, err error) {
	gas, err := t.cfg.Registry.Gas(n)
	if err != nil {
		return false, err
	}
	_, _, own, err := outgoing.Attempts.One(ctx, t.cfg.Store, storage.Network(string(n)), tx)
	if err == nil && (own || tx == "") {
		err = ErrOwnCost
	}
	if err != nil {
		return false, err
	}
	id := "cost/" + string(n) + "/" + tx
	err = storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		made = false
		_, had, booked, err := TopUps.One(ctx, t.cfg.Store, storage.Tenant(tenant), spentPrefix+id)
		if err != nil || booked {
			return storage.Change{}, err
		}
		cold, row, err := ColdOf(ctx, t.cfg.Store, tenant, gas.Code)
		if err == nil && (cost <= 0 || cost > cold.Amount) {
			err = fmt.Errorf("%w: %s %s is there, and %s were spent", ErrNothingCold, gas.Decimal(cold.Amount), gas.Code, gas.Decimal(cost))
		}
		if err != nil {
			return storage.Change{}, err
		}
		before := gas.Decimal(cold.Amount).String()
		cold.Amount -= cost
		rows, events, err := by.Rows(before, gas.Decimal(cold.Amount).String())
		if err != nil || dry {
			return storage.Change{}, err
		}
		made = true
		return storage.Change{
			ID: id, Partition: storage.Tenant(tenant), Tell: events,
			Put: append(rows, ColdRow(row, cold), TopUps.Row(spentPrefix+id, had.Version, time.Time{}, TopUp{Tx: tx, Currency: gas.Code, Amount: cost})),
			Post: []ledger.Tx{{ID: id, Kind: ledger.KindFee, Ref: tx, At: t.cfg.Now(), Legs: []ledger.Leg{
				{Account: ledger.FeesNetwork, Asset: gas.Asset(), Delta: -cost},
				{Account: ledger.Chain(string(n)), Asset: gas.Asset(), Delta: cost},
			}}},
		}, nil
	})
	return made && err == nil, err
}
