package cryptopay_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// screener is a host's screening of deposits: what it says, and what it was asked.
type screener struct {
	mu    sync.Mutex
	says  func(payment.Subject) (payment.Verdict, string, error)
	asked []payment.Subject
	told  []payment.Alert
}

func (s *screener) configure(c *cryptopay.Config) {
	c.Payments.Screen = s.screen
	c.Payments.Notify = func(_ context.Context, a payment.Alert) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, a)
	}
}

// alerts says how often the operator heard that there is no answer.
func (s *screener) alerts() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.told {
		if a.Kind == payment.AlertUnscreened {
			n++
		}
	}
	return n
}

func (s *screener) screen(_ context.Context, sub payment.Subject) (payment.Verdict, string, error) {
	s.mu.Lock()
	s.asked = append(s.asked, sub)
	says := s.says
	s.mu.Unlock()
	return says(sub)
}

// always has a screening say the same of every deposit.
func (s *screener) always(v payment.Verdict, reason string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says = func(payment.Subject) (payment.Verdict, string, error) { return v, reason, err }
}

// screenedOn runs a test of screening on memory and on SQLite.
func screenedOn(t *testing.T, test func(*testing.T, *cryptopaytest.Host, *screener)) {
	t.Helper()
	for name, store := range map[string]func(*testing.T) storage.Store{
		"memory": func(*testing.T) storage.Store { return memory.New() },
		"sqlite": func(t *testing.T) storage.Store {
			path := filepath.Join(t.TempDir(), "shop.db")
			require.NoError(t, sqlite.Migrate(t.Context(), path, append(cryptopay.Tables(), keys.Tables()...)...))
			s, err := sqlite.Open(path, sqlite.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &screener{}
			s.always(payment.Allow, "", nil)
			test(t, cryptopaytest.Open(t, cryptopaytest.Options{Store: store(t), Configure: s.configure}), s)
		})
	}
}

func has(t *testing.T, h *cryptopaytest.Host, currency string) string {
	t.Helper()
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(t, err)
	balances, err := h.App.Wallets.Balances(t.Context(), h.ID, wallet.Master)
	require.NoError(t, err)
	for _, b := range balances[wallet.Master] {
		if b.Currency == currency {
			return c.Decimal(b.Amount).String()
		}
	}
	return "0"
}

// A person decides about what the host's screening holds and refuses: the books, the audit log
// and the host's consumers know of it, and merchants cannot overrule it.
func TestScreen_APersonDecides(t *testing.T) {
	t.Parallel()
	screenedOn(t, func(t *testing.T, h *cryptopaytest.Host, s *screener) {
		ann := cryptopay.Call{By: "ann", Reason: "ticket 42"}
		s.always(payment.AskReview, "two hops from a mixer", nil)
		p := h.Customer.Pays(h.Payment("25", "USDTERC20"))
		require.Equal(t, payment.Waiting, p.Status)
		require.Equal(t, "0", has(t, h, "USDTERC20"))
		sub := s.asked[0]
		require.Equal(t, []string{h.ID, p.ID, "USDTERC20", p.Address, "25"}, []string{sub.Tenant, sub.PaymentID, sub.Currency, sub.To, sub.Amount.String()})
		require.NotEmpty(t, sub.From)
		require.NotEmpty(t, sub.Contract)
		list, _, err := h.App.Payments.SuspenseList(t.Context(), h.ID, payment.SuspenseFilter{})
		require.NoError(t, err)
		require.Equal(t, []any{payment.RoleHeld, "two hops from a mixer"}, []any{list[0].Role, list[0].ScreenReason})
		counted, err := h.App.Payments.Deposits(t.Context(), h.ID, p.ID)
		require.NoError(t, err)
		require.Empty(t, counted, "what is held is none of what was counted")
		h.Verify()

		dry := ann
		dry.DryRun = true
		_, id, err := h.App.Operate.ReleaseSuspense(t.Context(), h.ID, list[0].ID, dry)
		require.NoError(t, err)
		require.Empty(t, id)
		require.Equal(t, payment.Waiting, h.PaymentNow(p.ID).Status)
		_, _, err = h.App.Operate.ReleaseSuspense(t.Context(), h.ID, list[0].ID, cryptopay.Call{By: "ann"})
		require.ErrorContains(t, err, "Reason")
		h.Customer.LetsExpire(p)
		require.Equal(t, payment.Expired, h.PaymentNow(p.ID).Status)
		d, released, err := h.App.Operate.ReleaseSuspense(t.Context(), h.ID, list[0].ID, ann)
		require.NoError(t, err)
		require.NotEmpty(t, released)
		require.Equal(t, payment.RoleInTime, d.Role)
		h.Settle()
		require.Equal(t, payment.Completed, h.PaymentNow(p.ID).Status)
		require.Equal(t, "25", has(t, h, "USDTERC20"))

		s.always(payment.Refuse, "sanctioned", nil)
		q := h.Customer.Pays(h.Payment("40", "USDTERC20"))
		list, _, err = h.App.Payments.SuspenseList(t.Context(), h.ID, payment.SuspenseFilter{Status: payment.SuspenseOpen})
		require.NoError(t, err)
		require.Equal(t, []any{payment.RoleRefused, q.ID}, []any{list[0].Role, list[0].PaymentID})
		for _, c := range []cryptopay.Call{ann, dry} {
			_, _, err = h.App.Operate.ReleaseSuspense(t.Context(), h.ID, list[0].ID, c)
			require.ErrorAs(t, err, new(*payment.StateError))
		}
		supplier := h.Chains["ETH"].Customer("the one who paid")
		_, paid, err := h.App.Operate.PayOutSuspense(t.Context(), h.ID, list[0].ID, string(supplier), "", ann)
		require.NoError(t, err)
		h.Settle()
		require.True(t, h.Chains["ETH"].Balance(supplier, "USDTERC20").GreaterThan(dec("39")), "less the fees")
		require.Equal(t, payment.Waiting, h.PaymentNow(q.ID).Status)

		kept, err := h.App.Operate.List(t.Context(), "", 10, 0)
		require.NoError(t, err)
		var ids []string
		for _, o := range kept {
			ids = append(ids, o.ID)
		}
		require.ElementsMatch(t, []string{released, paid}, ids)
		var told []string
		var acts []outgoing.OperationKind
		for _, e := range h.Events() {
			switch b := e.Body.(type) {
			case payment.DepositChanged:
				if b.Role == payment.RoleHeld || b.Role == payment.RoleRefused {
					told = append(told, string(b.Role)+": "+b.ScreenReason)
				}
			case outgoing.Operated:
				acts = append(acts, b.Operation)
			}
		}
		require.Equal(t, []string{"held: two hops from a mixer", "refused: sanctioned", "refused: sanctioned"}, told, "that it is refused, and then refunded")
		require.Equal(t, []outgoing.OperationKind{outgoing.OpReleaseSuspense, outgoing.OpPayOutSuspense}, acts)
		h.Verify()
	})
}

// While the screening cannot tell, or panics, the deposit waits, also over a restart; others go
// on. Nothing expires over it, and it completes with the first answer.
func TestScreen_CannotTell(t *testing.T) {
	t.Parallel()
	screenedOn(t, func(t *testing.T, h *cryptopaytest.Host, s *screener) {
		s.says = func(sub payment.Subject) (payment.Verdict, string, error) {
			switch sub.Amount.String() {
			case "25":
				return payment.Allow, "", errors.New("the service is down")
			case "26":
				panic("a bug of the host's")
			}
			return payment.Allow, "", nil
		}
		down, bug, good := h.Payment("25", "USDTERC20"), h.Payment("26", "USDTERC20"), h.Payment("27", "USDTERC20")
		for _, p := range []payment.Payment{down, bug, good} {
			h.Customer.Pays(p)
		}
		h.Restart()
		h.Customer.LetsExpire(down)
		for _, p := range []payment.Payment{down, bug} {
			require.Equal(t, payment.Confirming, h.PaymentNow(p.ID).Status)
			list, err := h.App.Payments.Deposits(t.Context(), h.ID, p.ID)
			require.NoError(t, err)
			require.Contains(t, list[0].ScreenReason, "no answer")
		}
		require.Equal(t, payment.Completed, h.PaymentNow(good.ID).Status)
		require.Equal(t, 2, s.alerts(), "one for each")
		h.Verify()
		s.always(payment.Allow, "", nil)
		h.Mine(60)
		for _, p := range []payment.Payment{down, bug} {
			require.Equal(t, payment.Completed, h.PaymentNow(p.ID).Status)
		}
		require.Equal(t, 2, s.alerts())
		h.Verify()
	})
}

// Late money, another asset, a part, and money at a permanent address are all shown to the
// screening, on networks that name a sender and on those that do not.
func TestScreen_EveryDeposit(t *testing.T) {
	t.Parallel()
	screenedOn(t, func(t *testing.T, h *cryptopaytest.Host, s *screener) {
		s.always(payment.AskReview, "look", nil)
		h.Customer.PaysLate(h.Payment("25", "USDTERC20"))
		h.Customer.PaysWrongAsset(h.Payment("25", "USDTERC20"))
		part := h.Customer.PaysShort(h.Payment("30", "BTC"))
		a := h.PermanentAddress("ann", "USDTERC20")
		h.Customer.SendsTo(a, "50", "USDTERC20")
		h.Customer.SendsTo(a, "0.01", "USDTERC20")
		require.Len(t, s.asked, 5)
		require.Equal(t, payment.Failed, h.PaymentsOf(a)[0].Status)
		list, n, err := h.App.Payments.SuspenseList(t.Context(), h.ID, payment.SuspenseFilter{Limit: 10})
		require.NoError(t, err)
		require.Equal(t, int64(5), n)
		h.Verify()
		for _, d := range list {
			require.Equal(t, payment.RoleHeld, d.Role)
			_, _, err := h.App.Operate.ReleaseSuspense(t.Context(), h.ID, d.ID, because("x"))
			require.NoError(t, err)
		}
		h.Settle()
		require.Equal(t, payment.PartiallyPaid, h.PaymentNow(part.ID).Status)
		s.always(payment.Allow, "", nil)
		h.Customer.Pays(part)
		require.Equal(t, payment.Completed, h.PaymentNow(part.ID).Status)
		require.Equal(t, payment.Completed, h.PaymentsOf(a)[0].Status)
		h.Customer.SendsTo(a, "20", "USDTERC20")
		require.Equal(t, "70", has(t, h, "USDTERC20"))
		h.Verify()
	})
}
