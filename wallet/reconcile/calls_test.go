package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
)

// A node that does not run code which is not deployed is read address by address. It is asked
// for no more balances in a minute than Config.Calls says.
func TestANodeThatReadsOneByOneIsAskedWithinTheAllowance(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		type call struct {
			ID     json.RawMessage   `json:"id"`
			Method string            `json:"method"`
			Params []json.RawMessage `json:"params"`
		}
		var all []call
		one := json.Unmarshal(body, &all) != nil
		if one {
			all = make([]call, 1)
			_ = json.Unmarshal(body, &all[0])
		}
		answer := func(c call) string {
			word := `"0x0000000000000000000000000000000000000000000000000000000000000000"`
			switch c.Method {
			case "eth_chainId":
				return `"result":"0x1"`
			case "eth_getBalance":
				asked.Add(1)
				return `"result":"0x0"`
			case "eth_call":
				var p struct{ To, Data string }
				if _ = json.Unmarshal(c.Params[0], &p); p.To == "" {
					return `"error":{"code":-32602,"message":"missing value for field to"}`
				}
				if strings.HasPrefix(p.Data, "0x70a08231") { // balanceOf
					asked.Add(1)
				}
				return `"result":` + word
			}
			return `"error":{"code":-32000,"message":"not now"}`
		}
		var out []string
		for _, c := range all {
			out = append(out, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, c.ID, answer(c)))
		}
		text := out[0]
		if !one {
			text = "["
			for i, s := range out {
				if i > 0 {
					text += ","
				}
				text += s
			}
			text += "]"
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}))
	defer node.Close()
	client, err := evm.New(evm.Options{Network: "ETH", ChainID: 1, URL: node.URL})
	require.NoError(t, err)
	w := watching(t, client, 100, func(i int) chain.Address {
		a, err := client.ParseAddress(fmt.Sprintf("0x%040x", 0x10000000+i))
		require.NoError(t, err)
		return a
	})
	w.minute()
	require.LessOrEqual(t, asked.Load(), int64(300))
	require.Greater(t, asked.Load(), int64(280))
}

// watch is a Service that looks at 500 addresses, all of which are due, with an allowance of 300.
type watch struct {
	*reconcile.Service
	t     *testing.T
	store storage.Store
	now   time.Time
}

func watching(t *testing.T, client chain.Client, head int64, address func(i int) chain.Address) *watch {
	t.Helper()
	w := &watch{t: t, store: memory.New(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	ctx, part := t.Context(), storage.Network("ETH")
	require.NoError(t, w.store.Open(ctx, append(append(reconcile.Tables(), incoming.Tables()...), storage.Tables()...)...))
	change := storage.Change{ID: "made", Partition: part, Put: []storage.Row{
		incoming.Cursors.Row(incoming.CursorID, 0, time.Time{}, incoming.Cursor{Head: head, TipRead: w.now}),
		reconcile.Places.Row("place", 0, time.Time{}, reconcile.PlaceRow{Seq: 1000, FinalAt: head}),
	}}
	for i := range 500 {
		a := address(i)
		change.Put = append(change.Put,
			incoming.Addresses.Row(string(a), 0, time.Time{}, incoming.AddressRow{Seq: int64(i + 1), Tenant: "shop", Use: incoming.UsePayment, Created: w.now}),
			reconcile.Looks.Row(string(a), 0, w.now, reconcile.LookRow{}))
	}
	require.NoError(t, storage.CommitOne(ctx, w.store, change))
	var err error
	w.Service, err = reconcile.New(reconcile.Config{
		Store: w.store, Client: client, Registry: chain.MainnetRegistry(), Now: func() time.Time { return w.now }, Calls: 300,
	})
	require.NoError(t, err)
	return w
}

// numbered are addresses of a simulated chain.
func numbered(world *sim.Chain) func(i int) chain.Address {
	return func(i int) chain.Address { return world.Customer(fmt.Sprint(i)) }
}

// minute works until nothing is left to do in it.
func (w *watch) minute() {
	w.t.Helper()
	for range 100 {
		n, err := w.Step(w.t.Context())
		require.NoError(w.t, err)
		if n == 0 {
			return
		}
	}
	w.t.Fatal("there is always something to do")
}

// read counts the addresses whose balances are known.
func (w *watch) read() (n int) {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{Table: reconcile.Looks.Table, Partition: storage.Network("ETH"), Limit: 1000})
	require.NoError(w.t, err)
	for _, r := range rows {
		if reconcile.Looks.Value(r).Reading.To > 0 {
			n++
		}
	}
	return n
}

// teller is a client whose node reads many balances at once, or does not, and says nothing of some.
type teller struct {
	chain.Client
	alone       bool
	silent      func(currency string, a chain.Address) bool
	many, asked int // reads of many, and of one
}

func (c *teller) Balances(ctx context.Context, currency string, list []chain.Address) ([]*decimal.Decimal, error) {
	if c.many++; c.alone {
		return nil, errors.ErrUnsupported
	}
	out, err := c.Client.(chain.ManyBalancer).Balances(ctx, currency, list)
	for i, a := range list {
		if c.silent != nil && c.silent(currency, a) {
			out[i] = nil
		}
	}
	return out, err
}

func (c *teller) Balance(ctx context.Context, currency string, a chain.Address) (decimal.Decimal, error) {
	c.asked++
	return c.Client.(chain.Balancer).Balance(ctx, currency, a)
}

// A node that cannot read many balances now is tried again after some minutes. Until then addresses
// are read one by one, each minute as many as the allowance has room for, and none twice.
func TestReadingManyIsTriedAgain(t *testing.T) {
	t.Parallel()
	world := sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry(), Seed: 1})
	world.Mine(10)
	c := &teller{Client: world.Client(), alone: true}
	w := watching(t, c, 10, numbered(world))
	currencies := len(chain.MainnetRegistry().On("ETH"))
	each := 300 / currencies
	w.minute()
	first := w.read()
	require.Equal(t, 1, c.many)
	require.InDelta(t, each, first, 1, "the read of many counts, too")
	require.Equal(t, first*currencies, c.asked)
	w.now = w.now.Add(time.Minute)
	w.minute()
	require.Equal(t, 1, c.many)
	require.Equal(t, first+each, w.read())
	require.Equal(t, w.read()*currencies, c.asked)

	c.alone = false
	w.now = w.now.Add(10 * time.Minute)
	asked := c.asked
	w.minute()
	require.Equal(t, 500, w.read())
	require.Equal(t, asked, c.asked)
}

// Balances of which a read of many says nothing are asked for one by one, within the allowance.
func TestWhatAReadOfManyDoesNotSayIsAskedAlone(t *testing.T) {
	t.Parallel()
	world := sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry(), Seed: 1})
	world.Mine(10)
	currencies := len(chain.MainnetRegistry().On("ETH"))

	one := numbered(world)(7)
	c := &teller{Client: world.Client(), silent: func(currency string, a chain.Address) bool { return currency == "USDTERC20" && a == one }}
	w := watching(t, c, 10, numbered(world))
	w.minute()
	require.Equal(t, 500, w.read())
	require.Equal(t, currencies, c.asked, "one address")

	c = &teller{Client: world.Client(), silent: func(currency string, _ chain.Address) bool { return currency == "USDTERC20" }}
	w = watching(t, c, 10, numbered(world))
	w.minute()
	require.LessOrEqual(t, c.asked+c.many, 300)
	require.Equal(t, w.read()*currencies, c.asked)
	for range 20 {
		w.now = w.now.Add(time.Minute)
		w.minute()
	}
	require.Equal(t, 500, w.read())
}
