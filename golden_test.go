package cryptopay_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/goldentest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/move"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// goldens are stores of Apps of earlier versions, oldest first: tenants with payments, and
// withdrawals whose orders stand in the states and wait for the reasons that shopsLeft lists,
// with the chains that they are on. To add one, add a name and run TestShopsOfEarlierVersions
// with -update: it makes the stores that have no files.
var goldens = []string{"1"}

var updateGoldens = flag.Bool("update", false, "make golden stores that have no files")

// goldenNetworks are those of the shops: on each something else is wrong.
var goldenNetworks = []chain.Network{"ETH", "BSC", "ARB", "BASE", "OPTIMISM", "AVAX", "BTC", "LTC", "DOGE"}

// goldenGas is the currency of a shop's own network, and the USD that a coin is worth.
var goldenGas = map[chain.Network]string{
	"ETH": "ETH", "BSC": "BNB", "ARB": "ETHARB", "BASE": "ETHBASE", "OPTIMISM": "ETHOPTIMISM", "AVAX": "AVAX", "BTC": "BTC", "LTC": "LTC", "DOGE": "DOGE",
}

// shopsLeft are the states and reasons of orders, and the reasons that merchants see, which
// the golden store must have.
var shopsLeft = map[string][]string{
	"state": {"queued", "waiting", "signed", "executed", "settled", "failed", "cancelled"},
	"reason": {
		string(outgoing.ReasonHotBalance), string(outgoing.ReasonHalted), string(outgoing.ReasonNode), string(outgoing.ReasonSigner),
		string(outgoing.ReasonFeeTooHigh), string(outgoing.ReasonConsolidating), string(outgoing.ReasonReorged), string(outgoing.ReasonStuck), string(outgoing.ReasonOperatorFunds), string(outgoing.ReasonRefused),
	},
	"status": {"pending", "processing", "completed", "failed", "cancelled"},
	"shown": {
		withdrawal.ShownReview, withdrawal.ShownHalted, withdrawal.ShownHotShort, withdrawal.ShownFeeTooHigh, withdrawal.ShownConsolidating,
		withdrawal.ShownStuck, withdrawal.ShownGasShort, withdrawal.ShownReorged,
	},
}

// leftShops is what lies beside the rows.
type leftShops struct {
	Migrations map[string]int // by dialect
	Tenant     string         `json:",omitempty"`
	Payout     string         `json:",omitempty"` // its id
	Now        time.Time
	Chains     map[chain.Network]json.RawMessage
}

func shopsFile(name, kind string) string {
	return filepath.Join("testdata", "golden", name+kind+".gz")
}

// troubles are what is wrong where the shops are.
type troubles struct {
	node    bool // that of AVAX gives no fee
	refuses int  // so many payouts are refused for good by that of BSC
	signer  bool // it does not answer about BASE
}

var errTrouble = errors.New("it does not answer")

// troubled is a node that gives no fee, or refuses payouts.
type troubled struct {
	able
	is *troubles
}

func (m troubled) Broadcast(ctx context.Context, s chain.Stored) error {
	if m.Network() == "BSC" && m.is.refuses > 0 {
		m.is.refuses--
		return fmt.Errorf("%w: %w", chain.ErrRejected, errTrouble)
	}
	return m.able.Broadcast(ctx, s)
}

func (m troubled) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	if m.Network() == "AVAX" && m.is.node {
		return chain.Fee{}, fmt.Errorf("%w: %w", chain.ErrNode, errTrouble)
	}
	return m.able.EstimateFee(ctx, in)
}

// away is a signer that does not answer about one network.
type away struct {
	chain.Signer
	is *troubles
}

func (s away) Sign(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	if s.is.signer && r.Intent.Network == "BASE" {
		return nil, errTrouble
	}
	return s.Signer.Sign(ctx, r)
}

// goldenHost is a host of the golden store's networks.
func goldenHost(t *testing.T, store storage.Store, is *troubles, seed uint64) *host {
	t.Helper()
	var key [32]byte
	key[0] = byte(seed)
	h := &host{
		t: t, clock: cryptopay.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		store: store, chains: map[chain.Network]*sim.Chain{}, inbox: &inbox{}, random: &shared{source: rand.NewChaCha8(key)}, mandates: cryptopay.MandateKeys(hostKey),
	}
	var err error
	h.seed, err = keys.FromMnemonic(mnemonic, "")
	require.NoError(t, err)
	h.rates = rates.NewFixed(h.clock.Now, "USD", map[string]string{
		"ETH": "2000", "BTC": "60000", "LTC": "80", "DOGE": "1", "BNB": "600", "AVAX": "40", "USDT": "1", "USDC": "1",
	})
	for i, n := range goldenNetworks {
		h.chains[n] = sim.MustNew(sim.Options{Network: n, Registry: chain.MainnetRegistry(), Seed: uint64(i + 1), Now: h.clock.Now, Finality: 20})
	}
	h.configure = func(cfg *cryptopay.Config) {
		for i, c := range cfg.Chains {
			if c.Network() == "AVAX" || c.Network() == "BSC" {
				cfg.Chains[i] = troubled{c.(able), is}
			}
		}
		cfg.Signer = away{cfg.Signer, is}
		cfg.Outgoing.MaxInputs = 4
		cfg.Outgoing.StuckAfter = 24 * time.Hour // nothing is replaced
		cfg.HeadAge, cfg.GoneAfter = -1, -1
		cfg.Withdrawals.Policy = func(_ context.Context, w withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
			if w.CustomID == "look" {
				return withdrawal.AskReview, "large", nil
			}
			return withdrawal.Allow, "", nil
		}
	}
	return h
}

// unsigned is a process without a signer: what it hands over stays queued.
func unsigned(configure func(*cryptopay.Config)) func(*cryptopay.Config) {
	return func(cfg *cryptopay.Config) {
		configure(cfg)
		cfg.Signer = nil
	}
}

// opens opens a new merchant's shop with a payment of so many USD in so many parts that a
// network has not mined yet.
func (h *host) opens(n chain.Network, float, usd string, parts int64) {
	h.t.Helper()
	name := "shop on " + string(n)
	tenant, err := h.app.Wallets.CreateTenant(h.t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(h.t, err)
	h.tenant = tenant.ID
	h.step()
	hot, err := h.app.Hot(h.t.Context(), n, h.tenant)
	require.NoError(h.t, err)
	for range min(parts, 3) {
		_, err = h.chains[n].Fund(hot, goldenGas[n], dec(float))
		require.NoError(h.t, err)
	}
	p, err := h.app.Payments.Create(h.t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: usd, Currency: goldenGas[n]}})
	require.NoError(h.t, err)
	c, err := chain.MainnetRegistry().Currency(goldenGas[n])
	require.NoError(h.t, err)
	for range parts {
		_, err = h.chains[n].Pay(chain.Address(p.Address), goldenGas[n], c.Decimal(p.Due).Div(dec(fmt.Sprint(parts))).RoundUp(8))
		require.NoError(h.t, err)
	}
}

// only grows one chain.
func (h *host) only(n chain.Network, blocks int) {
	h.t.Helper()
	for range blocks {
		h.clock.Advance(15 * time.Second)
		h.chains[n].Mine(1)
		_ = h.app.Step(h.t.Context())
	}
}

// orderOut has a merchant order a payout of so many USD to somebody of its own.
func (h *host) orderOut(tenant string, n chain.Network, usd, custom string) string {
	h.t.Helper()
	w, err := h.app.Withdrawals.Create(h.t.Context(), tenant, withdrawal.CreateInput{
		Terms:    withdrawal.Terms{PriceAmount: ptr(dec(usd)), Currency: goldenGas[n], Address: string(h.chains[n].Customer(fmt.Sprint(tenant, usd, custom)))},
		CustomID: custom,
	})
	require.NoError(h.t, err)
	return w.ID
}

// makeShops brings orders into their states.
func (h *host) makeShops(is *troubles) {
	h.t.Helper()
	h.restart()
	tenants := map[chain.Network]string{}
	for _, n := range goldenNetworks {
		float, parts := "1", int64(1)
		switch n {
		case "BTC":
			float, parts = "0.002", 12
		case "DOGE":
			float = "100"
		case "OPTIMISM":
			float = "0.001"
		}
		h.opens(n, float, "1000", parts)
		tenants[n] = h.tenant
	}
	h.mine(45)
	for _, n := range []chain.Network{"ETH", "LTC", "DOGE"} {
		h.orderOut(tenants[n], n, "50", "")
	}
	h.orderOut(tenants["ETH"], "ETH", "51", "look")
	off := h.orderOut(tenants["ETH"], "ETH", "52", "look")
	h.step()
	_, err := h.app.Withdrawals.Cancel(h.t.Context(), tenants["ETH"], off)
	require.NoError(h.t, err)
	h.orderOut(tenants["BSC"], "BSC", "50", "")
	is.refuses = 1
	h.step()
	h.only("BSC", 24) // its nonce is back for good
	h.only("ETH", 24) // the first of ETH is final
	h.only("LTC", 3)
	h.orderOut(tenants["ETH"], "ETH", "53", "")
	h.only("ETH", 4) // the second is executed
	_, err = h.chains["LTC"].Reorg(3, h.chains["LTC"].Transactions(true)...)
	require.NoError(h.t, err)
	for range 16 {
		h.clock.Advance(30 * time.Minute)
		_ = h.app.Step(h.t.Context())
	}
	signing := h.app
	h.app = h.beside(unsigned(h.configure))
	for _, n := range []chain.Network{"BSC", "ARB", "BASE", "OPTIMISM", "AVAX"} {
		h.orderOut(tenants[n], n, "54", "")
	}
	h.orderOut(tenants["BTC"], "BTC", "900", "")
	off = h.orderOut(tenants["ETH"], "ETH", "57", "")
	h.step() // they are queued
	_, err = h.app.Withdrawals.Cancel(h.t.Context(), tenants["ETH"], off)
	require.NoError(h.t, err)
	is.node, is.signer = true, true
	h.chains["ARB"].SetFeeLevel(2_000_000_000_000)    // more than half of a payout
	h.chains["OPTIMISM"].SetFeeLevel(400_000_000_000) // more than the operator has there
	_, err = h.app.Operate.Halt(h.t.Context(), cryptopay.HaltScope{Network: "BSC"}, because("looked at"))
	require.NoError(h.t, err)
	h.app = signing
	_ = h.app.Step(h.t.Context())
	h.opens("BASE", "0.01", "1000", 1)
	h.only("BASE", 24)
	h.orderOut(h.tenant, "BASE", "600", "")
	_ = h.app.Step(h.t.Context())
	h.app = h.beside(unsigned(h.configure))
	h.orderOut(tenants["ETH"], "ETH", "55", "")
	_ = h.app.Step(h.t.Context())
}

// stands are what the orders and withdrawals of a store stand in.
func (h *host) stands() map[string][]string {
	h.t.Helper()
	seen := map[string]map[string]bool{"state": {}, "reason": {}, "status": {}, "shown": {}}
	rows, err := h.store.Find(h.t.Context(), storage.Query{Table: outgoing.Intents.Table, Limit: 1000})
	require.NoError(h.t, err)
	for _, r := range rows {
		v := outgoing.Intents.Value(r)
		seen["state"][string(v.State)], seen["reason"][string(v.Reason)] = true, true
	}
	rows, err = h.store.Find(h.t.Context(), storage.Query{Table: withdrawal.Withdrawals.Table, Limit: 1000})
	require.NoError(h.t, err)
	for _, r := range rows {
		w := withdrawal.Withdrawals.Value(r)
		seen["status"][string(w.Status)], seen["shown"][w.WaitingReason()] = true, true
	}
	out := map[string][]string{}
	for kind, has := range seen {
		delete(has, "")
		out[kind] = slices.Sorted(maps.Keys(has))
	}
	return out
}

func (h *host) lacks() (out []string) {
	h.t.Helper()
	is := h.stands()
	for kind, want := range shopsLeft {
		for _, w := range want {
			if !slices.Contains(is[kind], w) {
				out = append(out, kind+" "+w)
			}
		}
	}
	return out
}

// provesItself requires that App.Verify finds nothing.
func (h *host) provesItself() {
	h.t.Helper()
	h.sound()
	reports, err := h.app.Verify(h.t.Context())
	require.NoError(h.t, err)
	for _, r := range reports {
		require.Empty(h.t, r.Contradictions)
	}
}

// makeGoldenShops makes a golden store of this version.
func makeGoldenShops(t *testing.T, name string) {
	t.Helper()
	tables := append(cryptopay.Tables(), keys.Tables()...)
	sqlstore := filepath.Join("storage", "sqlstore")
	left := leftShops{Migrations: map[string]int{}, Chains: map[chain.Network]json.RawMessage{}}
	for _, d := range []string{"sqlite", "postgres", "mysql"} {
		left.Migrations[d] = goldentest.Migrations(t, sqlstore, d)
	}
	file := filepath.Join(t.TempDir(), "golden.db")
	require.NoError(t, sqlite.Migrate(t.Context(), file, tables...))
	onSQLite, err := sqlite.Open(file, sqlite.Options{})
	require.NoError(t, err)
	is := new(troubles)
	h := goldenHost(t, onSQLite, is, 91)
	h.makeShops(is)
	require.Empty(t, h.lacks(), "%v", h.stands())
	h.provesItself()
	for n, c := range h.chains {
		left.Chains[n], err = c.Snapshot()
		require.NoError(t, err)
	}
	left.Now = h.clock.Now()
	require.NoError(t, onSQLite.Close())
	db := sqlx.MustOpen("sqlite", file)
	goldentest.Write(t, shopsFile(name, ".json"), func(w io.Writer) { goldentest.DumpSQLite(t, db, w) })
	require.NoError(t, db.Close())
	goldentest.Write(t, shopsFile(name, "-chains.json"), func(w io.Writer) { require.NoError(t, json.NewEncoder(w).Encode(left)) })
}

// goldenStores opens a golden store on each backend, as this version does. To Redis it is
// moved: the keys that an earlier version wrote there are for the golden stores of
// examples/gateway.
func goldenStores(name string, left *leftShops) map[string]func(t *testing.T) storage.Store {
	tables := append(cryptopay.Tables(), keys.Tables()...)
	fill := func(t *testing.T, db *sqlx.DB, dialect string) {
		goldentest.SQL{
			DB: db, Dialect: dialect, Migrations: left.Migrations[dialect], Folder: filepath.Join("storage", "sqlstore"),
		}.Fill(t, goldentest.Read(t, shopsFile(name, ".json")))
		require.NoError(t, db.Close())
	}
	onSQLite := func(t *testing.T) storage.Store {
		file := filepath.Join(t.TempDir(), "golden.db")
		fill(t, sqlx.MustOpen("sqlite", file), "sqlite")
		require.NoError(t, sqlite.Migrate(t.Context(), file, tables...))
		s, err := sqlite.Open(file, sqlite.Options{})
		require.NoError(t, err)
		return s
	}
	return map[string]func(t *testing.T) storage.Store{
		"sqlite": onSQLite,
		"postgres": func(t *testing.T) storage.Store {
			dsn := emptyPostgres(t)
			fill(t, sqlx.MustOpen("pgx", dsn), "postgres")
			require.NoError(t, postgres.Migrate(t.Context(), dsn, postgres.Options{}, tables...))
			s, err := postgres.Open(dsn, postgres.Options{})
			require.NoError(t, err)
			return s
		},
		"mariadb": func(t *testing.T) storage.Store {
			dsn := emptyMariaDB(t)
			fill(t, sqlx.MustOpen("mysql", dsn), "mysql")
			require.NoError(t, mysql.Migrate(t.Context(), dsn, mysql.Options{}, tables...))
			s, err := mysql.Open(dsn, mysql.Options{})
			require.NoError(t, err)
			return s
		},
		"redis": func(t *testing.T) storage.Store {
			client := redis.NewClient(&redis.Options{Addr: testenv.Redis(t, "--appendonly", "yes", "--appendfsync", "always").Address()})
			s := redisstore.New(client, redisstore.Options{}).Own()
			from := onSQLite(t)
			require.NoError(t, from.Open(t.Context(), tables...))
			require.NoError(t, s.Open(t.Context(), append(tables, move.Positions.Table)...))
			end := func(s storage.Store) move.End {
				return move.End{Store: s, Tables: tables, Partitions: cryptopay.Partitions, Levels: cryptopay.LevelsOf}
			}
			_, err := move.Copy(t.Context(), end(from), end(s), move.Options{})
			require.NoError(t, err)
			require.NoError(t, from.Close())
			return s
		},
	}
}

// A store with tenants, and with orders in the states and for the reasons of shopsLeft, proves
// itself on each backend. Then what was wrong is put right: each withdrawal ends, paid once
// or not at all, and the store proves itself again.
func TestShopsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("servers of its own take seconds")
	}
	for _, name := range goldens {
		if _, err := os.Stat(shopsFile(name, "-chains.json")); os.IsNotExist(err) && *updateGoldens {
			makeGoldenShops(t, name)
		}
		left := new(leftShops)
		require.NoError(t, json.NewDecoder(goldentest.Read(t, shopsFile(name, "-chains.json"))).Decode(left))
		for backend, open := range goldenStores(name, left) {
			t.Run(name+"/"+backend, func(t *testing.T) {
				t.Parallel()
				if backend != "sqlite" {
					testenv.Draw(t, 2)
				}
				h := goldenHost(t, open(t), new(troubles), 92) // no id is given out again
				t.Cleanup(func() { require.NoError(t, h.store.Close()) })
				h.clock.Advance(left.Now.Sub(h.clock.Now()))
				for n, c := range h.chains {
					require.NoError(t, c.Restore(left.Chains[n]))
				}
				h.restart()
				require.Empty(t, h.lacks(), "%v", h.stands())
				for _, n := range []chain.Network{"BTC", "LTC", "DOGE"} {
					early, err := h.app.EarlyMerge(t.Context(), h.tenant, n)
					require.NoError(t, err)
					require.Contains(t, early.Why, "older version", "which may run beside this one")
				}
				h.provesItself()
				h.comesToRest()
				h.provesItself()
			})
		}
	}
}

// comesToRest puts right what is wrong, lets time go by, and requires that each withdrawal has
// ended as it must.
func (h *host) comesToRest() {
	t := h.t
	t.Helper()
	_, err := h.app.Operate.Lift(t.Context(), cryptopay.HaltScope{Network: "BSC"}, because("all is well"))
	require.NoError(t, err)
	for _, c := range h.chains {
		c.SetFeeLevel(0)
	}
	all := func() (out []withdrawal.Withdrawal) {
		rows, err := h.store.Find(t.Context(), storage.Query{Table: withdrawal.Withdrawals.Table, Limit: 1000})
		require.NoError(t, err)
		for _, r := range rows {
			out = append(out, withdrawal.Withdrawals.Value(r))
			if w := &out[len(out)-1]; w.WaitingReason() == withdrawal.ShownReview {
				_, err := h.app.Withdrawals.Approve(t.Context(), strings.TrimPrefix(string(r.Partition), "tenant/"), r.ID, "approver", "")
				require.NoError(t, err)
			}
		}
		return out
	}
	before := len(all())
	for range 20 {
		h.clock.Advance(15 * time.Minute)
		for _, c := range h.chains {
			c.Mine(2)
		}
		h.mine(1)
	}
	after := all()
	require.Len(t, after, before)
	for i := range after {
		w := &after[i]
		c, err := chain.MainnetRegistry().Currency(w.Currency)
		require.NoError(t, err)
		got := h.chains[c.Network].Transfers(chain.Address(w.Address))
		switch w.Status {
		case withdrawal.Completed:
			require.Len(t, got, 1, "%s is paid once", w.Currency)
			require.Equal(t, c.Decimal(w.Amount).String(), got[0].Amount.String())
		case withdrawal.Cancelled, withdrawal.Failed:
			require.Empty(t, got)
		default:
			require.Fail(t, "it has no end", "%s of %s waits for %q", w.Status, w.Currency, w.WaitingReason())
		}
	}
	for _, n := range goldenNetworks {
		h.nothingReserved(n)
	}
}
