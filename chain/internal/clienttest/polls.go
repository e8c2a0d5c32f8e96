package clienttest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// Polls counts what it costs to follow a network by whole blocks, as incoming.Network does:
// a poll that finds no block, and one that finds a block with so many transfers of ours.
type Polls struct {
	Client   chain.Client
	Registry *chain.Registry
	Meter    *testenv.Meter
	// Address is the i-th address of ours. Not all need to be able to be paid.
	Address func(i int) chain.Address
	// Pay adds a block with n transfers, each to another one of Addresses.
	Pay func(t testing.TB, n int)
	// Mine adds an empty block.
	Mine func(t testing.TB)
	// Others adds a block in which strangers pay each other. Optional.
	Others func(t testing.TB)
	// Open are the numbers of open payments, Transfers those of transfers in a block. They
	// default to 1, 1,000 and 100,000, and to 1 and 100.
	Open, Transfers []int
}

// Poll is what one poll cost.
type Poll struct {
	Open  int    // payments that wait for money
	Found string // what the poll finds
	testenv.Cost
}

// Run returns and logs a table. A row of a block is of the whole poll that finds it.
func (p Polls) Run(t *testing.T) (rows []Poll) {
	t.Helper()
	if p.Open == nil {
		p.Open = []int{1, 1000, 100_000}
	}
	if p.Transfers == nil {
		p.Transfers = []int{1, 100}
	}
	for _, open := range p.Open {
		rows = append(rows, p.with(t, open)...)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s:\n| open payments | a poll finds | calls | requests | bytes |\n|---|---|---|---|---|\n", p.Client.Network())
	for _, r := range rows {
		fmt.Fprintf(&text, "| %d | %s | %d | %d | %d |\n", r.Open, r.Found, r.Calls, r.Requests, r.Bytes)
	}
	for _, r := range rows {
		fmt.Fprintf(&text, "%d, %s: %v\n", r.Open, r.Found, r.Methods)
	}
	t.Log(text.String())
	return rows
}

func (p Polls) with(t *testing.T, open int) (rows []Poll) {
	t.Helper()
	store := memory.New()
	require.NoError(t, store.Open(t.Context(), incoming.Tables()...))
	now := time.Now()
	all := make([]chain.Address, open)
	const page = 5000
	part := storage.Network(string(p.Client.Network()))
	for from := 0; from < open; from += page {
		var put []storage.Row
		for i := from; i < min(open, from+page); i++ {
			all[i] = p.Address(i)
			put = append(put, incoming.Addresses.Row(string(all[i]), 0, time.Time{}, incoming.AddressRow{
				Seq: int64(i + 1), Index: int64(i), Tenant: "shop", Use: incoming.UsePayment, Created: now,
			}))
		}
		require.NoError(t, store.Commit(t.Context(), storage.Change{ID: fmt.Sprint("addresses ", from), Partition: part, Put: put})[0])
	}
	net, err := incoming.New(incoming.Config{
		Store: store, Client: p.Client, Registry: p.Registry, Now: func() time.Time { return now },
		Open: func(context.Context) []chain.Address { return all },
	})
	require.NoError(t, err)
	poll := func(found string) {
		p.Meter.Take()
		before := p.asked(t)
		_, err := net.Step(t.Context())
		require.NoError(t, err)
		cost := p.Meter.Take()
		require.EqualValues(t, cost.Calls, p.asked(t)-before, "the client counts what it asks: %v", cost.Methods)
		rows = append(rows, Poll{open, found, cost})
	}
	for range 3 { // the network begins, and balances of all addresses are compared
		p.Mine(t)
		_, err := net.Step(t.Context())
		require.NoError(t, err)
	}
	poll("nothing")
	p.Mine(t)
	poll("an empty block")
	if p.Others != nil {
		p.Others(t)
		poll("a block of others")
	}
	for _, n := range p.Transfers {
		if n > open {
			continue
		}
		p.Pay(t, n)
		poll(fmt.Sprintf("a block with %d transfers", n))
		found, err := store.Count(t.Context(), storage.Query{Table: incoming.Sightings.Table, Partition: part})
		require.NoError(t, err)
		require.GreaterOrEqual(t, found, int64(n))
	}
	return rows
}

// asked is what the client itself says that it asked.
func (p Polls) asked(t *testing.T) int64 {
	t.Helper()
	u := p.Client.(chain.Metered).Usage()
	require.Len(t, u, 1)
	require.Zero(t, u[0].Most)
	return u[0].Total
}

// SameCalls requires that polls which found the same made the same number of calls and
// requests, however many payments were open.
func SameCalls(t *testing.T, rows []Poll) {
	t.Helper()
	first := map[string]Poll{}
	for _, r := range rows {
		f, ok := first[r.Found]
		if !ok {
			first[r.Found] = r
			continue
		}
		require.Equal(t, [2]int{f.Calls, f.Requests}, [2]int{r.Calls, r.Requests}, "%s: %d and %d open payments: %v, %v", r.Found, f.Open, r.Open, f.Methods, r.Methods)
	}
}
