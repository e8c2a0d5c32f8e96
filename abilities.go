package cryptopay

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// AbilityRow says that every process on the store knows an ability.
type AbilityRow struct {
	On    bool      `db:"on"`
	Since time.Time `db:"since"`
}

// Abilities is in the system's partition, by outgoing.Ability. An ability without a row is off.
var Abilities = storage.NewTable[AbilityRow]("abilities")

// known lists the abilities of this version that an older one would spoil.
var known = []outgoing.Ability{outgoing.AbilityTogether, outgoing.AbilityChildren, outgoing.AbilityMerges, outgoing.AbilityEarly, outgoing.AbilityUndone, outgoing.AbilityUnmined, abilityCounters, abilitySuspense, abilityPermanent, abilityHouse, abilityRefunds, abilityLog, abilityCold, abilityRefills, abilityAccounts, abilityBacks, abilityReplaceHot}

// abilityCounters says that every process counts what it writes.
const abilityCounters outgoing.Ability = "counters"

// abilitySuspense says that every process keeps the counters of suspense.
const abilitySuspense outgoing.Ability = "suspense_counters"

// abilityPermanent says that every process credits what comes to permanent addresses.
const abilityPermanent outgoing.Ability = "permanent_addresses"

// abilityRefunds says that every process gives back what a refund took whose withdrawal ends
// unpaid.
const abilityRefunds outgoing.Ability = "refunds"

// abilityLog says that every process keeps the counters of webhooks and of refunds.
const abilityLog outgoing.Ability = "log_counters"

// abilityCold says that every process knows moves to cold addresses.
const abilityCold outgoing.Ability = "cold_moves"

// abilityRefills says that every process books what a refill proposal brings as that.
const abilityRefills outgoing.Ability = "refill_proposals"

// abilityAccounts says that every process books what the refill proposal of a network of accounts brings,
// and what it costs.
const abilityAccounts outgoing.Ability = "account_refills"

// abilityBacks says that every process seals which transactions give an order's nonce or coins back.
const abilityBacks outgoing.Ability = "sealed_cancels"

// abilityRows turns on what is not on yet.
func (a *App) abilityRows(ctx context.Context) ([]storage.Row, error) {
	ids := make([]string, len(known))
	for i, k := range known {
		ids[i] = string(k)
	}
	there, err := a.cfg.Store.Rows(ctx, Abilities.Table, storage.Keys(storage.System, ids...)...)
	if err != nil {
		return nil, err
	}
	var put []storage.Row
	for _, id := range ids {
		if !slices.ContainsFunc(there, func(r storage.Row) bool { return r.ID == id }) {
			put = append(put, Abilities.Row(id, 0, time.Time{}, AbilityRow{On: true, Since: a.cfg.Clock.Now()}))
		}
	}
	return put, nil
}

// fresh reports whether no process has ever worked on the store.
func (a *App) fresh(ctx context.Context) (bool, error) {
	for _, t := range []*storage.Table{Listings.Table, wallet.TenantRows.Table} {
		rows, err := a.cfg.Store.Find(ctx, storage.Query{Table: t, Partition: storage.System, Limit: 1})
		if err != nil || len(rows) > 0 {
			return false, err
		}
	}
	return true, nil
}

// Upgraded says that no process of an older version runs on this store any more: what such
// a process would spoil is used from now on. On BTC, LTC and DOGE these are withdrawals that
// one transaction pays together, children that pay for a transaction which nodes keep, and
// merges of coins for a withdrawal that needs many, or while fees are low. Everywhere these are permanent addresses,
// payments of the house's own, moves to cold addresses, proposals of refills from there (those of networks of accounts apart), refunds, hot addresses that are replaced, and counters in place of counted rows, once the worker
// "counters" has made them. Transactions that give the nonce or coins of a withdrawal back are sealed as their rows stand; from
// then on one without a seal ends no withdrawal. Call it once after an upgrade, when
// the last process of the version before was replaced. A store that this version made has
// them on. It may be called again, by any process.
func (a *App) Upgraded(ctx context.Context) error {
	if on, err := a.able(ctx, abilityBacks); err != nil {
		return err
	} else if !on {
		if err := a.sealBacks(ctx); err != nil {
			return err
		}
	}
	return storage.Decide(ctx, a.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		put, err := a.abilityRows(ctx)
		if err != nil || len(put) == 0 {
			return storage.Change{}, err
		}
		return storage.Change{ID: "abilities/" + a.cfg.NewID(), Partition: storage.System, Put: put}, nil
	})
}

// able reports whether an ability is on. One that is on stays on.
func (a *App) able(ctx context.Context, k outgoing.Ability) (bool, error) {
	if _, on := a.on.Load(k); on {
		return true, nil
	}
	v, _, _, err := Abilities.One(ctx, a.cfg.Store, storage.System, string(k))
	if err == nil && v.On {
		a.on.Store(k, true)
	}
	return v.On, err
}

// sayAbilities logs which abilities are off.
func (a *App) sayAbilities(ctx context.Context) error {
	put, err := a.abilityRows(ctx)
	for _, r := range put {
		a.cfg.Log.WarnContext(ctx, "ability_off", slog.String("ability", r.ID),
			slog.String("hint", "call App.Upgraded once no process of an older version runs on this store"))
	}
	return err
}
