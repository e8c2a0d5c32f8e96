package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/httpapi"
)

// The /dev/ endpoints play everybody else: customers, miners, the market and
// time. Each returns when all background work that it caused is done, so that
// a script needs no sleeps.

// devRoutes are served beside the interface, without a token.
func (g *gateway) devRoutes() []httpapi.Route {
	route := func(name, about string) httpapi.Route {
		return httpapi.Route{
			Method: http.MethodPost, Path: "/dev/" + name + "/", Name: "dev" + strings.ToUpper(name[:1]) + name[1:], Group: "Development", About: about,
			Policy: httpapi.Policy{Access: httpapi.Public, Limit: httpapi.LimitNone, Style: httpapi.Standard}, Status: http.StatusOK,
			Errors: []httpapi.Failure{{Status: http.StatusBadRequest, Code: "invalid_request"}},
		}
	}
	return []httpapi.Route{
		httpapi.Endpoint(route("pay", "Sends a customer's payment, or a dropped transaction again, to the mempool."), g.devPay),
		httpapi.Endpoint(route("mine", "Adds blocks to a chain."), g.devMine),
		httpapi.Endpoint(route("reorg", "Replaces the last blocks of a chain by empty ones."), g.devReorg),
		httpapi.Endpoint(route("rate", "Sets an exchange rate."), g.devRate),
		httpapi.Endpoint(route("advance", "Moves the service's clock forward."), g.devAdvance),
		httpapi.Endpoint(route("settle", "Does all work that is due."), g.devSettle),
	}
}

type payInput struct {
	Address         string         `json:"address" rule:"max=255"`
	Currency        string         `json:"currency"`
	Amount          httpapi.Number `json:"amount"`
	TransactionHash string         `json:"transaction_hash" about:"of a dropped transaction, to be sent again"`
	Blockchain      string         `json:"blockchain" about:"of transaction_hash; found where omitted"`
}

type payView struct {
	TransactionHash string `json:"transaction_hash"`
}

func (g *gateway) devPay(ctx context.Context, _ *httpapi.Call, in payInput) (payView, error) {
	g.busy.Lock()
	defer g.busy.Unlock()
	if in.TransactionHash != "" {
		return payView{in.TransactionHash}, g.resend(ctx, in)
	}
	c, err := g.world.registry.Currency(in.Currency)
	if err != nil {
		return payView{}, httpapi.Invalid("currency", "is not supported")
	}
	network, err := g.world.on(string(c.Network))
	if err != nil {
		return payView{}, httpapi.Invalid("currency", "is on no simulated chain")
	}
	if !in.Amount.Given || !in.Amount.Decimal().IsPositive() {
		return payView{}, httpapi.Invalid("amount", "must be greater than 0")
	}
	tx, err := network.Pay(chain.Address(in.Address), c.Code, in.Amount.Decimal())
	var wrong *chain.AddressError
	switch {
	case errors.As(err, &wrong):
		return payView{}, httpapi.Invalid("address", wrong.Reason)
	case err != nil:
		return payView{}, httpapi.Invalid("amount", err.Error())
	}
	return payView{tx}, g.settle(ctx)
}

func (g *gateway) resend(ctx context.Context, in payInput) error {
	for _, c := range g.world.sims {
		if in.Blockchain != "" && string(c.Network()) != in.Blockchain {
			continue
		}
		if c.Resend(in.TransactionHash) == nil {
			return g.settle(ctx)
		}
	}
	return httpapi.Invalid("transaction_hash", "is of no transaction that can be sent again")
}

type mineInput struct {
	Blockchain string `json:"blockchain" rule:"required"`
	Blocks     int    `json:"blocks" rule:"min=1,max=10000" default:"1"`
}

type heightView struct {
	Height int64 `json:"height"`
}

// stepwise is how many blocks are mined with work in between: what a sweep or
// a withdrawal sends after one block gets into the next.
const stepwise = 200

func (g *gateway) devMine(ctx context.Context, _ *httpapi.Call, in mineInput) (heightView, error) {
	g.busy.Lock()
	defer g.busy.Unlock()
	c, err := g.world.on(in.Blockchain)
	if err != nil {
		return heightView{}, httpapi.Invalid("blockchain", "is no simulated chain")
	}
	if err := g.settle(ctx); err != nil {
		return heightView{}, err
	}
	for left := in.Blocks; left > 0; {
		n := 1
		if left > stepwise {
			n = left - stepwise
		}
		c.Mine(n)
		left -= n
		if err := g.settleOn(ctx, c.Network()); err != nil {
			return heightView{}, err
		}
	}
	return heightView{c.Height()}, g.settle(ctx)
}

type reorgInput struct {
	Blockchain string    `json:"blockchain" rule:"required"`
	Depth      int       `json:"depth" rule:"required,min=1,max=10000"`
	Drop       *[]string `json:"drop" about:"hashes of transactions that are gone from chain and mempool"`
}

func (g *gateway) devReorg(ctx context.Context, _ *httpapi.Call, in reorgInput) (heightView, error) {
	g.busy.Lock()
	defer g.busy.Unlock()
	c, err := g.world.on(in.Blockchain)
	if err != nil {
		return heightView{}, httpapi.Invalid("blockchain", "is no simulated chain")
	}
	var drop []string
	if in.Drop != nil {
		drop = *in.Drop
	}
	if known := c.Transactions(false); slices.ContainsFunc(drop, func(h string) bool { return !slices.Contains(known, h) }) {
		return heightView{}, httpapi.Invalid("drop", "names a transaction that there never was")
	}
	if tip, err := c.Client().Tip(ctx); err == nil && c.Height()-int64(in.Depth) < tip.Final {
		return heightView{}, httpapi.Invalid("depth", fmt.Sprintf("goes below the final height %d of this network", tip.Final))
	}
	height, err := c.Reorg(in.Depth, drop...)
	if err != nil {
		return heightView{}, httpapi.Invalid("depth", "is more than the chain has")
	}
	return heightView{height}, g.settle(ctx)
}

type rateInput struct {
	Currency      string         `json:"currency" rule:"required" about:"a token's symbol or a combined code"`
	PriceCurrency string         `json:"price_currency" default:"USD"`
	Rate          httpapi.Number `json:"rate" rule:"required"`
}

func (g *gateway) devRate(ctx context.Context, _ *httpapi.Call, in rateInput) (struct{}, error) {
	g.busy.Lock()
	defer g.busy.Unlock()
	token := in.Currency
	if c, err := g.world.registry.Currency(in.Currency); err == nil {
		token = c.Token
	}
	if _, known := firstPrices[token]; !known {
		return struct{}{}, httpapi.Invalid("currency", "is not supported")
	}
	if _, known := fiatPrices[in.PriceCurrency]; !known && in.PriceCurrency != "USD" {
		return struct{}{}, httpapi.Invalid("price_currency", "is not supported")
	}
	if !in.Rate.Decimal().IsPositive() {
		return struct{}{}, httpapi.Invalid("rate", "must be greater than 0")
	}
	g.world.set(token+"/"+in.PriceCurrency, in.Rate.Decimal())
	return struct{}{}, g.world.saveClock(ctx)
}

type advanceInput struct {
	Seconds httpapi.Number `json:"seconds" rule:"required"`
}

type nowView struct {
	Now string `json:"now" format:"date-time"`
}

// farthest is how far one call moves the clock: ten years.
const farthest = 10 * 365 * 24 * 60 * 60

func (g *gateway) devAdvance(ctx context.Context, _ *httpapi.Call, in advanceInput) (nowView, error) {
	g.busy.Lock()
	defer g.busy.Unlock()
	d := in.Seconds.Decimal()
	if !in.Seconds.Given || d.Sign() < 0 || d.GreaterThan(decimal.NewFromInt(farthest)) {
		return nowView{}, httpapi.Invalid("seconds", "must be from 0 to 315360000")
	}
	g.world.clock.skip(time.Duration(d.Shift(9).IntPart()))
	if err := g.world.saveClock(ctx); err != nil {
		return nowView{}, err
	}
	err := g.settle(ctx)
	return nowView{g.world.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z")}, err
}

func (g *gateway) devSettle(ctx context.Context, _ *httpapi.Call, _ struct{}) (struct{}, error) {
	g.busy.Lock()
	defer g.busy.Unlock()
	return struct{}{}, g.settle(ctx)
}

// settle writes the chains down, does all due work, and writes down what that
// sent. The caller holds busy.
func (g *gateway) settle(ctx context.Context) error {
	if err := errors.Join(g.newcomers(ctx), g.world.save(ctx)); err != nil {
		return err
	}
	defer g.world.clock.hold()()
	err := g.app.Step(ctx)
	if err != nil {
		g.log.ErrorContext(ctx, "work_failed", "error", err)
	}
	return errors.Join(except(err, incoming.ErrHalted), g.world.save(ctx))
}

// except takes one cause out of joined errors: a network that is halted stops
// no other.
func except(err, cause error) error {
	joined, many := err.(interface{ Unwrap() []error }) //nolint:errorlint // the join itself is taken apart
	if !many {
		if errors.Is(err, cause) {
			return nil
		}
		return err
	}
	var left []error
	for _, e := range joined.Unwrap() {
		left = append(left, except(e, cause))
	}
	return errors.Join(left...)
}

// settleOn is settle for what one network can have caused.
func (g *gateway) settleOn(ctx context.Context, n chain.Network) error {
	if err := g.world.save(ctx); err != nil {
		return err
	}
	defer g.world.clock.hold()()
	workers := slices.DeleteFunc(g.app.Workers(), func(w cryptopay.Worker) bool {
		_, on, bound := strings.Cut(w.Name, "/")
		return bound && on != string(n)
	})
	for worked := true; worked; {
		worked = false
		for _, w := range workers {
			done, err := w.Step(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", w.Name, err)
			}
			worked = worked || done > 0
		}
	}
	return g.world.save(ctx)
}

func splitPair(pair string) (token, fiat string) {
	token, fiat, _ = strings.Cut(pair, "/")
	return token, fiat
}

// pause between looks at background work in development.
const pause = 200 * time.Millisecond
