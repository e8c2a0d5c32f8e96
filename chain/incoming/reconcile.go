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
	// reachBack is how many blocks a round searches for the transactions of what it found. Where
	// some is left over then, it searches twice as many before them, and so on, back to the last
	// round.
	reachBack = 120
	// maxReaches is how often the node is asked for that: for millions of blocks where few of them
	// moved coins.
	maxReaches = 16
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
	// near says that the node failed when the last round searched below reachBack: the next one
	// does not insist on that.
	near bool
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
	since int64                             // the height of the last round that is stored; else of the oldest block of the trail
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
	r.since = since
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
	out, err := r.received(ctx, lacking)
	if err != nil {
		return nil, err
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

// received asks the node for the transfers that are lacking, and takes them off the rests: those
// in the newest blocks first, then in older ones, back to the last round. It ends where nothing
// is lacking any more, and where the node has no state.
func (r *reckoning) received(ctx context.Context, lacking map[chain.Address]*book) (out []chain.Transfer, err error) {
	read, low := r.reader()
	to, span, grows := r.at, int64(reachBack), true
	for range maxReaches {
		var list []chain.Address
		for a, b := range lacking {
			if !b.rest.LessThan(r.gas.Dust) {
				list = append(list, a)
			}
		}
		if len(list) == 0 || to.Height <= low || span == 0 {
			break
		}
		slices.Sort(list)
		from, named, err := r.receivedAfter(ctx, list, max(low, to.Height-span), to, read)
		switch far := to.Hash != r.at.Hash; {
		case errors.Is(err, chain.ErrNoState):
			span, grows = min(span, to.Height-low)/2, false
			continue
		case err != nil && far && ctx.Err() == nil && r.n.round.near:
			return out, nil
		case err != nil:
			r.n.round.near = far
			return nil, err
		}
		for _, t := range named {
			b := lacking[t.To]
			if b == nil || t.Block.Height <= b.base.Height {
				continue
			}
			b.rest = b.rest.Sub(t.Amount)
			out = append(out, t)
		}
		if to = from; grows {
			span *= 2
		}
	}
	return out, nil
}

// reader reads blocks by height, and returns the height down to which it can: that of the last
// round. Blocks that the trail has are not asked for.
func (r *reckoning) reader() (read func(ctx context.Context, height int64) (chain.Block, error), low int64) {
	oldest := r.trail[0].Height
	low = min(r.since, max(oldest, r.at.Height-reachBack))
	loc, ok := r.n.cfg.Client.(chain.Locator)
	if !ok {
		low = max(low, oldest)
	}
	asked := map[int64]chain.Block{}
	return func(ctx context.Context, height int64) (b chain.Block, err error) {
		b, known := chain.AtHeight(r.trail, height)
		if !known {
			b, known = asked[height]
		}
		if !known && loc != nil {
			if b, err = loc.BlockAt(ctx, height); err == nil {
				asked[height] = b
			}
		}
		return b, err
	}, low
}

// receivedAfter asks the node for transfers to these addresses after the block at a height, up to
// and with block to. They are not stored yet.
func (r *reckoning) receivedAfter(
	ctx context.Context, list []chain.Address, height int64, to chain.Block, read func(context.Context, int64) (chain.Block, error),
) (from chain.Block, named []chain.Transfer, err error) {
	if from, err = read(ctx, height); err != nil {
		return from, nil, err
	}
	if named, err = r.rec.Received(ctx, list, from, to); err != nil {
		return from, nil, err
	}
	for i := range named {
		t := &named[i]
		wrong := !validTransfer(t) || t.Currency != r.gas.Code || t.Block.Height <= from.Height || t.Block.Height > to.Height
		if !wrong {
			b, err := read(ctx, t.Block.Height)
			if err != nil {
				return from, nil, err
			}
			wrong = b.Hash != t.Block.Hash
		}
		if wrong {
			return from, nil, r.n.nodeErr("it named a transfer that is not in the blocks that were read: %.80q at %d", t.Tx, t.Block.Height)
		}
	}
	named, err = r.n.unknown(ctx, named)
	return from, named, err
}
