package e2e_test

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// keeper is the key of anvil's first account, which anvil signs for, too.
func keeper(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := crypto.HexToECDSA("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
	require.NoError(t, err)
	return k
}

// unsignedFields are those of an EIP-1559 transaction that is not signed.
type unsignedFields struct {
	ChainID  *big.Int
	Nonce    uint64
	Tip, Cap *big.Int
	Gas      uint64
	To       common.Address
	Value    *big.Int
	Data     []byte
	Access   types.AccessList
}

// signedBy signs a proposal with go-ethereum, after an edit, as text in hex.
func signedBy(t testing.TB, k *ecdsa.PrivateKey, p refill.Proposal, edit func(*types.DynamicFeeTx)) []byte {
	t.Helper()
	raw, err := hexutil.Decode(string(p.Payload))
	require.NoError(t, err)
	require.EqualValues(t, types.DynamicFeeTxType, raw[0])
	var f unsignedFields
	require.NoError(t, rlp.DecodeBytes(raw[1:], &f))
	tx := &types.DynamicFeeTx{ChainID: f.ChainID, Nonce: f.Nonce, GasTipCap: f.Tip, GasFeeCap: f.Cap, Gas: f.Gas, To: &f.To, Value: f.Value, Data: f.Data}
	if edit != nil {
		edit(tx)
	}
	made, err := types.SignNewTx(k, types.LatestSignerForChainID(tx.ChainID), tx)
	require.NoError(t, err)
	out, err := made.MarshalBinary()
	require.NoError(t, err)
	return []byte(hexutil.Encode(out) + "\n")
}

// chilled is a host of which most coins of a currency lie at an address.
func chilled(t testing.TB, n *node, currency, vault, ceiling, target string) *host {
	t.Helper()
	h := newHost(t, n)
	h.earn("300", currency)
	h.mine(confirmations)
	chill(t, h.app, h.tenant, currency, vault, ceiling, target)
	h.until("moved", func() bool { return onlyMove(t, h.app, h.tenant).Status == house.Completed })
	h.mine(confirmations)
	chill(t, h.app, h.tenant, currency, vault, "0", "0")
	return h
}

// cooled is a host of which most coins lie at the keeper's address.
func cooled(t testing.TB, n *node, currency string) *host {
	t.Helper()
	ceiling, target := "1", "0.5"
	if !n.currency(currency).Native() {
		ceiling, target = "100", "50"
	}
	return chilled(t, n, currency, addressOf(keeper(t)).Hex(), ceiling, target)
}

func (h *host) refill(id string) refill.Proposal {
	h.t.Helper()
	p, err := h.app.Operate.Refill(h.t.Context(), h.tenant, id)
	require.NoError(h.t, err)
	return p
}

func (h *host) propose(currency, amount string) refill.Proposal {
	h.t.Helper()
	units, err := h.node.currency(currency).Units(dec(amount), ledger.Down)
	require.NoError(h.t, err)
	p, operation, err := h.app.Operate.ProposeRefill(h.t.Context(), h.tenant, currency, units, why)
	require.NoError(h.t, err)
	require.NotEmpty(h.t, operation)
	require.Equal(h.t, refill.Open, p.Status)
	return p
}

// isCold asserts what the books have at cold addresses, that nothing is in suspense and that the
// operator's funds are what they were.
func (h *host) isCold(currency string, want, float ledger.Amount) {
	h.t.Helper()
	left, suspense, now := aside(h.t, h.store, h.tenant, currency)
	require.Equal(h.t, []ledger.Amount{want, 0, float}, []ledger.Amount{left, suspense, now})
}

// cost is what the network took for a transaction, in units of ether.
func (h *host) cost(tx string) ledger.Amount {
	h.t.Helper()
	var r *types.Receipt
	h.node.ask(&r, "eth_getTransactionReceipt", tx)
	require.NotNil(h.t, r)
	wei := new(big.Int).Mul(new(big.Int).SetUint64(r.GasUsed), r.EffectiveGasPrice)
	c := h.node.currency("ETH")
	units := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Decimals-c.Scale)), nil)
	wei.Add(wei, new(big.Int).Sub(units, big.NewInt(1)))
	return ledger.Amount(wei.Div(wei, units).Int64())
}

// TestAnvilFT08_RefillSignedElsewhere: the owner of the cold address signs a refill elsewhere. What came
// back in another shape than was proposed, or by another key, changes nothing. What landed is booked once,
// with what the network took by its receipt.
func TestAnvilFT08_RefillSignedElsewhere(t *testing.T) {
	t.Parallel()
	for currency, amount := range map[string]string{"ETH": "0.25", "USDCERC20": "75", "USDTERC20": "75"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			n := openAnvil(t, usual)
			h, ctx, k := cooled(t, n, currency), t.Context(), keeper(t)
			cold, _, float := aside(t, h.store, h.tenant, currency)
			owed := h.available(currency)
			p := h.propose(currency, amount)
			require.Equal(t, h.hot, string(p.To))
			require.Equal(t, addressOf(k).Hex(), string(p.From))
			require.Empty(t, p.Tx, "its hash depends on the signature")
			require.True(t, strings.HasPrefix(string(p.Payload), "0x02"))
			_, _, err := h.app.Operate.ProposeRefill(ctx, h.tenant, currency, 1, why)
			require.Equal(t, &refill.StateError{ID: p.ID, Current: refill.Open}, err)

			other := addressOf(key("thief"))
			for named, signed := range map[string][]byte{
				"its nonce is":            signedBy(t, k, p, func(x *types.DynamicFeeTx) { x.Nonce++ }),
				"its to is":               signedBy(t, k, p, func(x *types.DynamicFeeTx) { x.To = &other }),
				"its value is":            signedBy(t, k, p, func(x *types.DynamicFeeTx) { x.Value = new(big.Int).Add(x.Value, big.NewInt(1)) }),
				"its data is":             signedBy(t, k, p, func(x *types.DynamicFeeTx) { x.Data = append(bytes.Clone(x.Data), 1) }),
				"its gas limit is":        signedBy(t, k, p, func(x *types.DynamicFeeTx) { x.Gas++ }),
				"its fee cap per gas is":  signedBy(t, k, p, func(x *types.DynamicFeeTx) { x.GasFeeCap = new(big.Int).Add(x.GasFeeCap, big.NewInt(1)) }),
				"its tip per gas is":      signedBy(t, k, p, func(x *types.DynamicFeeTx) { x.GasTipCap = new(big.Int).Add(x.GasTipCap, big.NewInt(1)) }),
				"its chain id is":         signedBy(t, k, p, func(x *types.DynamicFeeTx) { x.ChainID = big.NewInt(1) }),
				"its access list is":      signedBy(t, k, p, func(x *types.DynamicFeeTx) { x.AccessList = types.AccessList{{Address: other}} }),
				"signed by the key of":    signedBy(t, key("thief"), p, nil),
				"not a signed":            p.Payload,
				"not a signed transact":   []byte("no"),
				"what came back is not a": nil,
			} {
				_, _, err := h.app.Operate.TakeRefill(ctx, h.tenant, p.ID, signed, why)
				require.ErrorIs(t, err, chain.ErrRejected, named)
				require.ErrorContains(t, err, named)
				require.Equal(t, p, h.refill(p.ID), "nothing has changed")
			}

			// Another library signs what is shown: anvil, which is written in Rust with alloy.
			shown, err := h.app.Operate.ShowRefill(&p)
			require.NoError(t, err)
			var signed string
			n.ask(&signed, "eth_signTransaction", json.RawMessage(shown))
			dry, operation, err := h.app.Operate.TakeRefill(ctx, h.tenant, p.ID, []byte(signed), cryptopay.Call{By: "ann", Reason: "to see", DryRun: true})
			require.NoError(t, err)
			require.Empty(t, operation)
			require.Equal(t, refill.Sending, dry.Status)
			require.Equal(t, p, h.refill(p.ID), "nothing has changed")
			taken, operation, err := h.app.Operate.TakeRefill(ctx, h.tenant, p.ID, []byte(signed), why)
			require.NoError(t, err)
			require.NotEmpty(t, operation)
			require.Equal(t, refill.Sending, taken.Status)
			require.NotEmpty(t, taken.Tx)
			again, operation, err := h.app.Operate.TakeRefill(ctx, h.tenant, p.ID, signedBy(t, k, p, nil), why)
			require.NoError(t, err)
			require.Empty(t, operation, "it is taken once")
			require.Equal(t, taken.Tx, again.Tx)
			_, _, err = h.app.Operate.CancelRefill(ctx, h.tenant, p.ID, why)
			require.Equal(t, &refill.StateError{ID: p.ID, Current: refill.Sending}, err)

			h.until("landed", func() bool { return h.refill(p.ID).Status == refill.Landed })
			h.mine(2 * confirmations)
			took := h.cost(taken.Tx)
			require.Positive(t, took)
			require.LessOrEqual(t, took, p.Fee)
			_, _, err = h.app.Operate.CancelRefill(ctx, h.tenant, p.ID, why)
			require.Equal(t, &refill.StateError{ID: p.ID, Current: refill.Landed}, err)
			if currency == "ETH" {
				h.isCold(currency, cold-p.Amount-took, float)
				_, err = h.app.Operate.BookRefillCost(ctx, h.tenant, "ETH", taken.Tx, 1, why)
				require.Error(t, err, "what it took is booked")
			} else {
				h.isCold(currency, cold-p.Amount, float) // by the books no ether lies there: it was its owner's
			}
			require.Equal(t, owed, h.available(currency))
			h.sound()
			second := h.propose(currency, amount[:len(amount)-1])
			require.NotEqual(t, p.Inputs, second.Inputs)
		})
	}
}

// TestAnvilFT08_TheOwnerSendsARefillByHand: a proposal that has expired or was cancelled is signed and sent
// all the same, and one that is open. Each is booked as it is, with its cost.
func TestAnvilFT08_TheOwnerSendsARefillByHand(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h, ctx, k := cooled(t, n, "ETH"), t.Context(), keeper(t)
	cold, _, float := aside(t, h.store, h.tenant, "ETH")
	send := func(p refill.Proposal) string {
		t.Helper()
		var hash string
		n.ask(&hash, "eth_sendRawTransaction", strings.TrimSpace(string(signedBy(t, k, p, nil))))
		return hash
	}
	for i, end := range []refill.Status{refill.Expired, refill.Cancelled, refill.Landed} {
		p := h.propose("ETH", []string{"0.1", "0.2", "0.3"}[i])
		switch end {
		case refill.Expired:
			h.clock.Advance(49 * time.Hour)
			_, _, err := h.app.Operate.TakeRefill(ctx, h.tenant, p.ID, signedBy(t, k, p, nil), why)
			require.Equal(t, &refill.StateError{ID: p.ID, Current: refill.Expired}, err)
			h.step()
		case refill.Cancelled:
			_, _, err := h.app.Operate.CancelRefill(ctx, h.tenant, p.ID, why)
			require.NoError(t, err)
		case refill.Landed:
			twin := h.refill("refill-ETH-2")
			require.Equal(t, refill.Cancelled, twin.Status)
		}
		hash := send(p)
		h.mine(3 * confirmations)
		require.Equal(t, end, h.refill(p.ID).Status)
		if end == refill.Landed {
			require.Equal(t, hash, h.refill(p.ID).Tx)
		}
		cold -= p.Amount + h.cost(hash)
		h.isCold("ETH", cold, float)
		_, err := h.app.Operate.BookRefillCost(ctx, h.tenant, "ETH", hash, 1, why)
		require.Error(t, err, "what it took is booked")
		h.sound()
	}

	// The owner has an idea of his own: the nonce is used, and the proposal is gone once that is final.
	p := h.propose("ETH", "0.05")
	signed := signedBy(t, k, p, nil)
	hot := common.HexToAddress(h.hot)
	tx := n.send(k, &hot, big.NewInt(3e16), nil, 21_000)
	h.until("gone", func() bool { return h.refill(p.ID).Status == refill.Gone })
	require.Contains(t, h.refill(p.ID).Reason, tx)
	_, _, err := h.app.Operate.TakeRefill(ctx, h.tenant, p.ID, signed, why)
	require.Equal(t, &refill.StateError{ID: p.ID, Current: refill.Gone}, err)
	h.mine(2 * confirmations)
	moved, err := n.currency("ETH").Units(dec("0.03"), ledger.Down)
	require.NoError(t, err)
	cold -= moved
	h.isCold("ETH", cold, float)
	_, err = h.app.Operate.BookRefillCost(ctx, h.tenant, "ETH", tx, h.cost(tx), why)
	require.NoError(t, err)
	h.isCold("ETH", cold-h.cost(tx), float)
	h.sound()
}

// TestAnvilFT08_ColdAddressWithoutGas: a token's refill is refused while the cold address cannot pay for it.
// The error says how much is to be sent there. Ether that the books know is booked as the cost of the
// token's refill.
func TestAnvilFT08_ColdAddressWithoutGas(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h, ctx, k := cooled(t, n, "USDTERC20"), t.Context(), keeper(t)
	vault := addressOf(k)
	n.ask(nil, "anvil_setBalance", vault, (*hexutil.Big)(big.NewInt(1000)))
	_, _, err := h.app.Operate.ProposeRefill(ctx, h.tenant, "USDTERC20", 20_000_000, why)
	require.ErrorIs(t, err, chain.ErrShort)
	require.ErrorContains(t, err, "send at least 0.0")
	require.ErrorContains(t, err, vault.Hex())
	_, _, err = h.app.Operate.ProposeRefill(ctx, h.tenant, "USDTERC20", 1, why)
	require.ErrorIs(t, err, chain.ErrTooDear)
	_, _, err = h.app.Operate.ProposeRefill(ctx, h.tenant, "USDTERC20", 1_000_000_000_000, why)
	require.ErrorIs(t, err, chain.ErrShort)
	_, _, err = h.app.Operate.ProposeRefill(ctx, h.tenant, "ETH", 1, why)
	require.ErrorIs(t, err, refill.ErrUnable, "no cold address is set for it")

	// A part of the operator's ether is moved there, and pays for the refill.
	now, err := h.app.Policies.Get(ctx, h.tenant)
	require.NoError(t, err)
	both := now.Policy
	both.Cold = append(both.Cold, policy.Cold{Currency: "ETH", Address: vault.Hex(), Ceiling: dec("1"), Target: dec("0.5")})
	_, _, err = h.app.Operate.SetPolicy(ctx, h.tenant, now.Number, both, why)
	require.NoError(t, err)
	h.until("moved", func() bool {
		all, err := h.app.Operate.HousePayments(ctx, h.tenant, 10, 0)
		require.NoError(t, err)
		return len(all) == 2 && all[0].Status == house.Completed
	})
	both.Cold[1].Ceiling, both.Cold[1].Target = dec("0"), dec("0")
	_, _, err = h.app.Operate.SetPolicy(ctx, h.tenant, now.Number+1, both, why)
	require.NoError(t, err)
	ether, _, etherFloat := aside(t, h.store, h.tenant, "ETH")
	require.Positive(t, ether)
	cold, _, float := aside(t, h.store, h.tenant, "USDTERC20")

	p := h.propose("USDTERC20", "20")
	_, _, err = h.app.Operate.ProposeRefill(ctx, h.tenant, "ETH", ether/2, why)
	require.Equal(t, &refill.StateError{ID: p.ID, Current: refill.Open}, err, "it has the nonce")
	taken, _, err := h.app.Operate.TakeRefill(ctx, h.tenant, p.ID, signedBy(t, k, p, nil), why)
	require.NoError(t, err)
	h.until("landed", func() bool { return h.refill(p.ID).Status == refill.Landed })
	h.mine(2 * confirmations)
	h.isCold("USDTERC20", cold-p.Amount, float)
	h.isCold("ETH", ether-h.cost(taken.Tx), etherFloat)
	_, err = h.app.Operate.BookRefillCost(ctx, h.tenant, "ETH", taken.Tx, 1, why)
	require.Error(t, err, "what it took is booked")
	h.sound()

	h.forked(12, taken.Tx) // it is sent again
	h.until("landed again", func() bool { return h.refill(p.ID).Status == refill.Landed })
	h.mine(2 * confirmations)
	h.isCold("USDTERC20", cold-p.Amount, float)
	h.isCold("ETH", ether-h.cost(taken.Tx), etherFloat)
	h.sound()
}

// forked has a fork take a transaction back, and an operator resume.
func (h *host) forked(depth int, drop string) {
	h.t.Helper()
	at := h.node.height()
	h.node.reorg(depth, drop)
	h.mine(2)
	if st, err := h.app.NetworkStatus(h.t.Context(), "ETH"); err == nil && st.Halted != "" {
		_, err = h.app.Operate.ResumeNetwork(h.t.Context(), "ETH", at-int64(depth), why)
		require.NoError(h.t, err)
	}
	h.mine(10)
}

// TestAnvilFT08_AForkTakesARefillBack: a landed refill is in no block any more. What was booked with it, its
// cost too, is taken back. It is sent again, by itself, and booked again.
func TestAnvilFT08_AForkTakesARefillBack(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h, ctx, k := cooled(t, n, "ETH"), t.Context(), keeper(t)
	cold, _, float := aside(t, h.store, h.tenant, "ETH")
	p := h.propose("ETH", "0.25")
	signed := signedBy(t, k, p, nil)
	taken, _, err := h.app.Operate.TakeRefill(ctx, h.tenant, p.ID, signed, why)
	require.NoError(t, err)
	h.until("landed", func() bool { return h.refill(p.ID).Status == refill.Landed })
	h.mine(2)
	took := h.cost(taken.Tx)
	h.isCold("ETH", cold-p.Amount-took, float)
	h.sound()

	at := n.height()
	n.reorg(8, taken.Tx)
	h.until("taken back", func() bool {
		left, _, _ := aside(t, h.store, h.tenant, "ETH")
		if st, err := h.app.NetworkStatus(ctx, "ETH"); err == nil && st.Halted != "" {
			_, err = h.app.Operate.ResumeNetwork(ctx, "ETH", at-8, why)
			require.NoError(t, err)
		}
		return left == cold
	})
	require.Equal(t, refill.Sending, h.refill(p.ID).Status)
	h.sound()
	h.until("landed again", func() bool { return h.refill(p.ID).Status == refill.Landed })
	h.mine(2 * confirmations)
	h.isCold("ETH", cold-p.Amount-h.cost(taken.Tx), float)
	h.sound()
}

// TestAnvilFT08_TheWholeIsLessThanIsNeeded: less lies cold than the hot coins lack. What is there is
// proposed, less its fee.
func TestAnvilFT08_TheWholeIsLessThanIsNeeded(t *testing.T) {
	t.Parallel()
	for currency, target := range map[string]string{"ETH": "90", "USDTERC20": "5000"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			n := openAnvil(t, usual)
			h, k := cooled(t, n, currency), keeper(t)
			cold, _, float := aside(t, h.store, h.tenant, currency)
			if c := n.currency(currency); c.Native() { // its owner sent nothing of his own there
				units := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Decimals-c.Scale)), nil)
				n.ask(nil, "anvil_setBalance", addressOf(k), (*hexutil.Big)(units.Mul(units, big.NewInt(int64(cold)))))
			}
			chill(t, h.app, h.tenant, currency, addressOf(k).Hex(), "10000", target)
			h.until("proposed", func() bool { return len(h.refills()) > 0 })
			p := h.refills()[0]
			if currency == "ETH" {
				require.Less(t, p.Amount, cold)
				require.Greater(t, p.Amount, cold-cold/10)
			} else {
				require.Equal(t, cold, p.Amount)
			}
			taken, _, err := h.app.Operate.TakeRefill(t.Context(), h.tenant, p.ID, signedBy(t, k, p, nil), why)
			require.NoError(t, err)
			h.until("landed", func() bool { return h.refill(p.ID).Status == refill.Landed })
			h.mine(2 * confirmations)
			left := cold - p.Amount
			if currency == "ETH" {
				left -= h.cost(taken.Tx)
			}
			h.isCold(currency, left, float)
			h.sound()
			h.mine(5)
			require.Len(t, h.refills(), 1, "what is left is not worth its fee")
		})
	}
}

func (h *host) refills() []refill.Proposal {
	h.t.Helper()
	all, _, err := h.app.Operate.Refills(h.t.Context(), h.tenant, 10, 0)
	require.NoError(h.t, err)
	return all
}

// TestAnvilFT08_ATokenThatRefuses: the token does not move what was signed. The proposal is gone, and names
// what the network took, which a person books.
func TestAnvilFT08_ATokenThatRefuses(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h, ctx, k := cooled(t, n, "USDTERC20"), t.Context(), keeper(t)
	cold, _, float := aside(t, h.store, h.tenant, "USDTERC20")
	p := h.propose("USDTERC20", "20")
	code := common.HexToAddress(n.currency("USDTERC20").Contract)
	var was hexutil.Bytes
	n.ask(&was, "eth_getCode", code, "latest")
	taken, _, err := h.app.Operate.TakeRefill(ctx, h.tenant, p.ID, signedBy(t, k, p, nil), why)
	require.NoError(t, err)
	n.ask(nil, "eth_sendRawTransaction", strings.TrimSpace(string(signedBy(t, k, p, nil))))
	n.ask(nil, "anvil_setCode", code, "0x60006000fd") // it reverts
	n.commit()
	n.ask(nil, "anvil_setCode", code, was)
	h.until("gone", func() bool { return h.refill(p.ID).Status == refill.Gone })
	require.Contains(t, h.refill(p.ID).Reason, taken.Tx)
	require.Contains(t, h.refill(p.ID).Reason, n.currency("ETH").Decimal(h.cost(taken.Tx)).String()+" ETH")
	h.isCold("USDTERC20", cold, float)
	_, err = h.app.Operate.BookRefillCost(ctx, h.tenant, "ETH", taken.Tx, h.cost(taken.Tx), why)
	require.ErrorIs(t, err, treasury.ErrNothingCold, "by the books no ether lies there, and it is not the service's own")
	require.NotEmpty(t, h.propose("USDTERC20", "20").ID)
}

// TestAnvilFT08_ARefillIsProposedByItself: hot coins are below half of the target, and a refill lies ready
// to be signed. While the cold address cannot pay its gas the log says once an hour how much is to be sent
// there. Who cancels a refill is not asked again at once.
func TestAnvilFT08_ARefillIsProposedByItself(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h, ctx := cooled(t, n, "USDTERC20"), t.Context()
	said, vault := new(bytes.Buffer), addressOf(keeper(t))
	h.log = said
	h.app = compose(t, h.setup)
	n.ask(nil, "anvil_setBalance", vault, (*hexutil.Big)(big.NewInt(1000)))
	chill(t, h.app, h.tenant, "USDTERC20", vault.Hex(), "250", "200")
	for range 20 {
		h.mine(1)
	}
	all, _, err := h.app.Operate.Refills(ctx, h.tenant, 10, 0)
	require.NoError(t, err)
	require.Empty(t, all)
	require.Equal(t, 1, strings.Count(said.String(), "refill_not_proposed"), said)
	require.Regexp(t, `refill_not_proposed .*currency=USDTERC20 .*send at least 0\.0\d+ ETH more to `+vault.Hex(), said)
	h.clock.Advance(time.Hour)
	h.mine(1)
	require.Equal(t, 2, strings.Count(said.String(), "refill_not_proposed"), said)
	n.ask(nil, "anvil_setBalance", vault, (*hexutil.Big)(big.NewInt(1e18)))
	for range 20 {
		h.mine(1)
	}
	all, _, err = h.app.Operate.Refills(ctx, h.tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, refill.Open, all[0].Status)
	_, _, err = h.app.Operate.CancelRefill(ctx, h.tenant, all[0].ID, why)
	require.NoError(t, err)
	h.mine(20)
	all, _, err = h.app.Operate.Refills(ctx, h.tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, all, 1)
	h.sound()
}

// TestAnvilFT08_AnEditedRefillIsNotTaken: Verify names it, and what was signed of it is refused.
func TestAnvilFT08_AnEditedRefillIsNotTaken(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h, ctx, k := cooled(t, n, "ETH"), t.Context(), keeper(t)
	p := h.propose("ETH", "0.25")
	rows, err := h.store.Rows(ctx, refill.Proposals.Table, storage.Keys(storage.Tenant(h.tenant), p.ID)...)
	require.NoError(t, err)
	row := rows[0]
	edited := p
	edited.Payload = []byte(strings.Replace(string(p.Payload), strings.ToLower(h.hot[2:]), strings.Repeat("11", 20), 1))
	require.NotEqual(t, p.Payload, edited.Payload)
	require.NoError(t, storage.CommitOne(ctx, h.store, storage.Change{
		ID: "edited", Partition: row.Partition, Put: []storage.Row{refill.Proposals.Row(row.ID, row.Version, row.Due, edited)},
	}))
	_, _, err = h.app.Operate.TakeRefill(ctx, h.tenant, p.ID, signedBy(t, k, edited, nil), why)
	require.ErrorIs(t, err, refill.ErrAltered)
	reports, err := h.app.Verify(ctx)
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(reports[0].Contradictions, func(c cryptopay.Contradiction) bool { return strings.Contains(c.ID, p.ID) }))
}
