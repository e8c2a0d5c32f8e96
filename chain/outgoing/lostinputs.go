package outgoing

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
)

// A deep reorg can take a coin away that a transaction on its way spends. What
// was signed lands should the coin come back, so it counts until that is
// disproved; meanwhile the order is sent with other coins beside at least one
// that each open attempt spends: only one of them can land. An attempt of which
// every coin is gone can be sent past only once one of them provably never
// comes back.

// errMayLand: nothing may be sent in the place of what was signed.
var errMayLand = errors.New("outgoing: a transaction of which every coin is gone may still land")

// replaceLostInputs makes the candidate of a replacement one that does without the coins that
// are gone. ended says that no attempt can land any more, and that the intent
// goes another way now.
func (n *Sender) replaceLostInputs(ctx context.Context, j *claimedIntent, p *attemptSummary, d *candidate) (ended bool, err error) {
	held, err := n.heldCoins(ctx, j.id)
	if err != nil || len(held) == 0 {
		return false, err
	}
	coins, err := n.loadCoins(ctx, held...)
	if err != nil {
		return false, err
	}
	var kept []chain.Coin
	var gone []string
	for i := range coins {
		switch c := &coins[i]; c.State {
		case CoinReserved:
			kept = append(kept, c.input())
		case CoinGone:
			gone = append(gone, c.outpoint)
		}
	}
	newest := p.open[len(p.open)-1]
	if !slices.ContainsFunc(gone, func(o string) bool { return slices.Contains(newest.v.Spends, o) }) {
		return false, nil
	}
	live, dead, err := n.splitByLostInputs(ctx, j, p, kept, gone)
	if err != nil {
		return false, err
	}
	n.Log.Warn("coins_gone", slog.String("intent", j.id), slog.String("tx", j.v.Tx), slog.Any("coins", gone))
	if len(live) == 0 {
		return true, n.markDead(ctx, j, p)
	}
	if err := n.markLostDead(ctx, j, dead); err != nil {
		return false, err
	}
	p.open, d.kept, d.coins = live, kept, nil
	return false, nil
}

// splitByLostInputs parts the open attempts into those that spend a coin which is still
// there, and those that can never land; errMayLand where one is neither.
func (n *Sender) splitByLostInputs(ctx context.Context, j *claimedIntent, p *attemptSummary, kept []chain.Coin, gone []string) (live, dead []*attempt, err error) {
	for _, a := range p.open {
		if slices.ContainsFunc(kept, func(c chain.Coin) bool { return slices.Contains(a.v.Spends, c.Outpoint) }) {
			live = append(live, a)
			continue
		}
		never, err := false, error(nil)
		if a.st.State != chain.Pending { // else a node has all that it spends
			never, err = n.inputGoneForGood(ctx, j, a, gone)
		}
		if err == nil && !never {
			err = errMayLand
		}
		if err != nil {
			return nil, nil, err
		}
		dead = append(dead, a)
	}
	return live, dead, nil
}

// markLostDead writes that attempts can never land, where others still can.
func (n *Sender) markLostDead(ctx context.Context, j *claimedIntent, dead []*attempt) error {
	if len(dead) == 0 {
		return nil
	}
	s := transition{op: onOrphaned, due: n.Now().Add(n.Poll), ended: new(mandate.Ending)}
	for _, a := range dead {
		if err := a.becomes(onRuleOut); err != nil {
			return err
		}
		s.ended.Dead = append(s.ended.Dead, a.v.Named(a.tx))
		s.with = append(s.with, Attempts.Row(a.tx, a.version, time.Time{}, a.v))
	}
	return n.commit(ctx, j, s)
}

// unindexed is an optional ability of clients whose node keeps no index of transactions: it knows
// of a deposit only what it is told that the deposit spends, which proves nothing.
type unindexed interface{ Unindexed() bool }

func (n *Sender) unindexed() bool {
	c, ok := n.Client.(unindexed)
	return ok && c.Unindexed()
}

// inputGoneForGood reports whether a coin that an attempt spends provably never exists
// again: a final transaction took what the one that made it spends.
func (n *Sender) inputGoneForGood(ctx context.Context, j *claimedIntent, a *attempt, gone []string) (bool, error) {
	for _, outpoint := range gone {
		if !slices.Contains(a.v.Spends, outpoint) {
			continue
		}
		source := chain.Attempt{Tx: outpoint}
		if i := strings.LastIndexByte(outpoint, ':'); i > 0 {
			source.Tx = outpoint[:i]
		}
		own, _, ok, err := Attempts.One(ctx, n.Store, n.part, source.Tx)
		switch {
		case err != nil:
			return false, err
		case ok:
			source.Raw = own.Raw // what it spends follows from that, whatever its row says
		case n.Source != nil && !n.unindexed():
			if source.Spends, err = n.Source(ctx, outpoint); err != nil {
				return false, err
			}
		}
		if len(source.Raw) == 0 && len(source.Spends) == 0 {
			continue
		}
		st, err := n.Client.Status(ctx, source)
		if err != nil {
			return false, err
		}
		if len(st) != 1 || st[0].State != chain.Conflicted || !n.final(j, &st[0]) {
			continue
		}
		tip, err := n.Client.Tip(ctx)
		if err == nil {
			by := &attempt{tx: source.Tx, st: st[0]}
			if err = n.branch(ctx, tip.Head, []*attempt{by}, nil); err == nil {
				err = by.left
			}
		}
		return err == nil, err
	}
	return false, nil
}
