package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
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
	require.NoError(t, w.store.Open(ctx, slices.Concat(reconcile.Tables(), incoming.Tables(), outgoing.Tables(), storage.Tables())...))
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

// A balance that was read at a block in a gap of the trail is judged where the chain still has that
// block, by one question for all that were read there; else it is read again.
func TestFN09_ReadingsInAGapOfTheTrail(t *testing.T) {
	t.Parallel()
	world := sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry(), Seed: 1})
	world.Mine(60)
	client := world.Client()
	at := func(height int64) chain.Block {
		b, err := client.(chain.Locator).BlockAt(t.Context(), height)
		require.NoError(t, err)
		return b
	}
	first, last := at(20), at(60)
	last.Parent = first.Hash
	trail, err := incoming.NewTrail([]chain.Block{first, last})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		reading reconcile.Reading
		asked   int
		judged  bool
	}{
		"in the gap":          {reconcile.Reading{To: 30, Hash: at(30).Hash}, 1, true},
		"of another branch":   {reconcile.Reading{To: 30, Hash: at(31).Hash}, 1, false},
		"in the trail":        {reconcile.Reading{To: 20, Hash: first.Hash}, 0, true},
		"left by the trail":   {reconcile.Reading{To: 20, Hash: at(21).Hash}, 0, false},
		"too old to tell":     {reconcile.Reading{To: 19, Hash: at(19).Hash}, 0, false},
		"by a client without": {reconcile.Reading{To: 30, Hash: at(30).Hash}, 0, false},
	} {
		counted := &locator{Client: client, Locator: client.(chain.Locator)}
		var asked chain.Client = counted
		if name == "by a client without" {
			asked = &teller{Client: client}
		}
		w := watching(t, asked, 60, numbered(world))
		part := storage.Network("ETH")
		var put []storage.Row
		cur, row, _, err := incoming.Cursors.One(t.Context(), w.store, part, incoming.CursorID)
		require.NoError(t, err)
		cur.Trail = trail
		put = append(put, incoming.Cursors.Row(incoming.CursorID, row.Version, time.Time{}, cur))
		for i := range 2 {
			id := string(numbered(world)(i))
			look, row, _, err := reconcile.Looks.One(t.Context(), w.store, part, id)
			require.NoError(t, err)
			look.Reading = c.reading
			look.Reading.At, look.Reading.From, look.Reading.Held = w.now, c.reading.To, map[string]decimal.Decimal{}
			put = append(put, reconcile.Looks.Row(id, row.Version, w.now.Add(-time.Hour), look))
		}
		require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{ID: "read", Partition: part, Put: put}))
		_, err = w.Step(t.Context())
		require.NoError(t, err)
		look, _, _, err := reconcile.Looks.One(t.Context(), w.store, part, string(numbered(world)(0)))
		require.NoError(t, err)
		require.Equal(t, c.judged, !look.Looked.IsZero(), name)
		require.Equal(t, c.asked, counted.asked, name)
	}
}

// locator counts what it is asked for by height.
type locator struct {
	chain.Client
	chain.Locator
	asked int
}

func (c *locator) BlockAt(ctx context.Context, height int64) (chain.Block, error) {
	c.asked++
	return c.Locator.BlockAt(ctx, height)
}

func (c *locator) Balance(ctx context.Context, currency string, a chain.Address) (decimal.Decimal, error) {
	return c.Client.(chain.Balancer).Balance(ctx, currency, a)
}
