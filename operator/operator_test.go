package operator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/operator"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

const mnemonic = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

// desk is a service on SQLite, and the command over it.
type desk struct {
	t      testing.TB
	store  storage.Store
	clock  *cryptopay.ManualClock
	eth    *sim.Chain
	app    *cryptopay.App
	auth   *auth.Service
	log    bytes.Buffer
	tenant string
	deaf   bool // the receivers of webhooks answer nothing
	heard  []webhook.Delivery
	opened int
	closed int
	cfg    cryptopay.Config // that app was made of
	sealed int              // how often the host was asked to seal its own
}

// Notify is the receivers of webhooks.
func (d *desk) Notify(_ context.Context, all []webhook.Delivery) []webhook.Result {
	d.heard = append(d.heard, all...)
	out := make([]webhook.Result, len(all))
	for i := range out {
		if d.deaf {
			out[i].Err = errors.New("no answer")
		}
	}
	return out
}

func tables() []*storage.Table {
	return slices.Concat(cryptopay.Tables(), keys.Tables(), auth.Tables())
}

func newDesk(t testing.TB, configure ...func(*cryptopay.Config)) *desk {
	t.Helper()
	ctx := t.Context()
	file := filepath.Join(t.TempDir(), "pay.db")
	require.NoError(t, sqlite.Migrate(ctx, file, tables()...))
	store, err := sqlite.Open(file, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	d := &desk{t: t, store: store, clock: cryptopay.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	registry := chain.MainnetRegistry()
	d.eth = sim.MustNew(sim.Options{Network: "ETH", Registry: registry, Seed: 7, Now: d.clock.Now, Finality: 20})
	client := d.eth.Client()
	seed, err := keys.FromMnemonic(mnemonic, "")
	require.NoError(t, err)
	accounts, err := seed.Accounts(registry.Networks())
	require.NoError(t, err)
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": client.AddressOf})
	require.NoError(t, err)
	key := bytes.Repeat([]byte{7}, 32)
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{"ETH": client}, Registry: keys.StoreRegistry{Store: store},
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return d.app.KeyOf(ctx, n, a)
		},
		Mandates: cryptopay.MandateKeys(key),
	})
	require.NoError(t, err)
	random := rand.NewChaCha8([32]byte{7})
	cfg := cryptopay.Config{
		Store: store, Chains: []chain.Client{client}, Registry: registry, Addresses: source, Signer: signer,
		Rates: rates.NewFixed(d.clock.Now, "USD", map[string]string{"ETH": "2000", "USDT": "1", "USDC": "1"}),
		Key:   key, Clock: d.clock, Random: random, Notifier: d, Callbacks: webhook.Guard{AllowHTTP: true}, Log: slog.New(slog.NewTextHandler(&d.log, nil)),
	}
	for _, f := range configure {
		f(&cfg)
	}
	d.cfg = cfg
	d.app, err = cryptopay.New(cfg)
	require.NoError(t, err)
	require.NoError(t, d.app.Open(ctx, tables()...))
	d.auth, err = auth.New(auth.Config{Store: store, Key: bytes.Repeat([]byte{8}, 32), Now: d.clock.Now, NewID: d.app.Config().NewID, Random: random, Audit: d.app.Audit})
	require.NoError(t, err)
	name := "shop"
	tenant, err := d.app.Wallets.CreateTenant(ctx, wallet.NewTenant{ID: "shop", Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	d.tenant = tenant.ID
	d.clock.Advance(time.Second)
	require.NoError(t, d.app.Step(ctx))
	return d
}

func (d *desk) open(context.Context) (*operator.House, error) {
	d.opened++
	return &operator.House{App: d.app, Auth: d.auth, Close: func() error { d.closed++; return nil }, Reseal: func(context.Context) error { d.sealed++; return nil }}, nil
}

// run is one command line, and what it printed.
func (d *desk) run(args ...string) (out, progress string, err error) {
	d.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := operator.Command(d.open)
	cmd.Writer, cmd.ErrWriter = &stdout, &stderr
	err = cmd.Run(d.t.Context(), append([]string{"operator"}, args...))
	require.Equal(d.t, d.opened, d.closed, "what was opened is closed")
	return stdout.String(), stderr.String(), err
}

// ok is what a command printed that must not fail.
func (d *desk) ok(args ...string) string {
	d.t.Helper()
	out, _, err := d.run(args...)
	require.NoError(d.t, err, "%v", args)
	return out
}

// because runs a command that writes. Where it has dry runs, one goes first: it must change
// nothing. Without -reason it must change nothing either, and say so.
func (d *desk) because(dry bool, args ...string) string {
	d.t.Helper()
	before := d.rows()
	opened := d.opened
	_, _, err := d.run(args...)
	require.ErrorContains(d.t, err, "-reason is required", "%v", args)
	require.Equal(d.t, opened, d.opened)
	args = append(args, "-reason", "ticket 42", "-by", "ann")
	if dry {
		d.ok(append(args, "-dry-run")...)
	}
	require.Equal(d.t, before, d.rows(), "%v", args)
	out := d.ok(args...)
	d.clock.Advance(time.Second)
	require.NotEqual(d.t, before, d.rows(), "%v", args)
	return out
}

// rows is all that the store holds.
func (d *desk) rows() string {
	d.t.Helper()
	var b strings.Builder
	for _, table := range tables() {
		rows, err := d.store.Find(d.t.Context(), storage.Query{Table: table, Limit: 10_000})
		require.NoError(d.t, err)
		for _, r := range rows {
			columns, err := table.Encode(r.Value)
			require.NoError(d.t, err)
			_, _ = fmt.Fprintf(&b, "%s %s %s %d %v %v\n", table.Name, r.Partition, r.ID, r.Version, r.Due, columns)
		}
	}
	balances, err := d.store.Balances(d.t.Context(), storage.Tenant(d.tenant))
	require.NoError(d.t, err)
	_, _ = fmt.Fprintln(&b, balances)
	return b.String()
}

// parsed is an answer in JSON.
func parsed[T any](d *desk, args ...string) (v T) {
	d.t.Helper()
	out := d.ok(append(args, "-json")...)
	in := json.NewDecoder(strings.NewReader(out))
	require.NoError(d.t, in.Decode(&v), "%s", out)
	require.False(d.t, in.More())
	return v
}

type (
	object = map[string]any
	list   = []map[string]any
)

func (d *desk) mine(n int) {
	d.t.Helper()
	for range n {
		d.clock.Advance(15 * time.Second)
		d.eth.Mine(1)
		require.NoError(d.t, d.app.Step(d.t.Context()))
	}
}

func (d *desk) create(usd string) payment.Payment {
	d.t.Helper()
	p, err := d.app.Payments.Create(d.t.Context(), d.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: usd, Currency: "ETH"}})
	require.NoError(d.t, err)
	return p
}

// earn has a tenant own some ETH, and its hot address coins for gas.
func (d *desk) earn() {
	d.t.Helper()
	ctx := d.t.Context()
	hot, err := d.app.Hot(ctx, "ETH", d.tenant)
	require.NoError(d.t, err)
	_, err = d.eth.Fund(hot, "ETH", decimal.NewFromInt(1))
	require.NoError(d.t, err)
	d.mine(12)
	p := d.create("300")
	c, err := chain.MainnetRegistry().Currency("ETH")
	require.NoError(d.t, err)
	_, err = d.eth.Pay(chain.Address(p.Address), "ETH", c.Decimal(p.Due))
	require.NoError(d.t, err)
	d.mine(60)
	p, err = d.app.Payments.Get(ctx, d.tenant, p.ID)
	require.NoError(d.t, err)
	require.Equal(d.t, payment.Completed, p.Status)
}

func (d *desk) payout() string {
	d.t.Helper()
	amount := decimal.RequireFromString("0.01")
	w, err := d.app.Withdrawals.Create(d.t.Context(), d.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: &amount, Currency: "ETH", Address: string(d.eth.Customer("supplier"))},
	})
	require.NoError(d.t, err)
	return w.ID
}

func (d *desk) withdrawal(id string) withdrawal.Withdrawal {
	d.t.Helper()
	w, err := d.app.Withdrawals.Get(d.t.Context(), d.tenant, id)
	require.NoError(d.t, err)
	return w
}

func asks(c *cryptopay.Config) {
	c.Withdrawals.Policy = func(context.Context, withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
		return withdrawal.AskReview, "all are looked at", nil
	}
}

func TestTenants(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.because(false, "tenants", "create", "-id", "bakery", "-name", "Bakery\nx", "-transaction-fee", "0.75", "-fee-paid-by-user")
	made, err := d.app.Wallets.Tenant(t.Context(), "bakery")
	require.NoError(t, err)
	require.Equal(t, []any{"Bakery\nx", "0.75", true}, []any{made.Name, made.TransactionFee.String(), made.FeePaidByUser})
	require.Contains(t, d.log.String(), `operator_commanded command="operator tenants create" by=ann reason="ticket 42" tenant=bakery object=bakery`)
	all := parsed[list](d, "tenants", "list")
	require.Len(t, all, 2)
	require.Equal(t, []any{"shop", "bakery"}, []any{all[0]["id"], all[1]["id"]})
	lines := strings.Split(strings.TrimSpace(d.ok("tenants", "list")), "\n")
	require.Len(t, lines, 3, "a name makes no row of its own")
	require.Contains(t, lines[2], `Bakery\u000ax`)
	require.Equal(t, strings.Index(lines[0], "NAME"), strings.Index(lines[2], "Bakery"), "columns are aligned")

	d.earn()
	shown := parsed[object](d, "tenants", "show", "shop")
	require.Equal(t, "shop", shown["id"])
	require.Equal(t, []any{object{"wallet": "master", "currency": "ETH", "balance": "0.15000000", "held": "0.00000000"}}, shown["balances"])
	for _, c := range []struct{ want, line string }{
		{"tenants list", "tenants show nobody"},
		{"choose another id", "tenants create -id shop -name x -reason x"},
		{"-transaction-fee", "tenants create -name x -reason x -transaction-fee 1e"},
		{"-name is required", "tenants create -reason x"},
		{"takes TENANT", "tenants show"},
		{`no command "lst"`, "tenants lst"},
		{"flag provided but not defined: -nam", "tenants create -nam x"},
	} {
		_, _, err := d.run(strings.Fields(c.line)...)
		require.ErrorContains(t, err, c.want)
		var code cli.ExitCoder
		require.NotErrorAs(t, err, &code, "the program that runs the command exits")
	}
}

func TestCredentialsAreShownOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, c := range []struct {
		group, secret string
		works         func(made object) error
	}{
		{"applications", "client_secret", func(made object) error {
			_, err := d.auth.Token(t.Context(), made["client_id"].(string), made["client_secret"].(string), "")
			return err
		}},
		{"keys", "key", func(made object) error {
			_, err := d.auth.CheckKey(t.Context(), made["key"].(string))
			return err
		}},
	} {
		out := d.because(false, c.group, "create", "-tenant", "shop", "-name", "till", "-scopes", "read", "-json")
		var made object
		require.NoError(t, json.Unmarshal([]byte(out), &made))
		require.NoError(t, c.works(made), c.group)
		require.Equal(t, []any{"read"}, made["scopes"])
		secret := made[c.secret].(string)
		require.Equal(t, 1, strings.Count(out, secret))
		require.NotContains(t, d.log.String(), secret)
		listed := parsed[list](d, c.group, "list")
		require.Len(t, listed, 1)
		require.Equal(t, "till", listed[0]["name"])
		id := d.ok(c.group, "list")
		require.NotContains(t, id, secret)
		d.because(false, c.group, "delete", "-tenant", "shop", toText(made["id"]))
		require.Error(t, c.works(made), "it is void")
		require.Empty(t, parsed[list](d, c.group, "list", "-tenant", "shop"))
		_, _, err := d.run(c.group, "delete", "-tenant", "shop", toText(made["id"]), "-reason", "x")
		require.ErrorContains(t, err, "`keys list`")
		_, _, err = d.run(c.group, "create", "-tenant", "nobody", "-name", "x", "-reason", "x")
		require.ErrorIs(t, err, wallet.ErrNoTenant)
	}
	d.auth = nil
	_, _, err := d.run("keys", "list")
	require.ErrorContains(t, err, "login of its own")
}

func toText(v any) string {
	b, _ := json.Marshal(v)
	return strings.Trim(string(b), `"`)
}

func TestHaltAndLift(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, wrong := range [][]string{{"halt"}, {"halt", "-all", "-network", "ETH"}} {
		_, _, err := d.run(append(wrong, "-reason", "x")...)
		require.ErrorContains(t, err, "-all alone, or -network")
	}
	_, _, err := d.run("halt", "-network", "DOGE", "-reason", "x")
	require.ErrorIs(t, err, chain.ErrCurrency)
	for _, scope := range [][]string{{"-all"}, {"-network", "ETH"}, {"-currency", "USDTERC20"}, {"-tenant", "shop"}} {
		d.because(true, append([]string{"halt"}, scope...)...)
		all, err := d.app.Operate.Halts(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, all, scope)
		require.Equal(t, []string{"ann", "ticket 42"}, []string{all[0].By, all[0].Reason})
		listed := parsed[list](d, "halts")
		require.Len(t, listed, len(all))
		require.Equal(t, "ticket 42", listed[0]["reason"])
		d.because(true, append([]string{"lift"}, scope...)...)
		all, err = d.app.Operate.Halts(t.Context())
		require.NoError(t, err)
		require.Empty(t, all, scope)
	}
	done := parsed[list](d, "operations")
	require.Len(t, done, 8)
	require.Equal(t, []any{"lift", "ann"}, []any{done[0]["kind"], done[0]["by"]})
	require.Len(t, parsed[list](d, "operations", "-limit", "3"), 3)
}

// TestLiftOfAnotherScopeSaysWhatStands: payouts stay halted, and the person on call sees it.
func TestLiftOfAnotherScopeSaysWhatStands(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.because(true, "halt", "-all")
	for _, args := range [][]string{{"lift", "-network", "ETH"}, {"lift", "-network", "ETH", "-dry-run"}} {
		stands := parsed[object](d, append(args, "-reason", "it is well again", "-by", "ann")...)["halts"].([]any)
		require.Len(t, stands, 2, "of all networks, and at ETH")
		require.Equal(t, true, stands[0].(map[string]any)["everywhere"])
	}
	require.Empty(t, parsed[object](d, "lift", "-all", "-reason", "it is well again", "-by", "ann")["halts"])
}

// TestListsOfANetworkThatThereIsNot: "none" would say that all is well.
func TestListsOfANetworkThatThereIsNot(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, args := range [][]string{{"sweeps", "list", "-network", "eth"}, {"operations", "-network", "Ethereum"}} {
		out, _, err := d.run(args...)
		require.ErrorIs(t, err, chain.ErrCurrency, args)
		require.Empty(t, out)
	}
	require.Equal(t, "none\n", d.ok("sweeps", "list", "-network", "ETH"))
}

func TestWithdrawalsThatWait(t *testing.T) {
	t.Parallel()
	d := newDesk(t, asks)
	d.earn()
	approved, refused := d.payout(), d.payout()
	d.mine(2)
	waiting := parsed[list](d, "withdrawals", "waiting")
	require.Len(t, waiting, 2)
	if waiting[0]["id"] == refused { // made at the same moment
		slices.Reverse(waiting)
	}
	require.Equal(t, []any{approved, "review", "ETH"}, []any{waiting[0]["id"], waiting[0]["waiting"], waiting[0]["currency"]})
	amount, err := decimal.NewFromString(waiting[0]["amount"].(string))
	require.NoError(t, err)
	require.True(t, amount.IsPositive() && amount.LessThanOrEqual(decimal.RequireFromString("0.01")), "in coins: %s", amount)
	since, err := time.Parse(time.RFC3339, waiting[0]["since"].(string))
	require.NoError(t, err)
	require.True(t, since.Equal(d.withdrawal(approved).WaitingSince))

	d.because(false, "withdrawals", "hold", "-tenant", "shop", approved)
	require.True(t, d.withdrawal(approved).Frozen)
	require.Equal(t, "ticket 42", d.withdrawal(approved).Reason)
	d.because(false, "withdrawals", "approve", "-tenant", "shop", approved)
	d.mine(5)
	require.Equal(t, withdrawal.Pending, d.withdrawal(approved).Status, "it is held")
	d.because(false, "withdrawals", "release", "-tenant", "shop", approved)
	d.because(false, "withdrawals", "refuse", "-tenant", "shop", refused)
	require.Equal(t, withdrawal.Failed, d.withdrawal(refused).Status)
	for id, want := range map[string]withdrawal.Answer{approved: withdrawal.AnswerApproved, refused: withdrawal.AnswerRefused} {
		said := d.withdrawal(id).Decisions
		require.Len(t, said, 2)
		require.Equal(t, []any{"", withdrawal.AnswerAsked, "all are looked at"}, []any{said[0].By, said[0].Answer, said[0].Reason})
		require.Equal(t, []any{"ann", want, "ticket 42"}, []any{said[1].By, said[1].Answer, said[1].Reason})
		shown := parsed[object](d, "withdrawals", "show", "-tenant", "shop", id)["decisions"].([]any)[1].(map[string]any)
		require.Equal(t, []any{"ann", string(want), "ticket 42"}, []any{shown["by"], shown["decision"], shown["reason"]})
	}
	d.mine(60)
	require.Equal(t, withdrawal.Completed, d.withdrawal(approved).Status)
	require.Equal(t, "completed", parsed[object](d, "withdrawals", "show", "-tenant", "shop", approved)["status"])
	require.Empty(t, parsed[list](d, "withdrawals", "waiting"))
	require.Equal(t, "none\n", d.ok("withdrawals", "waiting"))
	_, _, err = d.run("withdrawals", "approve", "-tenant", "shop", "none", "-reason", "x")
	require.ErrorContains(t, err, "withdrawals waiting")
	_, _, err = d.run("withdrawals", "approve", "none", "-reason", "x")
	require.ErrorContains(t, err, "-tenant is required")
	_, _, err = d.run("withdrawals", "take-delivered", "-tenant", "shop", approved, "-reason", "x")
	require.ErrorIs(t, err, withdrawal.ErrNotShort)
	_, _, err = d.run("withdrawals", "pay-missing", "-tenant", "shop", approved, "-reason", "x")
	require.ErrorIs(t, err, withdrawal.ErrNotShort)
}

// TestHouse: fees are taken out, and the books corrected, from the command line.
func TestHouse(t *testing.T) {
	t.Parallel()
	own := sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry(), Now: time.Now}).Customer("house")
	d := newDesk(t, func(c *cryptopay.Config) {
		c.HouseAddresses = []house.Address{{Network: "ETH", Address: own}}
	})
	fee := decimal.NewFromInt(10)
	_, err := d.app.Wallets.UpdateTenant(t.Context(), "shop", wallet.Settings{TransactionFee: &fee})
	require.NoError(t, err)
	d.earn()
	take := []string{"house", "pay-out-fees", "-tenant", "shop", "-currency", "ETH", "-address", string(own), "-key", "november"}
	for _, wrong := range []string{"x", "0", "-1", "1000", "0.0000000000000000001"} {
		_, _, err = d.run(append(slices.Clone(take), "-amount", wrong, "-reason", "x")...)
		require.Error(t, err, wrong)
	}
	_, _, err = d.run(append(slices.Clone(take), "-amount", "all")...)
	require.ErrorContains(t, err, "-reason")
	d.because(true, append(slices.Clone(take), "-amount", "all")...)
	all := parsed[list](d, "house", "list")
	require.Len(t, all, 1)
	require.Equal(t, []any{"pending", "fees/platform", "ann"}, []any{all[0]["status"], all[0]["source"], all[0]["requested_by"]})
	d.mine(40)
	all = parsed[list](d, "house", "list")
	require.Equal(t, "completed", all[0]["status"])
	require.Equal(t, decimal.RequireFromString(all[0]["amount"].(string)).String(), d.eth.Balance(own, "ETH").String())
	_, _, err = d.run("house", "cancel", "-tenant", "shop", all[0]["id"].(string), "-reason", "x")
	var state *house.StateError
	require.ErrorAs(t, err, &state)
	_, _, err = d.run("house", "cancel", "-tenant", "shop", "none", "-reason", "x")
	require.ErrorContains(t, err, "house list")

	require.Empty(t, parsed[list](d, "house", "held"))
	_, _, err = d.run("house", "resolve", "-tenant", "shop", "-as", "refill", "ETH/0x1:-1/1", "-reason", "x")
	require.ErrorIs(t, err, treasury.ErrNotApart)
	require.ErrorContains(t, err, "house held")
	_, _, err = d.run("house", "refill-cost", "-tenant", "shop", "-network", "ETH", "-cost", "0.001", "0x1", "-reason", "x")
	require.ErrorIs(t, err, treasury.ErrNothingCold)

	adjust := []string{"house", "adjust", "-tenant", "shop", "-currency", "ETH", "-key", "1", "-move", "adjustment=-0.001", "-move", "chain/ETH=0.001", "-reason", "ticket 42", "-json"}
	_, _, err = d.run("house", "adjust", "-tenant", "shop", "-currency", "ETH", "-key", "1", "-move", "adjustment=-0.001", "-reason", "x")
	require.ErrorIs(t, err, house.ErrMoves)
	for _, by := range []struct {
		who    string
		booked bool
	}{{"ann", false}, {"ann", false}, {"bob", true}} {
		out, _, err := d.run(append(slices.Clone(adjust), "-by", by.who)...)
		require.NoError(t, err)
		var o object
		require.NoError(t, json.Unmarshal([]byte(out), &o))
		require.Equal(t, []any{by.booked, "ann"}, []any{o["booked"], o["asked_by"]})
	}
	var kept []any
	for _, o := range parsed[list](d, "operations") {
		kept = append(kept, o["kind"])
	}
	require.Equal(t, []any{"adjust", "ask_adjustment", "pay_out_fees"}, kept)
	require.Contains(t, d.ok("verify"), "true")
}

// An audit log is listed by number, in pages: the system's has credentials with who and why.
func TestAudit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	require.Empty(t, parsed[list](d, "audit"))
	d.because(false, "keys", "create", "-tenant", "shop", "-name", "till")
	d.because(true, "halt", "-network", "ETH")
	d.because(true, "halt", "-all")
	all := parsed[list](d, "audit")
	require.Len(t, all, 2)
	require.Equal(t, []any{1.0, "create_api_key", "ann", "ticket 42", "shop", ""}, []any{all[0]["number"], all[0]["kind"], all[0]["by"], all[0]["reason"], all[0]["tenant"], all[0]["previous"]})
	require.Equal(t, []any{2.0, "halt", all[0]["hash"]}, []any{all[1]["number"], all[1]["kind"], all[1]["previous"]})
	require.Equal(t, all[1:], parsed[list](d, "audit", "-after", "1"))
	require.Equal(t, all[:1], parsed[list](d, "audit", "-limit", "1"))
	require.Len(t, parsed[list](d, "audit", "-network", "ETH"), 2)
	require.Empty(t, parsed[list](d, "audit", "-tenant", "shop"))
	for _, wrong := range [][]string{{"-tenant", "shop", "-network", "ETH"}, {"-tenant", "none"}, {"-network", "Ethereum"}, {"-limit", "0"}, {"-after", "-1"}} {
		_, _, err := d.run(append([]string{"audit"}, wrong...)...)
		require.Error(t, err, wrong)
	}
	require.Contains(t, d.ok("verify"), "true")
}

// What a command does in many steps is in the log of what it concerns, with who and why, and the
// host hears of it. A tenant, a webhook or an object that there is not leaves nothing in a log
// that nobody would look for.
func TestAudit_CommandsOfManySteps(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	log := func(of ...string) (out []string) {
		for _, e := range parsed[list](d, append([]string{"audit"}, of...)...) {
			out = append(out, fmt.Sprint(e["kind"], " ", e["object"], " ", e["by"], " ", e["reason"]))
		}
		return out
	}
	d.because(false, "tenants", "create", "-id", "kiosk", "-name", "Kiosk")
	d.because(false, "reseal")
	require.Equal(t, []string{"create_tenant kiosk ann ticket 42", "reseal  ann ticket 42"}, log())
	d.because(false, "recount", "kiosk")
	_, _, err := d.run("recount", "nobody", "-reason", "x")
	require.Error(t, err)
	_, _, err = d.run("events", "discard", "-stream", "tenant/nobody", "-consumer", "crm", "object", "-reason", "x")
	require.ErrorContains(t, err, "no such dead letter")
	require.Equal(t, []string{"recount kiosk ann ticket 42"}, log("-tenant", "kiosk"))
	told, err := d.app.Config().Store.Count(t.Context(), storage.Query{Table: storage.Events.Table, Where: []storage.Cond{
		{Column: "kind", Op: storage.Eq, Value: outgoing.Operated{}.EventKind()},
	}})
	require.NoError(t, err)
	require.EqualValues(t, 3, told)
	require.Contains(t, d.ok("verify"), "true")
}

func TestSuspense(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var ids []string
	for range 3 {
		p := d.create("100")
		_, err := d.eth.Pay(chain.Address(p.Address), "USDCERC20", decimal.NewFromInt(25))
		require.NoError(t, err)
		d.mine(40)
	}
	for _, r := range parsed[list](d, "suspense", "list") {
		require.Equal(t, []any{"25.000000", "USDCERC20", "wrong_token"}, []any{r["amount"], r["currency"], r["role"]})
		ids = append(ids, r["id"].(string))
	}
	require.Len(t, ids, 3)
	d.because(true, "suspense", "credit", "-tenant", "shop", ids[0])
	d.because(true, "suspense", "ignore", "-tenant", "shop", ids[2])
	d.because(true, "suspense", "refund", "-tenant", "shop", ids[1])
	var kept []any
	for _, o := range parsed[list](d, "operations") {
		require.Equal(t, []any{"ann", "ticket 42", "shop"}, []any{o["by"], o["reason"], o["tenant"]})
		kept = append(kept, o["kind"])
	}
	require.Equal(t, []any{"refund_suspense", "ignore_suspense", "credit_suspense"}, kept, "money that leaves the books has a name and a reason beside it")
	_, _, err := d.run("suspense", "release", "-tenant", "shop", ids[0], "-reason", "x")
	require.Error(t, err, "it is not held")
	require.Empty(t, parsed[list](d, "suspense", "list"))
	balances, err := d.app.Wallets.Balances(t.Context(), "shop", wallet.Master)
	require.NoError(t, err)
	require.Len(t, balances[wallet.Master], 1, "one of the three is the shop's")
	_, _, err = d.run("suspense", "credit", "-tenant", "shop", "none", "-reason", "x")
	require.ErrorContains(t, err, "suspense list")
	_, _, err = d.run("verify")
	require.NoError(t, err)
}
