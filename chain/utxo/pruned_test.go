package utxo

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/btcsuite/btcd/psbt/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// TestN17_CoinsOlderThanThePrunedNodesBlocks: a coin is spent whose block the node has dropped,
// and what became of the payment is found in the blocks since.
func TestN17_CoinsOlderThanThePrunedNodesBlocks(t *testing.T) {
	t.Parallel()
	n := prunedTown(t)
	k := testKey("old")
	coin, legacy := n.receive(t, k, p2wpkh), n.receive(t, k, p2pkh)
	n.mine(t, 3)
	n.set(func(f *fault) { f.kept = n.height() })

	a := n.send(t, k, form(testKey("to"), p2wpkh), 1, coin)
	require.Equal(t, chain.Unknown, n.status(t, a).State)
	n.broadcast(t, a)
	require.Equal(t, chain.Pending, n.status(t, a).State)
	n.mine(t, 5)
	st := n.status(t, a)
	require.Equal(t, chain.Included, st.State)
	require.EqualValues(t, 5, st.Confirmations)
	require.Equal(t, a.MaxCost, st.Cost)
	n.broadcast(t, a) // again, in a block

	// Nobody can prove what an old coin without segregated witness is worth.
	in := chain.Intent{ID: "i", Purpose: chain.ForWithdrawal, Network: n.network, Currency: "LTC", To: coin.Address, Amount: 1_000_000}
	fee, err := n.client.EstimateFee(t.Context(), in)
	require.NoError(t, err)
	_, err = n.client.Build(t.Context(), chain.Order{Intent: in, Fee: fee, Coins: []chain.Coin{legacy}, Change: coin.Address, Attempt: 1})
	require.ErrorIs(t, err, errDropped)

	// A coin that somebody has spent, and one that is not what was believed.
	late := n.send(t, k, form(testKey("other"), p2wpkh), 1, coin)
	require.Error(t, n.client.Broadcast(t.Context(), proof.NewStored(string(n.network), late.Tx, late.Raw)))
	st = n.status(t, late)
	require.Equal(t, chain.Conflicted, st.State)
	require.Equal(t, a.Tx, st.By)
	other := n.receive(t, k, p2wpkh)
	other.Amount++
	_, err = n.client.Build(t.Context(), chain.Order{Intent: in, Fee: fee, Coins: []chain.Coin{other}, Change: coin.Address, Attempt: 1})
	require.ErrorIs(t, err, chain.ErrRejected)
}

// TestN17_APrunedNodeIsNotReadInVain: blocks in which nothing was found are not read again.
func TestN17_APrunedNodeIsNotReadInVain(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.set("gettxout", func([]any) (any, *fakeError) { return nil, nil })
	f.set("getrawtransaction", func([]any) (any, *fakeError) {
		return nil, &fakeError{-5, "No such mempool transaction. Use -txindex or provide a block hash to enable blockchain transaction queries."}
	})
	made, rival := payTx("made", 9000, someScript(1)), wire.NewMsgTx(2)
	rival.AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: made.TxHash()}, nil, nil))
	rival.AddTxOut(wire.NewTxOut(8000, someScript(2)))
	for range 20 {
		f.mine()
	}
	c := f.client(t, "BTC", func(o *Options) { o.Pruned, o.SearchBlocks = true, 10 })
	ours := chain.Attempt{Tx: payTx("ours", 1, nil).TxHash().String(), Spends: []string{made.TxHash().String() + ":0"}}
	ask := func() chain.Status {
		all, err := c.Status(t.Context(), ours)
		require.NoError(t, err)
		return all[0]
	}
	require.Equal(t, chain.Unknown, ask().State)
	require.Equal(t, 10, f.asked["getblock"])
	require.Equal(t, chain.Unknown, ask().State)
	require.Equal(t, 10, f.asked["getblock"])
	f.mine()
	f.mine(serialize(rival))
	f.mine()
	got := ask()
	require.Equal(t, chain.Conflicted, got.State)
	require.Equal(t, rival.TxHash().String(), got.By)
	require.Equal(t, 12, f.asked["getblock"])
}

// TestW13_AmountsThatAPayloadOnlySays: a signer that was not told of pruned nodes refuses them.
// Where it was, one that is wrong makes a signature that no node takes.
func TestW13_AmountsThatAPayloadOnlySays(t *testing.T) {
	t.Parallel()
	n := prunedTown(t)
	k := testKey("liar")
	coin := n.receive(t, k, p2wpkh)
	at, err := parseOutpoint(coin.Outpoint)
	require.NoError(t, err)
	payload := func(value int64) []byte {
		p := &packet{network: "LTC", tx: wire.NewMsgTx(2), change: []bool{false}}
		p.tx.AddTxIn(&wire.TxIn{PreviousOutPoint: at, Sequence: replaceable})
		p.tx.AddTxOut(wire.NewTxOut(1_900_000, form(testKey("to"), p2wpkh)))
		p.from = []source{{out: wire.NewTxOut(value, form(k, p2wpkh))}}
		out, err := p.encode()
		require.NoError(t, err)
		return out
	}
	_, err = offline(t, "LTC", n.params).Inspect(payload(int64(coin.Amount)))
	require.ErrorIs(t, err, chain.ErrRejected)
	for _, taken := range []bool{false, true} { // in this order: a node takes one transaction twice
		value := int64(coin.Amount)
		if !taken {
			value -= 50_000
		}
		u, err := n.client.Inspect(payload(value))
		require.NoError(t, err)
		require.Equal(t, ledger.Amount(value-1_900_000), u.MaxCost)
		s, err := n.client.Assemble(u, []chain.Signature{signWith(t, k, u.Digests[0].Hash, false)})
		require.NoError(t, err)
		_, err = n.try("sendrawtransaction", hex.EncodeToString(s.Raw))
		if taken {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "script-verify-flag")
		}
	}
	doge, _ := Mainnet("DOGE")
	_, err = New(Options{Network: "DOGE", Params: doge, Registry: mainRegistry(), URL: "http://127.0.0.1:1", Pruned: true})
	require.ErrorContains(t, err, "Options.Pruned")
}

// TestProposeColdOnAPrunedNode: a proposal holds the transactions that made its coins while the
// node keeps their blocks.
func TestProposeColdOnAPrunedNode(t *testing.T) {
	t.Parallel()
	n := prunedTown(t)
	x, _ := people(t, 3)
	text := fmt.Sprintf("wsh(sortedmulti(2,%s/0/3,%s/0/3,%s/0/3))", x[0], x[1], x[2])
	cold, err := n.client.ColdAddress(text)
	require.NoError(t, err)
	tx := n.pay(t, chaintest.Payment{To: cold, Amount: decimal.RequireFromString("0.02")})
	n.mine(t, 2)
	o := chain.Order{
		Intent: chain.Intent{Network: "LTC", Currency: "LTC", To: addressOf(t, n.client, form(testKey("hot"), p2wpkh)), Amount: 1_000_000},
		Coins:  []chain.Coin{{Outpoint: tx + ":0", Address: cold, Amount: 2_000_000}},
	}
	u, _, err := n.client.ProposeCold(t.Context(), text, o)
	require.NoError(t, err)
	p, err := psbt.NewFromRawBytes(bytes.NewReader(u.Payload), false)
	require.NoError(t, err)
	require.Equal(t, tx, p.Inputs[0].NonWitnessUtxo.TxHash().String())
	n.set(func(f *fault) { f.kept = n.height() })
	_, _, err = n.client.ProposeCold(t.Context(), text, o)
	require.ErrorIs(t, err, errDropped)
}
