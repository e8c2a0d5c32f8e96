package treasury

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

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

// returned books a top-up of a tenant that has coins at cold addresses, or on their way there, and says whether it did:
// what came from there is a refill. Where that cannot be known, or more came than is there, it
// stays in suspense until a person says whose it is.
func (t *Treasury) returned(ctx context.Context, s incoming.Sighting) (done bool, err error) {
	g := s.Generated()
	err = storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		done = false
		at, err := t.coldState(ctx, &s)
		under := false
		if err == nil && !at.booked && at.cold.Amount == 0 {
			under, err = t.moveUnderWay(ctx, s.Network, at.cold.Tx)
		}
		if err != nil || at.booked || at.cold.Amount == 0 && !under {
			done = at.booked
			return storage.Change{}, err
		}
		_, cost, from, err := t.cfg.Sent(ctx, s.Tenant, chain.Network(s.Network), s.Currency, s.Tx, s.Spends)
		known := from
		if err == nil && !from {
			from, known, err = t.fromCold(ctx, &s)
		}
		if err != nil || known && !from {
			return storage.Change{}, err
		}
		done = true
		c := storage.Change{ID: refillPrefix + g, Partition: storage.Tenant(s.Tenant), Require: append(notReturned(s),
			TopUps.Guard(reversal(s), 0), TopUps.Guard("topup/"+g, 0))}
		took, err := t.tookOf(ctx, &s, cost, at)
		if err != nil {
			return storage.Change{}, err
		}
		if from && took.all <= at.cold.Amount {
			at.cold.Amount -= took.all
			c.Put = []storage.Row{ColdRow(at.row, at.cold), TopUps.Row(refillPrefix+g, 0, time.Time{}, TopUp{Tx: s.Tx, Currency: s.Currency, Amount: s.Amount})}
			if took.cost > 0 {
				id := refillCost + g
				c.Put = append(c.Put, SpentRow(id, TopUp{Tx: s.Tx, Currency: took.in, Amount: took.cost}))
				c.Post = []ledger.Tx{t.costTx(id, &s, took.in, took.cost)}
			}
			if took.in != s.Currency && took.cost > 0 {
				took.gas.Amount -= took.cost
				c.Put = append(c.Put, ColdRow(took.row, took.gas))
			}
			return c, nil
		}
		why := ApartUnknown
		if c.ID = apartPrefix + g; from {
			why = ApartMore
		}
		c.Require = append(c.Require, TopUps.Guard(at.row.ID, at.row.Version))
		c.Put = []storage.Row{TopUps.Row(apartPrefix+g, 0, t.cfg.Now(), TopUp{Tx: why, Currency: s.Currency, Amount: s.Amount})}
		c.Post = []ledger.Tx{t.apartTx(apartPrefix, &s, s.Currency, s.Amount, ledger.Leg{Account: ledger.Chain(s.Network), Delta: -s.Amount})}
		return c, nil
	})
	return done, err
}

// refillCost is in the ids of what a proposal's transaction took: with the transfer it is booked, and
// taken back.
const refillCost = "refill/"

// taken is what a refill took out of cold coins.
type taken struct {
	all  ledger.Amount // of the refill's currency
	cost ledger.Amount // what the network took, of in
	in   string
	gas  TopUp // what lies cold of in by the books, where that is not the refill's currency
	row  storage.Row
}

// tookOf adds what the network took, known of a proposal's transaction alone, to what came. Where the cold
// address pays from a balance it may have more than the books know, such as ether that its owner sent for
// the fee: what is above the books was never in them. What is booked for the transaction already is not
// booked again.
func (t *Treasury) tookOf(ctx context.Context, s *incoming.Sighting, cost ledger.Amount, at coldState) (k taken, err error) {
	k.all, k.in = s.Amount, s.Currency
	if cost <= 0 {
		return k, nil
	}
	info, err := t.cfg.Registry.Network(s.Network)
	if err != nil {
		return k, err
	}
	if info.Family == chain.UTXOFamily {
		k.cost = cost
		k.all, err = s.Amount.Add(cost)
		return k, err
	}
	gas, err := t.cfg.Registry.Gas(chain.Network(s.Network))
	if err != nil {
		return k, err
	}
	booked, err := t.costBooked(ctx, s.Tenant, s.Network, s.Tx)
	if err != nil || booked {
		return k, err
	}
	k.in = gas.Code
	if gas.Code == s.Currency {
		k.cost = max(0, min(cost, at.cold.Amount-s.Amount))
		k.all, err = s.Amount.Add(k.cost)
	} else {
		k.gas, k.row, err = ColdOf(ctx, t.cfg.Store, s.Tenant, gas.Code)
		k.cost = min(cost, k.gas.Amount)
	}
	if k.cost < cost {
		t.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "refill_cost_not_in_books", slog.String("tenant", s.Tenant), slog.String("tx", s.Tx),
			slog.String("cost", gas.Decimal(cost).String()), slog.String("booked", gas.Decimal(k.cost).String()))
	}
	return k, err
}

// costBooked reports whether what a transaction cost is booked: with one of its transfers, or by hand.
func (t *Treasury) costBooked(ctx context.Context, tenant, network, tx string) (bool, error) {
	part, with := storage.Tenant(tenant), spentPrefix+refillCost+network+"/"+tx+":"
	rows, err := t.cfg.Store.Find(ctx, storage.Query{
		Table: TopUps.Table, Partition: part, Limit: 1,
		Where: []storage.Cond{{Column: storage.ColID, Op: storage.Ge, Value: with}, {Column: storage.ColID, Op: storage.Lt, Value: past(with)}},
	})
	if err != nil || len(rows) > 0 {
		return len(rows) > 0, err
	}
	rows, err = t.cfg.Store.Rows(ctx, TopUps.Table, storage.Keys(part, costIDs(network, tx)...)...)
	return len(rows) > 0, err
}

// costIDs are the rows that say that a cost was booked by hand, in each way in which its hash can be written.
func costIDs(network, tx string) []string {
	hashes := spellings(tx)
	ids := make([]string, len(hashes))
	for i, hash := range hashes {
		ids[i] = spentPrefix + "cost/" + network + "/" + hash
	}
	return ids
}

// costTx books what a network took of cold coins; below 0 it takes that back.
func (t *Treasury) costTx(id string, s *incoming.Sighting, currency string, cost ledger.Amount) ledger.Tx {
	asset := ledger.Asset(currency)
	return ledger.Tx{ID: "cost/" + id, Kind: ledger.KindFee, Ref: s.Tx, At: t.cfg.Now(), Legs: []ledger.Leg{
		{Account: ledger.FeesNetwork, Asset: asset, Delta: -cost}, {Account: ledger.Chain(s.Network), Asset: asset, Delta: cost},
	}}
}

// moveUnderWay reports whether a move to cold may have landed that is not noted yet.
func (t *Treasury) moveUnderWay(ctx context.Context, network, move string) (bool, error) {
	if move == "" {
		return false, nil
	}
	part := storage.Network(network)
	order, _, _, err := outgoing.Intents.One(ctx, t.cfg.Store, part, move)
	if err != nil || order.State == outgoing.Signed {
		return err == nil, err
	}
	_, told, _, err := outgoing.Outcomes.One(ctx, t.cfg.Store, part, move)
	return !told.Due.IsZero() && (order.State == outgoing.Executed || order.State == outgoing.Final), err
}

// notReturned demands that another process has not booked a transfer as a refill or apart.
func notReturned(s incoming.Sighting) []storage.Guard {
	g := s.Generated()
	return []storage.Guard{TopUps.Guard(refillPrefix+g, 0), TopUps.Guard(apartPrefix+g, 0)}
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
	others := slices.DeleteFunc(txs, func(tx string) bool { return by[tx] != nil })
	proposed, err := t.cfg.Proposed(ctx, s.Tenant, chain.Network(s.Network), others...)
	if err != nil {
		return nil, err
	}
	for tx, p := range proposed { // what it gave back to the cold address
		by[tx] = p.Outputs
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

// NoticeRefill is the Kind of a Notice: withdrawals wait as hot_short, and coins lie at cold
// addresses. Detail says how much is to be brought back, and where to.
const NoticeRefill = "refill_needed"

// NeedRefill has StepNotices tell the operator once how much of a currency is to come back from cold
// for withdrawals that wait, and again where it has become more, or the hot address another. need 0 = nothing waits any more. Nobody
// is told where nothing lies at cold addresses.
func (t *Treasury) NeedRefill(ctx context.Context, tenant, currency string, need ledger.Amount, since time.Time) error {
	c, err := t.cfg.Registry.Currency(currency)
	if err != nil {
		return err
	}
	hot, err := t.cfg.Addresses.Hot(ctx, c.Network, tenant)
	if err != nil {
		return err // before it is noted that the operator was told
	}
	part, id := storage.Tenant(tenant), needPrefix+currency
	return storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		told, row, known, err := TopUps.One(ctx, t.cfg.Store, part, id)
		if err != nil {
			return storage.Change{}, err
		}
		cold, _, err := ColdOf(ctx, t.cfg.Store, tenant, currency)
		if err != nil {
			return storage.Change{}, err
		}
		change := storage.Change{ID: fmt.Sprintf("%s/%d/%d", id, row.Version, need), Partition: part}
		_, to, _ := strings.Cut(told.Tx, " ")
		switch {
		case need == 0 && known:
			change.ID, change.Drop = fmt.Sprintf("%s/%d/%s", id, row.Version, row.Change), []storage.Row{row}
		case need > 0 && (need > told.Amount || to != string(hot.Address)) && cold.Amount > 0:
			change.ID += "/" + strconv.FormatInt(since.UnixNano(), 36)
			change.Put = []storage.Row{TopUps.Row(id, row.Version, t.cfg.Now(), TopUp{
				Tx: since.UTC().Format(time.RFC3339Nano) + " " + string(hot.Address), Currency: currency, Amount: need,
			})}
		default:
			return storage.Change{}, nil
		}
		return change, nil
	})
}

// tellNeed tells the operator what NeedRefill has noted. cold has the note of what lies there.
func (t *Treasury) tellNeed(ctx context.Context, row storage.Row, cold []storage.Row) {
	v := TopUps.Value(row)
	c, err := t.cfg.Registry.Currency(v.Currency)
	if err != nil {
		return // it was claimed as one that is listed
	}
	at, hot, _ := strings.Cut(v.Tx, " ")
	since, _ := time.Parse(time.RFC3339Nano, at)
	tenant, lies := strings.TrimPrefix(string(row.Partition), string(storage.Tenant(""))), ledger.Amount(0)
	for _, r := range cold {
		if r.Partition == row.Partition && r.ID == coldPrefix+v.Currency {
			lies = TopUps.Value(r).Amount
		}
	}
	need := c.Decimal(v.Amount)
	t.cfg.Log.LogAttrs(ctx, slog.LevelWarn, NoticeRefill, slog.String("tenant", tenant), slog.String("currency", v.Currency), slog.String("amount", need.String()))
	t.notify(ctx, Notice{
		Kind: NoticeRefill, Tenant: tenant, Network: c.Network, Currency: v.Currency, Reason: string(outgoing.ReasonHotBalance), Since: since,
		Detail: fmt.Sprintf("withdrawals wait: send %s %s from cold to %s; by the books %s lies at cold addresses", need, v.Currency, hot, c.Decimal(lies)),
	})
}

// undoReturned is the Change that takes back what returned or ResolveApart booked; found is false
// where neither did. was is the part that was booked as the operator's, and row its row.
func (t *Treasury) undoReturned(ctx context.Context, s incoming.Sighting, was TopUp, row storage.Row) (c storage.Change, found bool, err error) {
	part, g, id := storage.Tenant(s.Tenant), s.Generated(), reversal(s)
	rows, err := t.cfg.Store.Rows(ctx, TopUps.Table, storage.Keys(part, refillPrefix+g, apartPrefix+g)...)
	if err != nil || len(rows) == 0 {
		return c, false, err
	}
	spent, cost, _, err := TopUps.One(ctx, t.cfg.Store, part, spentPrefix+refillCost+g)
	if err != nil {
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
	if was.Amount > 0 {
		c.Post = t.floats(id, s, was.Currency, -was.Amount).Post
	}
	if err == nil && spent.Amount > 0 { // of a proposal's transaction
		c.Drop = append(c.Drop, cost)
		c.Post = append(c.Post, t.costTx("refill-reverse/"+g, &s, spent.Currency, -spent.Amount))
		if spent.Currency == v.Currency {
			cold.Amount, err = cold.Amount.Add(spent.Amount)
		} else {
			var gas TopUp
			var row storage.Row
			if gas, row, err = ColdOf(ctx, t.cfg.Store, s.Tenant, spent.Currency); err == nil {
				gas.Amount, err = gas.Amount.Add(spent.Amount)
			}
			c.Put = append(c.Put, ColdRow(row, gas))
		}
	}
	c.Put = append(c.Put, ColdRow(note, cold))
	return c, true, err
}

// RefillCost books what the network took for a refill, or for another transaction that cold coins
// paid for: N −, c + as for each transaction of the tenant's, and less lies at cold addresses. tx
// is its hash, however it is written; a second call for it does nothing, with made false. cost is in units of the network's gas currency.
// The error is ErrNothingCold where less than that lies there, and ErrOwnCost where tx is none, or this
// store has sent or proposed it: that of a proposal is booked by hand only where a person said that its coins, held apart, are a refill.
func (t *Treasury) RefillCost(ctx context.Context, tenant string, n chain.Network, tx string, cost ledger.Amount, dry bool, by *outgoing.Recorded) (made bool, err error) {
	gas, err := t.cfg.Registry.Gas(n)
	if err != nil {
		return false, err
	}
	hashes := spellings(tx)
	own, err := t.cfg.Store.Rows(ctx, outgoing.Attempts.Table, storage.Keys(storage.Network(string(n)), hashes...)...)
	if err == nil && (len(own) > 0 || hashes[0] == "") {
		err = ErrOwnCost
	}
	for _, hash := range hashes {
		if err == nil {
			err = t.costIsOurs(ctx, tenant, n, hash)
		}
	}
	if err != nil {
		return false, err
	}
	ids := costIDs(string(n), tx)
	tx = hashes[0]
	id := "cost/" + string(n) + "/" + tx
	err = storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		made = false
		booked, err := t.cfg.Store.Rows(ctx, TopUps.Table, storage.Keys(storage.Tenant(tenant), ids...)...)
		if err != nil || len(booked) > 0 {
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
			ID: "cost/" + by.ID, Partition: storage.Tenant(tenant), Tell: events,
			Put: append(rows, ColdRow(row, cold), SpentRow(id, TopUp{Tx: tx, Currency: gas.Code, Amount: cost})),
			Post: []ledger.Tx{{ID: id, Kind: ledger.KindFee, Ref: tx, At: t.cfg.Now(), Legs: []ledger.Leg{
				{Account: ledger.FeesNetwork, Asset: gas.Asset(), Delta: -cost},
				{Account: ledger.Chain(string(n)), Asset: gas.Asset(), Delta: cost},
			}}},
		}, nil
	})
	return made && err == nil, err
}

// costIsOurs is ErrOwnCost where the cost of a proposal's transaction is booked with its transfer, or
// will be. It is not where that was held apart, and a person said that it is a refill, and where the
// proposal is gone: its transaction failed, and brings nothing.
func (t *Treasury) costIsOurs(ctx context.Context, tenant string, n chain.Network, tx string) error {
	proposed, err := t.cfg.Proposed(ctx, tenant, n, tx)
	p, is := proposed[tx]
	if err != nil {
		return err
	}
	came, err := t.cfg.Store.Find(ctx, storage.Query{
		Table: incoming.Sightings.Table, Partition: storage.Network(string(n)), Limit: askAtOnce,
		Where: []storage.Cond{{Column: storage.ColID, Op: storage.Ge, Value: tx + ":"}, {Column: storage.ColID, Op: storage.Lt, Value: tx + ";"}},
	})
	if err != nil {
		return err
	}
	refills := 0
	for _, r := range came {
		s := incoming.Sightings.Value(r)
		if s.Tenant != tenant {
			continue
		}
		g := s.Generated()
		rows, err := t.cfg.Store.Rows(ctx, TopUps.Table, storage.Keys(storage.Tenant(tenant), refillPrefix+g, spentPrefix+refillCost+g)...)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if refills++; row.ID != refillPrefix+g {
				return ErrOwnCost
			}
		}
	}
	if is && refills == 0 && p.Status != refill.Gone {
		return ErrOwnCost
	}
	return nil
}

// spellings are the ways in which the hash of a transaction can be written, the one to keep first: a
// hexadecimal one has small letters or large ones, and 0x before it or not.
func spellings(tx string) []string {
	tx = strings.TrimSpace(tx)
	digits := strings.TrimPrefix(strings.ToLower(tx), "0x")
	if b, err := hex.DecodeString(digits); err != nil || len(b) != 32 {
		return []string{tx}
	}
	out := []string{digits, "0x" + digits, strings.ToUpper(digits)}
	if len(tx) > len(digits) {
		out[0], out[1] = out[1], out[0]
	}
	return out
}
