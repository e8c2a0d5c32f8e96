package evm

import (
	"math/big"
	"testing"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
)

func TestAnvilConformance(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness { return n.harness(t) })
}

func (n *town) harness(t *testing.T) *chaintest.Harness {
	t.Helper()
	return &chaintest.Harness{
		Client: n.client, Registry: n.registry, Family: chain.AccountFamily,
		Native: "ETH", Token: "USD", Contract: n.foreign.Hex(), Finality: 64,
		Effects: []chaintest.Effect{chaintest.Reverted, chaintest.ReturnsFalse, chaintest.InnerReverted, chaintest.Internal, chaintest.Foreign},
		Batch:   true, Returns: true, Replaceable: true,
		Fund: func(t testing.TB, to chain.Address, currency string, amount decimal.Decimal) {
			n.pay(t, chaintest.Payment{To: to, Currency: currency, Amount: amount})
			n.mine(t, 1)
		},
		Pay:   n.pay,
		Mine:  n.mine,
		Reorg: n.reorg,
		Lag:   func(_ testing.TB, blocks int) { n.set(func(f *fault) { f.lag = int64(blocks) }) },
		Partial: func(_ testing.TB, on bool) {
			n.set(func(f *fault) { f.partial = on })
		},
		Fail:       func(_ testing.TB, on bool) { n.set(func(f *fault) { f.fail = on }) },
		LoseAnswer: func(testing.TB) { n.set(func(f *fault) { f.lose = true }) },
		WrongChain: func(t testing.TB) chain.Client { return n.connect(t, n.url, n.preset.ChainID+1) },
		BadAddresses: []string{
			"0x", "FFA2aB7177BA06D268a6Ad97f3C71cb86dfD68cf", "XE7338O073KYGTWWZN0F2WZ0R8PX5ZPPZS", "vitalik.eth", "0X5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		},
		NoChecksum: true, // a damaged letter is told, a damaged digit not always
	}
}

// pay is an outside customer's transaction.
func (n *town) pay(t testing.TB, ps ...chaintest.Payment) string {
	t.Helper()
	p := ps[0]
	to, amount := common.HexToAddress(string(p.To)), n.units(t, p.Currency, p.Amount)
	native := p.Currency == "ETH"
	call := func(contract common.Address, value *big.Int, data []byte) string {
		return n.send(t, n.payer(), txArgs{"to": contract, "value": (*hexutil.Big)(value), "data": hexutil.Bytes(data), "gas": "0x30d40"}).Hex()
	}
	switch {
	case len(ps) > 1:
		var tos []common.Address
		var amounts []*big.Int
		for _, x := range ps {
			require.Equal(t, p.Currency, x.Currency)
			tos, amounts = append(tos, common.HexToAddress(string(x.To))), append(amounts, n.units(t, x.Currency, x.Amount))
		}
		return n.send(t, n.payer(), txArgs{"to": n.sender, "data": hexutil.Bytes(words("sendMany(address,address[],uint256[])", n.contract(t, p.Currency), tos, amounts))}).Hex()
	case p.Effect == chaintest.Reverted && native:
		return n.internal(t, amount, "0x9c40", to).Hex() // runs out of gas
	case p.Effect == chaintest.Reverted:
		return call(n.usd, new(big.Int), words("transfer(address,uint256)", to, new(big.Int).Lsh(big.NewInt(1), 200)))
	case p.Effect == chaintest.ReturnsFalse:
		return n.transfer(t, n.liar, p.To, amount).Hex()
	case p.Effect == chaintest.InnerReverted:
		return call(n.undoer, amount, common.BytesToHash(to[:]).Bytes())
	case p.Effect == chaintest.Internal:
		return n.internal(t, amount, "0xf4240", to).Hex()
	case p.Effect == chaintest.Foreign:
		return n.transfer(t, n.foreign, p.To, amount).Hex()
	case native:
		return n.send(t, n.payer(), txArgs{"to": to, "value": (*hexutil.Big)(amount), "gas": "0x5208"}).Hex()
	default:
		return n.transfer(t, n.contract(t, p.Currency), p.To, amount).Hex()
	}
}
