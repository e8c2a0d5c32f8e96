package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
)

// world is everybody else: the networks and the prices. They are real where the settings name
// nodes, and simulated where they name none.
type world struct {
	registry *chain.Registry
	clients  []chain.Client
	rates    rates.Rates
	clock    cryptopay.Clock
	source   keys.Sources // of our addresses; set before anything is asked

	*simulation // nil where the networks are real
}

func openWorld(ctx context.Context, s settings, d *database, log *slog.Logger) (w *world, err error) {
	w = &world{clock: cryptopay.SystemClock{}}
	if len(s.nodes.At) == 0 {
		w.simulation, err = simulate(ctx, d, log)
		if err != nil {
			return nil, err
		}
		w.registry, w.rates, w.clock = w.simulation.registry, w.simulation.prices, w.simulation.clock
		for _, c := range w.simulation.chains {
			w.clients = append(w.clients, c.Client())
		}
		return w, nil
	}
	if w.registry, err = s.nodes.Registry(); err != nil {
		return nil, err
	}
	if w.rates, err = s.nodes.Rates(s.prices, w.clock.Now, log); err != nil {
		return nil, err
	}
	w.clients, err = s.nodes.Clients(w.registry, w.publicKey, log)
	return w, err
}

func (w *world) simulated() bool { return w.simulation != nil }

// publicKey is the key of an account of ours, which transactions of some networks name.
func (w *world) publicKey(n chain.Network, k chain.KeyRef) (chain.PublicKey, error) {
	source, ok := w.source[n].(*keys.Source)
	if !ok {
		return chain.PublicKey{}, fmt.Errorf("no public keys of %s are known here", n)
	}
	return source.PublicKey(n, k)
}

// coin is one that customers may pay in.
type coin struct{ Code, Name string }

// coins lists what the shop takes, popular ones first.
func (w *world) coins() (out []coin) {
	var rest []coin
	for _, client := range w.clients {
		for _, c := range w.registry.On(client.Network()) {
			if one := (coin{c.Code, w.name(c.Code)}); c.Popular {
				out = append(out, one)
			} else {
				rest = append(rest, one)
			}
		}
	}
	return append(out, rest...)
}

// name is what people call a coin, such as "USDT on Ethereum".
func (w *world) name(code string) string {
	c, err := w.registry.Currency(code)
	if err != nil {
		return code
	}
	info, err := w.registry.Network(string(c.Network))
	if err != nil || c.Native() && c.Token == string(c.Network) {
		return c.Name
	}
	return c.Token + " on " + info.Name
}

// amount is so many coins, for people.
func (w *world) amount(coins decimal.Decimal, code string) string {
	return coins.String() + " " + w.name(code)
}
