package several_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/cardano"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/chain/several"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
	"github.com/cryptopay-go/cryptopay/chain/xrp"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// town is one network with three nodes and a client of all of them.
type town struct {
	*sim.Chain
	registry *chain.Registry
	nodes    []*sim.Node
	client   several.Client
	now      time.Time
	log      bytes.Buffer
}

func newTown(t testing.TB, network chain.Network, nodes int, change ...func(*several.Config)) *town {
	t.Helper()
	r, err := chain.NewRegistry([]chain.NetworkInfo{
		{Code: "ETH", Family: chain.AccountFamily, AddressType: "EVM", ChainID: 1, Gas: "ETH"},
		{Code: "BTC", Family: chain.UTXOFamily, Gas: "BTC"},
		{Code: "TRX", Family: chain.AccountFamily, AddressType: "TRX", Gas: "TRX"},
	}, []chain.Currency{
		{Code: "TRX", Network: "TRX", Token: "TRX", Decimals: 6, Scale: 6, Confirmations: 2},
		{Code: "ETH", Network: "ETH", Token: "ETH", Decimals: 18, Scale: 8, Confirmations: 2},
		{Code: "USDTERC20", Network: "ETH", Token: "USDT", Contract: "contractusdt", Decimals: 6, Scale: 6, Confirmations: 2},
		{Code: "BTC", Network: "BTC", Token: "BTC", Decimals: 8, Scale: 8, Confirmations: 2},
	})
	require.NoError(t, err)
	c, err := sim.New(sim.Options{Network: network, Registry: r, Seed: 1, Finality: 5})
	require.NoError(t, err)
	n := &town{Chain: c, registry: r, now: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	cfg := several.Config{Now: func() time.Time { return n.now }, Log: slog.New(slog.NewTextHandler(&n.log, nil))}
	for i := range nodes {
		node := c.NewNode()
		n.nodes = append(n.nodes, node)
		cfg.Nodes = append(cfg.Nodes, several.Node{Name: fmt.Sprint("node", i), Client: node.Client()})
	}
	for _, f := range change {
		f(&cfg)
	}
	n.client, err = several.New(cfg)
	require.NoError(t, err)
	return n
}

// each does something to a number of nodes.
func (n *town) each(count int, f func(*sim.Node)) {
	for _, node := range n.nodes[:count] {
		f(node)
	}
}

func (n *town) harness(faulty int) *chaintest.Harness {
	must := func(t testing.TB, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	return &chaintest.Harness{
		Client: n.client, Registry: n.registry, Family: n.Family(), Native: string(n.Network()),
		Finality: 5, Batch: true, Memo: true, Returns: true, Replaceable: true,
		Fund: func(t testing.TB, to chain.Address, currency string, amount decimal.Decimal) {
			_, err := n.Chain.Fund(to, currency, amount)
			must(t, err)
		},
		Pay: func(t testing.TB, payments ...chaintest.Payment) string {
			tx := sim.Tx{Memo: payments[0].Memo}
			for _, p := range payments {
				tx.Payments = append(tx.Payments, sim.Payment{To: p.To, Currency: p.Currency, Amount: p.Amount, Effect: sim.Effect(p.Effect)})
			}
			hash, err := n.Send(tx)
			must(t, err)
			return hash
		},
		Mine: func(_ testing.TB, blocks int) { n.Mine(blocks) },
		Reorg: func(t testing.TB, depth int, drop ...string) {
			_, err := n.Chain.Reorg(depth, drop...)
			must(t, err)
		},
		Lag:     func(_ testing.TB, blocks int) { n.each(faulty, func(x *sim.Node) { x.Lag(int64(blocks)) }); n.wait() },
		Partial: func(_ testing.TB, on bool) { n.each(faulty, func(x *sim.Node) { x.Partial(on) }); n.wait() },
		Fail: func(_ testing.TB, on bool) {
			n.each(len(n.nodes), func(x *sim.Node) {
				if x.FailRate(0); on {
					x.FailRate(1000)
				}
			})
			n.wait()
		},
		WrongChain: func(t testing.TB) chain.Client {
			c, err := several.New(several.Config{Now: time.Now, Nodes: []several.Node{{Name: "a", Client: n.NewNode().WrongChain(true).Client()}}})
			must(t, err)
			return c
		},
	}
}

// wait until no node is left alone.
func (n *town) wait() { n.now = n.now.Add(time.Hour) }

// TestConformance: where enough nodes fail, several are as good as one that does.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, network := range []chain.Network{"ETH", "BTC"} {
		for nodes, faulty := range map[int]int{1: 1, 3: 2} {
			t.Run(fmt.Sprintf("%s of %d", network, nodes), func(t *testing.T) {
				t.Parallel()
				n := newTown(t, network, nodes)
				chaintest.Run(t, func(*testing.T) *chaintest.Harness {
					n.wait()
					h := n.harness(faulty)
					if network == "ETH" {
						h.Token = "USDTERC20"
						h.Effects = []chaintest.Effect{chaintest.Reverted, chaintest.ReturnsFalse, chaintest.InnerReverted, chaintest.Internal}
					}
					return h
				})
			})
		}
	}
}

// paid starts a trail and mines a payment.
func (n *town) paid(t testing.TB) (trail []chain.Block, to chain.Address) {
	t.Helper()
	a, err := chaintest.Secp256k1Account(n.client, "somebody")
	require.NoError(t, err)
	s, err := n.client.Scan(t.Context(), nil, watch{}, 1)
	require.NoError(t, err)
	_, err = n.Pay(a.Address, string(n.Network()), decimal.NewFromInt(1))
	require.NoError(t, err)
	n.Mine(2)
	return []chain.Block{s.Blocks[0].Block}, a.Address
}

func transfers(s chain.Scan) (out []chain.Transfer) {
	for _, b := range s.Blocks {
		out = append(out, b.Transfers...)
	}
	return out
}

func TestR07_NodeThatLeavesMoneyOutIsOutvoted(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 3)
	trail, to := n.paid(t)
	n.nodes[0].LieEmpty(true)
	s, err := n.client.Scan(t.Context(), trail, watch{to}, 10)
	require.NoError(t, err)
	require.Len(t, transfers(s), 1, "two of three saw it")
	require.Len(t, s.Blocks, 2)
	require.Contains(t, n.log.String(), "nodes_disagree")
}

func TestR07_TwoNodesThatDisagreeAreAnError(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 2)
	trail, to := n.paid(t)
	n.nodes[1].LieEmpty(true)
	_, err := n.client.Scan(t.Context(), trail, watch{to}, 10)
	require.ErrorIs(t, err, several.ErrDisagree, "which of them is right is not guessed")
	require.ErrorIs(t, err, chain.ErrNode)
	require.ErrorContains(t, err, "node0, node1")
	_, err = n.client.History(t.Context(), to, 0, trail[0].Height+2)
	require.ErrorIs(t, err, several.ErrDisagree)
	n.nodes[1].Honest()
	s, err := n.client.Scan(t.Context(), trail, watch{to}, 10)
	require.NoError(t, err)
	require.Len(t, transfers(s), 1)
}

func TestR07_BranchOfOneNodeIsNotTold(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 3)
	trail, to := n.paid(t)
	n.nodes[0].Freeze()
	_, err := n.Reorg(2)
	require.NoError(t, err)
	n.Mine(1)
	s, err := n.client.Scan(t.Context(), trail, watch{to}, 10)
	require.NoError(t, err)
	tip, err := n.nodes[1].Client().Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, tip.Head.Hash, s.Blocks[len(s.Blocks)-1].Hash, "the branch of the other two")

	two := newTown(t, "ETH", 2)
	trail, to = two.paid(t)
	two.nodes[0].Freeze()
	_, err = two.Reorg(2)
	require.NoError(t, err)
	_, err = two.client.Scan(t.Context(), trail, watch{to}, 10)
	require.ErrorIs(t, err, several.ErrDisagree)
}

func TestR07_FinalIsWhatEnoughNodesCallSo(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 3)
	n.Mine(20)
	honest, err := n.client.Tip(t.Context())
	require.NoError(t, err)
	n.nodes[0].LieFinal(honest.Head.Height)
	got, err := n.client.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, honest.Final, got.Final, "one node's word makes nothing final")
	n.nodes[1].LieFinal(-1)
	got, err = n.client.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, honest.Final, got.Final)
	n.nodes[2].LieFinal(-1)
	got, err = n.client.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(-1), got.Final)
}

func TestD07_LaggingNodeIsReadLast(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 3, func(c *several.Config) { c.Agree = 1 })
	trail, to := n.paid(t)
	n.Mine(20)
	n.nodes[0].Lag(20)
	// Failover alone: the highest head is the tip, and who lags is known by it.
	tip, err := n.client.Tip(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 20, n.client.Health()[0].Behind)
	s, err := n.client.Scan(t.Context(), trail, watch{to}, 100)
	require.NoError(t, err)
	require.Equal(t, tip.Head.Height, s.Blocks[len(s.Blocks)-1].Height, "another node is read")
	n.nodes[0].Lag(0)
	_, err = n.client.Tip(t.Context())
	require.NoError(t, err)
	require.Zero(t, n.client.Health()[0].Behind)
}

func TestD07_WhatOneNodeHasAloneWaits(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 3)
	trail, to := n.paid(t)
	n.Mine(3)
	for _, x := range n.nodes[1:] {
		x.Lag(4)
	}
	s, err := n.client.Scan(t.Context(), trail, watch{to}, 10)
	require.NoError(t, err)
	require.Len(t, s.Blocks, 1, "as far as two have come")
	tip, err := n.client.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, tip.Head, s.Blocks[0].Block)
}

func TestD18_HeadThatOneNodeMadeUpIsNotTheTip(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 3)
	n.Mine(5)
	honest, err := n.client.Tip(t.Context())
	require.NoError(t, err)
	n.nodes[0].LieTip(1000)
	got, err := n.client.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, honest.Head.Height, got.Head.Height)
	require.Zero(t, n.client.Health()[1].Behind, "nobody lags behind a lie")
}

func TestD18_NodeOfAnotherChainIsLeftAlone(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 3)
	n.nodes[0].WrongChain(true)
	_, err := n.client.Tip(t.Context())
	require.NoError(t, err)
	h := n.client.Health()[0]
	require.Equal(t, n.now.Add(64*time.Second), h.Until)
	require.NotEmpty(t, h.Error)
	n.nodes[1].WrongChain(true)
	_, err = n.client.Tip(t.Context())
	require.ErrorIs(t, err, several.ErrTooFew)
}

func TestNodeThatFailsIsLeftAloneLongerEachTime(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 2, func(c *several.Config) { c.Agree = 1 })
	n.nodes[0].FailRate(1000)
	for i, seconds := range []int{1, 2, 4, 8, 16, 32, 64, 64} {
		pause := time.Duration(seconds) * time.Second
		_, err := n.client.Tip(t.Context())
		require.NoError(t, err, "the other node answers")
		h := n.client.Health()[0]
		require.Equal(t, n.now.Add(pause), h.Until, i)
		require.Equal(t, i+1, h.Failed)
		n.now = h.Until
	}
	n.nodes[0].Honest()
	_, err := n.client.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, several.Health{Name: "node0"}, n.client.Health()[0])
}

func TestX02_LimitedNodeGetsTheTimeThatItAsksFor(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 2, func(c *several.Config) { c.Agree = 1 })
	n.nodes[0].FailNext(1, &chain.LimitedError{After: 5 * time.Minute})
	_, err := n.client.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, n.now.Add(5*time.Minute), n.client.Health()[0].Until)
	n.nodes[1].FailRate(1000)
	_, err = n.client.Tip(t.Context())
	require.ErrorIs(t, err, several.ErrTooFew, "the limited one is not asked before")
}

// TestX02_NobodyWaitsForOneLimitedNodeOfSeveral: another one may answer sooner.
func TestX02_NobodyWaitsForOneLimitedNodeOfSeveral(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 2, func(c *several.Config) { c.Agree = 1 })
	n.nodes[0].FailNext(1, nil)
	n.nodes[1].FailNext(1, &chain.LimitedError{After: time.Hour})
	_, err := n.client.Tip(t.Context())
	require.ErrorIs(t, err, several.ErrTooFew)
	require.ErrorIs(t, err, chain.ErrNode)
	require.ErrorContains(t, err, "asked too often")
	require.NotErrorAs(t, err, new(*chain.LimitedError))
}

// signed is a transaction of an account that has enough.
func (n *town) signed(t testing.TB) (chain.Unsigned, chain.Signed, chain.Address) {
	t.Helper()
	from, err := chaintest.Secp256k1Account(n.client, "sender")
	require.NoError(t, err)
	to, err := chaintest.Secp256k1Account(n.client, "receiver")
	require.NoError(t, err)
	_, err = n.Fund(from.Address, string(n.Network()), decimal.NewFromInt(5))
	require.NoError(t, err)
	in := chain.Intent{ID: "i", Purpose: chain.ForWithdrawal, Network: n.Network(), Currency: string(n.Network()), From: from.Address, To: to.Address, Amount: 1e6}
	fee, err := n.client.EstimateFee(t.Context(), in)
	require.NoError(t, err)
	u, err := n.client.Build(t.Context(), chain.Order{Intent: in, Fee: fee, Attempt: 1})
	require.NoError(t, err)
	sig, err := from.Sign(u.Digests[0].Hash)
	require.NoError(t, err)
	s, err := n.client.Assemble(u, []chain.Signature{sig})
	require.NoError(t, err)
	return u, s, from.Address
}

func TestW07_SentWhereOneNodeTakesIt(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 3)
	_, s, _ := n.signed(t)
	stored := proof.NewStored("ETH", s.Tx, s.Raw)
	n.each(3, func(x *sim.Node) { x.RefuseNext(1, errors.New("no")) })
	err := n.client.Broadcast(t.Context(), stored)
	require.Error(t, err)
	require.NotErrorIs(t, err, chain.ErrRejected, "no node's word is proof")
	n.wait()
	n.each(2, func(x *sim.Node) { x.RefuseNext(1, errors.New("no")) })
	require.NoError(t, n.client.Broadcast(t.Context(), stored))
	n.wait()
	err = n.client.Broadcast(t.Context(), proof.NewStored("ETH", s.Tx, []byte("other")))
	require.ErrorIs(t, err, chain.ErrRejected, "the bytes prove it")
}

func TestR07_OneNodesWordSettlesNothing(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 3)
	u, s, _ := n.signed(t)
	require.NoError(t, n.client.Broadcast(t.Context(), proof.NewStored("ETH", s.Tx, s.Raw)))
	ask := func() chain.Status {
		t.Helper()
		n.wait()
		st, err := n.client.Status(t.Context(), chain.Attempt{Tx: s.Tx, Raw: s.Raw, Spends: u.Spends})
		require.NoError(t, err)
		return st[0]
	}
	require.Equal(t, chain.Pending, ask().State)
	n.each(2, func(x *sim.Node) { x.Freeze() })
	n.Mine(10)
	require.Equal(t, chain.Pending, ask().State, "one of three has it in a block")
	n.nodes[0].Thaw()
	got := ask()
	require.Equal(t, chain.Included, got.State)
	require.True(t, got.Final)
	require.EqualValues(t, 10, got.Confirmations)
	n.nodes[0].Forget(s.Tx)
	require.NotEqual(t, chain.Included, ask().State)
}

// dear tells of the first attempt asked about that it cost more than it did, or brought
// less.
type dear struct {
	chain.Client
	chain.Noncer
	more, short ledger.Amount
}

func (d *dear) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	out, err := d.Client.Status(ctx, attempts...)
	if err == nil {
		out[0].Cost, out[0].Shortfall = out[0].Cost+d.more, d.short
	}
	return out, err
}

// pruned is a node without an index of transactions: what it was told of the cost is all that it
// can say.
type pruned struct{ both }

// both is what the simulated client is.
type both interface {
	chain.Client
	chain.Noncer
}

func (p pruned) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	out, err := p.both.Status(ctx, attempts...)
	for i := range out {
		if out[i].State == chain.Included {
			out[i].Cost = attempts[i].MaxCost
		}
	}
	return out, err
}

// Restoring a store asks what a transaction has cost of which it knows nothing. A pruned node
// cannot say, and contradicts nobody who can: the cost is theirs, whoever is asked first. It does
// not settle which of two nodes is right that say different costs.
func TestANodeThatCannotSayACostContradictsNobody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agree  int
		pruned []int
		liar   int // says a higher cost, -1 = nobody does
		known  bool
	}{
		"the first of two":          {2, []int{0}, -1, true},
		"the second of two":         {2, []int{1}, -1, true},
		"two of three":              {3, []int{0, 1}, -1, true},
		"others contradict":         {3, []int{0}, 2, false},
		"they contradict before it": {3, []int{2}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newTown(t, "ETH", c.agree, func(cfg *several.Config) {
				cfg.Agree = c.agree
				for _, i := range c.pruned {
					cfg.Nodes[i].Client = pruned{cfg.Nodes[i].Client.(both)}
				}
				if c.liar >= 0 {
					cfg.Nodes[c.liar].Client = &dear{Client: cfg.Nodes[c.liar].Client, Noncer: cfg.Nodes[c.liar].Client.(chain.Noncer), more: 1}
				}
			})
			u, s, _ := n.signed(t)
			require.NoError(t, n.client.Broadcast(t.Context(), proof.NewStored("ETH", s.Tx, s.Raw)))
			n.Mine(3)
			all, err := n.client.Status(t.Context(), chain.Attempt{Tx: s.Tx, Spends: u.Spends})
			require.NoError(t, err)
			if !c.known {
				require.Equal(t, chain.Status{State: chain.Unknown}, all[0])
				require.Contains(t, n.log.String(), "nodes_disagree")
				return
			}
			require.Equal(t, chain.Included, all[0].State)
			require.Positive(t, all[0].Cost)
			require.NotContains(t, n.log.String(), "nodes_disagree")
		})
	}
}

// A transfer on Tron may be free, so a node that says that it cost nothing says so.
func TestOnTronNoCostIsACost(t *testing.T) {
	t.Parallel()
	n := newTown(t, "TRX", 2, func(c *several.Config) { c.Nodes[1].Client = pruned{c.Nodes[1].Client.(both)} })
	u, s, _ := n.signed(t)
	require.NoError(t, n.client.Broadcast(t.Context(), proof.NewStored("TRX", s.Tx, s.Raw)))
	n.Mine(3)
	all, err := n.client.Status(t.Context(), chain.Attempt{Tx: s.Tx, Raw: s.Raw, Spends: u.Spends})
	require.NoError(t, err)
	require.Equal(t, chain.Status{State: chain.Unknown}, all[0])
	require.Contains(t, n.log.String(), "nodes_disagree")
}

// TestR07_AnAttemptThatNodesDisagreeOnHoldsUpNoOther: it alone is Unknown.
func TestR07_AnAttemptThatNodesDisagreeOnHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	liar := &dear{more: 1}
	n := newTown(t, "ETH", 2, func(c *several.Config) {
		liar.Client, liar.Noncer = c.Nodes[1].Client, c.Nodes[1].Client.(chain.Noncer)
		c.Nodes[1].Client = liar
	})
	u, s, _ := n.signed(t)
	require.NoError(t, n.client.Broadcast(t.Context(), proof.NewStored("ETH", s.Tx, s.Raw)))
	n.Mine(3)
	a := chain.Attempt{Tx: s.Tx, Raw: s.Raw, Spends: u.Spends}
	all, err := n.client.Status(t.Context(), a, a)
	require.NoError(t, err)
	require.Equal(t, chain.Status{State: chain.Unknown}, all[0])
	require.True(t, all[1].Executed)
	require.Contains(t, n.log.String(), "nodes_disagree")
	liar.more = 0
	all, err = n.client.Status(t.Context(), a, a)
	require.NoError(t, err)
	require.True(t, all[0].Executed)
}

// TestFN07_NodesThatDisagreeOnWhatArrived: what the recipient got is no one node's word.
func TestFN07_NodesThatDisagreeOnWhatArrived(t *testing.T) {
	t.Parallel()
	liar := &dear{short: 1}
	n := newTown(t, "ETH", 2, func(c *several.Config) {
		liar.Client, liar.Noncer = c.Nodes[1].Client, c.Nodes[1].Client.(chain.Noncer)
		c.Nodes[1].Client = liar
	})
	u, s, _ := n.signed(t)
	require.NoError(t, n.client.Broadcast(t.Context(), proof.NewStored("ETH", s.Tx, s.Raw)))
	n.Mine(3)
	all, err := n.client.Status(t.Context(), chain.Attempt{Tx: s.Tx, Raw: s.Raw, Spends: u.Spends})
	require.NoError(t, err)
	require.Equal(t, chain.Status{State: chain.Unknown}, all[0])
}

func TestW05_NonceIsWhatEnoughNodesTell(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 3)
	_, _, from := n.signed(t)
	nonce := func() (uint64, error) { return n.client.(chain.Noncer).Nonce(t.Context(), from) }
	n.nodes[0].LieNonce(7)
	got, err := nonce()
	require.NoError(t, err)
	require.Zero(t, got)
	n.nodes[1].LieNonce(3)
	_, err = nonce()
	require.ErrorIs(t, err, several.ErrDisagree)
}

func TestAboveReadsTheRestFromOneNode(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 2, func(c *several.Config) {
		c.Above = func(x chain.Transfer) bool { return x.Amount.GreaterThan(decimal.NewFromInt(10)) }
	})
	trail, to := n.paid(t)
	n.nodes[1].LieEmpty(true)
	s, err := n.client.Scan(t.Context(), trail, watch{to}, 10)
	require.NoError(t, err)
	require.Len(t, transfers(s), 1, "small: the first node's word is enough")
	_, err = n.Pay(to, "ETH", decimal.NewFromInt(11))
	require.NoError(t, err)
	n.Mine(1)
	_, err = n.client.Scan(t.Context(), []chain.Block{s.Blocks[1].Block}, watch{to}, 10)
	require.ErrorIs(t, err, several.ErrDisagree)
}

// TestR07_BranchOfOneNodeIsNotToldBelowAbove: that blocks are gone takes back what
// was in them, however little stands in those in their place.
func TestR07_BranchOfOneNodeIsNotToldBelowAbove(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 3, func(c *several.Config) {
		c.Above = func(x chain.Transfer) bool { return x.Amount.GreaterThan(decimal.NewFromInt(10)) }
	})
	trail, to := n.paid(t)
	large, err := n.Pay(to, "ETH", decimal.NewFromInt(11))
	require.NoError(t, err)
	n.Mine(1)
	s, err := n.client.Scan(t.Context(), trail, watch{to}, 10)
	require.NoError(t, err)
	require.Len(t, transfers(s), 2)
	for _, b := range s.Blocks {
		trail = append(trail, b.Block)
	}
	n.nodes[1].Freeze()
	n.nodes[2].Freeze()
	_, err = n.Reorg(2, large)
	require.NoError(t, err)
	n.Mine(1)
	s, err = n.client.Scan(t.Context(), trail, watch{to}, 10)
	require.ErrorIs(t, err, several.ErrDisagree)
	require.Zero(t, s.Rewound)
}

func TestRefusalOfATransactionIsNoFaultOfTheNode(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 2)
	_, s, _ := n.signed(t)
	n.each(2, func(x *sim.Node) { x.RefuseNext(1, errors.New("nonce too low")) })
	require.Error(t, n.client.Broadcast(t.Context(), proof.NewStored("ETH", s.Tx, s.Raw)))
	for _, h := range n.client.Health() {
		require.Zero(t, h.Failed)
	}
	_, err := n.client.Tip(t.Context())
	require.NoError(t, err)
}

// TestAbilitiesAreThoseOfTheNodes: what a network has no notion of must not look
// as if it had.
func TestAbilitiesAreThoseOfTheNodes(t *testing.T) {
	t.Parallel()
	r := chain.MainnetRegistry()
	open := func(c chain.Client, err error) several.Client {
		t.Helper()
		require.NoError(t, err)
		s, err := several.New(several.Config{Now: time.Now, Nodes: []several.Node{{Name: "a", Client: c}}})
		require.NoError(t, err)
		return s
	}
	params, _ := utxo.Mainnet("BTC")
	coins := open(utxo.New(utxo.Options{Network: "BTC", Params: params, Registry: r, URL: "http://127.0.0.1:1"}))
	require.Implements(t, (*interface {
		CoinCosts(o chain.Order) (base, change, least ledger.Amount, coins []ledger.Amount, err error)
	})(nil), coins)
	require.Implements(t, (*chain.ParentPayer)(nil), coins)
	require.NotImplements(t, (*chain.Noncer)(nil), coins)
	ada := open(cardano.New(cardano.Options{Registry: r, Blockfrost: "http://127.0.0.1:1"}))
	require.Implements(t, (*interface {
		CoinCosts(o chain.Order) (base, change, least ledger.Amount, coins []ledger.Amount, err error)
	})(nil), ada)
	require.NotImplements(t, (*chain.ParentPayer)(nil), ada, "no child pays for a parent")
	preset, _ := evm.Preset("ETH")
	preset.Registry, preset.URL = r, "http://127.0.0.1:1"
	nonces := open(evm.New(preset))
	require.Implements(t, (*chain.Noncer)(nil), nonces)
	require.NotImplements(t, (*chain.Multiplexer)(nil), nonces, "each payment has an account of its own")
	shared := open(xrp.New(xrp.Options{Registry: r, URL: "http://127.0.0.1:1"}))
	require.Implements(t, (*chain.Noncer)(nil), shared)
	require.Implements(t, (*chain.Multiplexer)(nil), shared)
	_, err := nonces.Pending(t.Context(), watch{})
	require.ErrorIs(t, err, errors.ErrUnsupported, "incoming takes that for no mempool")
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 1)
	a := several.Node{Name: "a", Client: n.NewNode().Client()}
	other := several.Node{Name: "b", Client: newTown(t, "BTC", 1).NewNode().Client()}
	for _, c := range []several.Config{
		{},
		{Now: time.Now},
		{Nodes: []several.Node{a}},
		{Now: time.Now, Nodes: []several.Node{a, a}},
		{Now: time.Now, Nodes: []several.Node{a, other}},
		{Now: time.Now, Nodes: []several.Node{a}, Agree: 2},
		{Now: time.Now, Nodes: []several.Node{{Client: a.Client}}},
	} {
		_, err := several.New(c)
		require.Error(t, err)
	}
}

type watch []chain.Address

func (w watch) Contains(a chain.Address) bool {
	for _, x := range w {
		if x == a {
			return true
		}
	}
	return false
}
func (watch) Open() []chain.Address { return nil }

func (watch) Sync(context.Context) error { return nil }
