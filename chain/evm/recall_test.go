package evm

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/recall"
)

// A hundred recipients cost one question for the price: each pays the same fee as alone.
func TestEstimateFee_OfManyAsksForThePriceOnce(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	for _, currency := range []string{"USDTERC20", "ETH"} {
		in := chain.Intent{Purpose: chain.ForWithdrawal, Network: "ETH", Currency: currency, To: checksum(bob), Amount: 1e6}
		alone, err := c.EstimateFee(t.Context(), in)
		require.NoError(t, err)
		before := f.asked["eth_getBlockByNumber"]
		ctx := recall.Within(t.Context())
		for i := range 100 {
			in.To = checksum(common.HexToAddress(fmt.Sprintf("0x%040x", 0xbeef0000+i)))
			fee, err := c.EstimateFee(ctx, in)
			require.NoError(t, err)
			require.Equal(t, alone, fee)
		}
		require.Equal(t, before+1, f.asked["eth_getBlockByNumber"], currency)
	}
}
