package utxo

import (
	"bytes"
	"testing"

	"github.com/btcsuite/btcd/wire/v2"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// FuzzTransaction compares the walk with btcd's decoder: what that one reads we
// read too, with the same id, inputs and outputs.
func FuzzTransaction(f *testing.F) {
	f.Add(serialize(payTx("1", 1000, someScript(1))), false)
	f.Add(coinbaseTx(5, someScript(2)), true)
	f.Fuzz(func(t *testing.T, raw []byte, mweb bool) {
		got, err := readTx(raw, mweb)
		want := wire.NewMsgTx(2)
		r := bytes.NewReader(raw)
		if e := want.Deserialize(r); e != nil || r.Len() > 0 || len(want.TxIn) == 0 {
			return
		}
		require.NoError(t, err)
		require.Equal(t, want.TxHash().String(), hexHash(got.id))
		require.Equal(t, len(want.TxIn), got.nIn)
		o := cursor{b: got.outs}
		for _, out := range want.TxOut {
			value, script := o.output()
			require.Equal(t, out.Value, value)
			require.True(t, bytes.Equal(out.PkScript, script))
		}
	})
}

// FuzzBlock: no bytes make the walk panic, or pass for a block that they are not.
func FuzzBlock(f *testing.F) {
	raw, _ := makeBlock("", 2, nil, [][]byte{coinbaseTx(1, someScript(1)), serialize(payTx("1", 1000, someScript(1)))}, nil)
	f.Add(raw, byte(0))
	raw, _ = makeBlock("", 0x104, make([]byte, 300), [][]byte{coinbaseTx(1, someScript(1))}, nil)
	f.Add(raw, byte(1))
	f.Fuzz(func(t *testing.T, raw []byte, as byte) {
		p := Params{AuxPoW: as&1 != 0, MWEB: as&2 != 0}
		hash := "00"
		if len(raw) >= headerSize {
			hash = hexHash(twice(raw[:headerSize]))
		}
		b, err := p.readBlock(raw, hash, 1)
		if err != nil {
			require.ErrorIs(t, err, chain.ErrNode)
			return
		}
		for i := range b.txs {
			b.txs[i].spends()
			b.txs[i].effect()
		}
	})
}

// FuzzInspect: what it accepts has one writing.
func FuzzInspect(f *testing.F) {
	c := mainnet(f, "BTC")
	k := testKey("fuzz")
	made := payTx("made", 50_000, form(k, p2wpkh))
	p := &packet{network: "BTC", tx: wire.NewMsgTx(2), change: []bool{true}, from: []source{{tx: made, out: made.TxOut[0]}}}
	p.tx.AddTxIn(&wire.TxIn{PreviousOutPoint: wire.OutPoint{Hash: made.TxHash()}, Sequence: replaceable})
	p.tx.AddTxOut(wire.NewTxOut(40_000, someScript(1)))
	payload, err := p.encode()
	require.NoError(f, err)
	f.Add(payload)
	f.Fuzz(func(t *testing.T, payload []byte) {
		u, err := c.Inspect(payload)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, u.MaxCost, ledger.Amount(0))
		back, err := c.parsePayload(payload)
		require.NoError(t, err)
		again, err := back.encode()
		require.NoError(t, err)
		require.Equal(t, payload, again)
	})
}

// FuzzAnswer: no answer of a node makes the client panic.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`[{"id":1,"result":"00","error":null},{"id":2,"result":{"a":[1,"\\\""]}}]`))
	f.Add([]byte(`{"id":null,"error":{"code":-1,"message":"x"}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		n := &transport.RPC{}
		calls := []*transport.Call{transport.NewCall("a"), transport.NewCall("b")}
		if n.Split(answer, calls) != nil {
			return
		}
		for _, k := range calls {
			require.True(t, k.Out != nil || k.Err != nil)
			_, _ = k.Integer()
			_, _ = hashOf(k)
			_, _ = bytesOf(k)
			_ = k.Into(&txInfo{})
		}
	})
}
