package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
)

// A node that does not run code which is not deployed is read address by address. It is asked
// for no more balances in a minute than Config.Calls says.
func TestBreak_ANodeThatReadsOneByOneIsAskedForMoreThanItsAllowance(t *testing.T) {
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
				var p struct{ To string }
				if _ = json.Unmarshal(c.Params[0], &p); p.To == "" {
					return `"error":{"code":-32602,"message":"missing value for field to"}`
				}
				asked.Add(1)
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
	store, ctx, part := memory.New(), context.Background(), storage.Network("ETH")
	require.NoError(t, store.Open(ctx, append(append(reconcile.Tables(), incoming.Tables()...), storage.Tables()...)...))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	change := storage.Change{ID: "made", Partition: part, Put: []storage.Row{
		incoming.Cursors.Row(incoming.CursorID, 0, time.Time{}, incoming.Cursor{Head: 100, TipRead: now}),
		reconcile.Places.Row("place", 0, time.Time{}, reconcile.PlaceRow{Seq: 1000, FinalAt: 100}),
	}}
	for i := range 500 {
		a := fmt.Sprintf("0x%040x", 0x10000000+i)
		canonical, err := client.ParseAddress(a)
		require.NoError(t, err)
		change.Put = append(change.Put,
			incoming.Addresses.Row(string(canonical), 0, time.Time{}, incoming.AddressRow{Seq: int64(i + 1), Tenant: "shop", Use: incoming.UsePayment, Created: now}),
			reconcile.Looks.Row(string(canonical), 0, now, reconcile.LookRow{}))
	}
	require.NoError(t, storage.CommitOne(ctx, store, change))
	s, err := reconcile.New(reconcile.Config{Store: store, Client: client, Registry: chain.MainnetRegistry(), Now: func() time.Time { return now }, Calls: 300})
	require.NoError(t, err)
	for range 50 {
		if n, err := s.Step(ctx); n == 0 || err != nil {
			t.Log(n, err)
			break
		}
	}
	t.Log("asked for", asked.Load(), "balances in a minute")
	require.LessOrEqual(t, asked.Load(), int64(300))
}
