package e2e_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"testing"
	"time"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/solana"
	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// market is a program that embeds the library on the real Solana runtime, with the
// shipped currencies: their mints are where they are on mainnet.
type market struct {
	*solanatest.Node
	t        testing.TB
	options  solana.Options
	client   *solana.Client
	registry *chain.Registry
	store    storage.Store
	clock    *cryptopay.ManualClock
	inbox    *inbox
	app      *cryptopay.App
	tenant   string
}

func openMarket(t testing.TB) *market {
	t.Helper()
	return openMarketWith(t, solana.Options{})
}

func openMarketWith(t testing.TB, o solana.Options) *market {
	t.Helper()
	m := &market{
		options: o,
		Node:    solanatest.Open(t, testenv.LiteSVM(t)), t: t, registry: chain.MainnetRegistry().Only("SOL"),
		store: memory.New(), inbox: &inbox{}, clock: cryptopay.NewManualClock(time.Unix(1_760_000_060, 0)),
	}
	for _, c := range m.registry.On("SOL") {
		if !c.Native() {
			m.MintAt(sdk.MustPublicKeyFromBase58(c.Contract), solanatest.Token, c.Decimals)
		}
	}
	m.Mine(40) // the mints are final
	m.compose()
	name := "market"
	tenant, err := m.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	m.tenant = tenant.ID
	m.step()
	// The operator's own coins, which bear the fees.
	m.pay(string(m.hot()), "SOL", dec("1"))
	m.mine(solanatest.Finality + 2)
	return m
}

func (m *market) compose() {
	m.t.Helper()
	var err error
	o := m.options
	o.Registry, o.Genesis, o.URL = m.registry, m.Genesis(), m.URL
	m.client, err = solana.New(o)
	require.NoError(m.t, err)
	seed, err := keys.FromMnemonic(mnemonic, "")
	require.NoError(m.t, err)
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{"SOL": m.client}, Registry: keys.StoreRegistry{Store: m.store},
		Mandates: cryptopay.MandateKeys(bytes.Repeat([]byte{7}, 32)),
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return m.app.KeyOf(ctx, n, a)
		},
	})
	require.NoError(m.t, err)
	m.app, err = cryptopay.New(cryptopay.Config{
		Store: m.store, Chains: []chain.Client{m.client}, HeadAge: -1, GoneAfter: -1, Registry: m.registry, Signer: signer,
		Addresses: seed.Hardened(map[chain.Network]keys.Encode{"SOL": m.client.AddressOf}),
		Rates:     rates.NewFixed(m.clock.Now, "USD", map[string]string{"SOL": "100", "USDT": "1", "USDC": "1"}),
		Key:       bytes.Repeat([]byte{7}, 32), Clock: m.clock, Notifier: m.inbox, Callbacks: webhook.Guard{AllowHTTP: true},
		Reconcile: reconcile.Config{Halt: true},
		Outgoing:  outgoing.Config{Poll: time.Second, StuckAfter: 10 * time.Second},
		Log:       slog.New(slog.NewTextHandler(m.t.Output(), nil)),
	})
	require.NoError(m.t, err)
	require.NoError(m.t, m.app.Open(m.t.Context(), keys.Tables()...))
}

func (m *market) hot() chain.Address {
	m.t.Helper()
	a, err := m.app.Hot(m.t.Context(), "SOL", m.tenant)
	require.NoError(m.t, err)
	return a
}

func (m *market) step() { m.t.Helper(); require.NoError(m.t, m.app.Step(m.t.Context())) }

func (m *market) mine(blocks int) {
	m.t.Helper()
	for range blocks {
		m.Mine(1)
		m.clock.Advance(time.Second)
		m.step()
	}
}

func (m *market) until(what string, done func() bool) {
	m.t.Helper()
	for range 300 {
		if done() {
			return
		}
		m.mine(1)
	}
	intents, err := m.store.Find(m.t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: storage.Network("SOL"), Limit: 10})
	m.t.Fatalf("300 blocks later: not %s: %+v %v", what, intents, err)
}

func (m *market) currency(code string) *chain.Currency {
	m.t.Helper()
	c, err := m.registry.Currency(code)
	require.NoError(m.t, err)
	return c
}

// pay is a customer's payment.
func (m *market) pay(a, currency string, amount decimal.Decimal) {
	m.t.Helper()
	m.Send(nil, m.moves(a, currency, amount)...)
}

// moves are the instructions of a customer's payment.
func (m *market) moves(a, currency string, amount decimal.Decimal) []sdk.Instruction {
	m.t.Helper()
	c, to := m.currency(currency), sdk.MustPublicKeyFromBase58(a)
	units := amount.Shift(int32(c.Decimals)).BigInt().Uint64()
	if c.Native() {
		return []sdk.Instruction{m.MoveCoins(to, units)}
	}
	mint := sdk.MustPublicKeyFromBase58(c.Contract)
	return []sdk.Instruction{
		m.OpenATA(to, solanatest.Token, mint),
		m.MoveTokens(solanatest.ATA(to, solanatest.Token, mint), solanatest.Token, mint, units, c.Decimals),
	}
}

func (m *market) holds(a, currency string) decimal.Decimal {
	m.t.Helper()
	d, err := m.client.Balance(m.t.Context(), currency, chain.Address(a))
	require.NoError(m.t, err)
	return d
}

func (m *market) order(usd, currency string) payment.Payment {
	m.t.Helper()
	p, err := m.app.Payments.Create(m.t.Context(), m.tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: usd, Currency: currency}, CallbackURL: "https://shop.example/hook",
	})
	require.NoError(m.t, err)
	return p
}

func (m *market) status(p payment.Payment) payment.Status {
	m.t.Helper()
	got, err := m.app.Payments.Get(m.t.Context(), m.tenant, p.ID)
	require.NoError(m.t, err)
	return got.Status
}

// earn takes a payment to where its coins are in the hot address.
func (m *market) earn(usd, currency string) string {
	m.t.Helper()
	p := m.order(usd, currency)
	m.pay(p.Address, currency, m.currency(currency).Decimal(p.Due))
	m.mine(1)
	status := func() payment.Status { return m.status(p) }
	require.Equal(m.t, payment.Confirming, status(), "seen when it is confirmed, credited when it is final")
	m.mine(solanatest.Finality - 2)
	require.Equal(m.t, payment.Confirming, status())
	m.until("completed", func() bool { return status() == payment.Completed })
	m.until("swept", func() bool { return m.holds(p.Address, currency).IsZero() })
	m.mine(solanatest.Finality + 2)
	return p.Address
}

func (m *market) withdraw(usd, currency, to string) withdrawal.Withdrawal {
	m.t.Helper()
	amount := dec(usd)
	w, err := m.app.Withdrawals.Create(m.t.Context(), m.tenant, withdrawal.CreateInput{
		Terms:       withdrawal.Terms{PriceAmount: &amount, Currency: currency, Address: to},
		CallbackURL: "https://shop.example/hook",
	})
	require.NoError(m.t, err)
	m.until("withdrawn", func() bool {
		w, err = m.app.Withdrawals.Get(m.t.Context(), m.tenant, w.ID)
		require.NoError(m.t, err)
		return w.Status == withdrawal.Completed
	})
	m.mine(solanatest.Finality + 2)
	return w
}

// spent is what the house has paid the network so far, in lamports.
func (m *market) spent() int64 {
	m.t.Helper()
	balances, err := m.store.Balances(m.t.Context(), storage.Tenant(m.tenant), ledger.FeesNetwork)
	require.NoError(m.t, err)
	for _, b := range balances {
		if b.Asset == "SOL" {
			return -int64(b.Posted) * 10
		}
	}
	return 0
}

func (m *market) shelf() shelf { return shelf{m.t, m.store, "SOL", m.clock, m.mine} }

func (m *market) sound() {
	m.t.Helper()
	reports, err := m.app.Verify(m.t.Context())
	require.NoError(m.t, err)
	require.Len(m.t, reports, 1)
	require.Empty(m.t, reports[0].Ledger.Findings)
	require.Empty(m.t, reports[0].Holds)
	require.Empty(m.t, reports[0].Unexplained)
	require.Empty(m.t, reports[0].Gas)
	m.shelf().agrees()
}

func TestSolanaCoinsInAndOut(t *testing.T) {
	t.Parallel()
	m := openMarket(t)
	from := m.earn("30", "SOL")
	require.True(t, m.holds(from, "SOL").IsZero(), "nothing stays behind that could not be moved")
	to := solanatest.Key("somebody").PublicKey().String()
	w := m.withdraw("20", "SOL", to)
	require.Equal(t, m.currency("SOL").Decimal(w.Amount).String(), m.holds(to, "SOL").String(), "paid once")
	m.sound()
}

// TestSolanaTokensInAndOut: the hot address pays for the sweep, closes the account that
// it emptied, and gets its rent, which is a gain.
func TestSolanaTokensInAndOut(t *testing.T) {
	t.Parallel()
	m := openMarket(t)
	before := m.holds(string(m.hot()), "SOL")
	from := m.earn("30", "USDTSOL")
	require.True(t, m.holds(from, "SOL").IsZero(), "the deposit address never had a coin")
	require.Equal(t, "30", m.holds(string(m.hot()), "USDTSOL").String())
	// It opened its own token account, and closed the other: both rents cancel out.
	fell := before.Sub(m.holds(string(m.hot()), "SOL")).Shift(9).IntPart()
	require.Less(t, fell, int64(11_000), "two signatures and a little priority")
	require.InDelta(t, fell, m.spent(), 10, "the books say the same")
	m.earn("25", "USDTSOL")
	require.Less(t, m.spent(), int64(-2_000_000), "now the hot address has its account: the rent is a gain")

	to := solanatest.Key("somebody").PublicKey().String()
	w := m.withdraw("20", "USDTSOL", to)
	require.Equal(t, m.currency("USDTSOL").Decimal(w.Amount).String(), m.holds(to, "USDTSOL").String(), "paid once")
	m.sound()
}

// TestFN15_VaultsThatAreListed: the treasury of a multisignature program is an address that no key
// signs for. Payouts go there once an operator has listed it, of coins and of tokens; a token account
// that is listed is paid nothing, and nor is a vault that was taken from the list.
func TestFN15_VaultsThatAreListed(t *testing.T) {
	t.Parallel()
	m := openMarket(t)
	m.earn("60", "SOL")
	m.earn("60", "USDTSOL")
	ctx, why := t.Context(), cryptopay.Call{By: "ann", Reason: "contract 12"}
	program := solanatest.Key("multisig").PublicKey()
	pda, _, err := sdk.FindProgramAddress([][]byte{[]byte("vault")}, program)
	require.NoError(t, err)
	vault := pda.String()
	create := func(to, currency string) error {
		amount := dec("10")
		_, err := m.app.Withdrawals.Create(ctx, m.tenant, withdrawal.CreateInput{Terms: withdrawal.Terms{PriceAmount: &amount, Currency: currency, Address: to}})
		return err
	}
	refused := func(to string) {
		t.Helper()
		var bad *chain.AddressError
		require.ErrorAs(t, create(to, "SOL"), &bad)
		require.ErrorAs(t, create(to, "USDTSOL"), &bad)
	}
	valid := func(tenant string) string {
		t.Helper()
		got, err := m.app.Withdrawals.ValidateAddress(ctx, withdrawal.AddressInput{Tenant: tenant, Address: vault, Currency: "SOL"})
		require.NoError(t, err)
		return got.Reason
	}
	refused(vault)
	require.ErrorContains(t, create(vault, "SOL"), "list a vault")
	list := func(to string) {
		t.Helper()
		_, _, err := m.app.Operate.AllowDestination(ctx, m.tenant, "SOL", to, "", why)
		require.NoError(t, err)
	}
	list(vault)
	require.Empty(t, valid(m.tenant))
	require.Contains(t, valid("another"), "off the curve")
	coins := m.withdraw("20", "SOL", vault)
	require.Equal(t, m.currency("SOL").Decimal(coins.Amount).String(), m.holds(vault, "SOL").String(), "paid once")
	tokens := m.withdraw("20", "USDTSOL", vault)
	require.Equal(t, m.currency("USDTSOL").Decimal(tokens.Amount).String(), m.holds(vault, "USDTSOL").String(), "paid once")

	owner := solanatest.Key("somebody").PublicKey()
	account := solanatest.ATA(owner, solanatest.Token, sdk.MustPublicKeyFromBase58(m.currency("USDTSOL").Contract)).String()
	m.pay(owner.String(), "USDTSOL", dec("1"))
	m.mine(2)
	list(account)
	refused(account)

	_, err = m.app.Operate.RemoveDestination(ctx, m.tenant, "SOL", vault, "", why)
	require.NoError(t, err)
	refused(vault)
	m.sound()
}

// TestSolanaW08_ExpiredWithdrawalIsSentAnewAndPaidOnce: a transaction that no block took
// is sent anew only when its time is over, and the recipient gets one.
func TestSolanaW08_ExpiredWithdrawalIsSentAnewAndPaidOnce(t *testing.T) {
	t.Parallel()
	m := openMarket(t)
	m.earn("30", "SOL")
	amount, to := dec("20"), solanatest.Key("somebody").PublicKey().String()
	m.Fault("swallow", true)
	w, err := m.app.Withdrawals.Create(t.Context(), m.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: &amount, Currency: "SOL", Address: to}, CallbackURL: "https://shop.example/hook",
	})
	require.NoError(t, err)
	m.mine(100)
	m.Fault("swallow", false)
	attempts := func() int {
		rows, err := m.store.Find(t.Context(), storage.Query{
			Table: outgoing.Attempts.Table, Partition: storage.Network("SOL"), Limit: 100,
			Where: []storage.Cond{{Column: "purpose", Op: storage.Eq, Value: chain.ForWithdrawal}},
		})
		require.NoError(t, err)
		return len(rows)
	}
	require.Equal(t, 1, attempts())
	m.until("withdrawn", func() bool {
		w, err = m.app.Withdrawals.Get(t.Context(), m.tenant, w.ID)
		require.NoError(t, err)
		return w.Status == withdrawal.Completed
	})
	m.mine(2 * solanatest.Window)
	require.Equal(t, m.currency("SOL").Decimal(w.Amount).String(), m.holds(to, "SOL").String(), "paid once")
	m.sound()
}

// TestFN01_OneBlockOfEveryVersion: payments in transactions of version 1 complete; one of
// a version that nobody knows yet costs a stranger's block nothing, and one that pays us
// is in suspense and shown. What is paid out goes in version 1, where it is asked for.
func TestFN01_OneBlockOfEveryVersion(t *testing.T) {
	t.Parallel()
	m := openMarketWith(t, solana.Options{SendVersion1: true})
	coins, tokens, later, old := m.order("30", "SOL"), m.order("25", "USDTSOL"), m.order("40", "SOL"), m.order("20", "SOL")
	moves := func(p payment.Payment) []sdk.Instruction {
		return m.moves(p.Address, p.Currency, m.currency(p.Currency).Decimal(p.Due))
	}
	m.SendLater(2, nil, m.MoveCoins(solanatest.Key("stranger").PublicKey(), 5_000_000))
	m.SendV1(nil, moves(coins)...)
	paid := m.SendLater(2, nil, moves(later)...)
	m.SendV1(nil, moves(tokens)...)
	m.Send(nil, moves(old)...)
	m.mine(1)
	for _, p := range []payment.Payment{coins, tokens, old} {
		require.Equal(t, payment.Confirming, m.status(p))
	}
	m.until("all are completed", func() bool {
		return m.status(coins) == payment.Completed && m.status(tokens) == payment.Completed && m.status(old) == payment.Completed
	})
	held := func() []payment.Deposit {
		all, err := m.app.Payments.Suspense(t.Context(), m.tenant, 10, 0)
		require.NoError(t, err)
		return all
	}
	m.until("shown", func() bool { return len(held()) == 1 })
	x := held()[0]
	require.Equal(t, payment.RoleUnproven, x.Role)
	require.Equal(t, later.Address, x.Address)
	require.Equal(t, paid, x.Tx)
	require.Equal(t, "SOL", x.Currency)
	require.Equal(t, later.Due, x.Amount)
	require.NotEqual(t, payment.Completed, m.status(later), "nothing is credited by balances alone")
	m.until("swept", func() bool {
		return m.holds(tokens.Address, "USDTSOL").IsZero() && m.holds(coins.Address, "SOL").IsZero()
	})
	m.mine(solanatest.Finality + 2)

	for _, code := range []string{"SOL", "USDTSOL"} {
		to := solanatest.Key("somebody " + code).PublicKey().String()
		w := m.withdraw("12", code, to)
		require.Equal(t, m.currency(code).Decimal(w.Amount).String(), m.holds(to, code).String(), "paid once")
		var landed struct {
			Version     any
			Transaction []string
		}
		m.Call(&landed, "getTransaction", w.Tx, map[string]any{"encoding": "base64", "commitment": "confirmed", "maxSupportedTransactionVersion": 1})
		require.EqualValues(t, 1, landed.Version)
		raw, err := base64.StdEncoding.DecodeString(landed.Transaction[0])
		require.NoError(t, err)
		require.True(t, solanatest.Decode(t, raw)[0].Signed)
	}
	require.Len(t, held(), 1)
	m.sound()
}
