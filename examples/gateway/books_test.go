package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
)

// Where the chain holds another amount than the books say, a gateway pays no more of that currency
// to anybody until the difference is gone or an operator has looked, unless it is told to go on.
func TestFM03_ADifferenceHaltsTheGatewaysPayouts(t *testing.T) {
	t.Parallel()
	for setting, halts := range map[string]bool{"": true, "on": true, "off": false} {
		t.Run("set to "+setting, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{
				"CRYPTOPAY_CLIENT_ID": testClient, "CRYPTOPAY_CLIENT_SECRET": testSecret, "CRYPTOPAY_RATE_LIMITS": "off", "CRYPTOPAY_RECONCILE_HALT": setting,
			}
			s, err := readSettings([]string{"-store", "sqlite:" + filepath.Join(t.TempDir(), "dev.db"), "-networks", "ETH"}, func(k string) string { return env[k] })
			require.NoError(t, err)
			i := &inside{t: t, s: s}
			i.open()
			t.Cleanup(func() { require.NoError(t, i.g.close()) })
			pay := func() {
				p := i.ok("POST", "/payments/", body{"amount": "300", "currency": "USDTERC20"})
				i.ok("POST", "/dev/pay", body{"address": p["address"], "currency": "USDTERC20", "amount": p["amount_crypto"]})
				i.ok("POST", "/dev/mine", body{"blockchain": "ETH", "blocks": 40})
				require.Equal(t, "completed", i.status(p["transaction_id"]))
			}
			looked := func() {
				for range 20 {
					i.g.world.sims[0].Mine(10)
					i.ok("POST", "/dev/advance", body{"seconds": 60})
				}
			}
			pay()
			looked()
			all, err := i.g.app.Operate.Halts(t.Context())
			require.NoError(t, err)
			require.Empty(t, all, "the books and the chain agree")

			usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
			require.NoError(t, err)
			i.g.world.sims[0].Rebase(usdt.Contract, 10)
			pay()
			looked()
			all, err = i.g.app.Operate.Halts(t.Context())
			require.NoError(t, err)
			out := i.ok("POST", "/withdrawal/", body{"amount": "5", "currency": "USDTERC20", "address": string(i.g.world.sims[0].Customer("supplier"))})
			pay() // deposits are credited all the same
			state := i.ok("GET", "/withdrawal/"+out["withdrawal_id"].(string)+"/", nil)
			if !halts {
				require.Empty(t, all)
				require.Equal(t, "completed", state["status"])
				return
			}
			require.Len(t, all, 1)
			require.Equal(t, []any{outgoing.Scope{Tenant: tenantID, Currency: "USDTERC20"}, "books_differ"}, []any{all[0].Scope, all[0].Reason})
			require.Equal(t, []any{"pending", "halted"}, []any{state["status"], state["waiting_reason"]})
		})
	}
	_, err := readSettings(nil, func(k string) string { return map[string]string{"CRYPTOPAY_RECONCILE_HALT": "no"}[k] })
	require.ErrorContains(t, err, "CRYPTOPAY_RECONCILE_HALT must be on or off")
	_, err = readSettings([]string{"-config", written(t, "log: info\nreconcile_halt: perhaps")}, func(string) string { return "" })
	require.ErrorContains(t, err, ":2:17: reconcile_halt must be true or false")
	s, err := readSettings([]string{"-config", written(t, "reconcile_halt: false")}, func(string) string { return "" })
	require.NoError(t, err)
	require.False(t, s.reconcileHalt)
}
