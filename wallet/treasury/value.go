package treasury

import (
	"context"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// price is the present price of one whole coin in USD.
func (t *Treasury) price(ctx context.Context, token string) (decimal.Decimal, error) {
	r, err := t.cfg.Rates.Rate(storage.Apart(ctx), token, "USD")
	if err != nil {
		return decimal.Decimal{}, fmt.Errorf("treasury: price of %s: %w", token, err)
	}
	return r.Price, nil
}

// inGas converts an amount of a currency to units of its gas currency, rounded down.
func (t *Treasury) inGas(ctx context.Context, c, gas *chain.Currency, a ledger.Amount) (ledger.Amount, error) {
	return t.convert(ctx, c, gas, a, ledger.Down)
}

// fromGas converts an amount of the gas currency to units of a currency, rounded up.
func (t *Treasury) fromGas(ctx context.Context, c, gas *chain.Currency, a ledger.Amount) (ledger.Amount, error) {
	return t.convert(ctx, gas, c, a, ledger.Up)
}

func (t *Treasury) convert(ctx context.Context, from, to *chain.Currency, a ledger.Amount, r ledger.Rounding) (ledger.Amount, error) {
	if from.Code == to.Code {
		return a, nil
	}
	p, q, err := t.prices(ctx, from, to)
	if err != nil {
		return 0, err
	}
	return ledger.Quo(from.Decimal(a).Mul(p), q, to.Scale, r)
}

func (t *Treasury) prices(ctx context.Context, from, to *chain.Currency) (p, q decimal.Decimal, err error) {
	if p, err = t.price(ctx, from.Token); err == nil {
		q, err = t.price(ctx, to.Token)
	}
	return p, q, err
}

// inGasExact is inGas with the fractions of units that inGas rounds down, to 18 places.
func (t *Treasury) inGasExact(ctx context.Context, c, gas *chain.Currency, a ledger.Amount) (decimal.Decimal, error) {
	if c.Code == gas.Code {
		return units(a), nil
	}
	p, q, err := t.prices(ctx, c, gas)
	if err != nil {
		return decimal.Decimal{}, err
	}
	if !q.IsPositive() {
		return decimal.Decimal{}, fmt.Errorf("treasury: the price of %s is %s", gas.Token, q)
	}
	return c.Decimal(a).Mul(p).Shift(int32(gas.Scale)).DivRound(q, 18), nil
}
