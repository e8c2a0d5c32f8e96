package treasury

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// apartTx moves money that is held apart: suspense by amount, and the other legs.
func (t *Treasury) apartTx(what string, s *incoming.Sighting, currency string, amount ledger.Amount, legs ...ledger.Leg) ledger.Tx {
	legs = append(legs, ledger.Leg{Account: ledger.Suspense, Delta: amount})
	for i := range legs {
		legs[i].Asset = ledger.Asset(currency)
	}
	return ledger.Tx{ID: what + s.Generated(), Kind: ledger.KindAdjustment, Ref: s.Generated(), At: t.cfg.Now(), Legs: legs}
}

// NoticeApart is the Kind of a Notice: coins came to a hot address, and may have come from a cold
// one. They are in suspense until a person says whose they are.
const NoticeApart = "top_up_held"

// Why coins that came to a hot address are held apart.
const (
	ApartUnknown = "sender_unknown"       // they may have come from a cold address
	ApartMore    = "more_than_cold_holds" // they came from a cold address that has less by the books
)

func (t *Treasury) tellApart(ctx context.Context, row storage.Row, s *incoming.Sighting) {
	n := Notice{
		Kind: NoticeApart, Tenant: s.Tenant, Network: chain.Network(s.Network), Currency: s.Currency, Reason: TopUps.Value(row).Tx, Since: s.FirstSeen,
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

// StepNotices tells the host of what is held apart and of what is to come back from cold addresses,
// each once: it is due from the Change on that noted it, so a process that dies then does not keep
// it from being told. It says how many it told of.
func (t *Treasury) StepNotices(ctx context.Context) (int, error) {
	now := t.cfg.Now()
	rows, err := t.unread.Claimed(ctx, t.cfg.Store, storage.Claim{
		Table: TopUps.Table, Now: now, Until: now.Add(t.cfg.Lease), Max: t.cfg.Batch,
		Where: []storage.Cond{{Column: "currency", Op: storage.In, Value: t.cfg.Registry.Codes()}},
	}, t.cfg.Log, func(*storage.RowError) {})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	var notes, transfers []storage.Key
	for _, r := range rows {
		network, key := transferOf(r.ID)
		if strings.HasPrefix(r.ID, needPrefix) {
			notes = append(notes, storage.Keys(r.Partition, coldPrefix+TopUps.Value(r).Currency)...)
		} else {
			transfers = append(transfers, storage.Keys(storage.Network(network), key)...)
		}
	}
	came, err := t.cfg.Store.Rows(ctx, incoming.Sightings.Table, transfers...)
	if err != nil {
		return 0, err
	}
	cold, err := t.cfg.Store.Rows(ctx, TopUps.Table, notes...)
	if err != nil {
		return 0, err
	}
	var told []storage.Change
	for _, r := range rows {
		at := slices.IndexFunc(came, func(s storage.Row) bool {
			v := incoming.Sightings.Value(s)
			return apartPrefix+v.Generated() == r.ID && storage.Tenant(v.Tenant) == r.Partition
		})
		switch v := TopUps.Value(r); {
		case strings.HasPrefix(r.ID, needPrefix):
			t.tellNeed(ctx, r, cold)
		case at >= 0:
			s := incoming.Sightings.Value(came[at])
			t.tellApart(ctx, r, &s)
		default: // a fork took it away meanwhile, or somebody edited it: Verify tells
			t.cfg.Log.WarnContext(ctx, "top_up_not_there", slog.String("top_up", r.ID), slog.String("currency", v.Currency))
		}
		told = append(told, storage.Change{
			ID: fmt.Sprintf("told/%s/%d", r.ID, r.Version), Partition: r.Partition, Put: []storage.Row{TopUps.Row(r.ID, r.Version, time.Time{}, TopUps.Value(r))},
		})
	}
	for _, e := range t.cfg.Store.Commit(ctx, told...) {
		if e != nil && !errors.Is(e, storage.ErrConflict) && !errors.Is(e, storage.ErrBusy) {
			err = errors.Join(err, e) // it is told again
		}
	}
	return len(rows), err
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
			if v.Amount > cold.Amount {
				if under, err := t.moveUnderWay(ctx, network, cold.Tx); err != nil || under {
					return storage.Change{}, cmp.Or(err, fmt.Errorf("%w: a move there is under way: say it again when that has ended", ErrNothingCold))
				}
			}
			if back = min(v.Amount, cold.Amount); back == 0 {
				return storage.Change{}, ErrNothingCold
			}
		}
		c := storage.Change{Partition: part, Drop: []storage.Row{row}}
		if by != nil {
			c.ID = "apart-" + string(is) + "/" + by.ID
		}
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
