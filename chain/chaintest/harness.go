// Package chaintest proves that a chain.Client keeps what the contract
// promises: that it never skips a block, never shows a transfer that did not
// happen, follows every fork, and tells the truth about what became of a
// transaction. Any client can be put to it, a user's own included:
//
//	func TestConformance(t *testing.T) {
//		chaintest.Run(t, func(t *testing.T) *chaintest.Harness { … })
//	}
//
// The suite never looks behind the client: all that it needs of the network
// outside comes from the Harness. What a network cannot do is left nil or
// false, and the cases for it are skipped by name.
package chaintest

import (
	"context"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Effect says how a payment of an outside customer ends.
type Effect string

// The effects. A Harness skips the ones that it does not list in Effects.
const (
	// Plain is executed, and moves what it says.
	Plain Effect = ""
	// Reverted is put in a block, fails there, and moves nothing.
	Reverted Effect = "reverted"
	// ReturnsFalse is a token transfer that succeeds, moves nothing and logs nothing.
	ReturnsFalse Effect = "returns_false"
	// InnerReverted succeeds, but the inner call that pays the address fails.
	InnerReverted Effect = "inner_reverted"
	// Internal pays the native coin by a call inside a contract's transaction.
	Internal Effect = "internal"
	// Foreign moves a token of another, unregistered contract that calls itself
	// by the same symbol as the registered one.
	Foreign Effect = "foreign"
	// Strange is valid on its network, and of a type or form, or with a result, that no
	// client knows yet. It may pay the address or not.
	Strange Effect = "strange"
)

// Payment is one movement that an outside customer orders.
type Payment struct {
	To       chain.Address
	Currency string          // code; with Foreign the one that it imitates
	Amount   decimal.Decimal // whole coins
	Memo     string          // where the network has one; of the first payment of a transaction
	Effect   Effect
}

// Account is an address whose key the test has.
type Account struct {
	Address chain.Address
	Key     chain.PublicKey
	// Sign gives the signature of a digest in the form of chain.Signature.
	Sign func(digest [32]byte) (chain.Signature, error)
	// SignWhole signs payloads, where digests are chain.Digest.Whole.
	SignWhole func(payload []byte) (chain.Signature, error)
}

// Harness is one network with a client in front of it. Functions fail the test
// themselves when they cannot do what they are asked. Blocks must be made by
// the hooks alone: no automatic mining.
type Harness struct {
	Client   chain.Client
	Registry *chain.Registry
	Family   chain.Family

	// Native is the code of the network's own coin. Token is the code of one
	// registered token that can be paid; "" = the network has none.
	Native string
	Token  string
	// Contract is the contract of the token that Foreign payments move.
	Contract string
	// Amount is a usual payment in coins of the native currency, well above any
	// fee and dust. Defaults to 1.
	Amount decimal.Decimal
	// Reserve is what an account must keep: it is in its balance and cannot be
	// sent. Usually 0.
	Reserve decimal.Decimal

	// Finality is how many blocks the network's final height is behind its head;
	// −1 where it has no such notion. Above 100 the cases of it are skipped.
	Finality int64
	// Effects lists what else than Plain a payment can be.
	Effects []Effect
	// Batch: Pay takes several payments of Token (on UTXO networks: of Native)
	// as one transaction.
	Batch bool
	// Memo: payments carry a memo and the client reports it.
	Memo bool
	// Returns: after Reorg, the transactions of abandoned blocks that were not
	// dropped are in the mempool again.
	Returns bool
	// Replaceable: Build with a higher Order.Attempt makes a transaction that
	// nodes accept in the place of the earlier one.
	Replaceable bool
	// Crowded fills the node's blocks with others' transactions while on is true, so that a
	// transaction that is sent waits in the node's queue. It is for nodes that replace a
	// transaction only while it waits there. Optional.
	Crowded func(t testing.TB, on bool)
	// OneWaits: nodes take one transaction of an account at a time, and the next
	// after that is in a block.
	OneWaits bool

	// Histories: the cases' Watch is a chain.FewWatch, so that the client asks for the histories
	// of addresses. Its blocks then have gaps.
	Histories bool

	// NewAccount makes the n-th account of a case, the same n always the same
	// within one Harness. Defaults to a secp256k1 key made from the test's name
	// and n, with the address from Client.AddressOf.
	NewAccount func(t testing.TB, n int) Account

	// Fund gives an address coins to spend, in a block of its own. Required on
	// account networks; UTXO networks are funded by Pay and Mine.
	Fund func(t testing.TB, to chain.Address, currency string, amount decimal.Decimal)
	// Pay sends one transaction with all the payments, from somebody outside, to
	// the mempool, and returns its hash in the client's form. Required.
	Pay func(t testing.TB, payments ...Payment) string
	// Mine adds n blocks with what is in the mempool. Required.
	Mine func(t testing.TB, n int)
	// Reorg replaces the last depth blocks by at least as many others, which
	// hold none of the old transactions; the dropped ones are gone from the
	// mempool too. nil = not possible.
	Reorg func(t testing.TB, depth int, drop ...string)

	// Lag makes the client's node n blocks behind; 0 ends it. nil = not possible.
	Lag func(t testing.TB, n int)
	// Partial makes the node know blocks without being able to tell what they
	// moved (logs not indexed yet, empty answers). nil = not possible.
	Partial func(t testing.TB, on bool)
	// Fail makes every call of the node fail. nil = not possible.
	Fail func(t testing.TB, on bool)
	// LoseAnswer makes the node accept the next broadcast and then break the
	// connection. nil = not possible.
	LoseAnswer func(t testing.TB)
	// WrongChain opens a client of the same network in front of a node of
	// another chain. nil = not possible.
	WrongChain func(t testing.TB) chain.Client

	// BadAddresses are texts that ParseAddress must refuse, beyond those that
	// the suite makes of good ones by damaging them.
	BadAddresses []string
	// NoChecksum: a damaged address cannot always be told from a good one.
	NoChecksum bool
	// CaseMatters: an address with letters of the other case is another valid address
	// (base58 without a checksum).
	CaseMatters bool
	// Context bounds all calls of a case. Defaults to the test's own.
	Context func(t testing.TB) context.Context
}

// Run puts a client to the suite. open is called once per case, and may give
// the same node every time: cases run one after another, use fresh accounts,
// and assume nothing of the chain's height.
func Run(t *testing.T, open func(t *testing.T) *Harness) {
	t.Helper()
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			k := newKit(t, open(t))
			if why := c.needs(k); why != "" {
				t.Skip("chaintest: not on this network: " + why)
			}
			c.run(k)
		})
	}
}
