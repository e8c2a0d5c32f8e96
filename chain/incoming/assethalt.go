package incoming

import (
	"context"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// AssetHalt stops the payouts of one currency, of every tenant, until an operator lifts
// it. It lives in the network's partition under the currency's code.
type AssetHalt struct {
	Reason string    `db:"reason"`
	Since  time.Time `db:"since"`
}

// AssetHalts is the table of halted currencies, in network partitions.
var AssetHalts = storage.NewTable[AssetHalt]("asset_halts")

// LiftAsset ends the halt of a currency. It does nothing where there is none.
func LiftAsset(ctx context.Context, store storage.Store, n chain.Network, currency string, now time.Time) error {
	part := storage.Network(string(n))
	return storage.Decide(ctx, store, func(ctx context.Context) (storage.Change, error) {
		h, row, halted, err := AssetHalts.One(ctx, store, part, currency)
		if err != nil || !halted {
			return storage.Change{}, err
		}
		drop := []storage.Row{row}
		c := storage.Change{ID: changeID("lift-asset", drop), Partition: part, Drop: drop}
		return c, tellHalt(&c, HaltChanged{Network: n, Currency: currency, Reason: h.Reason}, now)
	})
}

// HaltAsset returns the row and the event of a halt of a currency, for a Change of the network's partition that
// says why. There is no event where it is halted already.
func (n *Network) HaltAsset(ctx context.Context, currency, reason string) (put []storage.Row, tell []storage.Event, err error) {
	_, row, halted, err := AssetHalts.One(ctx, n.cfg.Store, n.part, currency)
	if err != nil {
		return nil, nil, err
	}
	if halted { // it is written unchanged: where a Lift drops it meanwhile the Change conflicts, and this is asked again
		return []storage.Row{row}, nil, nil
	}
	c := storage.Change{Put: []storage.Row{AssetHalts.Row(currency, 0, time.Time{}, AssetHalt{Reason: reason, Since: n.cfg.Now()})}}
	c, err = n.telling(c)
	return c.Put, c.Tell, err
}

// contradicted is the rows that halt the currencies of which a transfer was logged
// otherwise than the balances moved.
func (n *Network) contradicted(ctx context.Context, found []chain.Transfer) ([]storage.Row, error) {
	var out []storage.Row
	seen := map[string]bool{}
	for i := range found {
		t := &found[i]
		if !t.Contradicted || n.currency(t) == nil || seen[t.Currency] {
			continue
		}
		seen[t.Currency] = true
		_, _, halted, err := AssetHalts.One(ctx, n.cfg.Store, n.part, t.Currency)
		if err != nil {
			return nil, err
		}
		if halted {
			continue
		}
		n.log.Error("asset_halted", "currency", t.Currency, "tx", t.Tx, "reason", ReasonContradicted)
		out = append(out, AssetHalts.Row(t.Currency, 0, time.Time{}, AssetHalt{Reason: ReasonContradicted, Since: n.cfg.Now()}))
	}
	return out, nil
}

// ReasonContradicted is the AssetHalt.Reason of a token whose logs and balances differ.
const ReasonContradicted = "logs_and_balances_differ"
