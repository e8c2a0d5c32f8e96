package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
	"github.com/cryptopay-go/cryptopay/payment"
)

// TestPermanentAddress_WhereAccountsAreShared: a permanent address is a number of the tenant's
// account. What comes with the number is a payment each; the account pays out what came.
func TestPermanentAddress_WhereAccountsAreShared(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) post{"XRP": openXRP, "XLM": openStellar} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openCounter(t, open(t))
			ask := func(externalID string) payment.PermanentAddress {
				a, _, err := s.app.Payments.PermanentAddress(t.Context(), s.tenant, payment.AddressInput{Currency: name, ExternalID: externalID})
				require.NoError(t, err)
				return a
			}
			ann, bob := ask("ann"), ask("bob")
			account, memo := s.apart(chain.Address(ann.Address))
			same, other := s.apart(chain.Address(bob.Address))
			require.Equal(t, account, same)
			require.NotEqual(t, memo, other)
			for _, coins := range []string{"10", "20", "30"} {
				s.pay(account, memo, dec(coins))
			}
			s.pay(account, other, dec("40"))
			s.blocks(3)
			page, _, _, err := s.app.Payments.List(t.Context(), s.tenant, payment.Filter{})
			require.NoError(t, err)
			got := map[string]string{}
			for _, p := range page {
				require.Equal(t, payment.Completed, p.Status)
				got[p.DueCoins().String()] = p.AddressID
			}
			require.Equal(t, map[string]string{"10": ann.ID, "20": ann.ID, "30": ann.ID, "40": bob.ID}, got)
			require.Equal(t, ann, ask("ann"))
			s.sound()
			to := s.existing()
			s.withdraw(to, s.memoFor(to), "150") // of 200
			s.sound()
		})
	}
}

// TestPermanentAddress_OnSolana: the coin and a token, several times each, forwarded together
// and again later.
func TestPermanentAddress_OnSolana(t *testing.T) {
	t.Parallel()
	m := openMarket(t)
	a, _, err := m.app.Payments.PermanentAddress(t.Context(), m.tenant, payment.AddressInput{Currency: "USDTSOL", ExternalID: "ann"})
	require.NoError(t, err)
	for round := range 2 {
		for range 2 {
			m.pay(a.Address, "USDTSOL", dec("40"))
			m.pay(a.Address, "SOL", dec("1"))
		}
		m.until("all payments are completed", func() bool {
			_, n, _, err := m.app.Payments.List(t.Context(), m.tenant, payment.Filter{Status: payment.Completed})
			require.NoError(t, err)
			return n == int64(4*(round+1))
		})
		m.mine(solanatest.Finality)
	}
	m.sound()
	m.withdraw("150", "USDTSOL", solanatest.Key("somebody").PublicKey().String()) // of 160
	m.sound()
}
