// Package clienttest is what the tests of one chain client have in common with those of
// the others: a Desk at which transactions are made, sent and looked after, and cases
// that differ between clients in nothing but what their node is made to say.
package clienttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Desk does what a test asks of a client, and ends the test where that fails.
type Desk struct {
	At  chain.Client
	Add func(blocks int) // to the chain; what waits is in the first of them
}

// Head is the newest block.
func (d Desk) Head(t testing.TB) chain.Block {
	t.Helper()
	tip, err := d.At.Tip(t.Context())
	require.NoError(t, err)
	return tip.Head
}

// Seen adds one block and returns what it brought to the addresses.
func (d Desk) Seen(t testing.TB, w ...chain.Address) []chain.Transfer {
	t.Helper()
	from := d.Head(t)
	d.Add(1)
	s, err := d.At.Scan(t.Context(), []chain.Block{from}, follow.Only(w), 1)
	require.NoError(t, err)
	return s.Blocks[0].Transfers
}

// Intent is a withdrawal of units of the currency that is called like the network.
func (d Desk) Intent(from, to chain.Address, units int64) chain.Intent {
	return chain.Intent{
		ID: "i", Purpose: chain.ForWithdrawal, Tenant: "t", Network: d.At.Network(), Currency: string(d.At.Network()),
		From: from, To: to, Amount: ledger.Amount(units), MaxCost: ledger.Amount(1e9), Confirmations: 1,
	}
}

// Order prices an intent, with the sender's next nonce where there are any.
func (d Desk) Order(t testing.TB, in chain.Intent) chain.Order {
	t.Helper()
	o := chain.Order{Intent: in, Attempt: 1}
	var err error
	o.Fee, err = d.At.EstimateFee(t.Context(), in)
	require.NoError(t, err)
	if n, ok := d.At.(chain.Noncer); ok {
		o.Nonce, err = n.Nonce(t.Context(), in.From)
		require.NoError(t, err)
	}
	return o
}

// Sign builds an order and has it signed, by one for each digest.
func (d Desk) Sign(t testing.TB, o chain.Order, by ...chaintest.Account) chain.Attempt {
	t.Helper()
	u, err := d.At.Build(t.Context(), o)
	require.NoError(t, err)
	sigs := make([]chain.Signature, len(u.Digests))
	for i, x := range u.Digests {
		if x.Whole {
			sigs[i], err = by[i].SignWhole(u.Payload)
		} else {
			sigs[i], err = by[i].Sign(x.Hash)
		}
		require.NoError(t, err)
	}
	s, err := d.At.Assemble(u, sigs)
	require.NoError(t, err)
	return chain.Attempt{Tx: s.Tx, Raw: s.Raw, Spends: u.Spends}
}

// Broadcast sends an attempt.
func (d Desk) Broadcast(t testing.TB, a chain.Attempt) error {
	t.Helper()
	return d.At.Broadcast(t.Context(), proof.NewStored(string(d.At.Network()), a.Tx, a.Raw))
}

// Landed signs and sends an intent, and adds the block that holds it.
func (d Desk) Landed(t testing.TB, in chain.Intent, by ...chaintest.Account) chain.Attempt {
	t.Helper()
	a := d.Sign(t, d.Order(t, in), by...)
	require.NoError(t, d.Broadcast(t, a))
	d.Add(1)
	return a
}

// Status is what became of one attempt.
func (d Desk) Status(t testing.TB, a chain.Attempt) chain.Status {
	t.Helper()
	all, err := d.At.Status(t.Context(), a)
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

// Spoilt is something that a node is made to say, on top of what it was before.
type Spoilt struct {
	what string
	by   func()
}

// As names it.
func As(what string, by func()) Spoilt { return Spoilt{what, by} }

// ToldWrong puts a client to W07: whatever the node is spoilt to say of the first attempt
// that cannot be, it alone is Unknown, and the other is told. A node that is down is an
// error of both.
func (d Desk) ToldWrong(t testing.TB, bad, good chain.Attempt, spoilt []Spoilt, down func()) {
	t.Helper()
	require.True(t, d.Status(t, bad).Executed, "as long as it is told right")
	for _, x := range spoilt {
		x.by()
		all, err := d.At.Status(t.Context(), bad, good)
		require.NoError(t, err, x.what)
		require.Equal(t, chain.Status{State: chain.Unknown}, all[0], x.what)
		require.True(t, all[1].Executed, x.what)
	}
	down()
	_, err := d.At.Status(t.Context(), bad, good)
	require.ErrorIs(t, err, chain.ErrNode)
}

// WrongNet puts the client of another network than its node's to D18: every call is
// refused.
func (d Desk) WrongNet(t testing.TB, a chain.Address) {
	t.Helper()
	code := string(d.At.Network())
	calls := map[string]func() error{
		"Tip":         func() error { _, err := d.At.Tip(t.Context()); return err },
		"Scan":        func() error { _, err := d.At.Scan(t.Context(), nil, follow.Only{a}, 1); return err },
		"EstimateFee": func() error { _, err := d.At.EstimateFee(t.Context(), d.Intent("", "", 1)); return err },
		"Status":      func() error { _, err := d.At.Status(t.Context()); return err },
		"Balance":     func() error { _, err := d.At.(chain.Balancer).Balance(t.Context(), code, a); return err },
	}
	if n, ok := d.At.(chain.Noncer); ok {
		calls["Nonce"] = func() error { _, err := n.Nonce(t.Context(), a); return err }
	}
	if x, ok := d.At.(chain.Deliverer); ok {
		calls["Deliverable"] = func() error { return x.Deliverable(t.Context(), code, a, "", 1_000_000) }
	}
	for name, call := range calls {
		require.ErrorIs(t, call(), chain.ErrWrongNet, name)
	}
}

// Secret puts a client to I06, whose node is out of reach and whose options hold canaries:
// none of them is in an error.
func Secret(t testing.TB, c chain.Client, err error) {
	t.Helper()
	require.NoError(t, err)
	_, err = c.Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrNode)
	require.NotContains(t, err.Error(), "canary")
	require.NotContains(t, err.Error(), "127.0.0.1")
}

// Limited asserts that an error is of a node that was asked too often, with its own word
// for how long to wait; 0 = it gave none.
func Limited(t testing.TB, err error, after time.Duration, what ...any) {
	t.Helper()
	var limited *chain.LimitedError
	require.ErrorAs(t, err, &limited, what...)
	require.ErrorIs(t, err, chain.ErrNode, what...)
	require.Equal(t, after, limited.After, what...)
}
