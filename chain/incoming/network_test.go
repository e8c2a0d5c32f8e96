package incoming_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

var background = context.Background()

// unrecorded is the record of a call that a test makes.
func unrecorded(any, any) ([]storage.Row, []storage.Event, error) { return nil, nil, nil }

func TestStep_SeenIncludedFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 1)
	w.step()
	a := w.address()
	tx := w.pay(a, "ETH", "1.500000000000000001")
	seen := w.clock.Now().Add(time.Second)
	w.step()
	s := w.one(tx)
	require.Equal(t, incoming.Seen, s.State)
	require.Equal(t, seen, s.FirstSeen)
	require.Zero(t, s.Height)

	for i := int64(1); i <= confs; i++ {
		w.mine(1)
		w.step()
		s = w.one(tx)
		require.Equal(t, i, s.Confirmations(w.chain.Height()))
		require.Equal(t, i == confs, s.State == incoming.Final, "at %d confirmations", i)
	}
	require.Equal(t, incoming.Sighting{
		Network: "ETH", Tx: tx, Ordinal: -1, Generation: 1, State: incoming.Final, Address: string(a), Tenant: shop,
		Purpose: incoming.UsePayment, From: s.From, Currency: "ETH", Exact: dec("1.500000000000000001"), Amount: 150000000,
		Height: s.Height, BlockHash: s.BlockHash, BlockTime: s.BlockTime, FinalAt: s.Height + confs - 1, FirstSeen: seen, Spends: s.Spends,
	}, normal(s))
	require.Len(t, s.Spends, 1)
	require.Equal(t, map[string]ledger.Amount{s.Generated(): 150000000}, w.books)
	// Told three times: seen, included, final. Nothing is due any more.
	require.Len(t, w.facts, 3)
	w.clock.Advance(time.Hour)
	w.step()
	require.Len(t, w.facts, 3)
}

func normal(s incoming.Sighting) incoming.Sighting {
	s.Exact = dec(s.Exact.String())
	return s
}

func TestStep_CatchesUpAfterDowntime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 2)
	w.step()
	var txs []string
	for range 20 {
		txs = append(txs, w.pay(w.address(), "ETH", "1"))
		w.mine(2)
	}
	w.step()
	for i, tx := range txs {
		s := w.one(tx)
		require.Equal(t, int64(2+2*i), s.Height)
		require.Equal(t, s.BlockTime, s.FirstSeen, "what is read late was first seen in its block")
		require.Equal(t, s.FinalAt <= w.chain.Height(), s.State == incoming.Final)
	}
	w.requireBooks()
	st, err := w.net.Status(background)
	require.NoError(t, err)
	require.Equal(t, w.clock.Now(), st.TipRead)
	require.Equal(t, w.truth(), w.summary(w.store))
	require.Len(t, st.Usage, 1)
	require.Positive(t, st.Usage[0].Total)
	require.Equal(t, incoming.Status{Network: eth, Head: 41, HeadTime: w.chain.Head().Time, Final: 0, Tip: 41, TipSince: st.TipSince, TipRead: st.TipRead, Usage: st.Usage}, st)
}

func TestStep_StartsAtTheHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 3)
	old := w.pay(w.address(), "ETH", "1")
	w.mine(30)
	w.step()
	require.Empty(t, w.sightings(w.store), "what was before the start is no deposit")
	require.Equal(t, w.chain.Height(), w.cursor(w.store).Head)
	// It is found on demand.
	s, err := w.net.Recover(background, w.addressOf(old), 1, 0, unrecorded)
	require.NoError(t, err)
	require.Equal(t, 1, s)
	s, err = w.net.Recover(background, w.addressOf(old), 1, 0, unrecorded)
	require.NoError(t, err)
	require.Zero(t, s, "found twice")
	w.step()
	require.Equal(t, incoming.Final, w.one(old).State)
	w.requireBooks()
	_, err = w.net.Recover(background, w.chain.Customer("stranger"), 1, 0, unrecorded)
	require.ErrorIs(t, err, incoming.ErrNotOurs)
}

// addressOf is where a tx paid to.
func (w *world) addressOf(tx string) chain.Address {
	for _, x := range w.chain.Transfers("") {
		if x.Tx == tx {
			return x.To
		}
	}
	require.Fail(w.t, "no such transfer")
	return ""
}

func TestRetire_LeavesTheRestToRecover(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 36)
	w.step()
	a := w.address()
	until := w.clock.Now().Add(20 * time.Second)
	for range 2 {
		require.NoError(t, w.pool.Retire(background, eth, a, until))
	}
	require.ErrorIs(t, w.pool.Retire(background, eth, "nobody", until), incoming.ErrNotOurs)
	tx := w.pay(a, "ETH", "1")
	w.mine(1)
	w.step()
	require.Equal(t, incoming.Included, w.one(tx).State)
	late := w.pay(a, "ETH", "2")
	w.mine(2)
	w.step()
	require.Len(t, w.sightings(w.store), 1)
	found, err := w.net.Recover(background, a, 1, 0, unrecorded)
	require.NoError(t, err)
	require.Equal(t, 1, found)
	require.Equal(t, incoming.Included, w.one(late).State)
}

func TestD01_RevertedIsNoDeposit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 4)
	w.step()
	for _, e := range []sim.Effect{sim.Reverted, sim.InnerReverted, sim.ReturnsFalse} {
		w.send(sim.Tx{Payments: []sim.Payment{{To: w.address(), Currency: "USDT", Amount: dec("5"), Effect: e}}})
	}
	good := w.send(sim.Tx{Payments: []sim.Payment{{To: w.address(), Currency: "ETH", Amount: dec("5"), Effect: sim.Internal}}})
	w.step() // some of them are promised in the mempool
	w.mine(confs)
	w.step()
	for _, s := range w.sightings(w.store) {
		require.Equal(t, s.Tx == good, s.State == incoming.Final, s.Tx)
		require.True(t, s.Tx == good || s.State == incoming.Gone)
	}
	require.Len(t, w.books, 1)
	require.Equal(t, w.truth(), w.summary(w.store))

	// A node without traces only sees that a balance grew: not proven.
	open := w.address()
	w.net.SetOpen(func(context.Context) []chain.Address { return []chain.Address{open} })
	w.chain.Front().Traces(false)
	w.send(sim.Tx{Payments: []sim.Payment{{To: open, Currency: "ETH", Amount: dec("7"), Effect: sim.Internal}}})
	w.mine(1)
	w.step()
	var got []incoming.Sighting
	for _, s := range w.sightings(w.store) {
		if s.Address == string(open) {
			got = append(got, s)
		}
	}
	require.Len(t, got, 1)
	require.True(t, got[0].Unproven)
}

func TestD03_LookAlikeIsUnlisted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 5)
	w.step()
	fake := w.chain.LookAlike("USDT")
	tx := w.send(sim.Tx{Payments: []sim.Payment{{To: w.address(), Contract: fake, Amount: dec("1000")}}})
	w.step()
	require.Empty(t, w.sightings(w.store), "not before it is mined")
	w.mine(confs)
	w.step()
	s := w.one(tx)
	require.Empty(t, s.Currency)
	require.Equal(t, fake, s.Contract)
	require.Zero(t, s.Amount)
}

func TestD04_ZeroAndDust(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 6)
	w.step()
	a := w.address()
	w.pay(a, "ETH", "0")
	dust := w.pay(a, "ETH", "0.00009999")
	enough := w.pay(a, "ETH", "0.0001")
	w.mine(confs)
	w.step()
	require.Len(t, w.sightings(w.store), 2, "zero is not even recorded")
	require.Equal(t, incoming.Final, w.one(dust).State, "dust is recorded")
	for _, f := range w.facts {
		require.Equal(t, enough, f.Sighting.Tx, "dust is told to nobody")
	}
	require.NotEmpty(t, w.facts)
}

func TestD05_CreditsWhatArrived(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 7)
	w.chain.SetBehaviour("usdt", sim.Behaviour{FeeBasisPoints: 100})
	w.step()
	tx := w.pay(w.address(), "USDT", "200")
	w.step()
	require.EqualValues(t, 200_000_000, w.one(tx).Amount, "what is promised")
	w.mine(2)
	w.step()
	require.EqualValues(t, 198_000_000, w.one(tx).Amount, "what arrived")
	require.Equal(t, map[string]ledger.Amount{"ETH/" + incoming.Key(tx, 0) + "/1": 198_000_000}, w.books)
}

func TestD07_LaggingNodeMovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 8)
	w.step()
	w.mine(4)
	w.step()
	front := w.chain.Front()
	for _, c := range []struct {
		name  string
		fault func()
	}{
		{"behind", func() { front.Lag(2) }},
		{"tip too high", func() { front.LieTip(5) }},
		{"tip too low", func() { front.LieTip(-3) }},
		{"blocks without txs", func() { front.Partial(true) }},
		{"final above its head", func() { front.LieFinal(1000) }},
		{"fails", func() { front.FailNext(100, nil) }},
	} {
		tx := w.pay(w.address(), "ETH", "1")
		w.mine(1)
		before := w.cursor(w.store)
		c.fault()
		_, err := w.net.Step(background)
		require.Error(t, err, c.name)
		after := w.cursor(w.store)
		require.Equal(t, before.TipRead, after.TipRead, c.name)
		if after.Head > before.Head { // the block is there, and so is what it held
			require.Equal(t, incoming.Included, w.one(tx).State, c.name)
		}
		st, err := w.net.Status(background)
		require.NoError(t, err)
		require.NotEmpty(t, st.Stuck, c.name)
		front.Honest()
		w.step()
		require.NotZero(t, w.one(tx).Height, c.name)
		st, err = w.net.Status(background)
		require.NoError(t, err)
		require.Empty(t, st.Stuck)
	}
	require.Equal(t, w.truth(), w.summary(w.store))
}

// mangled is a client whose answers a test changes.
type mangled struct {
	chain.Client
	chain.Locator
	change func(s *chain.Scan)
	tip    func(t *chain.Tip)
}

func (m *mangled) Tip(ctx context.Context) (chain.Tip, error) {
	t, err := m.Client.Tip(ctx)
	if err == nil && m.tip != nil {
		m.tip(&t)
	}
	return t, err
}

func (m *mangled) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	s, err := m.Client.Scan(ctx, trail, w, limit)
	if err == nil && m.change != nil {
		m.change(&s)
	}
	return s, err
}

func (w *world) mangled() *mangled {
	c := w.chain.Client()
	return &mangled{Client: c, Locator: c.(chain.Locator)}
}

func TestD07_AnswersThatDoNotFitMoveNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 9)
	m := w.mangled()
	w.net = w.network(w.store, m)
	w.step()
	w.mine(5)
	w.step()
	tx := w.pay(w.address(), "ETH", "1")
	w.mine(3)
	before := w.cursor(w.store)
	for name, change := range map[string]func(s *chain.Scan){
		"nothing though the head is higher": func(s *chain.Scan) { s.Blocks = nil },
		"a gap":                             func(s *chain.Scan) { s.Blocks = s.Blocks[1:] },
		"a gap inside":                      func(s *chain.Scan) { s.Blocks = append(s.Blocks[:1:1], s.Blocks[2:]...) },
		"the wrong way":                     func(s *chain.Scan) { s.Blocks[0], s.Blocks[1] = s.Blocks[1], s.Blocks[0] },
		"no hash":                           func(s *chain.Scan) { s.Blocks[2].Hash = "" },
		"a height twice":                    func(s *chain.Scan) { s.Blocks[1].Height-- },
		"too many":                          func(s *chain.Scan) { s.Blocks = append(s.Blocks, s.Blocks...) },
		"rewound below nothing":             func(s *chain.Scan) { s.Rewound = -1 },
		"rewound everything":                func(s *chain.Scan) { s.Rewound = 1000 },
		"rewound without a branch":          func(s *chain.Scan) { s.Rewound, s.Blocks = 1, nil },
		"rewound, but it does not fit":      func(s *chain.Scan) { s.Rewound = 1 },
		"another block's transfer":          func(s *chain.Scan) { s.Blocks[0].Transfers[0].Block.Hash = "x" },
		"no tx":                             func(s *chain.Scan) { s.Blocks[0].Transfers[0].Tx = "" },
		"a tx no store can keep":            func(s *chain.Scan) { s.Blocks[0].Transfers[0].Tx = "a\x00" },
	} {
		m.change = change
		worked, err := w.net.Step(background)
		require.Error(t, err, name)
		require.True(t, errors.Is(err, chain.ErrNode) || errors.Is(err, chain.ErrBehind), "%s: %v", name, err)
		require.Zero(t, worked, name)
		require.Equal(t, before, w.cursor(w.store), name)
		require.Empty(t, w.sightings(w.store), name)
	}
	m.change = nil
	w.step()
	require.Equal(t, incoming.Included, w.one(tx).State)
}

// TestD07_NoTextOfATokenStopsTheNetwork: a node names contracts of tokens as it likes, longer
// than any store keeps in an index, and in bytes that become longer as text. The transfers are
// recorded, and the network goes on.
func TestD07_NoTextOfATokenStopsTheNetwork(t *testing.T) {
	t.Parallel()
	for name, contract := range map[string]string{
		"long": strings.Repeat("c", 600), "just above an index": strings.Repeat("c", 505),
		"no text": strings.Repeat("c\xff", 250), "cut within a character": "c" + strings.Repeat("ß", 300),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, eth, 9)
			m := w.mangled()
			w.net = w.network(w.store, m)
			w.step()
			m.change = func(s *chain.Scan) {
				for i := range s.Blocks {
					for k := range s.Blocks[i].Transfers {
						x := &s.Blocks[i].Transfers[k]
						x.Currency, x.Contract, x.Memo, x.From = "", contract, contract, chain.Address(contract)
					}
				}
			}
			tx := w.pay(w.address(), "ETH", "1")
			w.mine(1)
			w.step()
			s := w.one(tx)
			require.Equal(t, incoming.Included, s.State)
			require.LessOrEqual(t, len(s.Contract), 500)
			require.True(t, utf8.ValidString(s.Contract))
		})
	}
}

func TestD08_TwoReadersOneCredit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 10)
	w.step()
	other := w.network(w.store, w.chain.NewNode().Client())
	var txs []string
	for i := range 12 {
		txs = append(txs, w.pay(w.address(), "ETH", "1"))
		w.mine(1)
		done := make(chan error)
		go func() {
			_, err := other.Step(background)
			done <- err
		}()
		_, err := w.net.Step(background)
		require.NoError(t, err)
		require.NoError(t, <-done)
		if i == 6 { // and a third, which starts over
			w.stepOf(w.network(w.store, w.chain.Client()))
		}
	}
	w.mine(confs)
	w.step()
	told := len(w.facts)
	for _, tx := range txs { // and all of it once more, by another way
		require.Equal(t, incoming.Final, w.one(tx).State)
		found, err := w.net.Recover(background, w.addressOf(tx), 1, 0, unrecorded)
		require.NoError(t, err)
		require.Zero(t, found)
	}
	w.step()
	require.Len(t, w.facts, told)
	require.Len(t, w.books, 12)
	w.requireBooks()
	require.Equal(t, w.truth(), w.summary(w.store))
}

func TestD09_EachOutputIsOne(t *testing.T) {
	t.Parallel()
	for _, name := range []chain.Network{eth, btc} {
		w := newWorld(t, name, 11)
		w.step()
		a, b := w.address(), w.address()
		tx := w.send(sim.Tx{Payments: []sim.Payment{
			{To: a, Amount: dec("1")}, {To: b, Amount: dec("2")}, {To: a, Amount: dec("1")}, {To: w.chain.Customer("else"), Amount: dec("9")},
		}})
		w.step()
		w.mine(confs)
		w.step()
		sum, ordinals := map[string]ledger.Amount{}, map[int]bool{}
		for _, s := range w.sightings(w.store) {
			require.Equal(t, tx, s.Tx)
			require.Equal(t, incoming.Final, s.State)
			sum[s.Address] += s.Amount
			ordinals[s.Ordinal] = true
		}
		require.Len(t, ordinals, 3)
		require.Equal(t, map[string]ledger.Amount{string(a): 200000000, string(b): 200000000}, sum)
		require.Len(t, w.books, 3)
	}
}

func TestD16_NobodyElseMakesAProof(t *testing.T) {
	t.Parallel()
	// A Proof has no exported field and no constructor: all that another
	// package can write is the zero one, and that proves nothing.
	require.False(t, incoming.Proof{}.Valid())
	require.Equal(t, incoming.Sighting{}, incoming.Proof{}.Sighting())

	w := newWorld(t, eth, 12)
	w.step()
	tx := w.pay(w.address(), "ETH", "1")
	for range confs + 2 {
		w.mine(1)
		w.step()
	}
	require.Len(t, w.books, 1)
	_, err := w.chain.Reorg(confs+2, tx)
	require.NoError(t, err)
	// It is gone, which is told late: what once was final proves nothing.
	w.stepOf(w.network(w.store, w.chain.Client(), func(c *incoming.Config, _ *sim.Options) { c.Handle = nil }))
	w.step()
	for _, f := range w.facts {
		require.Equal(t, f.Sighting.State == incoming.Final, f.Final.Valid())
		require.True(t, !f.Final.Valid() || f.Head-f.Sighting.Height+1 >= confs)
	}
	require.Equal(t, incoming.Gone, w.facts[len(w.facts)-1].Sighting.State)
	require.Empty(t, w.books)
}

func TestD18_StuckHeadStopsCredits(t *testing.T) {
	t.Parallel()
	aged := func(c *incoming.Config, _ *sim.Options) { c.HeadAge = time.Minute }
	w := newWorld(t, eth, 13, aged)
	w.step()
	tx := w.pay(w.address(), "ETH", "1")
	w.mine(confs - 1)
	w.step()
	read := w.cursor(w.store).TipRead
	w.chain.Mine(1)
	w.clock.Advance(2 * time.Minute) // the head is too old when it is read
	_, err := w.net.Step(background)
	require.ErrorIs(t, err, incoming.ErrStuck)
	require.Equal(t, incoming.Included, w.one(tx).State, "final though the head is stuck")
	require.Equal(t, read, w.cursor(w.store).TipRead, "an expiry could be decided")
	require.Empty(t, w.books)
	w.mine(1)
	w.step()
	require.Equal(t, incoming.Final, w.one(tx).State)

	w.chain.Front().WrongChain(true)
	_, err = w.net.Step(background)
	require.ErrorIs(t, err, chain.ErrWrongNet)
}

func TestD19_HugeAndLying(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 14)
	m := w.mangled()
	w.net = w.network(w.store, m)
	w.step()
	a := w.address()
	for written, want := range map[string]ledger.Amount{
		"115792089237316195423570985008687907853269984665640564039457.584007913129639935": -1, // 2^256−1
		"46116860184.27387905":      -1, // 2^62 + 1 units
		"46116860184.27387904":      1 << 62,
		"1.0000000000000000001":     -1, // finer than the token can be
		"0.000000001":               0,  // less than a unit
		"1e1000000":                 -1,
		"1e-1000000":                -1,
		"12345678901234567890.1e-3": -1,
	} {
		amount := exact(written)
		tx := w.pay(a, "BIG", "1")
		m.change = func(s *chain.Scan) {
			for i := range s.Blocks {
				for k := range s.Blocks[i].Transfers {
					s.Blocks[i].Transfers[k].Amount = amount
					s.Blocks[i].Transfers[k].Memo = "bad \x00 \xff"
				}
			}
		}
		w.mine(1)
		w.step()
		s := w.one(tx)
		require.Equal(t, want, s.Amount, written)
		require.Less(t, len(s.Exact.String()), 200)
		require.Equal(t, "bad \uFFFD \uFFFD", s.Memo)
	}
}

// exact also knows numbers that nobody should have to write out.
func exact(s string) decimal.Decimal {
	if digits, exp, ok := strings.Cut(s, "e"); ok {
		n, _ := strconv.Atoi(exp)
		return dec(digits).Shift(int32(n))
	}
	return dec(s)
}

func TestD19_FloodIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 15, func(c *incoming.Config, _ *sim.Options) { c.MaxUnlisted, c.MaxRows, c.Batch = 5, 50, 16 })
	m := w.mangled()
	w.net = w.network(w.store, m, func(c *incoming.Config, _ *sim.Options) { c.MaxUnlisted, c.MaxRows, c.Batch = 5, 50, 16 })
	w.step()
	a := w.address()
	m.change = func(s *chain.Scan) {
		for i := range s.Blocks {
			b := &s.Blocks[i]
			for k := range 3000 {
				x := chain.Transfer{Tx: b.Hash + "d", Ordinal: k, To: a, Currency: "ETH", Amount: dec("0.00000001")}
				if k%2 == 0 {
					x.Currency, x.Contract = "", "junk"
				}
				b.Transfers = append(b.Transfers, x)
			}
		}
	}
	w.mine(4)
	w.step()
	unlisted, dust := 0, 0
	for _, s := range w.sightings(w.store) {
		if s.Currency == "" {
			unlisted++
		} else {
			dust++
		}
	}
	require.Equal(t, 4*5, unlisted)
	require.Equal(t, 4*1500, dust)
	for _, f := range w.facts {
		require.Empty(t, f.Sighting.Currency, "dust is told to nobody")
	}
	require.LessOrEqual(t, len(w.facts), 2*unlisted)
}

// largest is a store that notes how many rows a Change that moves the cursor puts at most.
type largest struct {
	storage.Store
	put int
}

func (l *largest) Commit(ctx context.Context, changes ...storage.Change) []error {
	for _, c := range changes {
		if slices.ContainsFunc(c.Put, func(r storage.Row) bool { return r.Table == incoming.Cursors.Table }) {
			l.put = max(l.put, len(c.Put)-1)
		}
	}
	return l.Store.Commit(ctx, changes...)
}

// After downtime many full blocks are read at once. One Change holds those of a page until
// they are enough: a database takes no Change of any size.
func TestD19_ManyFullBlocksAreManyChanges(t *testing.T) {
	t.Parallel()
	few := func(c *incoming.Config, _ *sim.Options) { c.MaxBlocks, c.MaxRows = 10, 50 }
	w := newWorld(t, eth, 18, few)
	store := &largest{Store: w.store}
	w.net = w.network(store, w.chain.Client(), few)
	w.step()
	a := w.address()
	for range 10 {
		for range 20 {
			w.pay(a, "ETH", "0.001")
		}
		w.mine(1)
	}
	w.step()
	require.Len(t, w.sightings(w.store), 200)
	require.LessOrEqual(t, store.put, 50+20)
}

// TestFN04_WhatStrangersPayToOddAddressesStopsNothing: a client may report more than is
// ours, in whatever words the chain has.
func TestFN04_WhatStrangersPayToOddAddressesStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 17)
	m := w.mangled()
	w.net = w.network(strictIDs{w.store}, m)
	w.step()
	m.change = func(s *chain.Scan) {
		for i := range s.Blocks {
			b := &s.Blocks[i]
			for k, to := range []chain.Address{"", "a\x00b", "\xff\xfe", chain.Address(strings.Repeat("x", 5000))} {
				b.Transfers = append(b.Transfers, chain.Transfer{Tx: b.Hash + "o", Ordinal: k, To: to, Currency: "ETH", Amount: dec("1")})
			}
		}
	}
	tx := w.pay(w.address(), "ETH", "1")
	w.mine(2)
	w.step()
	require.Equal(t, incoming.Included, w.one(tx).State)
	require.Len(t, w.sightings(w.store), 1)
}

// strictIDs is a store that refuses to look up what no database can hold as an id.
type strictIDs struct{ storage.Store }

func (s strictIDs) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	for i := range keys {
		id := keys[i].ID
		if !utf8.ValidString(id) || strings.ContainsRune(id, 0) || len(id) > 1000 {
			return nil, fmt.Errorf("%.20q is no id", id)
		}
	}
	return s.Store.Rows(ctx, t, keys...)
}

func TestDeliver_RefusedFactsBackOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 16)
	fail := true
	calls := 0
	w.net = w.network(w.store, w.chain.Client(), func(c *incoming.Config, _ *sim.Options) {
		c.Lease = time.Minute
		c.Handle = func(ctx context.Context, f incoming.Fact) error {
			if calls++; fail {
				return errors.New("not now")
			}
			return w.handle(ctx, f)
		}
	})
	w.step()
	tx := w.pay(w.address(), "ETH", "1")
	w.mine(1)
	w.step()
	w.mine(confs - 1)
	w.step()
	require.Equal(t, incoming.Final, w.one(tx).State)
	require.Equal(t, 2, calls, "once as included, once as final: no hot loop")
	fail = false
	w.step()
	require.Empty(t, w.books, "backs off")
	w.clock.Advance(time.Minute)
	w.step()
	require.Len(t, w.books, 1)
	w.requireBooks()
}

func TestT01_ClocksThatLie(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 17)
	m := w.mangled()
	calls := 0
	w.net = w.network(w.store, m, func(c *incoming.Config, _ *sim.Options) {
		c.HeadAge = time.Hour
		c.Handle = func(context.Context, incoming.Fact) error {
			calls++
			return errors.New("not now")
		}
	})
	w.step()
	// A block from the year 9999: nobody has seen it in the future.
	m.change = func(s *chain.Scan) {
		for i := range s.Blocks {
			s.Blocks[i].Time = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
		}
	}
	tx := w.pay(w.address(), "ETH", "1")
	w.mine(1)
	w.step()
	require.False(t, w.one(tx).FirstSeen.After(w.clock.Now()))
	require.Equal(t, 1, calls)
	// A clock that stands still does not spin, one that goes back moves nothing back.
	read := w.cursor(w.store).TipRead
	for _, back := range []time.Duration{0, 24 * time.Hour} {
		w.clock.Advance(-back)
		for range 5 {
			_, err := w.net.Step(background)
			require.NoError(t, err)
		}
	}
	require.Equal(t, 1, calls)
	require.Equal(t, read, w.cursor(w.store).TipRead)
}

// A node that stands still is known by how long ago this process first saw its head.
func TestFR06_StatusSaysSinceWhenTheHeadIsTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 3)
	since := func() time.Time {
		w.step()
		st, err := w.net.Status(background)
		require.NoError(t, err)
		return st.TipSince
	}
	w.mine(2)
	began := since()
	require.Equal(t, w.clock.Now(), began)
	w.clock.Advance(time.Hour)
	require.Equal(t, began, since())
	w.mine(1)
	moved := since()
	require.Equal(t, w.clock.Now(), moved)
}
