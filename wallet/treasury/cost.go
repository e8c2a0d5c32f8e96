package treasury

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// costs is what forwarding one currency takes at present, in units of its gas currency.
type costs struct {
	gas    *chain.Currency
	move   ledger.Amount // worst case of the sweep itself
	fund   ledger.Amount // the bound of one gas transfer to the address; 0 where none is needed
	readAt time.Time
}

// sum is the cost of a sweep with its gas transfer.
func (c *costs) sum() (ledger.Amount, error) { return c.move.Add(c.fund) }

// costCache keeps the estimates of typical sweeps by currency, so that one estimate
// serves every waiting address. It is safe for concurrent use.
type costCache struct {
	mu   sync.Mutex
	last map[string]costs
}

// ForwardCost returns what forwarding a typical deposit of a currency costs at the
// present fees: the sweep and the gas transfer before it. cost is in units of the
// network's gas currency, whose code is gas. It is the figure by which a sweep is
// judged: a deposit of at least Config.MinSweep times the cost is forwarded at the
// present fees. It is 0 where deposits are spent where they are (outputs, shared
// accounts). The error wraps chain.ErrCurrency for an unknown currency, and is the
// client's where the network gives no estimate. Estimates are at most one minute old.
func (t *Treasury) ForwardCost(ctx context.Context, currencyCode string) (cost ledger.Amount, gas string, err error) {
	currency, err := t.cfg.Registry.Currency(currencyCode)
	if err != nil {
		return 0, "", err
	}
	info, err := t.cfg.Registry.Network(string(currency.Network))
	if err != nil {
		return 0, "", err
	}
	if _, shared := t.shared(currency.Network); shared || info.Family == chain.UTXOFamily {
		return 0, info.Gas, nil
	}
	c, err := t.typical(ctx, currency)
	if err != nil {
		return 0, "", err
	}
	cost, err = c.sum()
	return cost, info.Gas, err
}

// typical estimates the sweep of an address that is not known yet.
func (t *Treasury) typical(ctx context.Context, currency *chain.Currency) (costs, error) {
	now := t.cfg.Now()
	t.costs.mu.Lock()
	c, known := t.costs.last[currency.Code]
	t.costs.mu.Unlock()
	if known && now.Sub(c.readAt) < costAge && !now.Before(c.readAt) {
		return c, nil
	}
	c, err := t.estimate(ctx, currency, chain.Intent{
		Purpose: chain.ForSweep, Network: currency.Network, Currency: currency.Code, All: true, Confirmations: 1,
	})
	if err != nil {
		return c, err
	}
	t.costs.mu.Lock()
	t.costs.last[currency.Code] = c
	t.costs.mu.Unlock()
	return c, nil
}

// recent is typicalUnits, estimated anew where a sweep costs 5 % more than its estimate
// said: fees have risen since, and what is compared with them must be of the same moment.
func (t *Treasury) recent(ctx context.Context, currency *chain.Currency, move ledger.Amount) (ledger.Amount, verdict, error) {
	t.costs.mu.Lock()
	if c := t.costs.last[currency.Code]; move-c.move > c.move/20 {
		delete(t.costs.last, currency.Code)
	}
	t.costs.mu.Unlock()
	return t.typicalUnits(ctx, currency)
}

// costAge is the longest time for which one estimate of a typical sweep is used.
const costAge = time.Minute

// estimate returns what a sweep and its gas transfer cost at present.
func (t *Treasury) estimate(ctx context.Context, currency *chain.Currency, sweep chain.Intent) (c costs, err error) {
	client, ok := t.cfg.Clients[currency.Network]
	if !ok {
		return c, fmt.Errorf("%w: no client for network %s", chain.ErrCurrency, currency.Network)
	}
	if c.gas, err = t.cfg.Registry.Gas(currency.Network); err != nil {
		return c, err
	}
	c.readAt = t.cfg.Now()
	fee, err := client.EstimateFee(ctx, sweep)
	if err != nil {
		return c, fmt.Errorf("treasury: cost of a sweep of %s: %w", currency.Code, err)
	}
	c.move = fee.Max
	if currency.Native() || t.sponsored(sweep) {
		return c, nil
	}
	c.fund, err = t.fundingCost(ctx, c.gas, sweep.From)
	return c, err
}

// fundingCost is the bound of one gas transfer to an address ("" = a typical one). It
// leaves room for replacements: payouts wait behind a stuck transfer of the hot address.
func (t *Treasury) fundingCost(ctx context.Context, gas *chain.Currency, to chain.Address) (ledger.Amount, error) {
	fee, err := t.cfg.Clients[gas.Network].EstimateFee(ctx, chain.Intent{
		Purpose: chain.ForGas, Network: gas.Network, Currency: gas.Code, To: to, Amount: 1, Confirmations: 1,
	})
	if err != nil {
		return 0, fmt.Errorf("treasury: cost of a gas transfer on %s: %w", gas.Network, err)
	}
	return fee.Max.MulDiv(t.cfg.CostMargin, 1, ledger.Up)
}
