package incoming

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// A round compares what every watched address holds of the native coin with what is
// stored of it: transfers in, less what our own transactions paid. What is left over
// came by a way that no scan showed: by a contract's inner call to an address whose
// balance is not compared at each block, or at a block whose state the node no longer
// had.
//
// A round is one read of balances at the head that was scanned. Only addresses whose
// balance differs from the last round's are looked up in the store.

const (
	// roundBlocks is the number of blocks after which a round is due before RoundEvery is
	// over. Nodes keep the state of 128 blocks, by which the transaction of a transfer is
	// found.
	roundBlocks = 64
	// reachBack is how many blocks a round searches for the transactions of what it found.
	reachBack = 120
	// refreshRounds is the number of rounds after which addresses whose watch has ended
	// are left out.
	refreshRounds = 24
	// roundRead is how many addresses are read at once.
	roundRead = 10_000
)

// errMoved: another process read on, and the round is done at a later block.
var errMoved = errors.New("the chain was read on meanwhile")

// round is the last one of this process.
type round struct {
	at    chain.Block
	when  time.Time
	tried time.Time // when one failed or ended
	count int
	// settled is what addresses held when all of it was explained, where it was not dust.
	settled map[chain.Address]decimal.Decimal
}

// reconcile does a round where one is due. found counts the Sightings that changed.
func (n *Network) reconcile(ctx context.Context) (found int, err error) {
	rec, ok := n.cfg.Client.(chain.Reconciler)
	if !ok || n.unable {
		return 0, nil
	}
	gas, err := n.cfg.Registry.Gas(n.name)
	if err != nil {
		return 0, err
	}
	cur, version, err := n.cursor(ctx)
	if err != nil || version == 0 || cur.Halted != "" {
		return 0, err
	}
	trail, err := n.blocks(cur.Trail)
	if err != nil || !n.due(last(trail), trail) {
		return 0, err
	}
	r := &reckoning{n: n, rec: rec, gas: gas, at: last(trail), trail: trail, held: map[chain.Address]decimal.Decimal{}}
	switch found, err = r.run(ctx); {
	case errors.Is(err, errMoved):
		return found, nil
	case errors.Is(err, errors.ErrUnsupported):
		n.round.at, n.round.when, n.round.tried = r.at, n.cfg.Now(), n.cfg.Now()
		n.compared(n.cfg.Now())
		n.round.count++
		return found, nil
	case ctx.Err() != nil:
		return found, ctx.Err()
	case err != nil: // the next round finds what this one has not
		n.round.tried = n.cfg.Now()
		n.log.Warn("balances_not_compared", slog.Int64("height", r.at.Height), slog.Any("error", err))
	}
	return found, nil
}

// due reports whether the time or the blocks of a round are over, and forgets the last
// round where the chain has forked since. However fast the blocks come and the branches
// change, rounds are a fifth of RoundEvery apart.
func (n *Network) due(at chain.Block, trail []chain.Block) bool {
	l := &n.round
	read, known := chain.AtHeight(trail, l.at.Height)
	if l.at.Hash != "" && (l.at.Height > at.Height || known && read.Hash != l.at.Hash) {
		*l = round{tried: l.tried, count: l.count}
	}
	now := n.cfg.Now()
	if l.at.Hash == at.Hash || now.Before(l.tried.Add(n.cfg.RoundEvery/5)) {
		return false
	}
	return l.at.Hash == "" || at.Height-l.at.Height >= roundBlocks || !now.Before(l.when.Add(n.cfg.RoundEvery))
}

// reckoning is one round.
type reckoning struct {
	n     *Network
	rec   chain.Reconciler
	gas   *chain.Currency
	at    chain.Block
	trail []chain.Block
	held  map[chain.Address]decimal.Decimal // of those to look up
}

// run does the round, and keeps what it learned where it came to its end.
func (r *reckoning) run(ctx context.Context) (found int, err error) {
	n := r.n
	if able, err := r.able(ctx); err != nil || !able {
		return 0, err
	}
	if err := n.cfg.Watched.Sync(ctx); err != nil {
		return 0, err
	}
	if n.round.count%refreshRounds == 0 {
		if err := n.cfg.Watched.dropEnded(ctx, r.at.Time); err != nil {
			return 0, err
		}
	}
	settled, err := r.read(ctx)
	if err != nil {
		return 0, err
	}
	for part := range slices.Chunk(slices.Sorted(maps.Keys(r.held)), settleChunk) {
		got, err := r.part(ctx, part)
		if found += got; err != nil {
			return found, err
		}
	}
	for a, amount := range r.held {
		if !amount.LessThan(r.gas.Dust) {
			settled[a] = amount
		}
	}
	if err := r.done(ctx); err != nil {
		return found, err
	}
	now := n.cfg.Now()
	n.round = round{at: r.at, when: now, tried: now, count: n.round.count + 1, settled: settled}
	return found, nil
}

// able asks once whether the client compares balances at all: it may have the methods
// only because another client has them, which it passes calls on to.
func (r *reckoning) able(ctx context.Context) (bool, error) {
	n := r.n
	if n.able {
		return true, nil
	}
	_, err := r.rec.Holdings(ctx, r.at, nil)
	if n.unable = errors.Is(err, errors.ErrUnsupported); n.unable {
		return false, nil
	}
	n.able = err == nil
	return n.able, err
}

// read reads what all addresses hold, and picks those to look up: what they hold is
// neither dust nor what it was, or a transaction of theirs or to them came since.
func (r *reckoning) read(ctx context.Context) (settled map[chain.Address]decimal.Decimal, err error) {
	moved, err := r.moved(ctx)
	if err != nil {
		return nil, err
	}
	settled = map[chain.Address]decimal.Decimal{}
	for part := range slices.Chunk(r.n.cfg.Watched.addresses(), roundRead) {
		amounts, err := r.rec.Holdings(ctx, r.at, part)
		if err != nil {
			return nil, err
		}
		if len(amounts) != len(part) {
			return nil, r.n.nodeErr("it told what %d of %d addresses hold", len(amounts), len(part))
		}
		for i, a := range part {
			was, known := r.n.round.settled[a]
			switch same := known && was.Equal(amounts[i]); {
			case moved[a], !same && !amounts[i].LessThan(r.gas.Dust):
				r.held[a] = amounts[i]
			case same:
				settled[a] = was
			}
		}
	}
	return settled, nil
}

// moved lists the addresses with a transfer to or from them since the last round that is
// stored; where none is, in the blocks that are remembered. What came unseen to one that
// then sent everything away is found by what it sent.
func (r *reckoning) moved(ctx context.Context) (map[chain.Address]bool, error) {
	out := map[chain.Address]bool{}
	stored, err := r.n.kept(ctx, roundID)
	if err != nil {
		return nil, err
	}
	since := r.trail[0].Height
	if last := stored[roundID]; last.known {
		since = last.Height
	}
	rows, err := r.n.find(ctx,
		storage.Cond{Column: "state", Op: storage.In, Value: []State{Included, Final}},
		anyForward,
		storage.Cond{Column: "final_at", Op: storage.Gt, Value: since},
		storage.Cond{Column: "height", Op: storage.Gt, Value: since})
	for _, row := range rows {
		s := Sightings.Value(row)
		if from := chain.Address(s.From); s.Internal && r.n.cfg.Watched.Contains(from) {
			out[from] = true
		}
		out[chain.Address(s.Address)] = true
	}
	return out, err
}

// part books what some addresses hold beyond what is explained, in one Change.
func (r *reckoning) part(ctx context.Context, list []chain.Address) (found int, err error) {
	n := r.n
	err = storage.Decide(ctx, n.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		found = 0
		cur, version, err := n.cursor(ctx)
		if err != nil {
			return storage.Change{}, err
		}
		if cur.Halted != "" || !cur.Trail.Ends(r.at.Hash) {
			return storage.Change{}, errMoved
		}
		books, err := r.books(ctx, list)
		if err != nil {
			return storage.Change{}, err
		}
		transfers, err := r.explain(ctx, books)
		if err != nil {
			return storage.Change{}, err
		}
		rows, err := n.merge(ctx, transfers, fromHistory)
		if err != nil {
			return storage.Change{}, err
		}
		found = len(rows)
		for _, b := range books {
			if b.keep && (b.base.version == 0 || !b.next.Amount.Equal(b.base.Amount)) {
				rows = append(rows, r.replace(string(b.address), b.base, b.next)...)
			}
		}
		if len(rows) == 0 {
			return storage.Change{}, nil
		}
		// The cursor is written, not only guarded: of two processes that find the same,
		// the second must look at the books again.
		return n.telling(n.change("round", nil, append(rows, Cursors.Row(CursorID, version, time.Time{}, cur))...))
	})
	return found, err
}

// explain finds the transfers that the books lack: those that the node can name, and
// for what is left one Unproven transfer in the head.
func (r *reckoning) explain(ctx context.Context, books []*book) ([]chain.Transfer, error) {
	lacking := map[chain.Address]*book{}
	for _, b := range books {
		if !b.rest.LessThan(r.gas.Dust) {
			lacking[b.address] = b
		}
	}
	if len(lacking) == 0 {
		return nil, nil
	}
	list := slices.Sorted(maps.Keys(lacking))
	named, err := r.received(ctx, list)
	if err != nil {
		return nil, err
	}
	if named, err = r.n.unknown(ctx, named); err != nil {
		return nil, err
	}
	var out []chain.Transfer
	for _, t := range named {
		b := lacking[t.To]
		if b == nil || t.Block.Height <= b.base.Height {
			continue
		}
		b.rest = b.rest.Sub(t.Amount)
		out = append(out, t)
	}
	for _, a := range list {
		b := lacking[a]
		if b.rest.Neg().GreaterThan(r.gas.Dust) {
			return nil, r.n.nodeErr("it names more transfers to %s than it holds", a)
		}
		if b.rest.LessThan(r.gas.Dust) {
			continue
		}
		r.n.log.Warn("native_coins_unproven", slog.String("address", string(a)), slog.String("currency", r.gas.Code),
			slog.String("amount", b.rest.String()), slog.Int64("height", r.at.Height))
		out = append(out, chain.Transfer{
			Tx: holdingTx + r.at.Hash + "/" + strings.ToLower(string(a)), Ordinal: -2, Block: r.at, To: a,
			Currency: r.gas.Code, Amount: b.rest, Unproven: true,
		})
	}
	return out, nil
}

// received asks the node for transfers to these addresses, as far back as it has state.
func (r *reckoning) received(ctx context.Context, list []chain.Address) ([]chain.Transfer, error) {
	for back := reachBack; back > 0; back /= 2 {
		i := len(r.trail) - 1 - back
		if i < 0 {
			continue
		}
		got, err := r.rec.Received(ctx, list, r.trail[i], r.at)
		if errors.Is(err, chain.ErrNoState) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for j := range got {
			t := &got[j]
			k := len(r.trail) - 1 - int(r.at.Height-t.Block.Height)
			if !validTransfer(t) || t.Currency != r.gas.Code || k <= i || k >= len(r.trail) || r.trail[k].Hash != t.Block.Hash {
				return nil, r.n.nodeErr("it named a transfer that is not in the blocks that were read: %.80q at %d", t.Tx, t.Block.Height)
			}
		}
		return got, nil
	}
	return nil, nil
}
