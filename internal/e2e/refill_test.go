package e2e_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/internal/nodes/utxotest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// safe is a cold address of which other people have the keys, in wallets of their own.
type safe struct {
	t          testing.TB
	seeds      []string // hex
	descriptor string
	address    string
}

// openSafe makes one of three keys, two of which must sign; with alone of one key.
func openSafe(t testing.TB, m *utxotest.Mint, alone bool) *safe {
	t.Helper()
	s := &safe{t: t}
	people := 3
	path := "m/48'/1'/0'/2'"
	if alone {
		people, path = 1, "m/84'/1'/0'"
	}
	var tasks []any
	for i := range people {
		seed := hex.EncodeToString([]byte(fmt.Sprintf("the seed of person number %08d", i)))
		s.seeds = append(s.seeds, seed)
		tasks = append(tasks, map[string]any{"xpub": map[string]string{"seed": seed, "path": path}})
	}
	var got []struct{ XPub, Fingerprint string }
	testenv.Wallet(t, tasks, &got)
	var keys []string
	for _, k := range got {
		keys = append(keys, fmt.Sprintf("[%s%s]%s/0/5", k.Fingerprint, strings.TrimPrefix(path, "m"), k.XPub))
	}
	s.descriptor = "wpkh(" + keys[0] + ")"
	if !alone {
		s.descriptor = "wsh(sortedmulti(2," + strings.Join(keys, ",") + "))"
	}
	a, err := m.Client.ColdAddress(s.descriptor)
	require.NoError(t, err)
	s.address = string(a)
	return s
}

// sign has some of the people sign, after an edit of the transaction, nil = none.
func (s *safe) sign(p refill.Proposal, finalize string, edit any, people ...int) []byte {
	s.t.Helper()
	var seeds []string
	for _, i := range people {
		seeds = append(seeds, s.seeds[i])
	}
	var out []struct{ PSBT, Tx string }
	testenv.Wallet(s.t, []any{map[string]any{"sign": map[string]any{
		"psbt": base64.StdEncoding.EncodeToString(p.Payload), "seeds": seeds, "finalize": finalize, "edit": edit,
	}}}, &out)
	return []byte(out[0].PSBT + out[0].Tx)
}

// cooledShop is a shop of which most coins lie in the safe.
func cooledShop(t testing.TB, m *utxotest.Mint, safe *safe) (*shop, house.Payment) {
	t.Helper()
	s, currency := openShop(t, m), string(m.Network)
	s.earn("60")
	s.mine(8)
	s.keep(safe, "0.3", "0.2")
	s.until("moved", func() bool { return onlyMove(t, s.app, s.tenant).Status == house.Completed })
	s.mine(8)
	move := onlyMove(t, s.app, s.tenant)
	cold, _, _ := aside(t, s.store, s.tenant, currency)
	require.Equal(t, move.Amount, cold)
	s.keep(safe, "0", "0")
	return s, move
}

// keep sets the safe as the tenant's cold address.
func (s *shop) keep(safe *safe, ceiling, target string) {
	s.t.Helper()
	now, err := s.app.Policies.Get(s.t.Context(), s.tenant)
	require.NoError(s.t, err)
	p := now.Policy
	p.Cold = []policy.Cold{{Currency: string(s.mint.Network), Address: safe.address, Descriptor: safe.descriptor, Ceiling: dec(ceiling), Target: dec(target)}}
	_, _, err = s.app.Operate.SetPolicy(s.t.Context(), s.tenant, now.Number, p, why)
	require.NoError(s.t, err)
}

var why = cryptopay.Call{By: "ann", Reason: "payouts need it"}

func (s *shop) refill(id string) refill.Proposal {
	s.t.Helper()
	p, err := s.app.Operate.Refill(s.t.Context(), s.tenant, id)
	require.NoError(s.t, err)
	return p
}

// TestCoinsFT08_RefillSignedElsewhere: two of three people sign a refill with wallets of their own. What
// came back in another shape than was proposed changes nothing. What landed is booked once, with what
// the network took, and the change is cold as before: a second refill spends it.
func TestCoinsFT08_RefillSignedElsewhere(t *testing.T) {
	onMints(t, func(t *testing.T, m *utxotest.Mint) {
		safe := openSafe(t, m, false)
		s, move := cooledShop(t, m, safe)
		ctx, currency := t.Context(), string(m.Network)
		_, _, float := aside(t, s.store, s.tenant, currency)

		amount := move.Amount / 3
		p, _, err := s.app.Operate.ProposeRefill(ctx, s.tenant, currency, amount, why)
		require.NoError(t, err)
		require.Equal(t, refill.Open, p.Status)
		hot, err := s.app.Hot(ctx, m.Network, s.tenant)
		require.NoError(t, err)
		require.Equal(t, hot, p.To)
		require.Len(t, p.Outputs, 2)
		_, _, err = s.app.Operate.ProposeRefill(ctx, s.tenant, currency, amount, why)
		busy := (*refill.StateError)(nil)
		require.ErrorAs(t, err, &busy, "no two spend the same coins")

		thief := hex.EncodeToString(m.Script(payable(t, m, "thief")))
		other := 0
		if p.Outputs[0].Change {
			other = 1
		}
		for named, signed := range map[string][]byte{
			"pays":                safe.sign(p, "", map[string]any{"output": []any{other, thief, int64(amount)}}, 0, 1),
			"units to":            safe.sign(p, "", map[string]any{"output": []any{other, "", int64(amount) - 1}}, 0, 1),
			"lock time":           safe.sign(p, "", map[string]any{"locktime": 7}, 0, 1),
			"sequence of input 0": safe.sign(p, "", map[string]any{"sequence": []any{0, 1}}, 0, 1),
			"hash type 0x3":       safe.sign(p, "", map[string]any{"sighash": 3}, 0, 1),
			"1 of 2 signatures":   safe.sign(p, "", nil, 2),
			"0 of 2 signatures":   []byte(base64.StdEncoding.EncodeToString(p.Payload)),
			"neither a PSBT":      []byte("no"),
		} {
			_, _, err = s.app.Operate.TakeRefill(ctx, s.tenant, p.ID, signed, why)
			require.ErrorIs(t, err, chain.ErrRejected, named)
			require.ErrorContains(t, err, named)
			require.Equal(t, p, s.refill(p.ID), "nothing has changed")
		}

		signed := safe.sign(p, "", nil, 2, 0)
		taken, operation, err := s.app.Operate.TakeRefill(ctx, s.tenant, p.ID, signed, why)
		require.NoError(t, err)
		require.NotEmpty(t, operation)
		require.Equal(t, refill.Sending, taken.Status)
		again, operation, err := s.app.Operate.TakeRefill(ctx, s.tenant, p.ID, safe.sign(p, "tx", nil, 0, 1), why)
		require.NoError(t, err)
		require.Empty(t, operation, "it is taken once")
		require.Equal(t, taken, again)
		s.until("landed", func() bool { return s.refill(p.ID).Status == refill.Landed })
		s.mine(12)
		left, suspense, now := aside(t, s.store, s.tenant, currency)
		require.Equal(t, []ledger.Amount{move.Amount - amount - p.Fee, 0, float}, []ledger.Amount{left, suspense, now})
		s.sound()
		_, err = s.app.Operate.BookRefillCost(ctx, s.tenant, m.Network, p.Tx, 1, why)
		require.Error(t, err, "what it took is booked")

		// The rest went back, and is spent as a finalised PSBT says.
		second, _, err := s.app.Operate.ProposeRefill(ctx, s.tenant, currency, left/2, why)
		require.NoError(t, err)
		require.Contains(t, second.Inputs[0], p.Tx)
		_, _, err = s.app.Operate.TakeRefill(ctx, s.tenant, second.ID, safe.sign(second, "psbt", nil, 1, 2), why)
		require.NoError(t, err)
		s.until("landed", func() bool { return s.refill(second.ID).Status == refill.Landed })
		s.mine(12)
		rest, suspense, now := aside(t, s.store, s.tenant, currency)
		require.Equal(t, []ledger.Amount{left - second.Amount - second.Fee, 0, float}, []ledger.Amount{rest, suspense, now})
		s.sound()
	})
}

// TestCoinsFT08_RefillEndsWithoutUs: a proposal that nobody signs expires, and its coins are free; one
// that its owner sends by hand is booked as it is; and one whose coins its owner spends otherwise is
// gone.
func TestCoinsFT08_RefillEndsWithoutUs(t *testing.T) {
	onMints(t, func(t *testing.T, m *utxotest.Mint) {
		safe := openSafe(t, m, true)
		s, move := cooledShop(t, m, safe)
		ctx, currency := t.Context(), string(m.Network)
		_, _, float := aside(t, s.store, s.tenant, currency)
		first, _, err := s.app.Operate.ProposeRefill(ctx, s.tenant, currency, move.Amount/2, why)
		require.NoError(t, err)
		signed := safe.sign(first, "", nil, 0)
		s.clock.Advance(49 * time.Hour)
		_, _, err = s.app.Operate.TakeRefill(ctx, s.tenant, first.ID, signed, why)
		require.Equal(t, &refill.StateError{ID: first.ID, Current: refill.Expired}, err)
		s.step()
		require.Equal(t, refill.Expired, s.refill(first.ID).Status)

		second, _, err := s.app.Operate.ProposeRefill(ctx, s.tenant, currency, move.Amount/4, why)
		require.NoError(t, err)
		require.Equal(t, first.Inputs, second.Inputs)
		var sent string
		m.Ask(&sent, "sendrawtransaction", string(safe.sign(second, "tx", nil, 0)))
		require.Equal(t, second.Tx, sent)
		s.until("landed", func() bool { return s.refill(second.ID).Status == refill.Landed })
		s.mine(12)
		left, suspense, now := aside(t, s.store, s.tenant, currency)
		require.Equal(t, []ledger.Amount{move.Amount - second.Amount - second.Fee, 0, float}, []ledger.Amount{left, suspense, now})
		s.sound()

		third, _, err := s.app.Operate.ProposeRefill(ctx, s.tenant, currency, left/4, why)
		require.NoError(t, err)
		thief := hex.EncodeToString(m.Script(payable(t, m, "their own idea")))
		m.Ask(&sent, "sendrawtransaction", string(safe.sign(third, "tx", map[string]any{"output": []any{0, thief, int64(third.Outputs[0].Amount)}}, 0)))
		s.until("gone", func() bool { return s.refill(third.ID).Status == refill.Gone })
		require.Contains(t, s.refill(third.ID).Reason, sent)
		_, _, err = s.app.Operate.TakeRefill(ctx, s.tenant, third.ID, signed, why)
		require.Equal(t, &refill.StateError{ID: third.ID, Current: refill.Gone}, err)
		s.sound()
	})
}

// TestCoinsFT08_RefillIsProposedByItself: hot coins are below half of the target, and a refill lies ready
// to be signed.
func TestCoinsFT08_RefillIsProposedByItself(t *testing.T) {
	t.Parallel()
	m := utxotest.Open(t, "BTC", "simnet", 330)
	safe := openSafe(t, m, false)
	s, _ := cooledShop(t, m, safe)
	s.keep(safe, "0.5", "0.45")
	s.mine(3)
	all, _, err := s.app.Operate.Refills(t.Context(), s.tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, refill.Open, all[0].Status)
	_, _, err = s.app.Operate.CancelRefill(t.Context(), s.tenant, all[0].ID, why)
	require.NoError(t, err)
	s.mine(5)
	require.Equal(t, refill.Cancelled, s.refill(all[0].ID).Status)
	all, _, err = s.app.Operate.Refills(t.Context(), s.tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, all, 1, "who cancelled it is not asked again at once")
	s.sound()
}

// TestCoinsFT08_TheWholeIsLessThanIsNeeded: less lies cold than the hot coins lack. What is there is
// proposed, less its fee.
func TestCoinsFT08_TheWholeIsLessThanIsNeeded(t *testing.T) {
	t.Parallel()
	m := utxotest.Open(t, "BTC", "simnet", 330)
	safe := openSafe(t, m, false)
	s, move := cooledShop(t, m, safe)
	s.keep(safe, "90", "80")
	s.mine(3)
	all, _, err := s.app.Operate.Refills(t.Context(), s.tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, move.Amount, all[0].Amount+all[0].Fee)
	require.Len(t, all[0].Outputs, 1)
	s.sound()
}

// TestCoinsFT08_DescriptorOfAnotherAddress: what cannot sign for the cold address is refused.
func TestCoinsFT08_DescriptorOfAnotherAddress(t *testing.T) {
	t.Parallel()
	m := utxotest.Open(t, "BTC", "simnet", 330)
	s, safe := openShop(t, m), openSafe(t, m, false)
	to, err := m.Client.AddressOf(testPub("vault"))
	require.NoError(t, err)
	_, _, err = s.app.Operate.SetPolicy(t.Context(), s.tenant, 0, policy.Policy{Cold: []policy.Cold{{Currency: "BTC", Address: string(to), Descriptor: safe.descriptor}}}, why)
	require.ErrorContains(t, err, "cold[0].descriptor")
	require.ErrorContains(t, err, safe.address)
	_, _, err = s.app.Operate.ProposeRefill(t.Context(), s.tenant, "BTC", 1, why)
	require.ErrorIs(t, err, refill.ErrUnable)
}

// payable is the address of a seed's key.
func payable(t testing.TB, m *utxotest.Mint, seed string) string {
	t.Helper()
	a, err := m.Client.AddressOf(testPub(seed))
	require.NoError(t, err)
	return string(a)
}

// TestCoinsFT08_TheChangeOfAnExpiredRefillIsCold: a signed copy of a proposal that has expired is sent by
// hand, and what it gave back to the cold address is spent by the next refill.
func TestCoinsFT08_TheChangeOfAnExpiredRefillIsCold(t *testing.T) {
	t.Parallel()
	m := utxotest.Open(t, "BTC", "simnet", 330)
	safe := openSafe(t, m, true)
	s, move := cooledShop(t, m, safe)
	first, _, err := s.app.Operate.ProposeRefill(t.Context(), s.tenant, "BTC", move.Amount/4, why)
	require.NoError(t, err)
	s.clock.Advance(49 * time.Hour)
	s.step()
	require.Equal(t, refill.Expired, s.refill(first.ID).Status)
	m.Ask(nil, "sendrawtransaction", string(safe.sign(first, "tx", nil, 0)))
	s.mine(12)
	left, _, _ := aside(t, s.store, s.tenant, "BTC")
	require.Equal(t, move.Amount-first.Amount-first.Fee, left, "it is booked")
	s.sound()

	second, _, err := s.app.Operate.ProposeRefill(t.Context(), s.tenant, "BTC", left/2, why)
	require.NoError(t, err)
	require.Contains(t, second.Inputs[0], first.Tx)
	_, _, err = s.app.Operate.TakeRefill(t.Context(), s.tenant, second.ID, safe.sign(second, "", nil, 0), why)
	require.NoError(t, err)
	s.until("landed", func() bool { return s.refill(second.ID).Status == refill.Landed })
	s.mine(12)
	rest, suspense, _ := aside(t, s.store, s.tenant, "BTC")
	require.Equal(t, []ledger.Amount{left - second.Amount - second.Fee, 0}, []ledger.Amount{rest, suspense})
	s.sound()
}

// TestCoinsFT08_AForkTakesARefillBack: a landed refill is in no block any more, and no node has it. What
// was booked with it is taken back. It is sent again, by itself, and booked again.
func TestCoinsFT08_AForkTakesARefillBack(t *testing.T) {
	t.Parallel()
	m := utxotest.Open(t, "BTC", "simnet", 330)
	safe := openSafe(t, m, true)
	s, move := cooledShop(t, m, safe)
	ctx := t.Context()
	first, _, err := s.app.Operate.ProposeRefill(ctx, s.tenant, "BTC", move.Amount/4, why)
	require.NoError(t, err)
	raw := safe.sign(first, "tx", nil, 0)
	_, _, err = s.app.Operate.TakeRefill(ctx, s.tenant, first.ID, raw, why)
	require.NoError(t, err)
	s.until("landed", func() bool { return s.refill(first.ID).Status == refill.Landed })
	booked := func(amount ledger.Amount) {
		t.Helper()
		left, suspense, _ := aside(t, s.store, s.tenant, "BTC")
		require.Equal(t, []ledger.Amount{amount, 0}, []ledger.Amount{left, suspense})
		s.sound()
	}
	s.mine(2)
	booked(move.Amount - first.Amount - first.Fee)

	at := m.Height()
	m.Reorg(12)
	s.compose() // the node is at another port
	s.until("taken back", func() bool {
		if st, err := s.app.NetworkStatus(ctx, "BTC"); err == nil && st.Halted != "" {
			_, err = s.app.Operate.ResumeNetwork(ctx, "BTC", at-12, why)
			require.NoError(t, err)
		}
		left, _, _ := aside(t, s.store, s.tenant, "BTC")
		return left == move.Amount
	})
	require.Equal(t, refill.Sending, s.refill(first.ID).Status)
	booked(move.Amount)
	s.until("landed again", func() bool { return s.refill(first.ID).Status == refill.Landed })
	s.mine(2)
	booked(move.Amount - first.Amount - first.Fee)
}
