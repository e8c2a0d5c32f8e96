package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	btcaddr "github.com/btcsuite/btcd/address/v2"
	"github.com/btcsuite/btcd/address/v2/base58"
	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// mint is a real node of Bitcoin's kind, with a customer who mines.
type mint struct {
	t       testing.TB
	network chain.Network
	params  utxo.Params
	dialect utxo.Dialect
	node    *testenv.CoinNode
	key     *btcec.PrivateKey
	spent   int64 // coinbases of blocks up to here
	forks   int
	client  *utxo.Client
}

func openMint(t testing.TB, network chain.Network, kind string, blocks int) *mint {
	t.Helper()
	sum := sha256.Sum256([]byte("a customer who mines"))
	m := &mint{t: t, network: network, dialect: utxo.Btcd}
	m.key, _ = btcec.PrivKeyFromBytes(sum[:])
	var ok bool
	m.params, ok = utxo.Testnets(network, kind)
	require.True(t, ok)
	if network == "LTC" {
		m.dialect = utxo.Core
		m.node = testenv.Litecoind(t)
	} else {
		m.node = testenv.Btcd(t, kind, m.address(m.key))
	}
	m.mine(blocks)
	m.client = m.connect()
	return m
}

// address is the P2PKH address of a key.
func (m *mint) address(k *btcec.PrivateKey) string {
	body := append([]byte{m.params.Address.PubKeyHash}, btcaddr.Hash160(k.PubKey().SerializeCompressed())...)
	return base58.Encode(append(body, chainhash.DoubleHashB(body)[:4]...))
}

func (m *mint) connect() *utxo.Client {
	m.t.Helper()
	c, err := utxo.New(utxo.Options{
		Network: m.network, Params: m.params, Registry: chain.MainnetRegistry().Only(m.network), Dialect: m.dialect,
		URL: m.node.URL(), User: testenv.CoinUser, Password: testenv.CoinPassword,
		HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	})
	require.NoError(m.t, err)
	return c
}

// ask calls the node itself, past the library.
func (m *mint) ask(out any, method string, params ...any) {
	m.t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "1.0", "id": 1, "method": method, "params": slices.Concat([]any{}, params)})
	require.NoError(m.t, err)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, m.node.URL(), bytes.NewReader(body))
	require.NoError(m.t, err)
	req.Close = true
	req.SetBasicAuth(testenv.CoinUser, testenv.CoinPassword)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(m.t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(m.t, err)
	var a struct{ Result, Error json.RawMessage }
	require.NoError(m.t, json.Unmarshal(raw, &a), "%s: %s", method, raw)
	require.Contains(m.t, []string{"", "null"}, string(a.Error), method)
	if out != nil {
		require.NoError(m.t, json.Unmarshal(a.Result, out), method)
	}
}

func (m *mint) mine(blocks int) {
	m.t.Helper()
	if m.dialect == utxo.Btcd {
		m.ask(nil, "generate", blocks)
		return
	}
	to := m.key
	if m.forks > 0 { // two empty blocks of one second would be one
		sum := sha256.Sum256([]byte{byte(m.forks)})
		to, _ = btcec.PrivKeyFromBytes(sum[:])
	}
	m.ask(nil, "generatetoaddress", blocks, m.address(to))
}

func (m *mint) height() (h int64) {
	m.t.Helper()
	m.ask(&h, "getblockcount")
	return h
}

// pay sends a whole coinbase: the amount to an address, the rest back.
func (m *mint) pay(to string, amount decimal.Decimal) string {
	m.t.Helper()
	m.spent++
	var hash string
	m.ask(&hash, "getblockhash", m.spent)
	var raw string
	m.ask(&raw, "getblock", hash, map[utxo.Dialect]any{utxo.Btcd: 0, utxo.Core: false}[m.dialect])
	b, err := hex.DecodeString(raw)
	require.NoError(m.t, err)
	var block wire.MsgBlock
	require.NoError(m.t, block.Deserialize(bytes.NewReader(b)))
	from := block.Transactions[0]
	script := m.script(to)
	tx := wire.NewMsgTx(2)
	id := from.TxHash()
	tx.AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: id}, nil, nil))
	value := amount.Shift(8).IntPart()
	tx.AddTxOut(wire.NewTxOut(value, script))
	tx.AddTxOut(wire.NewTxOut(from.TxOut[0].Value-value-5_000, from.TxOut[0].PkScript))
	tx.TxIn[0].SignatureScript, err = txscript.SignatureScript(tx, 0, from.TxOut[0].PkScript, txscript.SigHashAll, m.key, true)
	require.NoError(m.t, err)
	var buf bytes.Buffer
	require.NoError(m.t, tx.Serialize(&buf))
	var sent string
	m.ask(&sent, "sendrawtransaction", hex.EncodeToString(buf.Bytes()))
	return sent
}

// script pays an address of the library's own form.
func (m *mint) script(to string) []byte {
	m.t.Helper()
	kind, program, ok := m.params.Address.Program(to)
	require.True(m.t, ok, to)
	require.Equal(m.t, "P2WPKH", kind)
	return append([]byte{0, 20}, program...)
}

// reorg replaces the last blocks by empty ones. What was in them is gone.
func (m *mint) reorg(depth int) {
	m.t.Helper()
	var hash string
	m.ask(&hash, "getblockhash", m.height()-int64(depth)+1)
	m.forks++
	m.ask(nil, "invalidateblock", hash)
	m.node.Restart()
	m.mine(depth)
}

// received is what an address got in blocks, by the node's own outputs.
func (m *mint) received(a string) decimal.Decimal {
	m.t.Helper()
	sum, err := m.client.Balance(m.t.Context(), string(m.network), chain.Address(a))
	require.NoError(m.t, err)
	return sum
}

// shop is a program that embeds the library on such a node.
type shop struct {
	t      testing.TB
	mint   *mint
	store  storage.Store
	clock  *cryptopay.ManualClock
	inbox  *inbox
	app    *cryptopay.App
	tenant string
}

func openShop(t testing.TB, m *mint) *shop {
	t.Helper()
	s := &shop{t: t, mint: m, store: memory.New(), inbox: &inbox{}, clock: cryptopay.NewManualClock(time.Now())}
	s.compose()
	name := "shop"
	tenant, err := s.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	s.tenant = tenant.ID
	s.step()
	// The operator's own coins, which bear the fees.
	hot, err := s.app.Hot(t.Context(), m.network, s.tenant)
	require.NoError(t, err)
	m.pay(string(hot), dec("0.1"))
	s.mine(8)
	return s
}

// compose makes an App over the store, as a program does at its start.
func (s *shop) compose() {
	s.t.Helper()
	n, registry := s.mint.network, chain.MainnetRegistry().Only(s.mint.network)
	client := s.mint.connect()
	seed, err := keys.FromMnemonic(mnemonic, "")
	require.NoError(s.t, err)
	accounts, err := seed.Accounts(registry.Networks())
	require.NoError(s.t, err)
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{n: client.AddressOf})
	require.NoError(s.t, err)
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{n: client}, Registry: keys.StoreRegistry{Store: s.store},
		Own: func(ctx context.Context, n chain.Network, a chain.Address) (bool, error) {
			return s.app.Owns(ctx, n, a)
		},
	})
	require.NoError(s.t, err)
	s.app, err = cryptopay.New(cryptopay.Config{
		Store: s.store, Chains: []chain.Client{client}, Registry: registry, Addresses: source, Signer: signer,
		Rates: rates.NewFixed(s.clock.Now, "USD", map[string]string{string(n): "100"}),
		Key:   bytes.Repeat([]byte{7}, 32), Clock: s.clock,
		Notifier: s.inbox, Callbacks: webhook.Guard{AllowHTTP: true}, Outgoing: outgoing.Config{StuckAfter: stuckAfter},
		Log: slog.New(slog.NewTextHandler(s.t.Output(), nil)),
	})
	require.NoError(s.t, err)
	require.NoError(s.t, s.app.Open(s.t.Context(), keys.Tables()...))
}

func (s *shop) step() {
	s.t.Helper()
	require.NoError(s.t, s.app.Step(s.t.Context()))
}

func (s *shop) mine(blocks int) {
	s.t.Helper()
	for range blocks {
		s.mint.mine(1)
		s.clock.Advance(time.Minute)
		s.step()
	}
}

func (s *shop) until(what string, done func() bool) {
	s.t.Helper()
	for range 40 {
		if done() {
			return
		}
		s.mine(1)
	}
	intents, err := s.store.Find(s.t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: storage.Network(string(s.mint.network)), Limit: 10})
	s.t.Fatalf("40 blocks later: not %s: %+v %v", what, intents, err)
}

func (s *shop) order(usd string) payment.Payment {
	s.t.Helper()
	p, err := s.app.Payments.Create(s.t.Context(), s.tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: usd, Currency: string(s.mint.network)}, CallbackURL: "https://shop.example/hook",
	})
	require.NoError(s.t, err)
	return p
}

func (s *shop) payment(id string) payment.Payment {
	s.t.Helper()
	p, err := s.app.Payments.Get(s.t.Context(), s.tenant, id)
	require.NoError(s.t, err)
	return p
}

func (s *shop) earn(usd string) {
	s.t.Helper()
	p := s.order(usd)
	s.mint.pay(p.Address, decimal.New(int64(p.Due), -8))
	s.until("completed", func() bool { return s.payment(p.ID).Status == payment.Completed })
}

func (s *shop) sound() {
	s.t.Helper()
	reports, err := s.app.Verify(s.t.Context())
	require.NoError(s.t, err)
	require.Len(s.t, reports, 1)
	require.Empty(s.t, reports[0].Ledger.Findings)
	require.Empty(s.t, reports[0].Holds)
	require.Empty(s.t, reports[0].Unexplained)
	require.Empty(s.t, reports[0].Gas)
}

func onMints(t *testing.T, f func(t *testing.T, m *mint)) {
	t.Parallel()
	t.Run("btcd", func(t *testing.T) {
		t.Parallel()
		f(t, openMint(t, "BTC", "simnet", 330))
	})
	t.Run("litecoin_core", func(t *testing.T) {
		t.Parallel()
		f(t, openMint(t, "LTC", "regtest", 130))
	})
}

// TestCoinsPaymentAndWithdrawal: two payments come in, a withdrawal spends both
// coins, and the books prove themselves.
func TestCoinsPaymentAndWithdrawal(t *testing.T) {
	onMints(t, func(t *testing.T, m *mint) {
		s := openShop(t, m)
		s.earn("30")
		s.earn("25")
		to, err := m.client.AddressOf(testPub("somebody"))
		require.NoError(t, err)
		amount := dec("40")
		w, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
			Terms:       withdrawal.Terms{PriceAmount: &amount, Currency: string(m.network), Address: string(to)},
			CallbackURL: "https://shop.example/hook",
		}, storage.Once{})
		require.NoError(t, err)
		s.until("withdrawn", func() bool {
			w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
			require.NoError(t, err)
			return w.Status == withdrawal.Completed
		})
		s.mine(8)
		require.Equal(t, decimal.New(int64(w.Amount), -8).String(), m.received(string(to)).String(), "paid once")
		s.sound()
	})
}

// TestCoinsR05_DepositAndWithdrawalAreUnmined: a fork takes a payment away, and
// then our own transaction out of its block.
func TestCoinsR05_DepositAndWithdrawalAreUnmined(t *testing.T) {
	onMints(t, func(t *testing.T, m *mint) {
		s := openShop(t, m)
		s.earn("50")
		p := s.order("20")
		m.pay(p.Address, decimal.New(int64(p.Due), -8))
		s.mine(1)
		require.Equal(t, payment.Confirming, s.payment(p.ID).Status)
		m.reorg(1)
		s.compose() // the node is at another port now
		s.mine(1)
		require.NotEqual(t, payment.Completed, s.payment(p.ID).Status)
		m.pay(p.Address, decimal.New(int64(p.Due), -8))
		s.until("completed", func() bool { return s.payment(p.ID).Status == payment.Completed })

		to, err := m.client.AddressOf(testPub("somebody else"))
		require.NoError(t, err)
		amount := dec("10")
		w, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
			Terms:       withdrawal.Terms{PriceAmount: &amount, Currency: string(m.network), Address: string(to)},
			CallbackURL: "https://shop.example/hook",
		}, storage.Once{})
		require.NoError(t, err)
		s.step()
		s.mine(1)
		m.reorg(1)
		s.compose()
		s.until("withdrawn", func() bool {
			w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
			require.NoError(t, err)
			return w.Status == withdrawal.Completed
		})
		s.mine(8)
		m.client = m.connect()
		require.Equal(t, decimal.New(int64(w.Amount), -8).String(), m.received(string(to)).String(), "paid once")
		s.sound()
	})
}

func testPub(seed string) chain.PublicKey {
	sum := sha256.Sum256([]byte(seed))
	_, pub := btcec.PrivKeyFromBytes(sum[:])
	return pub.SerializeCompressed()
}
