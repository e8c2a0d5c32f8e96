package e2e_test

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// squeeze is a shop on a node whose base fee is what it is told to be, in every block.
type squeeze struct {
	*host
	base    int64 // gwei
	payouts []payout
}

// payout is a withdrawal to somebody who gets nothing else.
type payout struct{ id, to string }

const calm = 10 // gwei

func openSqueeze(t *testing.T, float string) *squeeze {
	t.Helper()
	n := openAnvil(t, usual)
	n.bid = 2_000
	m := &squeeze{base: calm}
	mine := n.commit
	n.commit = func() {
		n.ask(nil, "anvil_setNextBlockBaseFeePerGas", hexutil.EncodeUint64(uint64(m.base)*gwei))
		mine()
	}
	m.host = newHost(t, n, func(s *setup) { s.float = float })
	m.earn("4000", "ETH")
	m.earn("12000", "USDTERC20")
	return m
}

// pass mines blocks that are some time apart.
func (m *squeeze) pass(blocks int, apart time.Duration) {
	m.t.Helper()
	for range blocks {
		m.later(apart)
		m.node.commit()
		m.step()
	}
}

// pending lets the library act, with no block.
func (m *squeeze) pending() {
	m.t.Helper()
	for range 12 {
		m.clock.Advance(time.Second)
		m.step()
	}
}

// pays orders payouts, every other one of a token.
func (m *squeeze) pays(count int) {
	m.t.Helper()
	for range count {
		k := len(m.payouts)
		to := addressOf(key(fmt.Sprint("payee ", k))).Hex()
		currency, usd := "ETH", 100+k
		if k%2 == 1 {
			currency, usd = "USDTERC20", 400+k
		}
		m.payouts = append(m.payouts, payout{m.withdraw(fmt.Sprint(usd), currency, to).ID, to})
	}
}

// open are the payouts that are not completed, with what they wait for.
func (m *squeeze) open() (out []string) {
	m.t.Helper()
	for _, p := range m.payouts {
		if w := m.withdrawal(p.id); w.Status != withdrawal.Completed {
			out = append(out, fmt.Sprintf("%s %s %q", w.Currency, w.Status, w.WaitingReason()))
		}
	}
	return out
}

// come is a payment that is paid now.
func (m *squeeze) come(usd, currency string) *payment.Payment {
	m.t.Helper()
	p := m.order(usd, currency)
	m.node.pay(p.Address, currency, m.due(p))
	return p
}

// waits says for what the coins of a payment wait to be forwarded.
func (m *squeeze) waits(p *payment.Payment) string {
	m.t.Helper()
	all, err := m.app.Treasury.Waiting(m.t.Context(), m.tenant, "ETH", 100, 0)
	require.NoError(m.t, err)
	for _, w := range all {
		if string(w.Address) == p.Address {
			return w.Reason
		}
	}
	return ""
}

// swept reports whether something was sent from the address of a payment.
func (m *squeeze) swept(p *payment.Payment) bool {
	m.t.Helper()
	var at hexutil.Uint64
	m.node.ask(&at, "eth_getTransactionCount", p.Address, "latest")
	return at > 0
}

// unmined counts the transactions in the node's pool.
func (m *squeeze) unmined() int {
	m.t.Helper()
	var pool struct {
		Pending hexutil.Uint64 `json:"pending"`
		Queued  hexutil.Uint64 `json:"queued"`
	}
	m.node.ask(&pool, "txpool_status")
	return int(pool.Pending + pool.Queued)
}

// minedTx is a transaction in a block, and what it did, as the node tells it.
type minedTx struct {
	Hash  common.Hash     `json:"hash"`
	From  common.Address  `json:"from"`
	To    *common.Address `json:"to"`
	Value hexutil.Big     `json:"value"`
	Nonce hexutil.Uint64  `json:"nonce"`

	status  hexutil.Uint64
	cost    *big.Int // of its gas, in wei
	arrived []arrival
}

// arrival is what somebody got.
type arrival struct {
	contract common.Address // zero: ether
	to       common.Address
	amount   *big.Int
}

// all are the transactions of every block.
func (n *node) all() (out []minedTx) {
	n.t.Helper()
	moved := crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
	for h := int64(0); h <= n.height(); h++ {
		var b struct {
			Transactions []minedTx `json:"transactions"`
		}
		n.ask(&b, "eth_getBlockByNumber", hexutil.Uint64(h), true)
		for _, tx := range b.Transactions {
			var r struct {
				Status            hexutil.Uint64 `json:"status"`
				GasUsed           hexutil.Uint64 `json:"gasUsed"`
				EffectiveGasPrice hexutil.Big    `json:"effectiveGasPrice"`
				Logs              []struct {
					Address common.Address `json:"address"`
					Topics  []common.Hash  `json:"topics"`
					Data    hexutil.Bytes  `json:"data"`
				} `json:"logs"`
			}
			n.ask(&r, "eth_getTransactionReceipt", tx.Hash)
			tx.status = r.Status
			tx.cost = new(big.Int).Mul(new(big.Int).SetUint64(uint64(r.GasUsed)), r.EffectiveGasPrice.ToInt())
			if r.Status == 1 && tx.To != nil && tx.Value.ToInt().Sign() > 0 {
				tx.arrived = append(tx.arrived, arrival{to: *tx.To, amount: tx.Value.ToInt()})
			}
			for _, l := range r.Logs {
				if len(l.Topics) == 3 && l.Topics[0] == moved {
					tx.arrived = append(tx.arrived, arrival{l.Address, common.BytesToAddress(l.Topics[2][:]), new(big.Int).SetBytes(l.Data)})
				}
			}
			out = append(out, tx)
		}
	}
	return out
}

// ours are the addresses of the shop.
func (m *squeeze) ours() map[common.Address]bool {
	m.t.Helper()
	out := map[common.Address]bool{common.HexToAddress(m.hot): true}
	rows, err := m.store.Find(m.t.Context(), storage.Query{Table: incoming.Addresses.Table, Partition: storage.Network("ETH"), Limit: 1000})
	require.NoError(m.t, err)
	for _, r := range rows {
		out[common.HexToAddress(r.ID)] = true
	}
	return out
}

// judge holds everything against what the node alone says: each payout has arrived once,
// no nonce is open, nothing cost more than its bound, and the books have what is there.
func (m *squeeze) judge() {
	t, n := m.t, m.node
	t.Helper()
	all, ours := n.all(), m.ours()

	got := map[common.Address][]arrival{}
	next := map[common.Address]uint64{}
	mined := map[string]*minedTx{}
	for i := range all {
		tx := &all[i]
		mined[tx.Hash.Hex()] = tx
		for _, a := range tx.arrived {
			got[a.to] = append(got[a.to], a)
		}
		if ours[tx.From] {
			require.EqualValues(t, 1, tx.status, "%s failed", tx.Hash)
			require.EqualValues(t, next[tx.From], tx.Nonce)
			next[tx.From]++
		}
	}

	for _, p := range m.payouts {
		w := m.withdrawal(p.id)
		require.Equal(t, withdrawal.Completed, w.Status, "waits for %q", w.WaitingReason())
		c := n.currency(w.Currency)
		list := got[common.HexToAddress(p.to)]
		require.Len(t, list, 1, "%s of %s arrives once", p.id, w.Currency)
		require.Equal(t, common.HexToAddress(c.Contract), list[0].contract)
		require.Equal(t, c.Decimal(w.Amount).String(), decimal.NewFromBigInt(list[0].amount, -int32(c.Decimals)).String())
		require.Contains(t, mined, w.Tx)
	}

	for a := range ours {
		for _, tag := range []string{"latest", "pending"} {
			var at hexutil.Uint64
			n.ask(&at, "eth_getTransactionCount", a, tag)
			require.EqualValues(t, next[a], at, "nonces of %s, %s", a, tag)
		}
		row, _, _, err := outgoing.Nonces.One(t.Context(), m.store, storage.Network("ETH"), a.Hex())
		require.NoError(t, err)
		require.EqualValues(t, next[a], row.Next, "nonces of %s in the store", a)
		require.Empty(t, row.Holder)
	}

	rows, err := m.store.Find(t.Context(), storage.Query{Table: outgoing.Attempts.Table, Partition: storage.Network("ETH"), Limit: 1000})
	require.NoError(t, err)
	require.Less(t, len(rows), 1000)
	landed := 0
	for _, r := range rows {
		a := outgoing.Attempts.Value(r)
		require.NotEqual(t, outgoing.Open, a.State, "%s of %s", r.ID, a.Intent)
		tx := mined[r.ID]
		require.Equal(t, tx != nil, a.State == outgoing.AttemptFinal, "%s of %s is %s", r.ID, a.Intent, a.State)
		if tx == nil {
			continue
		}
		landed++
		in, _, _, err := outgoing.Intents.One(t.Context(), m.store, storage.Network("ETH"), a.Intent)
		require.NoError(t, err)
		require.LessOrEqual(t, tx.cost.Cmp(wei(a.MaxCost)), 0, "%s cost %s wei, signed for %d", a.Intent, tx.cost, a.MaxCost)
		require.LessOrEqual(t, a.MaxCost, in.MaxCost, "%s", a.Intent)
		set, _, ok, err := treasury.Reservations.One(t.Context(), m.store, storage.Tenant(m.tenant), a.Intent)
		require.NoError(t, err)
		require.True(t, ok)
		require.False(t, set.Open, "%s has ended", a.Intent)
		require.LessOrEqual(t, in.MaxCost, set.Amount, "%s: what was set aside", a.Intent)
	}
	sum := uint64(0)
	for _, k := range next {
		sum += k
	}
	require.EqualValues(t, sum, landed, "every transaction of ours is one that the store knows")

	books, err := m.store.Balances(t.Context(), storage.Tenant(m.tenant), ledger.Chain("ETH"))
	require.NoError(t, err)
	require.Len(t, books, 2)
	for _, b := range books {
		c := n.currency(string(b.Asset))
		there := decimal.Zero
		for a := range ours {
			there = there.Add(n.holds(a.Hex(), c.Code))
		}
		off := there.Add(c.Decimal(b.Posted)) // a debt of the chain's is negative
		rounded := dec("0.00000001").Mul(decimal.NewFromInt(int64(landed)))
		require.True(t, off.IsZero() || c.Native() && off.IsPositive() && off.LessThanOrEqual(rounded), "%s: %s more than in the books", c.Code, off)
	}
	m.sound()
}

func wei(a ledger.Amount) *big.Int {
	return new(big.Int).Mul(big.NewInt(int64(a)), big.NewInt(1e10))
}

// TestFN03_AnvilFeesThatRiseAndStay: payouts and sweeps are on their way when the base fee
// rises, and it stays where it is for most of a day. What is worth the fee goes, and the
// rest waits visibly and goes when it has fallen.
func TestFN03_AnvilFeesThatRiseAndStay(t *testing.T) {
	t.Parallel()
	for _, times := range testenv.Drawn(t, 1, []int64{4, 10, 30}) {
		t.Run(fmt.Sprint("times_", times), func(t *testing.T) {
			t.Parallel()
			m := openSqueeze(t, "20")
			moving := []*payment.Payment{m.come("900", "USDTERC20")} // its sweep is on its way when fees rise
			m.mine(1)
			moving = append(moving, m.come("900", "USDTERC20"), m.come("900", "ETH")) // of the first the gas is
			tiny := m.come("12", "ETH")
			small := []*payment.Payment{m.order("4", "ETH"), m.order("20", "USDTERC20")}
			large := []*payment.Payment{m.order("1500", "ETH"), m.order("1500", "USDTERC20")}
			m.until("on their way", func() bool { return m.unmined() == 4 })
			m.pays(20)
			m.pending()
			require.Equal(t, 4+20, m.unmined())

			m.base *= times
			for _, p := range append(slices.Clone(small), large...) {
				m.node.pay(p.Address, p.Currency, m.due(p))
			}
			m.pass(1, time.Minute)
			m.pays(20)
			m.pass(200, 4*time.Minute)
			require.Empty(t, m.open())
			for _, p := range append(moving, large...) {
				require.True(t, m.swept(p), "%s waits for %q", p.Currency, m.waits(p))
			}
			waiting := small
			if times > 4 {
				waiting = append(waiting, tiny) // signed, and in no block
			}
			for _, p := range waiting {
				require.False(t, m.swept(p))
				require.Equal(t, treasury.WaitBelowCost, m.waits(p), p.Currency)
			}

			m.base = calm
			m.pass(60, 2*time.Minute)
			for _, p := range append(small, tiny) {
				require.True(t, m.swept(p), "%s waits for %q", p.Currency, m.waits(p))
			}
			m.judge()
		})
	}
}

// TestFN03_AnvilFeesRiseBetweenSigningAndSending: no node ever has what was signed at the
// old price, and takes it no more.
func TestFN03_AnvilFeesRiseBetweenSigningAndSending(t *testing.T) {
	t.Parallel()
	m := openSqueeze(t, "20")
	m.restart(func(s *setup) {
		s.client = &hurdle{Client: m.node.client(), fail: func(func() error) error { return errors.New("connection reset") }}
	})
	m.pays(6)
	m.pending()
	require.Len(t, m.attempts(), 6)
	require.Zero(t, m.unmined())
	m.base *= 10
	m.node.commit()
	m.restart(func(s *setup) { s.client = m.node.client() })
	m.pass(60, 4*time.Minute)
	require.Empty(t, m.open())
	m.judge()
}

// TestFN03_AnvilFeesRiseBeyondTheFloat: the operator's coins do not bear the new fees at
// first. Payouts say so, and go when he has sent more.
func TestFN03_AnvilFeesRiseBeyondTheFloat(t *testing.T) {
	t.Parallel()
	m := openSqueeze(t, "0.2")
	m.pays(20)
	m.pending()
	require.Equal(t, 20, m.unmined())
	m.base *= 30
	m.pass(1, time.Minute)
	m.pays(4)
	m.pass(100, 4*time.Minute)
	short := m.open()
	t.Log(short)
	require.NotEmpty(t, short)
	for _, s := range short {
		require.NotContains(t, s, `""`, "each shows a reason")
	}
	require.Contains(t, fmt.Sprint(short), withdrawal.ShownGasShort)
	m.node.pay(m.hot, "ETH", dec("5"))
	m.pass(100, 4*time.Minute)
	require.Empty(t, m.open())
	m.judge()
}

// TestFN03_AnvilFeesRiseBeyondTheLimit: gas costs more than evm.Options.MaxFeePerGas for
// hours, and much of it for good. Nothing is sent at such a price, all of it says why it
// waits, and it goes at the first price within the limit.
func TestFN03_AnvilFeesRiseBeyondTheLimit(t *testing.T) {
	t.Parallel()
	m := openSqueeze(t, "20")
	m.pays(6)
	m.pending()
	m.pays(6) // nothing was sent of these
	m.base *= 60
	m.node.commit()
	m.pass(100, 4*time.Minute)
	waiting := m.open()
	require.Len(t, waiting, 12)
	for _, s := range waiting {
		require.NotContains(t, s, `""`, "each shows a reason")
	}
	require.Contains(t, fmt.Sprint(waiting), withdrawal.ShownFeeTooHigh)
	m.base = 44 * calm
	m.pass(60, 4*time.Minute)
	require.Empty(t, m.open())
	m.judge()
}
