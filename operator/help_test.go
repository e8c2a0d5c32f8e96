package operator_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/operator"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// stuck is a desk with a withdrawal that was sent and is in no block, as fees have risen.
func stuck(t *testing.T) (d *desk, id string) {
	t.Helper()
	d = newDesk(t, func(c *cryptopay.Config) {
		c.Outgoing.Raise = func(_ context.Context, in chain.Intent, _ ledger.Amount) (ledger.Amount, error) {
			return in.MaxCost, nil
		}
	})
	d.earn()
	id = d.payout()
	require.NoError(t, d.app.Step(t.Context()))
	require.Equal(t, withdrawal.Processing, d.withdrawal(id).Status)
	d.eth.SetFeeLevel(40 * d.eth.FeeLevel())
	d.mine(3)
	return d, id
}

func TestSpeedUp(t *testing.T) {
	t.Parallel()
	d, id := stuck(t)
	shown := parsed[object](d, "transactions", "show", "-network", "ETH", id)
	require.Equal(t, []any{id, "shop", "ETH"}, []any{shown["id"], shown["tenant"], shown["currency"]})
	before := len(shown["attempts"].([]any))
	require.Positive(t, before)
	bound, err := strconv.ParseFloat(shown["max_cost"].(string), 64)
	require.NoError(t, err)
	most := strconv.FormatFloat(40*bound, 'f', 8, 64)
	for _, wrong := range []string{"x", "-1", "0", "0.0000000000000000001"} {
		_, _, err := d.run("transactions", "speed-up", "-network", "ETH", id, "-reason", "x", "-max-cost="+wrong)
		require.ErrorContains(t, err, "-max-cost")
	}
	_, _, err = d.run("transactions", "speed-up", "-network", "ETH", "none", "-reason", "x")
	require.ErrorContains(t, err, "-network its network")
	out := d.because(true, "transactions", "speed-up", "-network", "ETH", id, "-max-cost", most)
	require.Contains(t, out, most)
	require.Contains(t, out, "transactions show", "the same transaction is shown before and after: who reads it is told when that changes")
	v, err := d.app.Operate.Transactions(t.Context(), "ETH", id)
	require.NoError(t, err)
	gas, err := chain.MainnetRegistry().Gas("ETH")
	require.NoError(t, err)
	want, err := ledger.ParseAmount(most, gas.Scale)
	require.NoError(t, err)
	require.Equal(t, want, v.Intent.MaxCost)
	d.mine(60)
	require.Equal(t, withdrawal.Completed, d.withdrawal(id).Status)
	require.Contains(t, d.ok("transactions", "show", "-network", "ETH", id), "\nattempts:\n")
}

func TestCancel(t *testing.T) {
	t.Parallel()
	d, id := stuck(t)
	d.because(true, "transactions", "cancel", "-network", "ETH", id)
	require.Equal(t, true, parsed[object](d, "transactions", "show", "-network", "ETH", id)["cancelling"])
	d.eth.SetFeeLevel(d.eth.FeeLevel() / 40)
	require.NoError(t, d.app.Step(t.Context()))
	d.mine(60)
	require.Equal(t, withdrawal.Failed, d.withdrawal(id).Status)
	_, _, err := d.run("verify")
	require.NoError(t, err)
}

func TestNoncesAreAdopted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := newDesk(t)
	d.earn()
	d.payout()
	d.mine(40)
	require.Empty(t, parsed[list](d, "nonces", "beyond", "-network", "ETH"))
	hot, err := d.app.Hot(ctx, "ETH", d.tenant)
	require.NoError(t, err)
	p := storage.Network("ETH")
	row, stored, _, err := outgoing.Nonces.One(ctx, d.store, p, string(hot))
	require.NoError(t, err)
	used := row.Next
	row.Next = 0
	require.NoError(t, storage.CommitOne(ctx, d.store, storage.Change{
		ID: "restored", Partition: p, Put: []storage.Row{outgoing.Nonces.Row(string(hot), stored.Version, time.Time{}, row)},
	}))
	beyond := parsed[list](d, "nonces", "beyond", "-network", "ETH")
	require.Equal(t, list{{"address": string(hot), "store": 0.0, "chain": float64(used)}}, beyond)
	_, _, err = d.run("nonces", "adopt", "-network", "ETH", "-address", "0x1", "-reason", "x")
	require.ErrorIs(t, err, outgoing.ErrHelp)
	d.because(true, "nonces", "adopt", "-network", "ETH", "-address", string(hot))
	row, _, _, err = outgoing.Nonces.One(ctx, d.store, p, string(hot))
	require.NoError(t, err)
	require.Equal(t, used, row.Next)
	require.Empty(t, parsed[list](d, "nonces", "beyond", "-network", "ETH"))
}

func TestNonceIsFilled(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.earn()
	hot, err := d.app.Hot(t.Context(), "ETH", d.tenant)
	require.NoError(t, err)
	d.eth.Front().LieNonce(1)
	id := d.payout()
	require.NoError(t, d.app.Step(t.Context()))
	d.eth.Front().LieNonce(0)
	d.mine(5)
	for _, wrong := range []string{"x", "-1", "1x", ""} {
		_, _, err := d.run("nonces", "fill", "-network", "ETH", "-reason", "x", string(hot), "--", wrong)
		require.ErrorContains(t, err, "NONCE must be a number", wrong)
	}
	_, _, err = d.run("nonces", "fill", "-network", "ETH", "-reason", "x", string(hot), "1")
	require.ErrorIs(t, err, outgoing.ErrHelp)
	d.because(true, "nonces", "fill", "-network", "ETH", string(hot), "0")
	d.mine(60)
	require.Equal(t, withdrawal.Completed, d.withdrawal(id).Status)
}

func TestSweepIsRetried(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.earn()
	d.ok("halt", "-network", "ETH", "-reason", "x")
	p := d.create("100")
	c, err := chain.MainnetRegistry().Currency("ETH")
	require.NoError(t, err)
	_, err = d.eth.Pay(chain.Address(p.Address), "ETH", c.Decimal(p.Due))
	require.NoError(t, err)
	d.mine(60)
	waiting := parsed[list](d, "sweeps", "list", "-network", "ETH")
	require.Len(t, waiting, 1)
	require.Equal(t, []any{treasury.WaitHalted, p.Address}, []any{waiting[0]["reason"], waiting[0]["address"]})
	d.ok("lift", "-network", "ETH", "-reason", "x")
	id := waiting[0]["sweep"].(string)
	require.Contains(t, d.because(true, "sweeps", "retry", "-network", "ETH", id), "halted")
	require.NoError(t, d.app.Step(t.Context()))
	d.mine(60)
	require.Empty(t, parsed[list](d, "sweeps", "list", "-network", "ETH"))
	_, _, err = d.run("sweeps", "retry", "-network", "ETH", "none", "-reason", "x")
	require.ErrorContains(t, err, "sweeps list")
}

func TestNetworkIsReadAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.mine(10)
	n := parsed[list](d, "networks", "list")
	require.Equal(t, []any{"ETH", float64(d.eth.Height())}, []any{n[0]["network"], n[0]["head"]})
	_, _, err := d.run("networks", "resume", "-network", "ETH", "-reason", "x")
	require.ErrorContains(t, err, "-from is required")
	d.because(true, "networks", "resume", "-network", "ETH", "-from", "5")
	st, err := d.app.NetworkStatus(t.Context(), "ETH")
	require.NoError(t, err)
	require.EqualValues(t, 5, st.Head)
}

// TestVerifyFinds: a hold that nobody owns is found, by an exit code, in a table and in JSON.
func TestVerifyFinds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.earn()
	out, progress, err := d.run("verify")
	require.NoError(t, err)
	require.Contains(t, out, "true")
	require.Equal(t, "verified 1 of 1 tenants\n", progress)
	require.NoError(t, storage.CommitOne(t.Context(), d.store, storage.Change{
		ID: "edited", Partition: storage.Tenant("shop"), Post: []ledger.Tx{{
			ID: "edited", Kind: ledger.KindAdjustment, At: d.clock.Now(), Legs: []ledger.Leg{{Account: ledger.Wallet("master"), Asset: "ETH", Hold: 5}},
		}},
	}))
	out, _, err = d.run("verify", "-tenant", "shop")
	require.ErrorIs(t, err, operator.ErrFound)
	require.Contains(t, out, "\nfindings:\n")
	require.Contains(t, out, "held 5 units, owed 0")
	out, _, err = d.run("verify", "-json")
	require.ErrorIs(t, err, operator.ErrFound)
	require.Contains(t, out, `"sound": false`)
	_, _, err = d.run("verify", "-tenant", "nobody")
	require.ErrorContains(t, err, "tenants list")
}

func TestRecount(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := newDesk(t)
	d.create("25")
	require.NoError(t, d.app.Upgraded(ctx))
	p := storage.Tenant("shop")
	rows, err := d.store.Find(ctx, storage.Query{Table: storage.Counters.Table, Partition: p, Limit: 1000})
	require.NoError(t, err)
	at := slices.IndexFunc(rows, func(r storage.Row) bool { return !strings.HasSuffix(r.ID, "/") }) // that would be a marker
	edited := storage.Counters.Value(rows[at])
	right := edited.Value
	edited.Value += 5
	require.NoError(t, storage.CommitOne(ctx, d.store, storage.Change{
		ID: "edited", Partition: p, Put: []storage.Row{storage.Counters.Row(rows[at].ID, rows[at].Version, time.Time{}, edited)},
	}))
	out, _, err := d.run("verify")
	require.ErrorIs(t, err, operator.ErrFound)
	require.Contains(t, out, "`recount` mends it")
	out = d.because(false, "recount", "shop", "-json")
	var mended list
	require.NoError(t, json.Unmarshal([]byte(out), &mended))
	require.Contains(t, mended, object{"counter": rows[at].ID, "was": float64(right + 5), "is": float64(right)})
	now, _, _, err := storage.Counters.One(ctx, d.store, p, rows[at].ID)
	require.NoError(t, err)
	require.Equal(t, right, now.Value)
	d.ok("verify")
	_, _, err = d.run("recount", "nobody", "-reason", "x")
	require.ErrorContains(t, err, "tenants list")
}

func TestJournal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.earn()
	rows, err := csv.NewReader(strings.NewReader(d.ok("journal", "shop", "-format", "csv"))).ReadAll()
	require.NoError(t, err)
	require.Greater(t, len(rows), 2)
	for _, format := range []string{"hledger", "beancount"} {
		file := filepath.Join(t.TempDir(), "books")
		require.Equal(t, object{"file": file}, parsed[object](d, "journal", "shop", "-format", format, "-o", file))
		written, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, d.ok("journal", "shop", "-format", format), string(written))
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	early, err := csv.NewReader(strings.NewReader(d.ok("journal", "shop", "-format", "csv", "-until", "2026-01-01"))).ReadAll()
	require.NoError(t, err)
	require.Len(t, early, 1, "the header")
	for want, line := range map[string]string{
		"-format must be": "journal shop", "-until must be a day": "journal shop -format csv -until tomorrow",
		"-json needs -o": "journal shop -format csv -json", "tenants list": "journal nobody -format csv", "-o:": "journal shop -format csv -o /none/such/file",
	} {
		_, _, err := d.run(strings.Fields(line)...)
		require.ErrorContains(t, err, want)
	}
}

// TestReseal: after it the older key is needed no more.
func TestReseal(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := newDesk(t)
	_, _, err := d.app.Webhooks.Setup(ctx, "shop", "http://shop.example/hook", webhook.By{})
	require.NoError(t, err)
	older, newer := d.cfg.Key, bytes.Repeat([]byte{9}, 32)
	with := func(keys ...[]byte) *cryptopay.App {
		c := d.cfg
		c.Key, c.Keys = nil, keys
		app, err := cryptopay.New(c)
		require.NoError(t, err)
		require.NoError(t, app.Open(ctx, tables()...))
		return app
	}
	with(older, newer)
	d.app = with(newer, older)
	out := d.because(false, "reseal", "-json")
	var r object
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, []any{1.0, []any{}, []any{}}, []any{r["secrets"], r["left"], r["credentials_not_moved"]})
	require.Equal(t, 1, d.sealed, "the host's own, too")
	require.Contains(t, d.log.String(), `command="operator reseal"`)
	d.app = with(newer)
	d.ok("verify")
	opens, err := d.app.Webhooks.Opens(ctx)
	require.NoError(t, err)
	require.True(t, opens)
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.deaf = true
	_, err := d.app.Payments.Create(t.Context(), "shop", payment.CreateInput{
		Pricing: payment.Pricing{Amount: "25", Currency: "ETH"}, CallbackURL: "http://shop.example/hook",
	})
	require.NoError(t, err)
	for range 40 {
		d.clock.Advance(3 * time.Hour)
		d.mine(1)
	}
	failed := parsed[list](d, "deliveries", "list", "-status", "failed")
	require.NotEmpty(t, failed)
	require.Contains(t, failed[0]["error"], "no answer")
	id := failed[0]["id"].(string)
	d.because(false, "deliveries", "resend", "-tenant", "shop", id)
	pending := parsed[list](d, "deliveries", "list", "-tenant", "shop", "-status", "pending")
	require.Len(t, pending, 1)
	require.Equal(t, id, pending[0]["id"])
	log := parsed[list](d, "audit", "-tenant", "shop")
	require.Equal(t, []any{"resend_webhook", id, "ann"}, []any{log[0]["kind"], log[0]["object"], log[0]["by"]})
	d.deaf = false
	d.mine(1)
	rows, err := d.app.Webhooks.List(t.Context(), "shop", webhook.StatusDelivered, 10, 0)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, id, rows[0].ID)
	_, _, err = d.run("deliveries", "resend", "-tenant", "shop", "none", "-reason", "x")
	require.ErrorContains(t, err, "deliveries list")
	_, _, err = d.run("deliveries", "list", "-status", "lost")
	require.ErrorContains(t, err, "-status must be one of")
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	refuses := true
	heard := 0
	d := newDesk(t, func(c *cryptopay.Config) {
		c.Consumers = []stream.Consumer{{Name: "crm", Tries: 1, Handle: func(context.Context, stream.Tx, stream.Event) error {
			if refuses {
				return errors.New("the CRM is down")
			}
			heard++
			return nil
		}}}
	})
	d.create("25")
	d.create("25")
	d.mine(5)
	dead := parsed[list](d, "events", "list")
	require.Len(t, dead, 2)
	require.Equal(t, []any{"crm", "tenant/shop"}, []any{dead[0]["consumer"], dead[0]["stream"]})
	require.Contains(t, dead[0]["error"], "the CRM is down")
	require.Equal(t, "crm", parsed[list](d, "events", "consumers")[0]["consumer"])
	_, _, err := d.run("events", "retry", "-stream", "tenant/shop", "-consumer", "crm", dead[0]["object"].(string), "-reason", "x")
	require.ErrorContains(t, err, "the CRM is down")
	refuses = false
	require.Contains(t, d.because(false, "events", "retry", "-stream", "tenant/shop", "-consumer", "crm", dead[0]["object"].(string)), "handled")
	require.Equal(t, 1, heard)
	d.because(false, "events", "discard", "-stream", "tenant/shop", "-consumer", "crm", dead[1]["object"].(string))
	require.Equal(t, 1, heard)
	require.Empty(t, parsed[list](d, "events", "list"))
	_, _, err = d.run("events", "discard", "-stream", "tenant/shop", "-consumer", "crm", "none", "-reason", "x")
	require.ErrorContains(t, err, "events list")

	refuses = true // what concerns a network has letters, too
	_, err = d.app.Operate.Halt(t.Context(), cryptopay.HaltScope{Network: "ETH"}, cryptopay.Call{By: "ann", Reason: "the node looks odd"})
	require.NoError(t, err)
	d.mine(5)
	dead = parsed[list](d, "events", "list")
	require.Len(t, dead, 2, "the halt, and that an operator called")
	for _, letter := range dead {
		require.Equal(t, "network/ETH", letter["stream"])
		d.because(false, "events", "discard", "-stream", "network/ETH", "-consumer", "crm", letter["object"].(string))
	}
	d.mine(5)
	require.Empty(t, parsed[list](d, "events", "list"), "what was discarded made no other letter")
}

// TestEveryCommandSaysWhatItDoes: each has a help text, and opens nothing to show it.
func TestEveryCommandSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var walk func(cmd *cli.Command, path []string)
	walk = func(cmd *cli.Command, path []string) {
		require.NotEmpty(t, cmd.Usage, path)
		require.True(t, strings.HasSuffix(cmd.Usage, "."), "%v: %s", path, cmd.Usage)
		require.Contains(t, d.ok(append(path, "-help")...), strings.TrimSuffix(cmd.Usage, "."))
		for _, f := range cmd.Flags {
			require.NotEmpty(t, f.(cli.DocGenerationFlag).GetUsage(), "%v -%s", path, f.Names()[0])
		}
		for _, sub := range cmd.Commands {
			walk(sub, append(path[:len(path):len(path)], sub.Name))
		}
	}
	walk(operator.Command(d.open), nil)
	require.Zero(t, d.opened)
}
