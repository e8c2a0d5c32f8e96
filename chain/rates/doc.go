// Package rates gives prices of coins in fiat money that can be relied on, or
// none.
//
// It promises: a price is a decimal from its source to its user, never a float;
// Median answers only from enough sources that agree with each other, and never
// with a price older than its bound: where it cannot, the error wraps
// ErrUnavailable and nothing is guessed. Live sources read the public price
// interfaces of CoinGecko, Coinbase, Kraken and Binance.
package rates
