package tron

import (
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/internal/nodes/trontest"
)

// TestD14_OneStrangeTransactionDoesNotEndTheReading: anybody can put bytes into a
// block that the network reads and that nobody writes.
func TestD14_OneStrangeTransactionDoesNotEndTheReading(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	for _, raw := range [][]byte{
		{},
		{0xff},
		{0x5a, 0x7f},
		{0x5b, 0x08, 0x01, 0x5c},
		{0x5b},
		{0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		{0x5a, 0x02, 0x12, 0x00},
		{0x5a, 0x00, 0x5a, 0x00},
	} {
		start := n.Head(t)
		n.Strange(raw)
		n.fund(t, to, "TRX", 7)
		s, err := n.client.Scan(t.Context(), []chain.Block{start}, follow.Only{to}, 9)
		require.NoError(t, err, "%x", raw)
		require.Len(t, s.Blocks[0].Transfers, 1, "%x", raw)
	}
}

// TestProto_ReadsWhatTheNetworkReads: fields of no use around and within a
// transfer, in ways that we never write.
func TestProto_ReadsWhatTheNetworkReads(t *testing.T) {
	t.Parallel()
	b := &body{kind: kindTransfer, owner: account{1}.full(), to: account{2}.full(), amount: 5, expiration: 9, refBytes: []byte{1, 2}, refHash: make([]byte, 8)}
	raw := b.encode()
	for _, more := range [][]byte{
		{0x63, 0x08, 0x01, 0x64}, {0x65, 1, 2, 3, 4}, {0x61, 1, 2, 3, 4, 5, 6, 7, 8}, {0x60, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
	} {
		got, err := decodeBody(append(append([]byte{}, more...), raw...))
		require.NoError(t, err, "%x", more)
		require.Equal(t, int64(5), got.amount)
		require.Equal(t, 1, got.contracts)
		require.False(t, got.canonical(append(append([]byte{}, more...), raw...)))
	}
}

func TestD09_OneBlockOfManyIsReadInPages(t *testing.T) {
	t.Parallel()
	n := openTown(t, func(o *Options) { o.Group, o.Parallel = 3, 2 })
	to := n.customer(t, "to").Address
	start := n.Head(t)
	for range 20 {
		for range 3 {
			n.pay(t, trontest.Plain, false, chaintest.Payment{To: to, Currency: "USDTTRC20", Amount: decimal.NewFromInt(1)})
		}
		n.Mine(1)
	}
	s, err := n.client.Scan(t.Context(), []chain.Block{start}, follow.Only{to}, 17)
	require.NoError(t, err)
	require.Len(t, s.Blocks, 17)
	for _, b := range s.Blocks {
		require.Len(t, b.Transfers, 3)
	}
	all, err := n.client.History(t.Context(), to, start.Height+1, start.Height+20)
	require.NoError(t, err)
	require.Len(t, all, 60)
}
