package rates_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain/rates"
)

// desk is a price of the host's own.
type desk struct {
	name, price string
	now         func() time.Time
}

func (d desk) Name() string { return d.name }

func (d desk) Price(_ context.Context, token, fiat string) (rates.Rate, error) {
	p, err := decimal.NewFromString(d.price)
	return rates.Rate{Token: token, Fiat: fiat, Price: p, At: d.now()}, err
}

// Several sources must agree; in earnest they are rates.CoinGecko, Coinbase,
// Kraken and Binance, and sources of one's own like these.
func ExampleMedian() {
	clock := func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }
	median, err := rates.NewMedian(rates.MedianConfig{
		Sources: []rates.Source{desk{"a", "67000", clock}, desk{"b", "67010", clock}, desk{"c", "6.70", clock}},
		Now:     clock,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := median.Rate(context.Background(), "BTC", "USD")
	fmt.Println(r.Price, err) // c is far from the rest and left out

	alone, _ := rates.NewMedian(rates.MedianConfig{Sources: []rates.Source{desk{"a", "67000", clock}, desk{"b", "broken", clock}}, Now: clock})
	_, err = alone.Rate(context.Background(), "BTC", "USD")
	fmt.Println(errors.Is(err, rates.ErrUnavailable))
	// Output:
	// 67005 <nil>
	// true
}
