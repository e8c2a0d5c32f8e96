package evm

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// TestX02_ALoneClientWaitsAsLongAsItsNodeSays: a public server answers 40 calls in 10
// seconds. A network that asks it each second is refused once in that time, asks nothing
// until the server's own time is over, says why, and misses no deposit.
func TestX02_ALoneClientWaitsAsLongAsItsNodeSays(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	m := testenv.NewMeter(t, n.url)
	client := n.connect(t, m.URL, n.preset.ChainID)
	client.node.Budget = nil // it leaves a node alone by the wall clock, and this one counts by the test's
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	store := memory.New()
	require.NoError(t, store.Open(t.Context(), incoming.Tables()...))
	ours := common.HexToAddress("0x00000000000000000000000000000000000c0ffe")
	part := storage.Network("ETH")
	require.NoError(t, store.Commit(t.Context(), storage.Change{ID: "address", Partition: part, Put: []storage.Row{
		incoming.Addresses.Row(string(checksum(ours)), 0, time.Time{}, incoming.AddressRow{Seq: 1, Tenant: "shop", Use: incoming.UsePayment}),
	}})[0])
	net, err := incoming.New(incoming.Config{Store: store, Client: client, Registry: n.registry, Now: clock})
	require.NoError(t, err)
	_, err = net.Step(t.Context())
	require.NoError(t, err)
	m.Limit(&testenv.Budget{Calls: 40, Per: 10 * time.Second, Now: clock})

	paid, refused, waited := 0, 0, 0
	for second := range 60 {
		if second%2 == 0 {
			n.transfer(t, n.usd, checksum(ours), big.NewInt(1_000_000))
			n.mine(t, 1)
			paid++
		}
		m.Take()
		_, err := net.Step(t.Context())
		cost := m.Take()
		status, failed := net.Status(t.Context())
		require.NoError(t, failed)
		switch {
		case cost.Refused > 0:
			var limited *chain.LimitedError
			require.ErrorAs(t, err, &limited)
			refused++
			require.Contains(t, status.Stuck, "asked too often")
			require.Contains(t, status.Stuck, "it is asked again at "+now.Add(limited.After).Format(time.RFC3339))
		case status.Stuck != "":
			require.NoError(t, err)
			require.Zero(t, cost.Calls, "it was told to wait")
			waited++
		default:
			require.NoError(t, err)
		}
		now = now.Add(time.Second)
	}
	require.LessOrEqual(t, refused, 6, "once for each time of the budget")
	require.Positive(t, refused)
	require.Positive(t, waited)
	now = now.Add(10 * time.Second)
	_, err = net.Step(t.Context())
	require.NoError(t, err)
	found, err := store.Count(t.Context(), storage.Query{Table: incoming.Sightings.Table, Partition: part})
	require.NoError(t, err)
	require.EqualValues(t, paid, found, "it keeps up")
	status, err := net.Status(t.Context())
	require.NoError(t, err)
	require.Empty(t, status.Stuck)
	require.Equal(t, n.height(), status.Head)
}
