package sim_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// forge signs a payload that Build would not make.
func forge(t testing.TB, a chaintest.Account, payload string) chain.Attempt {
	t.Helper()
	digests, err := sim.DigestsOf([]byte(payload))
	require.NoError(t, err)
	var sigs []string
	for _, d := range digests {
		s, err := a.Sign(d.Hash)
		require.NoError(t, err)
		sigs = append(sigs, `"`+hex.EncodeToString(s)+`"`)
	}
	raw := []byte(`{"body":` + payload + `,"sigs":[` + strings.Join(sigs, ",") + `]}`)
	return chain.Attempt{Tx: sim.TxOf(raw), Raw: raw}
}

// highS turns a signature into the other one that is valid.
func highS(t testing.TB, s chain.Signature) chain.Signature {
	t.Helper()
	var n secp256k1.ModNScalar
	require.False(t, n.SetByteSlice(s[32:64]))
	high := n.Negate().Bytes()
	out := append(append(s[:32:32], high[:]...), s[64]^1)
	return out
}

func TestForgedAccountTransactions(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a := account(t, c, "a")
	_, err := c.Fund(a.Address, "ETH", dec("10"))
	require.NoError(t, err)
	good := body(t, signed(t, c, a, chain.Order{Intent: chain.Intent{To: a.Address, Amount: 1e8}}))
	for what, change := range map[string][2]string{
		"no gas":              {`"gas":21000`, `"gas":1`},
		"a negative tip":      {`"tip":100000000`, `"tip":-9000000000`},
		"a tip above all":     {`"tip":100000000`, `"tip":9223372036854775807`},
		"a price above all":   {`"max":2100000000`, `"max":9223372036854775807`},
		"too fine an amount":  {`"amount":"1"`, `"amount":"0.0000000000000000001"`},
		"an effect":           {`"amount":"1"`, `"amount":"1","effect":"internal"`},
		"a coinbase":          {`"amount":"1"}]`, `"amount":"1"}],"immature":1`},
		"another chain":       {`"chain":"`, `"chain":"0`},
		"two writings":        {`"from"`, ` "from"`},
		"another from's coin": {string(`"from":"` + a.Address), `"from":"` + string(account(t, c, "b").Address)},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		require.NotEqual(t, good, bad, what)
		x := chain.Attempt{Raw: []byte(bad)}
		if _, err := sim.DigestsOf([]byte(bad)); err == nil {
			x = forge(t, a, bad)
		}
		require.ErrorIs(t, send(t, c, x), chain.ErrRejected, what)
	}
	require.Empty(t, c.Mempool())
	x := forge(t, a, good)
	require.ErrorIs(t, send(t, c, chain.Attempt{Tx: "other", Raw: x.Raw}), chain.ErrRejected, "the hash is of these bytes")
	require.NoError(t, send(t, c, x), "only what was changed was wrong")

	for _, raw := range []string{`{"body":` + good + `,"outside":7}`, strings.TrimSuffix(string(x.Raw), "}") + `,"outside":7}`} {
		err := c.Client().Broadcast(t.Context(), proof.NewStored("ETH", sim.TxOf([]byte(raw)), []byte(raw)))
		require.ErrorIs(t, err, chain.ErrRejected, "only the world's customers always have the coins")
	}

	foreign := strings.Replace(good, `"amount":"1"`, `"contract":"unknown","amount":"1"`, 1)
	_, err = c.Client().Inspect([]byte(foreign))
	require.ErrorIs(t, err, chain.ErrRejected, "what is no currency of ours is not signed")
}

func TestForgedOutputs(t *testing.T) {
	t.Parallel()
	c := open(t, "BTC")
	a, b := account(t, c, "a"), account(t, c, "b")
	fund, err := c.Fund(a.Address, "BTC", one)
	require.NoError(t, err)
	good := body(t, signed(t, c, a, chain.Order{
		Intent: chain.Intent{To: b.Address, Amount: 5e7}, Change: a.Address,
		Coins: []chain.Coin{{Outpoint: fund + ":0", Address: a.Address, Amount: 1e8}},
	}))
	in := fmt.Sprintf(`{"outpoint":"%s:0","address":"%s","amount":"1"}`, fund, a.Address)
	require.Contains(t, good, in)
	for what, change := range map[string][2]string{
		"an input twice":        {in, in + "," + in},
		"more out than in":      {`"amount":"0.5"`, `"amount":"5"`},
		"an input of more":      {`"amount":"1"`, `"amount":"2"`},
		"an input that is none": {fund + ":0", fund + ":1"},
		"a token":               {`"amount":"0.5"`, `"contract":"x","amount":"0.5"`},
	} {
		err := send(t, c, forge(t, a, strings.Replace(good, change[0], change[1], 1)))
		require.Error(t, err, what)
		if !strings.HasPrefix(what, "an input of") && !strings.HasPrefix(what, "an input that") {
			require.ErrorIs(t, err, chain.ErrRejected, what)
			continue
		}
		require.ErrorIs(t, err, sim.ErrMissing, what)
	}
	require.NoError(t, send(t, c, forge(t, a, good)))
}

func TestHighSignaturesAreNotRelayed(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a := account(t, c, "a")
	_, err := c.Fund(a.Address, "ETH", dec("10"))
	require.NoError(t, err)
	tx := signed(t, c, a, chain.Order{Intent: chain.Intent{To: a.Address, Amount: 1e8}})
	twisted := a
	twisted.Sign = func(d [32]byte) (chain.Signature, error) {
		s, err := a.Sign(d)
		return highS(t, s), err
	}
	require.ErrorIs(t, send(t, c, forge(t, twisted, body(t, tx))), chain.ErrRejected)
	u, err := c.Client().Inspect([]byte(body(t, tx)))
	require.NoError(t, err)
	s, err := twisted.Sign(u.Digests[0].Hash)
	require.NoError(t, err)
	_, err = c.Client().Assemble(u, []chain.Signature{s})
	require.Error(t, err)
}

func TestMoneyIsCheckedWhenItIsSpent(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a, b := account(t, c, "a"), account(t, c, "b")
	_, err := c.Fund(a.Address, "ETH", dec("1.5"))
	require.NoError(t, err)
	in := chain.Intent{To: b.Address, Amount: 1e8}
	first := signed(t, c, a, chain.Order{Intent: in})
	second := signed(t, c, a, chain.Order{Intent: in, Nonce: 1})
	require.NoError(t, send(t, c, first))
	require.NoError(t, send(t, c, second), "each alone is paid for")
	c.Mine(2)
	require.Equal(t, chain.Pending, state(t, c, second.Tx), "both are not")
	c.Drop(second.Tx)
	require.ErrorIs(t, send(t, c, second), sim.ErrInsufficient)
	_, err = c.Fund(a.Address, "ETH", one)
	require.NoError(t, err)
	require.NoError(t, send(t, c, second))
	c.Mine(1)
	require.Equal(t, "2", c.Balance(b.Address, "ETH").String())
}

func TestARevertUndoesTheWholeTransaction(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a := account(t, c, "a").Address
	pay(t, c, sim.Tx{Payments: []sim.Payment{
		{To: a, Amount: one}, {To: a, Currency: "USDTERC20", Amount: one}, {To: a, Amount: one, Effect: sim.Reverted},
	}})
	c.Mine(1)
	require.Empty(t, c.Transfers(a))
	require.True(t, c.Balance(a, "ETH").IsZero())
	require.True(t, c.Balance(a, "USDTERC20").IsZero())
}

func TestSweepLeavesNothing(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a, b := account(t, c, "a"), account(t, c, "b")
	_, err := c.Fund(a.Address, "ETH", dec("1.000000000000000001"))
	require.NoError(t, err)
	require.NoError(t, send(t, c, signed(t, c, a, chain.Order{Intent: chain.Intent{To: b.Address, All: true}})))
	c.Mine(1)
	require.True(t, c.Balance(a.Address, "ETH").IsZero())
	require.Positive(t, c.Balance(b.Address, "ETH").Sign())
}

func TestDustIsNotPaidOut(t *testing.T) {
	t.Parallel()
	c := open(t, "BTC")
	a, b := account(t, c, "a"), account(t, c, "b")
	fund, err := c.Fund(a.Address, "BTC", one)
	require.NoError(t, err)
	o := chain.Order{
		Intent: chain.Intent{To: b.Address, Amount: 1e8 - 1200}, Change: a.Address,
		Coins: []chain.Coin{{Outpoint: fund + ":0", Address: a.Address, Amount: 1e8}},
	}
	tx := signed(t, c, a, o)
	require.NoError(t, send(t, c, tx))
	c.Mine(1)
	s := status(t, c.Client(), tx)
	require.EqualValues(t, 1200, s.Cost, "change below the dust limit is the miner's")
	o.Intent.Network, o.Intent.Currency, o.Intent.Amount = "BTC", "BTC", 545
	o.Fee, err = c.Client().EstimateFee(t.Context(), o.Intent)
	require.NoError(t, err)
	_, err = c.Client().Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrRejected)
}

func TestMempoolSurvivesAReorgBelowIt(t *testing.T) {
	t.Parallel()
	c := open(t, "BTC")
	a, b := account(t, c, "a"), account(t, c, "b")
	c.Mine(1)
	parent := pay(t, c, sim.Tx{Payments: to(a.Address, one)})
	child := signed(t, c, a, chain.Order{
		Intent: chain.Intent{To: b.Address, All: true},
		Coins:  []chain.Coin{{Outpoint: parent + ":0", Address: a.Address, Amount: 1e8}},
	})
	require.NoError(t, send(t, c, child))
	c.MineOnly(child.Tx)
	require.Equal(t, chain.Pending, state(t, c, child.Tx), "not before its parent")
	c.MineOnly(parent)
	require.Equal(t, []string{child.Tx}, c.Mempool())
	_, err := c.Reorg(1)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{parent, child.Tx}, c.Mempool())
	c.Drop(parent)
	require.Empty(t, c.Mempool(), "a parent takes its children with it")
	require.NoError(t, c.Resend(parent))
	require.NoError(t, c.Resend(child.Tx))
	c.Mine(1)
	require.Equal(t, chain.Included, state(t, c, child.Tx))
}

func TestChangedSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a := account(t, c, "a").Address
	dropped, mined := pay(t, c, sim.Tx{Payments: to(a, one)}), pay(t, c, sim.Tx{Payments: to(a, one)})
	c.Drop(dropped)
	c.Mine(1)
	b, err := c.Snapshot()
	require.NoError(t, err)
	for _, tx := range []string{dropped, mined} {
		require.Error(t, c.Restore([]byte(strings.Replace(string(b), `{"hash":"`+tx, `{"hash":"`+strings.Repeat("0", 64), 1))))
		require.Error(t, c.Restore([]byte(strings.Replace(string(b), `{"tx":"`+mined, `{"tx":"`+strings.Repeat("0", 64), 1))))
	}
	require.Len(t, c.Transfers(a), 1)
	require.NoError(t, c.Restore(b))
}
