package httpapi

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
)

type rateInput struct {
	Amount        Number `query:"amount" default:"1.0" about:"In currency_from, with at most the places it has."`
	From          string `query:"currency_from" default:"USD"`
	To            string `query:"currency_to" rule:"required"`
	FeePercentage Number `query:"fee_percentage" about:"0 to 100; the account's transaction fee where omitted."`
	FeeByUser     bool   `query:"is_fee_paid_by_user" default:"false" about:"Adds the fee to estimated_amount."`
	Full          bool   `query:"full" default:"false"`
}

type calculateInput struct {
	Amount        Number `json:"amount" default:"1.0" about:"In currency_from, with at most the places it has."`
	From          string `json:"currency_from" default:"USD"`
	To            string `json:"currency_to" rule:"required"`
	FeePercentage Number `json:"fee_percentage" about:"0 to 100; the account's transaction fee where omitted."`
	FeeByUser     bool   `json:"is_fee_paid_by_user" default:"false" about:"Adds the fee to estimated_amount."`
	Full          bool   `json:"full" default:"false"`
}

type rateView struct {
	From            string  `json:"currency_from"`
	To              string  `json:"currency_to"`
	Amount          Figure  `json:"amount"`
	EstimatedAmount Figure  `json:"estimated_amount" about:"In currency_to; what a customer would send for a payment of amount."`
	Rate            Figure  `json:"rate" about:"Of one currency_from in currency_to."`
	FeePercentage   *Figure `json:"fee_percentage,omitempty"`
	FeeAmount       *Figure `json:"fee_amount,omitempty" about:"In currency_to."`
	Timestamp       string  `json:"timestamp,omitempty" format:"date-time" about:"Of the oldest price used."`
}

func (h *Handler) calculateRate(ctx context.Context, c *Call, in calculateInput) (rateView, error) {
	return h.getRate(ctx, c, rateInput(in))
}

// getRate is what an amount comes to in another currency, now.
func (h *Handler) getRate(ctx context.Context, c *Call, in rateInput) (rateView, error) {
	from, to, err := h.sides(in)
	if err != nil {
		return rateView{}, err
	}
	percent, err := h.feePercentage(ctx, c, in)
	if err != nil {
		return rateView{}, err
	}
	cross, err := h.cross(ctx, c, from, to)
	if err != nil {
		return rateView{}, err
	}
	estimated, fee, err := cross.convert(in.Amount.Decimal(), percent, in.FeeByUser, to)
	if err != nil {
		return rateView{}, bad("amount", "is too large")
	}
	view := rateView{
		From: in.From, To: in.To, Amount: plain(in.Amount.Decimal()), EstimatedAmount: plain(estimated.Decimal(to.places)), Rate: plain(cross.rate()),
	}
	if in.Full {
		share, taken := plain(percent), plain(fee.Decimal(to.places))
		view.FeePercentage, view.FeeAmount, view.Timestamp = &share, &taken, stamp(cross.at)
	}
	return view, nil
}

// checkRate finds what else is wrong with a request that is wrong already.
func (h *Handler) checkRate(_ context.Context, _ *Call, in rateInput) error {
	_, _, err := h.sides(in)
	return err
}

func (h *Handler) checkCalculation(ctx context.Context, c *Call, in calculateInput) error {
	return h.checkRate(ctx, c, rateInput(in))
}

// side is one end of a conversion: a coin or a fiat currency.
type side struct {
	token  string // "" = fiat
	fiat   string
	places uint8
}

// sides reads both ends, and checks the figures.
func (h *Handler) sides(in rateInput) (from, to side, err error) {
	var wrong, unknown fields
	read := func(name, code string) side {
		if c, err := h.cfg.Registry.Currency(code); err == nil {
			return side{token: c.Token, places: c.Scale}
		}
		if code != "" && !slices.Contains(h.cfg.Payments.PriceCurrencies, code) {
			unknown.add(name, "is not supported")
		}
		return side{fiat: code, places: fiatPlaces}
	}
	from, to = read("currency_from", in.From), read("currency_to", in.To)
	if from.token == "" && to.token == "" && from != to && len(unknown) == 0 {
		wrong.add("currency_to", "must be a coin where currency_from is not one")
	}
	switch amount := in.Amount.Decimal(); {
	case amount.Sign() <= 0:
		wrong.add("amount", "must be greater than 0")
	case len(unknown) == 0 && !amount.Equal(amount.Truncate(int32(from.places))):
		wrong.add("amount", fmt.Sprintf("has more than %d decimal places", from.places))
	}
	if in.FeePercentage.Given && payment.CheckFee(in.FeePercentage.Decimal()) != nil {
		wrong.add("fee_percentage", "must be from 0 to 100 with at most 6 decimal places")
	}
	if len(wrong) > 0 {
		wrong.merge(&invalidError{Fields: unknown})
		return from, to, &invalidError{Fields: wrong}
	}
	if len(unknown) > 0 {
		return from, to, unknownCurrency(unknown)
	}
	return from, to, nil
}

// unknownCurrency says which fields hold no currency.
func unknownCurrency(named fields) error {
	var messages []string
	for _, field := range slices.Sorted(maps.Keys(named)) {
		messages = append(messages, field+" is not supported")
	}
	return fail(http.StatusBadRequest, "invalid_currency", "The currency is not supported.", map[string]any{"currency": messages})
}

// feePercentage is the one given, else the account's own where it plays a part.
func (h *Handler) feePercentage(ctx context.Context, c *Call, in rateInput) (decimal.Decimal, error) {
	if in.FeePercentage.Given || !in.Full && !in.FeeByUser {
		return in.FeePercentage.Decimal(), nil
	}
	t, err := h.app.Wallets.Tenant(ctx, c.Tenant())
	return t.TransactionFee, err
}

// cross is a rate as the exact fraction that it comes from.
type cross struct {
	num, den decimal.Decimal
	at       time.Time // of the older price
}

// cross finds the rate between two sides, coins by way of USD.
func (h *Handler) cross(ctx context.Context, c *Call, from, to side) (cross, error) {
	x := cross{num: decimal.New(1, 0), den: decimal.New(1, 0), at: c.Now}
	if from.token == to.token && from.fiat == to.fiat {
		return x, nil
	}
	fiat := "USD"
	if f := from.fiat + to.fiat; f != "" {
		fiat = f
	}
	ask := func(token string, into *decimal.Decimal) error {
		if token == "" {
			return nil
		}
		r, err := h.cfg.Rates.Rate(ctx, token, fiat)
		if *into = r.Price; r.At.Before(x.at) {
			x.at = r.At
		}
		return err
	}
	if err := ask(from.token, &x.num); err != nil {
		return x, err
	}
	return x, ask(to.token, &x.den)
}

// ratePlaces is how many places a rate is shown with at most.
const ratePlaces = 18

func (x *cross) rate() decimal.Decimal { return x.num.DivRound(x.den, ratePlaces) }

// convert is what an amount comes to, and the fee on it. What a customer would
// send in coins is rounded up, as payments do; fiat is rounded down. A fee that
// the customer pays is added.
func (x *cross) convert(amount, percent decimal.Decimal, byUser bool, to side) (estimated, fee ledger.Amount, err error) {
	way := ledger.Up
	if to.token == "" {
		way = ledger.Down
	}
	hundred := decimal.New(100, 0)
	value, den := amount.Mul(x.num), x.den.Mul(hundred)
	base, err := ledger.Quo(value, x.den, to.places, way)
	if err != nil {
		return 0, 0, err
	}
	if !byUser {
		fee, err = ledger.Quo(value.Mul(percent), den, to.places, ledger.Down)
		return base, fee, err
	}
	if estimated, err = ledger.Quo(value.Mul(hundred.Add(percent)), den, to.places, way); err != nil {
		return 0, 0, err
	}
	return estimated, estimated - base, nil
}

type currencyRatesInput struct {
	Currency string `path:"currency"`
}

type currencyRatesView struct {
	Currency  string            `json:"currency"`
	Rates     map[string]Figure `json:"rates" about:"Price of one coin, by fiat currency."`
	Timestamp string            `json:"timestamp" format:"date-time" about:"Of the oldest price."`
}

// currencyRates lists a coin's price in every fiat currency that there is one in.
func (h *Handler) currencyRates(ctx context.Context, c *Call, in currencyRatesInput) (currencyRatesView, error) {
	cur, err := h.cfg.Registry.Currency(in.Currency)
	if err != nil {
		return currencyRatesView{}, err
	}
	known, err := h.prices(ctx, []string{cur.Token}, h.cfg.Payments.PriceCurrencies)
	if err == nil && len(known) == 0 {
		err = rates.ErrUnavailable
	}
	if err != nil {
		return currencyRatesView{}, err
	}
	view, at := currencyRatesView{Currency: cur.Code, Rates: map[string]Figure{}}, c.Now
	for p, r := range known {
		view.Rates[p.fiat] = plain(r.Price)
		if r.At.Before(at) {
			at = r.At
		}
	}
	view.Timestamp = stamp(at)
	return view, nil
}

// plain is a figure without zeros at its end.
func plain(d decimal.Decimal) Figure {
	s := ledger.PlainString(d)
	if strings.Contains(s, ".") {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	if short, err := ledger.ParsePlain(s); err == nil {
		d = short
	}
	return Figure(d)
}
