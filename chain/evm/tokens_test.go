package evm

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
)

// asksMany compares a read of many balances of tokens with the node's own word for each.
func (n *town) asksMany(t *testing.T) {
	t.Helper()
	usd, fee := n.usd, n.contract(t, "FEE")
	nobody := common.HexToAddress("0x00000000000000000000000000000000000dead1") // no contract
	var list []holder
	for i := range 2*bulkTokens + 3 {
		owner := common.BigToAddress(big.NewInt(int64(0x70000 + i)))
		switch {
		case i%50 == 3:
			n.transfer(t, usd, checksum(owner), big.NewInt(int64(1_000_000+i)))
		case i%50 == 4:
			n.transfer(t, fee, checksum(owner), big.NewInt(int64(2_000_000+i)))
		}
		list = append(list, holder{[]common.Address{usd, fee, nobody}[i%3], owner}, holder{usd, owner}, holder{fee, owner})
	}
	var parent, head struct{ Hash common.Hash }
	n.ask(t, &parent, "eth_getBlockByNumber", "latest", false)
	n.mine(t, 1)
	n.ask(t, &head, "eth_getBlockByNumber", "latest", false)
	lists := func() []asked {
		return []asked{{holders: list, block: at(parent.Hash)}, {holders: list[:1], block: at(head.Hash)}, {holders: list, block: at(head.Hash)}, {holders: list, block: "latest"}}
	}
	many := lists()
	require.NoError(t, n.client.holdings(t.Context(), many))
	require.Zero(t, n.client.singleToken.Load(), "all at once")
	n.client.singleToken.Store(1)
	each := lists()
	require.NoError(t, n.client.holdings(t.Context(), each))
	require.Zero(t, n.client.singleToken.Load())
	for i := range many {
		require.Len(t, many[i].said, len(each[i].said))
		for h, want := range each[i].said {
			got := many[i].said[h]
			require.Equal(t, want.n == nil, got.n == nil, "%v", h)
			require.Equal(t, want.gone, got.gone, "%v", h)
			require.True(t, want.n == nil || want.n.Cmp(got.n) == 0, "%v: %s, at once %s", h, want.n, got.n)
		}
	}
	require.Nil(t, many[2].said[holder{nobody, list[2].owner}].n)
	require.False(t, many[2].said[holder{nobody, list[2].owner}].gone)
	sum := new(big.Int)
	for h, s := range many[2].said {
		if h.contract != nobody {
			sum.Add(sum, s.n)
			sum.Sub(sum, many[0].said[h].n)
		}
	}
	require.Positive(t, sum.Sign(), "what the block brought")
}

func TestFP07_AnvilReadsManyTokensAtOnce(t *testing.T) {
	t.Parallel()
	openTown(t).asksMany(t)
}

func TestFP07_GethReadsManyTokensAtOnce(t *testing.T) {
	t.Parallel()
	openGethTown(t).asksMany(t)
}

// TestFN05_GethHasNoStateOfTokensAnyMore: a node that has thrown a block's state away says so for all
// tokens in one answer.
func TestFN05_GethHasNoStateOfTokensAnyMore(t *testing.T) {
	t.Parallel()
	n := openGethTown(t)
	from := begin(t, n.client)[0]
	n.mine(t, 140)
	usd := n.usd
	lists := []asked{{holders: []holder{{usd, alice}, {usd, bob}, {usd, mallory}}, block: at(common.HexToHash(from.Hash))}}
	require.NoError(t, n.client.holdings(t.Context(), lists))
	for _, h := range lists[0].holders {
		require.True(t, lists[0].said[h].gone)
	}
}
