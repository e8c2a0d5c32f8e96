// Quickstart is a whole crypto payment shop in one program: it embeds the
// library over a SQLite file, takes payments in three currencies, pays a
// withdrawal, receives and checks its own webhooks, and ends with a proof of
// its books. Run it again and it goes on with the same file.
//
//	go run ./examples/quickstart                # simulated chains
//	go run ./examples/quickstart -chain anvil   # a local Ethereum node, started here
//	go run ./examples/quickstart -rpc http://127.0.0.1:8545
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

func main() {
	file := flag.String("db", "quickstart.db", "the SQLite `file`; a second run on simulated chains continues on it")
	kind := flag.String("chain", "sim", "sim or anvil")
	rpc := flag.String("rpc", "", "`URL` of a development EVM node with unlocked accounts, instead of -chain")
	stay := flag.Bool("stay", false, "go on serving the pages that were printed, until interrupted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *file, *kind, *rpc, *stay); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file, kind, rpc string, stay bool) (err error) {
	s, err := openShop(ctx, file, kind, rpc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()

	title("A shop opens")
	if err := s.openTenant(ctx); err != nil {
		return err
	}
	for i, currency := range s.world.currencies() {
		title(fmt.Sprintf("Payment %d of %d: 25 USD in %s", i+1, len(s.world.currencies()), currency))
		if err := s.takePayment(ctx, currency); err != nil {
			return err
		}
	}
	title("A withdrawal")
	if err := s.withdraw(ctx, s.world.currencies()[0]); err != nil {
		return err
	}
	title("Proof")
	if err := s.prove(ctx); err != nil {
		return err
	}
	title("Pages")
	s.links()
	if !stay {
		fmt.Println("these pages are served with -stay")
		return nil
	}
	fmt.Println("these pages are served until you press Ctrl-C")
	<-ctx.Done()
	return nil
}

// openTenant makes the shop's tenant, or finds it from an earlier run, and
// points its webhooks at this program.
func (s *shop) openTenant(ctx context.Context) error {
	name, fee := "Quickstart shop", decimal.RequireFromString("0.5")
	t, err := s.app.Wallets.CreateTenant(ctx, wallet.NewTenant{ID: "shop", Settings: wallet.Settings{Name: &name, TransactionFee: &fee}})
	if errors.Is(err, wallet.ErrTenantExists) {
		t, err = s.app.Wallets.Tenant(ctx, "shop")
		fmt.Println("welcome back: the books of the last run are still there")
	}
	if err != nil {
		return err
	}
	s.tenant = t.ID
	url, secret := s.inbox.url(), s.inbox.newSecret()
	if _, err := s.app.Webhooks.Edit(ctx, s.tenant, webhook.Patch{URL: &url, Secret: &secret}); err != nil {
		return err
	}
	fmt.Printf("tenant %s, fee %s %%, webhooks to %s\n", t.ID, t.TransactionFee, url)
	return s.fundFloat(ctx)
}

// fundFloat gives the hot addresses coins of the operator's own: they pay the
// networks, merchants' coins never do.
func (s *shop) fundFloat(ctx context.Context) error {
	for _, n := range s.world.networks() {
		hot, err := s.app.Hot(ctx, n, s.tenant)
		if err != nil {
			return err
		}
		gas, err := s.registry.Gas(n)
		if err != nil {
			return err
		}
		if err := s.world.fund(ctx, hot, gas.Code, decimal.RequireFromString("0.5")); err != nil {
			return err
		}
		fmt.Printf("hot address on %-4s %s gets 0.5 %s for network fees\n", n, hot, gas.Code)
	}
	return s.until(ctx, func() (bool, string, error) {
		for _, n := range s.world.networks() {
			gas, err := s.registry.Gas(n)
			if err != nil {
				return false, "", err
			}
			have, err := s.float(ctx, gas)
			if err != nil || !have.IsPositive() {
				return false, "waiting for the float on " + string(n), err
			}
		}
		return true, "the float is there", nil
	})
}

// takePayment plays both sides of one payment.
func (s *shop) takePayment(ctx context.Context, currency string) error {
	p, err := s.app.Payments.Create(ctx, s.tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: "25", Currency: currency}, OrderID: "order-" + currency,
	})
	if err != nil {
		return err
	}
	c, err := s.registry.Currency(currency)
	if err != nil {
		return err
	}
	amount := c.Decimal(p.Due)
	uri := s.registry.PaymentURI(c, chain.Address(p.Address), p.Due, "")
	fmt.Printf("send %s %s to %s\n%s\n%s", amount, c.Token, p.Address, uri, terminal(uri))
	fmt.Printf("or pay on this page, as long as this program runs: %s\n", s.pages.URL(s.tenant, p.ID))
	s.paid = append(s.paid, p.ID)
	tx, err := s.world.pay(ctx, chain.Address(p.Address), currency, amount)
	if err != nil {
		return err
	}
	fmt.Printf("the customer pays: %s\n", tx)
	err = s.until(ctx, func() (bool, string, error) {
		v, err := s.app.Payments.Get(ctx, s.tenant, p.ID)
		if err != nil {
			return false, "", err
		}
		seen, err := s.confirmations(ctx, c.Network, tx)
		state := fmt.Sprintf("%-12s %d of %d confirmations", v.Status, min(seen, c.Confirmations), c.Confirmations)
		return v.Status == payment.Completed, state, err
	})
	if err != nil {
		return err
	}
	v, err := s.app.Payments.Get(ctx, s.tenant, p.ID)
	fmt.Printf("credited: %s USD after fees\n", v.MerchantReceived())
	return err
}

// links are the pages of this run: those that customers paid on, and the reference.
func (s *shop) links() {
	for _, id := range s.paid {
		fmt.Printf("payment    %s\n", s.pages.URL(s.tenant, id))
	}
	fmt.Printf("reference  %s/docs/\n", s.inbox.base())
}

// withdraw pays a supplier from the master account.
func (s *shop) withdraw(ctx context.Context, currency string) error {
	to := s.world.supplier()
	amount := decimal.RequireFromString("10")
	w, err := s.app.Withdrawals.Create(ctx, s.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: &amount, Currency: currency, Address: to}, CustomID: "invoice-1",
	})
	if err != nil {
		return err
	}
	c, err := s.registry.Currency(currency)
	if err != nil {
		return err
	}
	fmt.Printf("10 USD in %s to %s: the recipient gets %s, the network fee is quoted at %s\n",
		currency, to, c.Decimal(w.Amount), c.Decimal(w.NetworkFee))
	err = s.until(ctx, func() (bool, string, error) {
		v, err := s.app.Withdrawals.Get(ctx, s.tenant, w.ID)
		state := string(v.Status)
		if v.Waiting != "" {
			state += ", waiting: " + v.Waiting
		}
		return v.Status == withdrawal.Completed, state, err
	})
	if err != nil {
		return err
	}
	v, err := s.app.Withdrawals.Get(ctx, s.tenant, w.ID)
	fmt.Printf("paid in %s\n", v.Tx)
	return err
}

// prove shows the balances and lets the ledger prove itself.
func (s *shop) prove(ctx context.Context) error {
	view, err := s.app.Wallets.Overview(ctx, s.tenant)
	if err != nil {
		return err
	}
	for _, b := range view.Account {
		c, err := s.registry.Currency(b.Currency)
		if err != nil {
			return err
		}
		fmt.Printf("balance    %-10s %s available, %s held\n", b.Currency, c.Decimal(b.Available), c.Decimal(b.Pending))
	}
	reports, err := s.app.Verify(ctx)
	if err != nil {
		return err
	}
	for i := range reports {
		r := &reports[i]
		for _, f := range r.Ledger.Findings {
			fmt.Println("finding   ", f)
		}
		if !r.Sound() {
			return fmt.Errorf("the books of %s are not sound", r.Tenant)
		}
		fmt.Printf("verified   %d accounts, %d entries, liabilities covered, holds owned: the books are sound\n", r.Ledger.Balances, r.Ledger.Entries)
	}
	good, bad := s.inbox.counts()
	fmt.Printf("webhooks   %d received with a good signature, %d refused\n", good, bad)
	if bad > 0 || good == 0 {
		return errors.New("webhooks did not arrive as signed")
	}
	fmt.Printf("done in %s; the file %s keeps everything\n", time.Since(s.started).Round(time.Millisecond), s.file)
	return nil
}

func title(s string) { fmt.Printf("\n— %s\n", s) }
