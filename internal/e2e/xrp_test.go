package e2e_test

import (
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/xrp"
	"github.com/cryptopay-go/cryptopay/internal/nodes/xrptest"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// rippled is the modelled XRP Ledger.
type rippled struct {
	*xrptest.Node
	url string
}

func openXRP(t testing.TB) post {
	n := xrptest.New(t.Name(), xrp.Mainnet)
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	n.Send(xrptest.Pay{To: xrptest.Address("somebody"), Drops: 5_000_000})
	n.Mine(1)
	return &rippled{n, server.URL}
}

func (*rippled) network() chain.Network  { return "XRP" }
func (*rippled) existing() chain.Address { return chain.Address(xrptest.Address("somebody")) }
func (r *rippled) mine()                 { r.Mine(1) }
func (r *rippled) swallow(on bool)       { r.Set(func(f *xrptest.Fault) { f.Swallow = on }) }

func (r *rippled) connect(t testing.TB, source func() *keys.Source) chain.Client {
	t.Helper()
	c, err := xrp.New(xrp.Options{
		Registry: chain.MainnetRegistry().Only("XRP"), URL: r.url,
		PublicKey: func(_ chain.Address, k chain.KeyRef) (chain.PublicKey, error) { return source().PublicKey("XRP", k) },
	})
	require.NoError(t, err)
	return c
}

func (r *rippled) pay(account chain.Address, memo string, coins decimal.Decimal) {
	p := xrptest.Pay{To: string(account), Drops: coins.Shift(6).IntPart()}
	if n, err := strconv.ParseUint(memo, 10, 32); err == nil {
		tag := uint32(n)
		p.Tag = &tag
	}
	r.Send(p)
}

// TestW03_WhatRippledKeepsIsNotReplaced: a payout is in the open ledger of a server that does
// not reach the others. It takes nothing dearer in its place, and says so. The payout waits,
// stuck, until the first lands, or the server has forgotten it and takes the second.
func TestW03_WhatRippledKeepsIsNotReplaced(t *testing.T) {
	t.Parallel()
	for _, clio := range []bool{false, true} {
		for _, end := range []string{"lands", "forgotten"} {
			t.Run(end+" clio="+strconv.FormatBool(clio), func(t *testing.T) {
				t.Parallel()
				node, ok := openXRP(t).(*rippled)
				require.True(t, ok)
				s := openCounter(t, node)
				p := s.order("60")
				account, memo := s.apart(chain.Address(p.Address))
				s.pay(account, memo, decimal.New(int64(p.Due), -int32(p.Scale)))
				s.blocks(2)
				to := s.existing()
				before := s.balance(to)
				node.Set(func(f *xrptest.Fault) { f.Clio, f.Hold = clio, true })
				amount := dec("10")
				w, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
					Terms: withdrawal.Terms{PriceAmount: &amount, Currency: "XRP", Address: string(to)}, Memo: "5",
				})
				require.NoError(t, err)
				s.blocks(100) // stuck by far
				attempts := s.attempts()
				require.Len(t, attempts, 2, "it was replaced once, and not again and again")
				w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
				require.NoError(t, err)
				require.Equal(t, withdrawal.Processing, w.Status)
				require.Equal(t, withdrawal.ShownStuck, w.WaitingReason())
				require.False(t, w.WaitingSince.IsZero())

				if end == "forgotten" {
					node.Restart()
					for i := 0; w.WaitingReason() != ""; i++ {
						require.Less(t, i, 60, "the second is not sent again")
						s.blocks(1)
						w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
						require.NoError(t, err)
					}
				}
				node.Set(func(f *xrptest.Fault) { f.Hold = false })
				s.blocks(30)
				w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
				require.NoError(t, err)
				require.Equal(t, withdrawal.Completed, w.Status)
				require.Empty(t, w.WaitingReason())
				require.Contains(t, attempts, w.Tx)
				require.Len(t, s.attempts(), 2)
				require.True(t, s.balance(to).Sub(before).Equal(decimal.New(int64(w.Amount), -int32(p.Scale))), "paid once")
				s.sound()
			})
		}
	}
}

// attempts lists the hashes of all signed transactions.
func (s *counter) attempts() (out []string) {
	rows, err := s.store.Find(s.t.Context(), storage.Query{Table: outgoing.Attempts.Table, Partition: storage.Network(string(s.network())), Limit: 100})
	require.NoError(s.t, err)
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return out
}
