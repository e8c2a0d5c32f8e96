package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// Chain is a network with everybody on it but the library, as *sim.Chain is one.
// Another one may be a real node that mines when told, with people who have keys.
// What the methods say is what those of *sim.Chain of the same name say.
type Chain interface {
	Family() chain.Family
	// Client is one more client of the network's node, as a new process has it.
	Client() chain.Client
	Height() int64
	Mine(n int) int64
	ReorgTo(depth, length int, drop ...string) (int64, error)
	// Send may refuse what its node cannot do.
	Send(tx sim.Tx) (string, error)
	Fund(to chain.Address, currency string, amount decimal.Decimal) (string, error)
	Transactions(ours bool) []string
	Drop(hashes ...string)
	ReviveAll() int
	Customer(name string) chain.Address
	LookAlike(currency string) string
	// Transfers and Balance are read past the library.
	Transfers(to chain.Address) []chain.Transfer
	Balance(a chain.Address, currency string) decimal.Decimal
	Audit() error
}

// network is one chain of a world.
type network struct {
	name   chain.Network
	chain  Chain
	sim    *sim.Chain // the same one where it is simulated, else nil
	level  int64      // of fees in quiet times
	storm  int64      // times as high for days; 0 and 1 = none is on
	abates time.Time  // when it ends
	coins  []string
	final  int64
	tips   []tip // branches that were abandoned
	peak   int64 // the highest block that was on one
	undone int   // how many forks took blocks back that were final
	keeps  bool  // nodes keep what they saw first
}

// onNodes are the nemeses that need no simulated node.
var onNodes = []Nemesis{
	Reorgs, Drops, Revival, Crashes, Pauses, Conflicts, LostCommits, FailedReads, Skew, Jumps, Crowd, Receivers, Prices, Operators,
	Attackers, Mistakes,
}

func (r *run) newNetwork(n chain.Network) (*network, error) {
	x := &network{name: n, coins: coins[n]}
	if n == "TRX" || n != "BTC" && n != "LTC" && n != "DOGE" && r.rng.IntN(2) == 0 {
		x.final = confirmations[n] + int64(r.rng.IntN(8))
	}
	o := sim.Options{Network: n, Registry: registry(), Seed: r.w.Seed, Now: r.time, Finality: x.final}
	o.FirstSeen = n == "LTC" || r.w.Seed%3 == 0 // as Litecoin Core is, unless told otherwise
	x.keeps = o.FirstSeen
	var err error
	if open := r.w.Nodes[n]; open != nil {
		if len(x.coins) == 0 {
			return nil, fmt.Errorf("nothing is paid with on %s in a world", n)
		}
		x.chain, err = open(o)
		return x, err
	}
	if x.sim, err = sim.New(o); err != nil {
		return nil, err
	}
	x.chain, x.level = x.sim, x.sim.FeeLevel()
	return x, nil
}

// client is one of a process's own.
func (p *process) client(n *network) chain.Client {
	if n.sim == nil {
		return n.chain.Client()
	}
	return p.nodes[n.name].Client()
}

// able reports whether a nemesis can strike in this world.
func (w *World) able(n Nemesis) bool {
	return len(w.Nodes) == 0 || slices.Contains(onNodes, n)
}
