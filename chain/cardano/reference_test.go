package cardano

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/cardanotest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// shape is an order, and what the reference library is asked of it.
type shape struct {
	name   string
	coins  int   // of one account
	others int   // of accounts of their own
	ada    int64 // of each coin
	tokens int   // how many of the coins hold tokens
	pays   int64 // lovelace; 0 = all
	to     string
	also   int
	memo   string
	whole  bool // there is no change, by plan
}

var shapes = []shape{
	{name: "one input and change", coins: 1, ada: 10, pays: 3_000_000},
	{name: "to a base address", coins: 1, ada: 10, pays: 3_000_000, to: "addr1qx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgse35a3x"},
	{name: "to an address of Byron's", coins: 1, ada: 10, pays: 3_000_000, to: byron},
	{name: "many inputs of one key", coins: 12, ada: 2, pays: 20_000_000},
	{name: "many inputs of many keys", others: 40, ada: 2, pays: 60_000_000},
	{name: "all", coins: 3, ada: 5, whole: true},
	{name: "change that is too small goes to the network", coins: 1, ada: 10, pays: 9_300_000, whole: true},
	{name: "change with tokens", coins: 2, ada: 5, tokens: 2, pays: 3_000_000},
	{name: "a short memo", coins: 1, ada: 10, pays: 3_000_000, memo: "order 7"},
	{name: "a memo of just a line", coins: 1, ada: 10, pays: 3_000_000, memo: strings.Repeat("x", 64)},
	{name: "a memo of several lines, with letters of many bytes", coins: 1, ada: 10, pays: 3_000_000, memo: strings.Repeat("Zahlung für Ørsted 注文 ", 9)},
	{name: "several payments, and amounts above 32 bits", coins: 2, ada: 9000, pays: 4_300_000_000, also: 3},
	{name: "tokens, a memo and many keys", coins: 1, others: 3, ada: 4, tokens: 3, pays: 6_000_000, memo: "together"},
}

// made is what a shape came to.
type made struct {
	shape
	attempt chain.Attempt
	spent   []spentOutput
	draft   *draft
	keys    []string // secrets, as the reference library takes them
}

type spentOutput struct {
	Tx       string            `json:"tx"`
	Index    uint32            `json:"index"`
	Address  string            `json:"address"`
	Lovelace string            `json:"lovelace"`
	Tokens   map[string]string `json:"tokens,omitempty"`
}

// make funds accounts, orders and signs.
func (n *town) make(t *testing.T, s shape) made {
	t.Helper()
	m := made{shape: s}
	var coins []chain.Coin
	by := map[chain.Address]chaintest.Account{}
	change := n.account(t, s.name+"change").Address
	for i := range s.coins + s.others {
		name := s.name
		if i >= s.coins {
			name = fmt.Sprint(s.name, i)
		}
		a := n.account(t, name)
		by[a.Address] = a
		p := cardanotest.Pay{To: string(a.Address), Lovelace: s.ada * 1_000_000}
		o := spentOutput{Address: p.To, Lovelace: fmt.Sprint(p.Lovelace)}
		if i < s.tokens {
			p.Tokens = map[string]uint64{cardanotest.Coin("Fake"): uint64(i) + 7, cardanotest.Coin(""): 1}
			o.Tokens = map[string]string{cardanotest.Coin("Fake"): fmt.Sprint(i + 7), cardanotest.Coin(""): "1"}
		}
		o.Tx = n.Send(nil, p)
		coins = append(coins, chain.Coin{Outpoint: o.Tx + ":0", Address: a.Address, Amount: ledger.Amount(p.Lovelace)})
		m.spent = append(m.spent, o)
	}
	n.Mine(1)
	to := chain.Address(s.to)
	if to == "" {
		to = n.account(t, "recipient of "+s.name).Address
	}
	in := n.Intent("", to, s.pays)
	in.Memo, in.MaxCost = s.memo, 5_000_000
	if in.All = s.pays == 0; in.All {
		in.Purpose = chain.ForSweep
	}
	o := n.Order(t, in)
	o.Coins, o.Change = coins, change
	for i := range s.also {
		also := in
		also.ID, also.To = fmt.Sprint("also", i), n.account(t, fmt.Sprint("another recipient", i)).Address
		o.Also = append(o.Also, also)
	}
	u, err := n.client.Build(t.Context(), o)
	require.NoError(t, err, s.name)
	require.Equal(t, s.memo, u.Memo)
	sigs := make([]chain.Signature, len(u.Digests))
	for i, d := range u.Digests {
		sigs[i], err = by[d.From].Sign(d.Hash)
		require.NoError(t, err)
	}
	signed, err := n.client.Assemble(u, sigs)
	require.NoError(t, err)
	m.attempt = chain.Attempt{Tx: signed.Tx, Raw: signed.Raw, Spends: u.Spends}
	m.draft, err = n.client.parsePayload(u.Payload)
	require.NoError(t, err)
	for _, s := range m.draft.from { // each key once, in the order of the inputs
		a, ok := addressOf(s.address)
		require.True(t, ok)
		if k := hex.EncodeToString(n.keys[a].Seed()); !slices.Contains(m.keys, k) {
			m.keys = append(m.keys, k)
		}
	}
	return m
}

type task map[string]any

// TestReference_SignedBytes: every shape of a transaction as the reference library writes and
// signs it, byte for byte, at the very fee that it reckons; a ledger of others takes it, and
// nothing that somebody changed in it, and nothing too late. The modelled node takes it, too.
func TestReference_SignedBytes(t *testing.T) {
	t.Parallel()
	n := openTown(t, "Ogmios")
	var all []made
	var tasks []task
	for _, s := range shapes {
		m := n.make(t, s)
		all = append(all, m)
		var inputs, outputs []task
		for _, x := range m.draft.from {
			inputs = append(inputs, task{"tx": hex.EncodeToString(x.at.id[:]), "index": x.at.index})
		}
		for _, p := range m.draft.pays {
			to, ok := textOf(p.address)
			require.True(t, ok)
			tokens := map[string]string{}
			for _, k := range p.tokens.list() {
				tokens[k.contract] = fmt.Sprint(k.quantity)
			}
			outputs = append(outputs, task{"address": to, "lovelace": fmt.Sprint(p.coin), "tokens": tokens})
		}
		tasks = append(tasks, task{"sign": task{
			"inputs": inputs, "outputs": outputs, "fee": fmt.Sprint(m.draft.fee), "ttl": fmt.Sprint(m.draft.ttl), "memo": m.memo, "keys": m.keys,
		}})
	}
	for _, m := range all {
		raw := hex.EncodeToString(m.attempt.Raw)
		offer := func(raw string, slot uint64) {
			tasks = append(tasks, task{"submit": task{"utxos": m.spent, "slot": slot, "raw": raw}})
		}
		offer(raw, m.draft.ttl-1)
		offer(raw, m.draft.ttl+1)
		for _, p := range m.draft.pays[:1] { // one lovelace more to the recipient
			bent := slices.Clone(m.attempt.Raw)
			at := strings.Index(string(bent), string(p.address))
			require.Positive(t, at)
			bent[at+len(p.address)+2] ^= 1
			offer(hex.EncodeToString(bent), m.draft.ttl-1)
		}
	}
	var got []struct {
		Raw, Tx, MinFee, Error string
		MinAda                 []string
	}
	testenv.Cardano(t, tasks, &got)
	require.Len(t, got, 4*len(shapes))
	for i, m := range all {
		ref := got[i]
		require.Equal(t, ref.Raw, hex.EncodeToString(m.attempt.Raw), m.name)
		require.Equal(t, ref.Tx, m.attempt.Tx, m.name)
		if m.whole {
			require.NotEmpty(t, ref.MinFee)
		} else {
			require.Equal(t, ref.MinFee, fmt.Sprint(m.draft.fee), "%s: not a lovelace more than it takes", m.name)
		}
		for k := range m.draft.pays {
			least, err := mainnetParams.least(&m.draft.pays[k])
			require.NoError(t, err)
			require.Equal(t, ref.MinAda[k], fmt.Sprint(atLeast(t, m.draft.pays[k])), "%s: output %d, of any amount at least %d", m.name, k, least)
		}
		verdicts := got[len(all)+3*i:][:3]
		require.Equal(t, m.attempt.Tx, verdicts[0].Tx, "%s: %s", m.name, verdicts[0].Error)
		require.NotEmpty(t, verdicts[1].Error, "%s: too late", m.name)
		require.NotEmpty(t, verdicts[2].Error, "%s: changed", m.name)
	}
	for _, m := range all {
		require.NoError(t, n.Broadcast(t, m.attempt), m.name)
	}
	n.Mine(1)
	for _, m := range all {
		st := n.Status(t, m.attempt)
		require.Equal(t, chain.Included, st.State, m.name)
		require.EqualValues(t, m.draft.fee, st.Cost, m.name)
	}
}

// atLeast is what the ledger asks of an output as it is: by its bytes.
func atLeast(t *testing.T, p pay) int64 {
	t.Helper()
	size, err := p.size()
	require.NoError(t, err)
	return mainnetParams.PerOutput * (overhead + size)
}
