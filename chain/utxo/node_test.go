package utxo

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	btcaddr "github.com/btcsuite/btcd/address/v2"
	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcec/v2/schnorr"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// onNodes runs a test on each real node.
func onNodes(t *testing.T, f func(t *testing.T, n *town)) {
	t.Parallel()
	t.Run("btcd", func(t *testing.T) {
		t.Parallel()
		f(t, btcdTown(t))
	})
	t.Run("litecoin_core", func(t *testing.T) {
		t.Parallel()
		f(t, litecoinTown(t))
	})
	t.Run("litecoin_core_pruned", func(t *testing.T) {
		t.Parallel()
		f(t, prunedTown(t))
	})
}

func testKey(seed string) *btcec.PrivateKey {
	sum := sha256.Sum256([]byte(seed))
	k, _ := btcec.PrivKeyFromBytes(sum[:])
	return k
}

// form is the script of a key in one of the forms that it can spend.
func form(k *btcec.PrivateKey, as kind) []byte {
	if as == p2tr {
		return scriptOf(p2tr, schnorr.SerializePubKey(txscript.ComputeTaprootKeyNoScript(k.PubKey())))
	}
	return scriptOf(as, btcaddr.Hash160(k.PubKey().SerializeCompressed()))
}

// receive has the customer pay 0.02 to a form of a key, mined.
func (n *town) receive(t testing.TB, k *btcec.PrivateKey, as kind) chain.Coin {
	t.Helper()
	a := addressOf(t, n.client, form(k, as))
	tx := n.pay(t, chaintest.Payment{To: a, Amount: decimal.RequireFromString("0.02")})
	n.mine(t, 1)
	return chain.Coin{Outpoint: tx + ":0", Address: a, Amount: 2_000_000}
}

// send builds and signs a payment of 0.01 from coins of one key.
func (n *town) send(t testing.TB, k *btcec.PrivateKey, to []byte, attempt int, coins ...chain.Coin) chain.Attempt {
	t.Helper()
	in := chain.Intent{
		ID: "i", Purpose: chain.ForWithdrawal, Network: n.network, Currency: string(n.network),
		To: addressOf(t, n.client, to), Amount: 1_000_000,
	}
	fee, err := n.client.EstimateFee(t.Context(), in)
	require.NoError(t, err)
	return n.build(t, k, chain.Order{Intent: in, Fee: fee, Coins: coins, Change: coins[0].Address, Attempt: attempt})
}

func (n *town) build(t testing.TB, k *btcec.PrivateKey, o chain.Order) chain.Attempt {
	t.Helper()
	u, err := n.client.Build(t.Context(), o)
	require.NoError(t, err)
	var sigs []chain.Signature
	for _, d := range u.Digests {
		script, err := n.client.script(d.From)
		require.NoError(t, err)
		if is, _ := classify(script); is == p2tr {
			sigs = append(sigs, signWith(t, txscript.TweakTaprootPrivKey(*k, nil), d.Hash, true))
			continue
		}
		sigs = append(sigs, signWith(t, k, d.Hash, false))
	}
	s, err := n.client.Assemble(u, sigs)
	require.NoError(t, err)
	return chain.Attempt{Tx: s.Tx, Raw: s.Raw, Spends: u.Spends, MaxCost: u.MaxCost}
}

func (n *town) broadcast(t testing.TB, a chain.Attempt) {
	t.Helper()
	require.NoError(t, n.client.Broadcast(t.Context(), proof.NewStored(string(n.network), a.Tx, a.Raw)))
}

func (n *town) status(t testing.TB, a chain.Attempt) chain.Status {
	t.Helper()
	all, err := n.client.Status(t.Context(), a)
	require.NoError(t, err)
	return all[0]
}

// mineThese makes a block of just these transactions, which no mempool has to
// like.
func (n *town) mineThese(t testing.TB, raws ...[]byte) {
	t.Helper()
	if n.dialect == Core {
		var list []string
		for _, raw := range raws {
			list = append(list, hex.EncodeToString(raw))
		}
		n.ask(t, nil, "generateblock", n.legacyAddress(n.key), list)
		return
	}
	head := n.height()
	var prev string
	n.ask(t, &prev, "getblockhash", head)
	coinbase := wire.NewMsgTx(2)
	script, err := txscript.NewScriptBuilder().AddInt64(head + 1).AddInt64(99).Script()
	require.NoError(t, err)
	coinbase.AddTxIn(&wire.TxIn{PreviousOutPoint: wire.OutPoint{Index: 0xffffffff}, SignatureScript: script, Sequence: 0xffffffff})
	coinbase.AddTxOut(wire.NewTxOut(1, n.purseScript()))
	raw, _ := makeBlock(prev, 0x20000000, nil, append([][]byte{serialize(coinbase)}, raws...), nil)
	binary.LittleEndian.PutUint32(raw[68:], uint32(time.Now().Add(10*time.Minute).Unix())) // the first blocks ran ahead
	binary.LittleEndian.PutUint32(raw[72:], 0x207fffff)
	for nonce := uint32(0); ; nonce++ {
		binary.LittleEndian.PutUint32(raw[76:], nonce)
		if sum := twice(raw[:headerSize]); sum[31] < 0x7f {
			break
		}
	}
	var refused *string
	n.ask(t, &refused, "submitblock", hex.EncodeToString(raw))
	if refused != nil {
		require.Empty(t, *refused)
	}
	require.Equal(t, head+1, n.height())
}

// highS turns the signature of a P2PKH input round, as anybody can who sees it.
func highS(t testing.TB, raw []byte) (changed []byte, id string) {
	t.Helper()
	tx := wire.NewMsgTx(2)
	require.NoError(t, tx.Deserialize(bytes.NewReader(raw)))
	push := tx.TxIn[0].SignatureScript
	der, pub := push[1:push[0]], push[1+push[0]:] // without the kind of signature
	sig, err := ecdsa.ParseDERSignature(der)
	require.NoError(t, err)
	r, s := sig.R(), sig.S()
	s.Negate()
	rb, sb := r.Bytes(), s.Bytes()
	part := func(b [32]byte) []byte {
		v := bytes.TrimLeft(b[:], "\x00")
		if v[0] >= 0x80 {
			v = append([]byte{0}, v...)
		}
		return append([]byte{2, byte(len(v))}, v...)
	}
	body := append(part(rb), part(sb)...)
	out := append([]byte{0x30, byte(len(body))}, body...)
	out = append(out, byte(txscript.SigHashAll))
	tx.TxIn[0].SignatureScript = append(append([]byte{byte(len(out))}, out...), pub...)
	return serialize(tx), tx.TxHash().String()
}

// TestW04_PaymentMinedUnderAnotherIdIsStillOurs: somebody changes the signature
// of a legacy payment, and a miner takes that one.
func TestW04_PaymentMinedUnderAnotherIdIsStillOurs(t *testing.T) {
	onNodes(t, func(t *testing.T, n *town) {
		k := testKey("w04")
		a := n.send(t, k, form(testKey("to"), p2wpkh), 1, n.receive(t, k, p2pkh))
		n.broadcast(t, a)
		changed, id := highS(t, a.Raw)
		require.NotEqual(t, a.Tx, id)
		n.mineThese(t, changed)
		st := n.status(t, a)
		require.Equal(t, chain.Included, st.State)
		require.True(t, st.Executed)
		require.Equal(t, id, st.By)
		require.EqualValues(t, 1, st.Confirmations)
		require.Positive(t, st.Cost)
		require.Equal(t, chain.Conflicted, n.status(t, chain.Attempt{Tx: a.Tx, Spends: a.Spends}).State, "without the bytes it cannot be known")
	})
}

// TestW04_SegwitIdsStay: the id of our own form does not depend on signatures.
func TestW04_SegwitIdsStay(t *testing.T) {
	onNodes(t, func(t *testing.T, n *town) {
		k := testKey("segwit")
		a := n.send(t, k, form(testKey("to"), p2wpkh), 1, n.receive(t, k, p2wpkh))
		tx := wire.NewMsgTx(2)
		require.NoError(t, tx.Deserialize(bytes.NewReader(a.Raw)))
		require.Empty(t, tx.TxIn[0].SignatureScript)
		tx.TxIn[0].Witness = nil
		require.Equal(t, a.Tx, tx.TxHash().String())
	})
}

// TestW03_ChildPaysForBoth: by what the node itself says of sizes and fees, a payment
// and its child together pay what was estimated, and a dearer child takes its place.
func TestW03_ChildPaysForBoth(t *testing.T) {
	onNodes(t, func(t *testing.T, n *town) {
		for _, as := range []kind{p2pkh, p2wpkh, p2tr} {
			k := testKey("cpfp")
			parent := n.send(t, k, form(testKey("to"), p2wpkh), 1, n.receive(t, k, as))
			n.broadcast(t, parent)
			type entry struct {
				Size  int64       `json:"vsize"`
				Alone json.Number `json:"fee"`
				Fees  struct {
					Base json.Number `json:"base"`
				} `json:"fees"`
			}
			waiting := func(want int) (size, fee int64) {
				var all map[string]entry
				n.ask(t, &all, "getrawmempool", true)
				require.Len(t, all, want)
				for _, e := range all {
					if e.Fees.Base != "" {
						e.Alone = e.Fees.Base
					}
					v, err := units(string(e.Alone))
					require.NoError(t, err)
					size, fee = size+e.Size, fee+v
				}
				return size, fee
			}
			_, paid := waiting(1)
			in := chain.Intent{ID: "child", Purpose: chain.ForCancel, Network: n.network, Currency: string(n.network), To: addressOf(t, n.client, form(k, p2wpkh))}
			dear := n.connect(t, n.node.URL(), n.params, func(o *Options) { o.FallbackRate = 40_000 })
			fee, err := dear.ChildFee(t.Context(), in, parent.Raw, ledger.Amount(paid))
			require.NoError(t, err)
			want, err := parseParams(fee.Params)
			require.NoError(t, err)
			rate := float64(want.Rate) / 1000
			require.GreaterOrEqual(t, rate, 40.)
			tx := wire.NewMsgTx(2)
			require.NoError(t, tx.Deserialize(bytes.NewReader(parent.Raw)))
			at := slices.IndexFunc(tx.TxOut, func(o *wire.TxOut) bool { return bytes.Equal(o.PkScript, form(k, as)) })
			o := chain.Order{Intent: in, Fee: fee, Attempt: 1, Change: in.To, Coins: []chain.Coin{{
				Outpoint: fmt.Sprintf("%s:%d", parent.Tx, at), Address: addressOf(t, n.client, form(k, as)), Amount: ledger.Amount(tx.TxOut[at].Value),
			}}}
			n.broadcast(t, n.build(t, k, o))
			size, both := waiting(2)
			require.InEpsilon(t, rate, float64(both)/float64(size), 0.02)
			o.Attempt = 2
			n.broadcast(t, n.build(t, k, o))
			_, more := waiting(2)
			require.Greater(t, more-paid, (both-paid)*112/100, "an eighth more, the parent's part included")
			n.mine(t, 1)
			require.Equal(t, chain.Included, n.status(t, parent).State)
		}
	})
}

// TestR05_RivalTakesTheBlock: our payment is un-mined, another one spends its
// coin, and that one is un-mined too.
func TestR05_RivalTakesTheBlock(t *testing.T) {
	onNodes(t, func(t *testing.T, n *town) {
		k := testKey("r05")
		coin, other := n.receive(t, k, p2wpkh), n.receive(t, k, p2wpkh)
		ours := n.send(t, k, form(testKey("to"), p2wpkh), 1, coin, other)
		rival := n.send(t, k, form(testKey("thief"), p2wpkh), 1, other)
		n.broadcast(t, ours)
		n.mine(t, 1)
		require.Equal(t, chain.Included, n.status(t, ours).State)
		n.reorg(t, 1, ours.Tx)
		require.Equal(t, chain.Unknown, n.status(t, ours).State, "nothing has taken its place")
		n.broadcast(t, rival)
		require.Equal(t, chain.Unknown, n.status(t, ours).State, "what waits is proof of nothing")
		n.mine(t, 2)
		st := n.status(t, ours)
		require.Equal(t, chain.Conflicted, st.State)
		require.Equal(t, rival.Tx, st.By)
		require.EqualValues(t, 2, st.Confirmations)
		err := n.client.Broadcast(t.Context(), proof.NewStored(string(n.network), ours.Tx, ours.Raw))
		require.Error(t, err)
		require.NotErrorIs(t, err, chain.ErrRejected, "a fork can let it in again")
		n.reorg(t, 2, rival.Tx)
		require.Equal(t, chain.Unknown, n.status(t, ours).State)
		n.broadcast(t, ours)
		n.mine(t, 1)
		require.Equal(t, chain.Included, n.status(t, ours).State)
		require.Equal(t, chain.Conflicted, n.status(t, rival).State)
	})
}

// TestD15_ReplacedDepositIsGone: a customer pays, and replaces it by a payment
// to himself.
func TestD15_ReplacedDepositIsGone(t *testing.T) {
	onNodes(t, func(t *testing.T, n *town) {
		script := form(testKey("merchant"), p2wpkh)
		w := follow.Only{addressOf(t, n.client, script)}
		start, err := n.client.Scan(t.Context(), nil, w, 1)
		require.NoError(t, err)
		at := n.purse[0]
		first := n.pay(t, chaintest.Payment{To: w[0], Amount: decimal.RequireFromString("0.01")})
		waits, err := n.client.Pending(t.Context(), w)
		require.NoError(t, err)
		require.Len(t, waits, 1)
		require.Equal(t, first, waits[0].Tx)
		require.Equal(t, []string{fmt.Sprintf("%s:%d", at.Hash, at.Index)}, waits[0].Spends)
		tx := wire.NewMsgTx(2)
		tx.AddTxIn(&wire.TxIn{PreviousOutPoint: at, Sequence: replaceable})
		tx.AddTxOut(wire.NewTxOut(share-1_000_000, n.purseScript()))
		n.sign(t, tx)
		n.ask(t, nil, "sendrawtransaction", n.hex(t, tx))
		waits, err = n.client.Pending(t.Context(), w)
		require.NoError(t, err)
		require.Empty(t, waits)
		n.mine(t, 1)
		got, err := n.client.Scan(t.Context(), []chain.Block{start.Blocks[0].Block}, w, 5)
		require.NoError(t, err)
		require.Empty(t, got.Blocks[0].Transfers)
		st, err := n.client.Status(t.Context(), chain.Attempt{Tx: first, Spends: []string{fmt.Sprintf("%s:%d", at.Hash, at.Index)}})
		require.NoError(t, err)
		require.Equal(t, chain.Conflicted, st[0].State)
		require.Equal(t, tx.TxHash().String(), st[0].By)
	})
}

// TestEveryFormOfAddressIsSeen and those that one key can spend are spent.
func TestEveryFormOfAddressIsSeen(t *testing.T) {
	onNodes(t, func(t *testing.T, n *town) {
		k := testKey("forms")
		scripts := map[kind][]byte{
			p2pkh: form(k, p2pkh), p2wpkh: form(k, p2wpkh), p2tr: form(k, p2tr),
			p2sh: scriptOf(p2sh, make([]byte, 20)), p2wsh: scriptOf(p2wsh, make([]byte, 32)),
		}
		start, err := n.client.Tip(t.Context())
		require.NoError(t, err)
		var ps []chaintest.Payment
		var order []chain.Address
		for as, script := range scripts {
			a := addressOf(t, n.client, script)
			ps, order = append(ps, chaintest.Payment{To: a, Amount: decimal.RequireFromString("0.02")}), append(order, a)
			if as == p2tr {
				require.Contains(t, string(a), "1p")
			}
		}
		tx := n.pay(t, ps...)
		n.mine(t, 1)
		for i, a := range order {
			s, err := n.client.Scan(t.Context(), []chain.Block{start.Head}, follow.Only{a}, 1)
			require.NoError(t, err)
			require.Len(t, s.Blocks[0].Transfers, 1, a)
			require.Equal(t, i, s.Blocks[0].Transfers[0].Ordinal)
		}
		var coins []chain.Coin
		for i, a := range order {
			for _, as := range []kind{p2pkh, p2wpkh, p2tr} {
				if a == addressOf(t, n.client, scripts[as]) {
					coins = append(coins, chain.Coin{Outpoint: fmt.Sprintf("%s:%d", tx, i), Address: a, Amount: 2_000_000})
				}
			}
		}
		require.Len(t, coins, 3)
		all := n.send(t, k, scripts[p2wsh], 1, coins...) // one of each form in one transaction
		n.broadcast(t, all)
		n.mine(t, 1)
		st := n.status(t, all)
		require.Equal(t, chain.Included, st.State)
		_, err = n.client.plan(&chain.Order{
			Intent: chain.Intent{Currency: string(n.network), To: order[0], Amount: 1_000_000}, Fee: chain.Fee{Params: []byte(`{"rate":1000}`)},
			Coins: []chain.Coin{{Outpoint: tx + ":0", Address: addressOf(t, n.client, scripts[p2sh]), Amount: 2_000_000}},
		})
		require.ErrorIs(t, err, chain.ErrRejected, "what a P2SH address asks for is not in the order")
	})
}

// TestD15_CoinbaseOnANode: what a miner is paid comes with its maturity.
func TestD15_CoinbaseOnANode(t *testing.T) {
	onNodes(t, func(t *testing.T, n *town) {
		w := follow.Only{chain.Address(n.legacyAddress(n.key))}
		start, err := n.client.Tip(t.Context())
		require.NoError(t, err)
		n.mine(t, 1)
		s, err := n.client.Scan(t.Context(), []chain.Block{start.Head}, w, 1)
		require.NoError(t, err)
		require.Len(t, s.Blocks[0].Transfers, 1)
		require.EqualValues(t, 100, s.Blocks[0].Transfers[0].Confirmable)
	})
}

// TestLowSOnly: a signer's high s is turned low, and the bytes are the same.
func TestLowSOnly(t *testing.T) {
	t.Parallel()
	k := testKey("s")
	digest := sha256.Sum256([]byte("x"))
	sig := signWith(t, k, digest, false)
	der, pub, err := ecdsaOf(digest, sig)
	require.NoError(t, err)
	var s secp256k1.ModNScalar
	s.SetByteSlice(sig[32:64])
	s.Negate()
	high := s.Bytes()
	twisted := append(append(append(chain.Signature{}, sig[:32]...), high[:]...), sig[64]^1)
	again, same, err := ecdsaOf(digest, twisted)
	require.NoError(t, err)
	require.Equal(t, der, again)
	require.Equal(t, pub, same)
}

// TestW13_BuilderCannotLieAboutCoins: a payload that misstates what its coins are worth is
// refused, whichever way it does.
func TestW13_BuilderCannotLieAboutCoins(t *testing.T) {
	t.Parallel()
	c := mainnet(t, "BTC")
	k := testKey("liar")
	made := payTx("made", 50_000, form(k, p2wpkh))
	other := payTx("other", 50_000, form(k, p2wpkh)) // of another coin of the same amount
	make := func(change func(s *source)) []byte {
		p := &packet{network: "BTC", tx: wire.NewMsgTx(2), change: []bool{false}}
		p.tx.AddTxIn(&wire.TxIn{PreviousOutPoint: wire.OutPoint{Hash: made.TxHash()}, Sequence: replaceable})
		p.tx.AddTxOut(wire.NewTxOut(40_000, someScript(1)))
		s := source{tx: made, out: wire.NewTxOut(50_000, form(k, p2wpkh))}
		change(&s)
		p.from = append(p.from, s)
		payload, err := p.encode()
		require.NoError(t, err)
		return payload
	}
	u, err := c.Inspect(make(func(*source) {}))
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(10_000), u.MaxCost)
	for what, lie := range map[string]func(s *source){
		"a smaller amount":         func(s *source) { s.out.Value = 41_000 },
		"a larger amount":          func(s *source) { s.out.Value = 99_000 },
		"another script":           func(s *source) { s.out.PkScript = someScript(9) },
		"another transaction":      func(s *source) { s.tx = other },
		"no transaction":           func(s *source) { s.tx = nil },
		"no transaction, less":     func(s *source) { s.tx, s.out.Value = nil, 41_000 },
		"a redeem script too many": func(s *source) { s.redeem = someScript(1) },
	} {
		_, err := c.Inspect(make(lie))
		require.ErrorIs(t, err, chain.ErrRejected, what)
	}
	_, err = mainnet(t, "LTC").Inspect(make(func(*source) {}))
	require.ErrorIs(t, err, chain.ErrRejected, "of another network")
}

// TestExtensionBlocksOnLitecoinCore follows coins into an extension block and
// out again, past the height from which blocks have one.
func TestExtensionBlocksOnLitecoinCore(t *testing.T) {
	t.Parallel()
	n := &town{network: "LTC", dialect: Core, key: customer()}
	n.params, _ = Testnets("LTC", "regtest")
	n.node = testenv.Litecoind(t, "-disablewallet=0")
	n.found(t, 110)
	n.ask(t, nil, "createwallet", "w")
	var plain, hidden string
	n.ask(t, &plain, "getnewaddress", "", "bech32")
	n.ask(t, &hidden, "getnewaddress", "", "mweb")
	n.pay(t, chaintest.Payment{To: chain.Address(plain), Amount: decimal.RequireFromString("0.1")})
	n.mine(t, int(431-n.height()))
	start, err := n.client.Tip(t.Context())
	require.NoError(t, err)
	merchant := follow.Only{addressOf(t, n.client, form(testKey("merchant"), p2wpkh))}

	n.ask(t, nil, "sendtoaddress", hidden, 0.1, "", "", true) // all of it, less the fee
	direct := n.pay(t, chaintest.Payment{To: merchant[0], Amount: decimal.RequireFromString("0.01")})
	waits, err := n.client.Pending(t.Context(), merchant)
	require.NoError(t, err, "a transaction that pays into an extension block waits too")
	require.Len(t, waits, 1)
	n.mine(t, 2)
	n.ask(t, nil, "sendtoaddress", string(merchant[0]), 0.02)
	_, err = n.client.Pending(t.Context(), merchant)
	require.NoError(t, err, "and one that is all within")
	n.mine(t, 2)
	s, err := n.client.Scan(t.Context(), []chain.Block{start.Head}, merchant, 10)
	require.NoError(t, err)
	require.Len(t, s.Blocks, 4)
	var got []chain.Transfer
	for _, b := range s.Blocks {
		got = append(got, b.Transfers...)
	}
	require.Len(t, got, 2)
	require.Equal(t, direct, got[0].Tx)
	require.Zero(t, got[0].Confirmable)
	require.Equal(t, "0.02", got[1].Amount.String())
	require.EqualValues(t, pegMaturity, got[1].Confirmable, "what leaves an extension block must mature")
	st, err := n.client.Status(t.Context(), chain.Attempt{Tx: got[1].Tx, Spends: got[1].Spends})
	require.NoError(t, err)
	require.Equal(t, chain.Included, st[0].State)
}

// TestOneCallARequest: providers that take no arrays, and what a node answers
// then when it refuses.
func TestOneCallARequest(t *testing.T) {
	onNodes(t, func(t *testing.T, n *town) {
		c := n.connect(t, n.node.URL(), n.params, func(o *Options) { o.Batch = 1 })
		start, err := c.Tip(t.Context())
		require.NoError(t, err)
		k := testKey("single")
		coin := n.receive(t, k, p2wpkh)
		s, err := c.Scan(t.Context(), []chain.Block{start.Head}, follow.Only{coin.Address}, 9)
		require.NoError(t, err, "past the head a node refuses")
		require.Len(t, s.Blocks, 1)
		require.Len(t, s.Blocks[0].Transfers, 1)
		a := n.send(t, k, form(testKey("to"), p2wpkh), 1, coin)
		st, err := c.Status(t.Context(), a)
		require.NoError(t, err)
		require.Equal(t, chain.Unknown, st[0].State)
		n.broadcast(t, a)
		waits, err := c.Pending(t.Context(), follow.Only{addressOf(t, c, form(testKey("to"), p2wpkh))})
		require.NoError(t, err)
		require.Len(t, waits, 1)
	})
}

// TestD18_NodeThatRefusesTheClient: a wrong password is an error of the node,
// and the password is not in it.
func TestD18_NodeThatRefusesTheClient(t *testing.T) {
	onNodes(t, func(t *testing.T, n *town) {
		c := n.connect(t, n.node.URL(), n.params, func(o *Options) { o.Password = "canary-password" })
		_, err := c.Tip(t.Context())
		require.ErrorIs(t, err, chain.ErrNode)
		require.NotContains(t, err.Error(), "canary")
	})
}
