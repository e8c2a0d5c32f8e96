package cryptopay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/goldentest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// goldenTills are stores of Apps of earlier versions, oldest first: one tenant with permanent
// addresses, refunds, a policy and payments of the house's own, in the states that tillLeft
// lists; from the second on with a payout of two, and an audit log. One is added as to goldens.
var goldenTills = []string{"tills-1", "tills-2"}

// tillLeft is what the golden store of a till must have.
var tillLeft = map[string][]string{
	"refund":   {"awaiting_address", "cancelled", "completed", "pending"},
	"house":    {"completed", "pending"},
	"approval": {"large"},
	"address":  {"in use", "retired"},
	"payment":  {"completed", "confirming"},
	"suspense": {"below_minimum open", "late refunded"},
}

// tillHost is a host of one network that takes 10 % and may take it out.
func tillHost(t *testing.T, store storage.Store, seed uint64) *host {
	t.Helper()
	h := goldenHost(t, store, new(troubles), seed)
	h.chains = map[chain.Network]*sim.Chain{"ETH": h.chains["ETH"]}
	h.configure = func(c *cryptopay.Config) {
		c.HouseAddresses = []house.Address{{Network: "ETH", Address: h.chains["ETH"].Customer("house")}}
		c.HeadAge, c.GoneAfter = -1, -1
	}
	return h
}

// sends sends to an address what makes it so many USDT there.
func (h *host) sends(address, usdt string) {
	h.t.Helper()
	_, err := h.chains["ETH"].Pay(chain.Address(address), "USDTERC20", dec(usdt))
	require.NoError(h.t, err)
}

// permanent is the address of a customer.
func (h *host) permanent(customer string) payment.PermanentAddress {
	h.t.Helper()
	a, _, err := h.app.Payments.PermanentAddress(h.t.Context(), h.tenant, payment.AddressInput{ExternalID: customer, Currency: "USDTERC20"})
	require.NoError(h.t, err)
	return a
}

// makeTill brings a tenant into the states of tillLeft, and returns the id of its payout.
func (h *host) makeTill() string {
	h.t.Helper()
	ctx, t := h.t.Context(), h.t
	h.restart()
	tenant, err := h.app.Wallets.CreateTenant(ctx, wallet.NewTenant{Settings: wallet.Settings{Name: new("till"), TransactionFee: new(dec("10"))}})
	require.NoError(t, err)
	h.tenant = tenant.ID
	h.earn("USDTERC20", "300")
	paid, _, _, err := h.app.Payments.List(ctx, h.tenant, payment.Filter{})
	require.NoError(t, err)

	customer := string(h.chains["ETH"].Customer("refunded"))
	refunds := func(usdt, address string) refund.Refund {
		r, err := h.app.Refunds.Create(ctx, h.tenant, refund.CreateInput{Payment: paid[0].ID, Amount: new(dec(usdt)), Address: address})
		require.NoError(t, err)
		return r
	}
	refunds("20", customer)
	refunds("30", "")
	_, err = h.app.Refunds.Cancel(ctx, h.tenant, refunds("10", "").ID)
	require.NoError(t, err)
	_, _, err = h.app.Operate.PayOutFees(ctx, h.some("USDTERC20", "5", "november"), because("month's end"))
	require.NoError(t, err)

	ann, bob := h.permanent("ann"), h.permanent("bob")
	h.mine(1)
	h.sends(ann.Address, "40")
	h.sends(ann.Address, "0.4")
	h.sends(bob.Address, "25")
	h.mine(40)
	_, err = h.app.Payments.RetireAddress(ctx, h.tenant, bob.ID)
	require.NoError(t, err)
	h.mine(1)
	h.sends(bob.Address, "35")
	h.mine(40)
	h.sends(ann.Address, "50")
	h.mine(1)

	_, _, err = h.app.Operate.SetPolicy(ctx, h.tenant, 0, policy.Policy{Rules: []policy.Rule{
		{Name: "large", Of: policy.KindAmount, Over: dec("100"), Needs: []withdrawal.Need{{Count: 2}}},
		{Name: "daily", Of: policy.KindSum, Over: dec("100000"), Per: policy.Duration(24 * time.Hour)},
	}}, because("a rule"))
	require.NoError(t, err)
	supplier := h.chains["ETH"].Customer("supplier")
	_, _, err = h.app.Operate.AllowDestination(ctx, h.tenant, "ETH", string(supplier), "", because("known"))
	require.NoError(t, err)
	w := h.payout(h.tenant, "USDTERC20", "150")
	h.step()
	_, err = h.app.Withdrawals.Approve(ctx, h.tenant, w, "bob", "")
	require.NoError(t, err)
	_, err = h.app.Operate.Halt(ctx, cryptopay.HaltScope{Network: "ETH"}, because("looked at"))
	require.NoError(t, err)
	late, _, err := h.app.Payments.SuspenseList(ctx, h.tenant, payment.SuspenseFilter{Reason: payment.ReasonLate})
	require.NoError(t, err)
	require.Len(t, late, 1)
	_, _, err = h.app.Operate.PayOutSuspense(ctx, h.tenant, late[0].ID, customer, "", because("it is his"))
	require.NoError(t, err)
	_, _, err = h.app.Operate.PayOutFees(ctx, h.take("USDTERC20", "december"), because("month's end"))
	require.NoError(t, err)
	p, err := h.app.Withdrawals.CreatePayout(ctx, h.tenant, "salaries", h.suppliers(2, "3"))
	require.NoError(t, err)
	h.step()
	return p.ID
}

// tillStands is what the tenant's objects stand in, as tillLeft has it.
func (h *host) tillStands() map[string][]string {
	h.t.Helper()
	ctx, t, seen := h.t.Context(), h.t, map[string]map[string]bool{}
	for kind := range tillLeft {
		seen[kind] = map[string]bool{}
	}
	refunds, _, err := h.app.Refunds.List(ctx, h.tenant, refund.Filter{})
	require.NoError(t, err)
	for _, r := range refunds {
		seen["refund"][string(r.Status)] = true
	}
	taken, err := h.app.Operate.HousePayments(ctx, h.tenant, 10, 0)
	require.NoError(t, err)
	for _, p := range taken {
		seen["house"][string(p.Status)] = true
	}
	orders, _, err := h.app.Withdrawals.List(ctx, h.tenant, withdrawal.Filter{Status: withdrawal.Pending})
	require.NoError(t, err)
	for i := range orders {
		if orders[i].WaitingReason() == withdrawal.ShownApproval {
			seen["approval"][orders[i].Rule()] = true
		}
	}
	addresses, _, err := h.app.Payments.PermanentAddresses(ctx, h.tenant, payment.AddressFilter{})
	require.NoError(t, err)
	for _, a := range addresses {
		seen["address"][map[bool]string{true: "in use", false: "retired"}[a.RetiredAt.IsZero()]] = true
	}
	payments, _, _, err := h.app.Payments.List(ctx, h.tenant, payment.Filter{})
	require.NoError(t, err)
	for _, p := range payments {
		if p.AddressID != "" {
			seen["payment"][string(p.Status)] = true
		}
	}
	aside, _, err := h.app.Payments.SuspenseList(ctx, h.tenant, payment.SuspenseFilter{})
	require.NoError(t, err)
	for _, d := range aside {
		seen["suspense"][d.SuspenseReason()+" "+string(d.SuspenseStatus())] = true
	}
	out := map[string][]string{}
	for kind, has := range seen {
		out[kind] = slices.Sorted(maps.Keys(has))
	}
	return out
}

// makeGoldenTill makes a golden store of this version.
func makeGoldenTill(t *testing.T, name string) {
	t.Helper()
	tables := append(cryptopay.Tables(), keys.Tables()...)
	left := leftShops{Migrations: map[string]int{}, Chains: map[chain.Network]json.RawMessage{}}
	for _, d := range []string{"sqlite", "postgres", "mysql"} {
		left.Migrations[d] = goldentest.Migrations(t, filepath.Join("storage", "sqlstore"), d)
	}
	file := filepath.Join(t.TempDir(), "golden.db")
	require.NoError(t, sqlite.Migrate(t.Context(), file, tables...))
	onSQLite, err := sqlite.Open(file, sqlite.Options{})
	require.NoError(t, err)
	h := tillHost(t, onSQLite, 93)
	left.Payout = h.makeTill()
	require.Equal(t, tillLeft, h.tillStands())
	h.provesItself()
	left.Tenant, left.Now = h.tenant, h.clock.Now()
	left.Chains["ETH"], err = h.chains["ETH"].Snapshot()
	require.NoError(t, err)
	require.NoError(t, onSQLite.Close())
	db := sqlx.MustOpen("sqlite", file)
	goldentest.Write(t, shopsFile(name, ".json"), func(w io.Writer) { goldentest.DumpSQLite(t, db, w) })
	require.NoError(t, db.Close())
	goldentest.Write(t, shopsFile(name, "-chains.json"), func(w io.Writer) { require.NoError(t, json.NewEncoder(w).Encode(left)) })
}

// A store with permanent addresses, refunds, a policy and payments of the house's own proves
// itself on each backend, shows how many deliveries and refunds there are, by rows and then by
// counters, which the worker makes, and all that waits comes to its end.
func TestTillsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("servers of its own take seconds")
	}
	for _, name := range goldenTills {
		if _, err := os.Stat(shopsFile(name, "-chains.json")); os.IsNotExist(err) && *updateGoldens {
			makeGoldenTill(t, name)
		}
		left := new(leftShops)
		require.NoError(t, json.NewDecoder(goldentest.Read(t, shopsFile(name, "-chains.json"))).Decode(left))
		for backend, open := range goldenStores(name, left) {
			t.Run(name+"/"+backend, func(t *testing.T) {
				t.Parallel()
				if backend != "sqlite" {
					testenv.Draw(t, 2)
				}
				h := tillHost(t, open(t), 94) // no id is given out again
				t.Cleanup(func() { require.NoError(t, h.store.Close()) })
				h.tenant = left.Tenant
				h.clock.Advance(left.Now.Sub(h.clock.Now()))
				require.NoError(t, h.chains["ETH"].Restore(left.Chains["ETH"]))
				h.restart()
				require.Equal(t, tillLeft, h.tillStands())
				h.provesItself()
				h.countsTheTill()
				h.logsTheTill(left.Payout != "")
				require.NoError(t, h.app.Upgraded(t.Context()))
				h.clock.Advance(2 * time.Minute)
				h.step()
				for _, kept := range []interface {
					Marked(ctx context.Context, s storage.Store, p storage.Partition) (bool, error)
				}{webhook.Tally, refund.Tally} {
					marked, err := kept.Marked(t.Context(), h.store, storage.Tenant(h.tenant))
					require.NoError(t, err)
					require.True(t, marked, "the worker has counted")
				}
				h.countsTheTill()
				h.provesItself()
				h.endsTheTill()
				h.countsTheTill()
				h.logsTheTill(true)
				h.paysTheTill(left.Payout)
				h.provesItself()
			})
		}
	}
}

// countsTheTill requires that lists show as many deliveries and refunds as there are rows.
func (h *host) countsTheTill() {
	h.t.Helper()
	rows := func(table *storage.Table, where ...storage.Cond) int64 {
		n, err := h.store.Count(h.t.Context(), storage.Query{Table: table, Partition: storage.Tenant(h.tenant), Where: where})
		require.NoError(h.t, err)
		return n
	}
	for _, status := range webhook.Statuses() {
		_, n, err := h.app.Webhooks.Log(h.t.Context(), h.tenant, webhook.LogFilter{Status: status})
		require.NoError(h.t, err)
		require.Equal(h.t, rows(webhook.Events.Table, storage.Cond{Column: "status", Op: storage.Eq, Value: status}), int64(n), status)
	}
	_, n, err := h.app.Webhooks.Log(h.t.Context(), h.tenant, webhook.LogFilter{})
	require.NoError(h.t, err)
	require.Equal(h.t, rows(webhook.Events.Table), int64(n))
	require.Positive(h.t, n)
	for _, status := range refund.Statuses() {
		_, n, err := h.app.Refunds.List(h.t.Context(), h.tenant, refund.Filter{Status: status})
		require.NoError(h.t, err)
		require.Equal(h.t, rows(refund.Refunds.Table, storage.Cond{Column: "status", Op: storage.Eq, Value: status}), n, status)
	}
}

// logsTheTill requires that the tenant's audit log has what operators did since there is one.
func (h *host) logsTheTill(has bool) {
	h.t.Helper()
	log, err := h.app.Operate.AuditLog(h.t.Context(), storage.Tenant(h.tenant), 0, 100)
	require.NoError(h.t, err)
	require.Equal(h.t, has, len(log) > 0)
}

// paysTheTill requires that each recipient of the payout has what was ordered, once.
func (h *host) paysTheTill(payout string) {
	h.t.Helper()
	if payout == "" {
		return
	}
	p, err := h.app.Withdrawals.Payout(h.t.Context(), h.tenant, payout)
	require.NoError(h.t, err)
	require.Len(h.t, p.Withdrawals, 2)
	for i, w := range p.Withdrawals {
		require.Equal(h.t, withdrawal.Completed, w.Status)
		require.Equal(h.t, "3", h.chains["ETH"].Balance(h.chains["ETH"].Customer(fmt.Sprint("supplier", i)), "USDTERC20").String())
	}
}

// endsTheTill does what is waited for, and requires that each customer, supplier and the house
// have exactly what is theirs.
func (h *host) endsTheTill() {
	ctx, t, eth := h.t.Context(), h.t, h.chains["ETH"]
	t.Helper()
	_, err := h.app.Operate.Lift(ctx, cryptopay.HaltScope{Network: "ETH"}, because("all is well"))
	require.NoError(t, err)
	waits, _, err := h.app.Withdrawals.List(ctx, h.tenant, withdrawal.Filter{Status: withdrawal.Pending})
	require.NoError(t, err)
	waits = slices.DeleteFunc(waits, func(w withdrawal.Withdrawal) bool { return w.WaitingReason() != withdrawal.ShownApproval })
	require.Len(t, waits, 1)
	_, err = h.app.Withdrawals.Approve(ctx, h.tenant, waits[0].ID, "carol", "")
	require.NoError(t, err)
	links, _, err := h.app.Refunds.List(ctx, h.tenant, refund.Filter{Status: refund.AwaitingAddress})
	require.NoError(t, err)
	require.Len(t, links, 1)
	_, err = h.app.Refunds.Claim(ctx, h.app.Refunds.Token(&links[0]), string(eth.Customer("by link")), "")
	require.NoError(t, err)
	h.sends(h.permanent("ann").Address, "0.8")
	h.mine(60)

	is := h.tillStands()
	require.Equal(t, map[string][]string{
		"refund": {"cancelled", "completed"}, "house": {"completed"}, "approval": nil, "address": {"in use", "retired"},
		"payment": {"completed"}, "suspense": {"late refunded"},
	}, is)
	_, n, _, err := h.app.Payments.List(ctx, h.tenant, payment.Filter{})
	require.NoError(t, err)
	require.Equal(t, int64(5), n, "one asked for, ann's three, bob's one")
	approved, err := h.app.Withdrawals.Get(ctx, h.tenant, waits[0].ID)
	require.NoError(t, err)
	require.Equal(t, approved.Amount.Decimal(6).String(), eth.Balance(eth.Customer("supplier"), "USDTERC20").String())
	for customer, paid := range map[string]string{"refunded": "55", "by link": "30"} {
		got := eth.Balance(eth.Customer(customer), "USDTERC20")
		require.True(t, got.IsPositive() && got.LessThanOrEqual(dec(paid)), "%s has %s", customer, got)
	}
	var fees int64
	taken, err := h.app.Operate.HousePayments(ctx, h.tenant, 10, 0)
	require.NoError(t, err)
	for _, p := range taken {
		fees += int64(p.Amount)
	}
	require.Equal(t, decimal.New(fees, -6).String(), eth.Balance(eth.Customer("house"), "USDTERC20").String())
}
