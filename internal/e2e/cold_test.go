package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"testing"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/nodes/utxotest"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// chill gives a tenant's coins of a currency a ceiling; 0 lets what comes back stay.
func chill(t testing.TB, app *cryptopay.App, tenant, currency, vault, ceiling, target string) {
	t.Helper()
	now, err := app.Policies.Get(t.Context(), tenant)
	require.NoError(t, err)
	p := now.Policy
	p.Cold = []policy.Cold{{Currency: currency, Address: vault, Ceiling: dec(ceiling), Target: dec(target)}}
	_, _, err = app.Operate.SetPolicy(t.Context(), tenant, now.Number, p, cryptopay.Call{By: "ann", Reason: "most of it is safer there"})
	require.NoError(t, err)
}

// onlyMove is the one move of a tenant's.
func onlyMove(t testing.TB, app *cryptopay.App, tenant string) house.Payment {
	t.Helper()
	all, err := app.Operate.HousePayments(t.Context(), tenant, 10, 0)
	require.NoError(t, err)
	require.LessOrEqual(t, len(all), 1)
	if len(all) == 0 {
		return house.Payment{}
	}
	return all[0]
}

// aside is what the books have at cold addresses, in suspense and as the operator's own.
func aside(t testing.TB, s storage.Store, tenant, currency string) (cold, suspense, float ledger.Amount) {
	t.Helper()
	v, _, err := treasury.ColdOf(t.Context(), s, tenant, currency)
	require.NoError(t, err)
	balances, err := s.Balances(t.Context(), storage.Tenant(tenant), ledger.Suspense, ledger.Float)
	require.NoError(t, err)
	for _, b := range balances {
		switch {
		case string(b.Asset) != currency:
		case b.Account == ledger.Float:
			float = b.Posted
		default:
			suspense = b.Posted
		}
	}
	return v.Amount, suspense, float
}

// TestAnvilFT07_ToColdAndBack: what is above the ceiling goes to a cold address, and what its
// owner sends back is known as a refill by its sender.
func TestAnvilFT07_ToColdAndBack(t *testing.T) {
	t.Parallel()
	for currency, c := range map[string]struct{ ceiling, target, back string }{
		"ETH": {"1", "0.5", "0.25"}, "USDCERC20": {"100", "50", "75"}, "USDTERC20": {"100", "50", "75"},
	} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			n := openAnvil(t, usual)
			h := newHost(t, n)
			h.earn("300", currency)
			h.mine(confirmations)
			owner := n.people[len(n.people)-1]
			vault := addressOf(owner).Hex()
			had, owed := n.holds(vault, currency), h.available(currency)
			chill(t, h.app, h.tenant, currency, vault, c.ceiling, c.target)
			h.until("moved", func() bool { return onlyMove(t, h.app, h.tenant).Status == house.Completed })
			h.mine(confirmations)
			moved := n.currency(currency).Decimal(onlyMove(t, h.app, h.tenant).Amount)
			require.Equal(t, moved.String(), n.holds(vault, currency).Sub(had).String())
			require.True(t, n.holds(h.hot, currency).GreaterThanOrEqual(dec(c.target)))
			require.Equal(t, owed, h.available(currency))
			h.sound()

			chill(t, h.app, h.tenant, currency, vault, "0", "0")
			cold, _, float := aside(t, h.store, h.tenant, currency)
			units := dec(c.back).Shift(int32(n.currency(currency).Decimals)).BigInt()
			hot := common.HexToAddress(h.hot)
			if n.currency(currency).Native() {
				n.send(owner, &hot, units, nil, 21_000)
			} else {
				token := common.HexToAddress(n.currency(currency).Contract)
				n.send(owner, &token, new(big.Int), pack("transfer(address,uint256)", hot, units), 500_000)
			}
			h.mine(2 * confirmations)
			left, suspense, now := aside(t, h.store, h.tenant, currency)
			require.Equal(t, c.back, n.currency(currency).Decimal(cold-left).String())
			require.Zero(t, suspense)
			require.Equal(t, float, now, "it is not the operator's")
			require.Equal(t, owed, h.available(currency))
			h.sound()
		})
	}
}

// TestCoinsFT07_ToColdAndBack: the same where coins are outputs. One that a move made is known to
// be from cold; another's sender is not, and a person says what it is.
func TestCoinsFT07_ToColdAndBack(t *testing.T) {
	onMints(t, func(t *testing.T, m *utxotest.Mint) {
		s, currency := openShop(t, m), string(m.Network)
		s.earn("60")
		s.mine(8)
		to, err := m.Client.AddressOf(testPub("vault"))
		require.NoError(t, err)
		vault := string(to)
		chill(t, s.app, s.tenant, currency, vault, "0.3", "0.2")
		s.until("moved", func() bool { return onlyMove(t, s.app, s.tenant).Status == house.Completed })
		s.mine(8)
		move := onlyMove(t, s.app, s.tenant)
		require.Equal(t, decimal.New(int64(move.Amount), -8).String(), m.Received(vault).String())
		s.sound()

		chill(t, s.app, s.tenant, currency, vault, "0", "0")
		cold, _, float := aside(t, s.store, s.tenant, currency)
		require.Equal(t, move.Amount, cold)
		hot, err := s.app.Hot(t.Context(), chain.Network(currency), s.tenant)
		require.NoError(t, err)
		const fee = 10_000
		spendVault(t, s, move, string(hot), int64(move.Amount)-fee)
		s.mine(12)
		left, suspense, now := aside(t, s.store, s.tenant, currency)
		require.Equal(t, []ledger.Amount{fee, 0, float}, []ledger.Amount{left, suspense, now})
		s.sound()

		m.Pay(string(hot), dec("0.005"))
		s.mine(12)
		_, suspense, now = aside(t, s.store, s.tenant, currency)
		require.Equal(t, []ledger.Amount{500_000, float}, []ledger.Amount{suspense, now})
		apart, err := s.app.Operate.HeldTopUps(t.Context(), s.tenant, "", 10)
		require.NoError(t, err)
		require.Len(t, apart, 1)
		_, _, err = s.app.Operate.ResolveTopUp(t.Context(), s.tenant, apart[0].ID, treasury.IsOperators, cryptopay.Call{By: "ann", Reason: "I sent it"})
		require.NoError(t, err)
		_, suspense, now = aside(t, s.store, s.tenant, currency)
		require.Equal(t, []ledger.Amount{0, float + 500_000}, []ledger.Amount{suspense, now})
		s.sound()
	})
}

// spendVault sends what a move brought to "vault", less the fee, with its owner's key.
func spendVault(t testing.TB, s *shop, move house.Payment, to string, amount int64) {
	t.Helper()
	m := s.mint
	sum := sha256.Sum256([]byte("vault"))
	key, _ := btcec.PrivKeyFromBytes(sum[:])
	id, err := chainhash.NewHashFromStr(move.Tx)
	require.NoError(t, err)
	made, _, ok, err := outgoing.Attempts.One(t.Context(), s.store, storage.Network(string(m.Network)), move.Tx)
	require.NoError(t, err)
	require.True(t, ok)
	var raw wire.MsgTx
	require.NoError(t, raw.Deserialize(bytes.NewReader(made.Raw)))
	at := -1
	for i, o := range raw.TxOut {
		if o.Value == int64(move.Amount) {
			at = i
		}
	}
	require.GreaterOrEqual(t, at, 0)
	tx := wire.NewMsgTx(2)
	tx.AddTxIn(wire.NewTxIn(wire.NewOutPoint(id, uint32(at)), nil, nil))
	tx.AddTxOut(wire.NewTxOut(amount, m.Script(to)))
	prev := raw.TxOut[at]
	hashes := txscript.NewTxSigHashes(tx, txscript.NewCannedPrevOutputFetcher(prev.PkScript, prev.Value))
	tx.TxIn[0].Witness, err = txscript.WitnessSignature(tx, hashes, 0, prev.Value, prev.PkScript, txscript.SigHashAll, key, true)
	require.NoError(t, err)
	var buf bytes.Buffer
	require.NoError(t, tx.Serialize(&buf))
	var sent string
	m.Ask(&sent, "sendrawtransaction", hex.EncodeToString(buf.Bytes()))
	require.Len(t, sent, 64)
}
