package evm

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// polls counts the calls that it takes to watch anvil.
func polls(t *testing.T, n *town, token bool) clienttest.Polls {
	t.Helper()
	m := testenv.NewMeter(t, n.url)
	ours := func(i int) common.Address { return common.BigToAddress(big.NewInt(int64(i) + 0xc0ffee0000)) }
	return clienttest.Polls{
		Client: n.connect(t, m.URL, n.preset.ChainID), Registry: n.registry, Meter: m,
		Open: []int{1, 1000, 100_000}, Transfers: []int{1, 100, 1000},
		Address: func(i int) chain.Address { return checksum(ours(i)) },
		Mine:    func(t testing.TB) { n.mine(t, 1) },
		Others: func(t testing.TB) {
			n.transfer(t, n.usd, checksum(bob), big.NewInt(1_000_000))
			n.mine(t, 1)
		},
		Pay: func(t testing.TB, count int) {
			for i := range count {
				if token {
					n.transfer(t, n.usd, checksum(ours(i)), big.NewInt(1_000_000))
					continue
				}
				n.send(t, n.payer(), txArgs{"to": ours(i), "value": (*hexutil.Big)(big.NewInt(1e15)), "gas": "0x5208"})
			}
			n.mine(t, 1)
		},
	}
}

// TestFP07_CallsOfAPoll: what a block costs does not depend on how many payments are open.
func TestFP07_CallsOfAPoll(t *testing.T) {
	t.Parallel()
	for _, token := range testenv.Drawn(t, 1, []bool{false, true}) {
		t.Run(fmt.Sprint("token ", token), func(t *testing.T) {
			t.Parallel()
			n := newTown(t, Options{Network: "ETH", ChainID: 31337, FinalityTags: true}, "--gas-limit", "200000000")
			rows := polls(t, n, token).Run(t)
			byFound := map[string][]clienttest.Poll{}
			for _, r := range rows {
				byFound[r.Found] = append(byFound[r.Found], r)
			}
			require.Len(t, byFound["nothing"], 3)
			for i, idle := range byFound["nothing"] {
				require.Equal(t, 1, idle.Requests)
				for _, found := range []string{"an empty block", "a block of others"} {
					block := byFound[found][i]
					require.LessOrEqual(t, block.Calls-idle.Calls, 3, "%s: %v", found, block.Methods)
					require.Equal(t, 1, block.Requests-idle.Requests, "%s: %v", found, block.Methods)
				}
			}
			for _, r := range byFound["a block with 1000 transfers"] {
				require.LessOrEqual(t, r.Calls, 30, "%v", r.Methods)
			}
			clienttest.SameCalls(t, rows)
		})
	}
}
