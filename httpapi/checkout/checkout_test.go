package checkout_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/httpapi/checkout"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// TestX01_EveryStateIsSaidInPlainWords: of each outcome the page says what has come, what is
// missing and what to do, and asks for money only where money is still wanted.
func TestX01_EveryStateIsSaidInPlainWords(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	p := pages(t, h)
	for _, row := range outcomes(t, h, p) {
		of := h.Payment("30", "USDTERC20")
		row.do(of)
		page := shows(t, h, p, of)
		for _, text := range row.says {
			require.Contains(t, page, text, row.name)
		}
		require.NotContains(t, page, secret, row.name)
		require.Equal(t, row.pays, strings.Contains(page, `id="wallet"`), row.name)
		require.Equal(t, row.pays, strings.Contains(page, `id="address"`), row.name)
		receipt := get(t, p, p.URL(h.Tenant.ID, of.ID)+"/receipt").Body.String()
		require.Contains(t, receipt, of.ID, row.name)
		require.Contains(t, receipt, row.says[0], row.name)
		for _, code := range []string{"de", "es", "ar"} {
			other := get(t, p, p.URL(h.Tenant.ID, of.ID)+"?lang="+code).Body.String()
			require.NotContains(t, other, row.says[0], "%s in %s", row.name, code)
			require.NotRegexp(t, `\{[a-z]+\}`, textOf(other), "%s in %s", row.name, code)
			for _, at := range moments.FindAllString(page, -1) {
				require.Contains(t, other, at, "%s in %s", row.name, code)
			}
		}
	}
}

// moments are the times of a page's sentences.
var moments = regexp.MustCompile(`2026-\d\d-\d\d \d\d:\d\d UTC`)

// outcome is what can come of a payment, and what the page says then.
type outcome struct {
	name string
	do   func(payment.Payment)
	pays bool // the address, the code and the wallet's link are shown
	says []string
}

// outcomes are all that the page tells apart, for a payment of 30 USDT on Ethereum.
func outcomes(t *testing.T, h *cryptopaytest.Host, p *checkout.Handler) []outcome {
	t.Helper()
	return []outcome{
		{"waiting", func(payment.Payment) {}, true, []string{"Waiting for your payment", "Send exactly 30 USDT", "Send only USDT on the Ethereum network"}},
		{"seen", func(of payment.Payment) { sends(t, h, of); h.Step() }, false, []string{"Payment seen", "confirming your 30 USDT", "Confirmations: 0 of 12"}},
		{"partly", func(of payment.Payment) { h.Customer.PaysShort(of) }, true, []string{"A part is still missing", "15 USDT arrived", "the missing 15 USDT to the same address"}},
		{"closing", func(of payment.Payment) { h.Clock.Advance(of.ExpiresAt.Sub(h.Clock.Now())) }, false, []string{"The time is over", "Please do not send money now"}},
		{"paid", func(of payment.Payment) { h.Customer.Pays(of) }, false, []string{"Payment complete", "My shop received your 30 USDT"}},
		{"over", func(of payment.Payment) { h.Customer.PaysOver(of) }, false, []string{"Payment complete", "You sent 30 USDT more than was due"}},
		{"expired", func(of payment.Payment) { h.Customer.LetsExpire(of) }, false, []string{"This payment has expired", "do not send money to this address"}},
		{"expired in part", func(of payment.Payment) { h.Customer.LetsExpire(h.Customer.PaysShort(of)) }, false, []string{"The time ended before all was paid", "15 USDT arrived", "My shop has it"}},
		{"late", func(of payment.Payment) { h.Customer.PaysLate(of) }, false, []string{"This payment has expired", "30 USDT arrived after the payment had ended", "kept safe", "do not pay again before you have asked My shop"}},
		{"wrong coin", func(of payment.Payment) { h.Customer.PaysWrongAsset(of) }, true, []string{"Waiting for your payment", "not the coin that was asked for"}},
		{"reorged", func(of payment.Payment) { h.Customer.PaysAndIsReorged(of) }, true, []string{"Waiting for your payment", "gone from the network"}},
		{"failed", func(of payment.Payment) { fails(t, h, of) }, false, []string{"The payment did not go through", "do not send money"}},
		{"cancelled", func(of payment.Payment) {
			_, err := h.App.Payments.Cancel(t.Context(), h.Tenant.ID, of.ID)
			require.NoError(t, err)
		}, false, []string{"This payment was cancelled", "do not send money"}},
		{"sent back", func(of payment.Payment) {
			h.Customer.Pays(of)
			_, err := h.App.Refunds.Create(t.Context(), h.Tenant.ID, refund.CreateInput{Payment: of.ID, All: true, Address: string(h.Chains["ETH"].Customer("refunded"))})
			require.NoError(t, err)
			require.Contains(t, shows(t, h, p, of), "Payment complete", "it is not sent yet")
			h.Settle()
		}, false, []string{"Your payment was refunded"}},
		{"sent back in part", func(of payment.Payment) {
			h.Customer.Pays(of)
			_, err := h.App.Refunds.Create(t.Context(), h.Tenant.ID, refund.CreateInput{Payment: of.ID, Amount: new(decimal.RequireFromString("10")), Address: string(h.Chains["ETH"].Customer("refunded"))})
			require.NoError(t, err)
			h.Settle()
		}, false, []string{"Payment complete", "10 USDT of it was given back"}},
		{"refunded", func(of payment.Payment) {
			h.Customer.PaysLate(of)
			_, err := h.App.Payments.Refund(t.Context(), h.Tenant.ID, suspended(t, h, of))
			require.NoError(t, err)
		}, false, []string{"Your payment was refunded"}},
		{"refund waits for an address", func(of payment.Payment) { owed(t, h, of) }, false, []string{"Payment complete", "10 USDT, less fees, waits for your address since 2026-", "has a link for you: name the address there by 2026-"}},
		{"refund without an address ends", func(of payment.Payment) {
			r := owed(t, h, of)
			h.Clock.Advance(r.ExpiresAt.Sub(h.Clock.Now()))
			h.Step()
		}, false, []string{"Payment complete", "10 USDT ended on 2026-", "no address was named in time", "ask My shop for a new one"}},
		{"refund is ordered", func(of payment.Payment) { named(t, h, of) }, false, []string{"Payment complete", "10 USDT, less fees, waits to be sent since 2026-", "when My shop has released it"}},
		{"refund is on its way", func(of payment.Payment) {
			named(t, h, of)
			h.Step()
		}, false, []string{"Payment complete", "10 USDT, less fees, is on its way since 2026-", "complete when the network has confirmed it"}},
		{"refund comes to nothing", func(of payment.Payment) {
			r := named(t, h, of)
			_, err := h.App.Withdrawals.Refuse(t.Context(), h.Tenant.ID, r.Withdrawal, "ann", "the customer has it already")
			require.NoError(t, err)
		}, false, []string{"Payment complete", "10 USDT could not be sent", "ask My shop for a new one"}},
		{"late money is on its way back", func(of payment.Payment) {
			h.Customer.PaysLate(of)
			_, err := h.App.Refunds.OfSuspense(t.Context(), h.Tenant.ID, refund.SuspenseInput{
				Deposit: suspended(t, h, of), Address: string(h.Chains["ETH"].Customer("refunded")), Reason: secret,
			})
			require.NoError(t, err)
			require.Contains(t, shows(t, h, p, of), "30 USDT, less fees, waits to be sent since 2026-")
			h.Step()
		}, false, []string{"This payment has expired", "do not pay again before you have asked My shop", "30 USDT, less fees, is on its way since 2026-"}},
		{"refund cannot be paid", func(of payment.Payment) {
			r := owed(t, h, of)
			token := h.App.Refunds.Token(&r)
			spends(t, h)
			_, err := h.App.Refunds.Claim(t.Context(), token, string(h.Chains["ETH"].Customer("refunded")), "")
			require.ErrorIs(t, err, refund.ErrNotNow)
			require.NotContains(t, shows(t, h, p, of), token, "a claim link is as good as the money")
		}, false, []string{"Payment complete", "10 USDT, less fees, waits since 2026-", "could not be sent to the address that was named", "by the same link before 2026-"}},
	}
}

// secret is what customers do not read.
const secret = "a reason that is not for the customer"

// owed is a refund of 10 coins of what a customer has paid, without an address.
func owed(t *testing.T, h *cryptopaytest.Host, of payment.Payment, edit ...func(*refund.CreateInput)) refund.Refund {
	t.Helper()
	h.Customer.Pays(of)
	in := refund.CreateInput{Payment: of.ID, Amount: new(decimal.New(10, 0)), Reason: secret}
	for _, f := range edit {
		f(&in)
	}
	r, err := h.App.Refunds.Create(t.Context(), h.Tenant.ID, in)
	require.NoError(t, err)
	return r
}

// named is owed with the customer's address.
func named(t *testing.T, h *cryptopaytest.Host, of payment.Payment) refund.Refund {
	t.Helper()
	return owed(t, h, of, func(in *refund.CreateInput) { in.Address = string(h.Chains["ETH"].Customer("refunded")) })
}

// suspended is the deposit that waits in suspense at a payment's address.
func suspended(t *testing.T, h *cryptopaytest.Host, of payment.Payment) string {
	t.Helper()
	list, err := h.App.Payments.Suspense(t.Context(), h.Tenant.ID, 100, 0)
	require.NoError(t, err)
	for i := range list {
		if list[i].Address == of.Address {
			return list[i].ID
		}
	}
	require.Fail(t, "nothing is in suspense")
	return ""
}

// spends all USDT that the merchant has.
func spends(t *testing.T, h *cryptopaytest.Host) {
	t.Helper()
	all, err := h.App.Withdrawals.AvailableCurrencies(t.Context(), h.Tenant.ID)
	require.NoError(t, err)
	for _, one := range all {
		if one.Currency.Code == "USDTERC20" {
			w := h.Withdraw(one.Available.Decimal(one.Currency.Scale).String(), "USDTERC20", func(in *withdrawal.CreateInput) { in.FinalAmount = false })
			require.Equal(t, withdrawal.Completed, w.Status)
		}
	}
}

// TestX01_ARefundIsFollowedLive: who has the page open reads of each step of a refund as it
// happens, without loading the page, in his language, and with the merchant's name as text.
func TestX01_ARefundIsFollowedLive(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	name := "<b>Shop</b>"
	_, err := h.App.Wallets.UpdateTenant(t.Context(), h.Tenant.ID, wallet.Settings{Name: &name})
	require.NoError(t, err)
	p := pages(t, h, func(o *checkout.Options) { o.Poll = 10 * time.Millisecond })
	server := httptest.NewServer(p)
	defer server.Close()
	defer p.Close()
	look := func(of payment.Payment, lang string) *bufio.Reader {
		r, status := stream(t, server.URL+strings.TrimPrefix(p.URL(h.Tenant.ID, of.ID), origin)+"/events?lang="+lang)
		require.Equal(t, http.StatusOK, status)
		return r
	}
	since := func() string { return h.Clock.Now().UTC().Format("2006-01-02 15:04") + " UTC" }
	of := h.Customer.Pays(h.Payment("30", "USDTERC20"))
	english, german := look(of, "en"), look(of, "de")
	hear := func(r *bufio.Reader, text string) {
		t.Helper()
		for {
			part := next(t, r)
			require.NotContains(t, part, "<b>")
			require.NotContains(t, part, secret)
			if strings.Contains(part, text) {
				return
			}
		}
	}
	hear(english, "Payment complete")
	hear(german, "Zahlung abgeschlossen")

	h.Clock.Advance(3 * time.Minute)
	r := owed(t, h, of)
	hear(english, "waits for your address since "+since()+". &lt;b&gt;Shop&lt;/b&gt; has a link for you: name the address there by "+r.ExpiresAt.Format("2006-01-02 15:04")+" UTC")
	hear(german, "wartet seit "+since()+" auf Ihre Adresse")

	spends(t, h)
	h.Clock.Advance(3 * time.Minute)
	token := h.App.Refunds.Token(&r)
	_, err = h.App.Refunds.Claim(t.Context(), token, string(h.Chains["ETH"].Customer("refunded")), "")
	require.ErrorIs(t, err, refund.ErrNotNow)
	hear(english, "waits since "+since()+": it could not be sent to the address")
	hear(german, "konnte nicht an die genannte Adresse gesendet werden")
	failed := h.Clock.Now().UTC()

	h.Customer.Pays(h.Payment("100", "USDTERC20"))
	_, err = h.App.Refunds.Claim(t.Context(), token, string(h.Chains["ETH"].Customer("refunded")), "")
	require.NoError(t, err)
	hear(english, "waits to be sent since "+since())
	h.Step()
	var waits []refund.WaitChanged
	for _, e := range h.Events() {
		if b, ok := e.Body.(refund.WaitChanged); ok {
			waits = append(waits, b)
		}
	}
	require.Equal(t, []refund.WaitChanged{{RefundID: r.ID, PaymentID: of.ID, Reason: refund.WaitingFunds, Was: refund.WaitingAddress, Since: failed}}, waits)
	hear(english, "is on its way since "+since())
	h.Settle()
	hear(english, "10 USDT of it was given back")

	// What came late is given back, too: the deposit's refund is heard on the page of the payment.
	late := h.Customer.PaysLate(h.Payment("30", "USDTERC20"))
	english = look(late, "en")
	hear(english, "arrived after the payment had ended")
	_, err = h.App.Refunds.OfSuspense(t.Context(), h.Tenant.ID, refund.SuspenseInput{Deposit: suspended(t, h, late), Address: string(h.Chains["ETH"].Customer("refunded"))})
	require.NoError(t, err)
	hear(english, "30 USDT, less fees, waits to be sent since "+since())
	h.Step()
	hear(english, "30 USDT, less fees, is on its way since "+since())
	h.Settle()
	hear(english, "Your payment was refunded")
}

// TestX01_WhatIsGivenBackIsNotAskedFor: a customer who sent too much is told to ask for the
// difference until a refund covers it.
func TestX01_WhatIsGivenBackIsNotAskedFor(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	p := pages(t, h)
	of := h.Customer.PaysOver(h.Payment("30", "USDTERC20"))
	for _, row := range []struct {
		coins string
		asks  bool
	}{{"20", true}, {"10", false}} {
		in := refund.CreateInput{Payment: of.ID, Amount: new(decimal.RequireFromString(row.coins)), Address: string(h.Chains["ETH"].Customer("refunded"))}
		_, err := h.App.Refunds.Create(t.Context(), h.Tenant.ID, in)
		require.NoError(t, err)
		page := shows(t, h, p, of)
		require.Contains(t, page, row.coins+" USDT, less fees, waits to be sent")
		require.Equal(t, row.asks, strings.Contains(page, "You sent 30 USDT more than was due"), row.coins)
	}
	h.Settle()
	page := shows(t, h, p, of)
	require.Contains(t, page, "30 USDT of it was given back")
	require.NotContains(t, page, "more than was due")
}

// TestX01_WhatIsCopiedHasItsOwnName: the button beside a destination tag is named after it.
func TestX01_WhatIsCopiedHasItsOwnName(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.Open(t, cryptopaytest.Options{Networks: []chain.Network{"XRP"}})
	page := shows(t, h, pages(t, h), h.Payment("30", "XRP"))
	require.Contains(t, page, ">Copy destination tag<")
	require.NotContains(t, page, ">Copy memo<")
}

// hostileMemo is a client whose network writes addresses with a memo that means harm.
type hostileMemo struct {
	chain.Client
	chain.Multiplexer
}

// Untag implements chain.Tagger.
func (hostileMemo) Untag(a chain.Address) (chain.Address, string, bool) { return a, evil, true }

// TestX01_AHostileMemoIsText: what a network's client says is the memo is shown as text, and written
// out in the wallet's link.
func TestX01_AHostileMemoIsText(t *testing.T) {
	t.Parallel()
	wrap := false
	h := cryptopaytest.Open(t, cryptopaytest.Options{Networks: []chain.Network{"XRP"}, Configure: func(c *cryptopay.Config) {
		if wrap {
			c.Chains[0] = hostileMemo{c.Chains[0], c.Chains[0].(chain.Multiplexer)}
		}
	}})
	of := h.Payment("30", "XRP")
	wrap = true
	h.Restart()
	p := pages(t, h)
	for _, path := range []string{"", "/part", "/receipt"} {
		page := get(t, p, p.URL(h.Tenant.ID, of.ID)+path).Body.String()
		require.Contains(t, page, "&lt;script&gt;alert(1)&lt;/script&gt;", path)
		require.NotContains(t, page, "<script>", path)
		require.NotContains(t, page, "<img src=x", path)
		for _, link := range regexp.MustCompile(`id="wallet" href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			require.Regexp(t, `^[a-z]+:[A-Za-z0-9?&=%;._+-]+$`, link[1], path)
		}
	}
}

// textOf is a page without its script's templates of times.
func textOf(page string) string {
	return regexp.MustCompile(`data-text="[^"]*"`).ReplaceAllString(page, "")
}

// TestX01_LinksThatTellNothing: what is not the link of a payment that is shown gets one and
// the same answer, and nothing but a key of the host makes a link.
// A page asks for the code that it shows. Where the payment went on meanwhile, the code is gone,
// and what is answered is a picture of nothing: no customer pays by it or sees a broken image.
func TestX01_AnOldCodeIsNoBrokenPicture(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	p := pages(t, h)
	of := h.Payment("30", "USDCERC20")
	link := p.URL(h.Tenant.ID, of.ID)
	code := regexp.MustCompile(`/qr-[0-9a-f]{16}\.svg`)
	shown := code.FindString(get(t, p, link).Body.String())
	require.NotEmpty(t, shown)
	good := get(t, p, link+shown)
	require.Contains(t, good.Body.String(), "<path")

	h.Customer.PaysShort(of)
	now := code.FindString(get(t, p, link).Body.String())
	require.NotEqual(t, shown, now, "another code, of what is missing")
	h.Customer.LetsExpire(of)
	require.NotContains(t, get(t, p, link).Body.String(), "/qr-")
	for _, old := range []string{shown, now} {
		got := get(t, p, link+old)
		require.Equal(t, http.StatusOK, got.Code)
		require.Equal(t, "image/svg+xml", got.Header().Get("Content-Type"))
		require.Equal(t, "no-store", got.Header().Get("Cache-Control"))
		require.NotContains(t, got.Body.String(), "path")
	}
}

func TestX01_LinksThatTellNothing(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{42}, 32)
	keys := [][]byte{cryptopaytest.Key()}
	h := cryptopaytest.Open(t, cryptopaytest.Options{Configure: func(c *cryptopay.Config) { c.Key, c.Keys = nil, keys }})
	p := pages(t, h)
	of := h.Payment("30", "BTC")
	link := p.URL(h.Tenant.ID, of.ID)
	require.Regexp(t, `^https://pay\.example\.com/checkout/[A-Za-z0-9_-]{60,80}$`, link)
	require.Equal(t, link, p.URL(h.Tenant.ID, of.ID), "a payment has one link")
	nothing := get(t, p, "/checkout/x")
	require.Equal(t, http.StatusNotFound, nothing.Code)
	refused := func(link string) {
		t.Helper()
		got := get(t, p, link)
		require.Equal(t, http.StatusNotFound, got.Code, link)
		require.Equal(t, nothing.Body.String(), got.Body.String(), link)
		require.Equal(t, nothing.Result().Header, got.Result().Header, link)
	}
	token := strings.TrimPrefix(link, origin+"/checkout/")
	for i := range token {
		other := []byte(token)
		if other[i]++; other[i] > 'z' {
			other[i] = 'A'
		}
		refused("/checkout/" + string(other))
	}
	other := h.NewTenant("Another")
	for _, bad := range []string{
		p.URL(h.Tenant.ID, "00000000-9028-78cb-a70f-0e97181be188"), // there is no such payment
		p.URL(other.ID, of.ID), // it is not theirs
		p.URL("no-such-tenant", of.ID), p.URL("", ""), p.URL("a/../b", "\x00'\"<"),
		"/checkout/", "/checkout", "/", "/checkout/" + token + "A", "/checkout/" + token[1:], "/checkout/" + strings.Repeat("A", 10_000), "/checkout/AAAA",
		"/checkout/" + token[:9] + "%0A" + token[9:], "/checkout/" + token + "%0D%0A", // base64 passes over ends of lines
		link + "/nothing", link + "/qr-0.svg", link + "/logo-0000000000000000", "/checkout/assets/", "/checkout/assets/../part.html", "/checkout/theme/red.css",
	} {
		refused(bad)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/checkout/"+token, nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)

	// A link lives as long as its key, and as Keep says.
	require.Equal(t, http.StatusOK, get(t, p, link).Code)
	keys = [][]byte{key, cryptopaytest.Key()}
	h.Restart()
	p = pages(t, h)
	require.NotEqual(t, link, p.URL(h.Tenant.ID, of.ID))
	require.Equal(t, http.StatusOK, get(t, p, link).Code)
	h.Clock.Advance(of.ExpiresAt.Sub(h.Clock.Now()) + 90*24*time.Hour)
	require.Equal(t, http.StatusOK, get(t, p, link).Code)
	h.Clock.Advance(time.Second)
	refused(link)
	_, err := h.App.Reseal(t.Context())
	require.NoError(t, err)
	keys = [][]byte{key}
	h.Restart()
	p = pages(t, h)
	of = h.Payment("30", "BTC")
	require.Equal(t, http.StatusOK, get(t, p, p.URL(h.Tenant.ID, of.ID)).Code)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", p, p, p), fmt.Sprint(h.App.DeriveKeys("checkout link mac")[0]))
	refused(link)
}

// TestX01_NothingAMerchantWritesRuns: names, orders, colours, logos and addresses of a merchant are
// shown as text, or not at all.
func TestX01_NothingAMerchantWritesRuns(t *testing.T) {
	t.Parallel()
	const evil = `</main><script>alert(1)</script><img src=x onerror=alert(1)>"'` + "`{{.}}\u2067"
	var log bytes.Buffer
	h := cryptopaytest.New(t)
	name := evil
	_, err := h.App.Wallets.UpdateTenant(t.Context(), h.Tenant.ID, wallet.Settings{Name: &name})
	require.NoError(t, err)
	p := pages(t, h, func(o *checkout.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Merchant = merchantOf(map[string]checkout.Merchant{
			"logo":     {Logo: []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`)},
			"big logo": {Logo: picture(t, 3000, 1)},
			"path":     {LogoPath: "//evil.example/logo.png"}, "path2": {LogoPath: "https://evil.example/logo.png"}, "path3": {LogoPath: `/\evil.example/x`},
			"colour": {Colour: "red;}body{display:none"}, "return": {ReturnURL: "javascript:alert(1)"}, "return2": {ReturnURL: "http://shop.example"},
			"return3": {ReturnURL: "https://user:password@shop.example/"}, "return4": {ReturnURL: "//evil.example/x"}, "contact": {Contact: "javascript:alert(1)"}, "contact2": {Contact: "mailto:a@b?body=x"}, "return5": {ReturnURL: `/\evil.example`}, "return6": {ReturnURL: "/orders/../desk"}, "return7": {ReturnURL: "https://shop.example/orders/.%2E"}, "name": {Name: evil + strings.Repeat("x", 1000)},
		})
		o.Texts = map[string]map[string]string{"en": {"waiting": evil}, "fr": {"name": evil, "direction": "ltr"}}
	})
	for _, order := range []string{evil, "logo", "big logo", "path", "path2", "path3", "colour", "return", "return2", "return3", "return4", "return5", "return6", "return7", "contact", "contact2", "name"} {
		of := h.Payment("30", "USDTERC20", func(in *payment.CreateInput) {
			if in.OrderID = order; order == evil {
				in.OrderID, in.Description = evil, evil
			}
		})
		log.Reset()
		page := shows(t, h, p, of) + get(t, p, p.URL(h.Tenant.ID, of.ID)+"/receipt").Body.String() + get(t, p, p.URL(h.Tenant.ID, of.ID)+"/part").Body.String()
		require.NotContains(t, page, "<script>", order)
		require.NotContains(t, page, "<img src=x", order)
		require.NotContains(t, page, "evil.example", order)
		require.NotContains(t, page, "javascript:", order)
		require.NotContains(t, page, "/theme/", order)
		require.NotContains(t, page, "/logo-", order)
		require.NotContains(t, page, "ZgotmplZ", order)
		require.NotContains(t, page, `id="return"`, order)
		require.NotContains(t, page, `id="contact"`, order)
		require.NotContains(t, page, "style=", order)
		require.Equal(t, strings.Count(page, "\u2067")+strings.Count(page, "\u2068"), strings.Count(page, "\u2069"), "what turns direction ends where it began: %s", order)
		require.NotRegexp(t, `\son[a-z]+=`, strings.ReplaceAll(page, " onerror=alert(1)&gt;", ""), order)
		require.Equal(t, order != evil && order != "name", strings.Contains(log.String(), "checkout_merchant_incomplete"), order)
	}
	for _, bad := range []checkout.Options{
		{},
		{BaseURL: "ftp://x"},
		{BaseURL: "https://x/path"},
		{BaseURL: origin, Prefix: "x"},
		{BaseURL: origin, Prefix: "/x/"},
		{BaseURL: origin, Keep: -1},
		{BaseURL: origin, Language: "tlh"},
		{BaseURL: origin, Texts: map[string]map[string]string{"en": {"no_such": "x"}}},
		{BaseURL: origin, Texts: map[string]map[string]string{"en": {"waiting_text": "{secret}"}}},
		{BaseURL: origin, Texts: map[string]map[string]string{"fr": {"waiting": "x"}}},
		{BaseURL: origin, Texts: map[string]map[string]string{"<": {"name": "x", "direction": "ltr"}}},
		{BaseURL: origin, Texts: map[string]map[string]string{"fr": {"name": "x", "direction": "up"}}},
	} {
		_, err := checkout.New(h.App, bad)
		require.Error(t, err, "%+v", bad)
	}
}

// TestX01_HeadersAndWeight: every answer has the headers that keep a page to itself, and a
// page with all that it loads is light.
func TestX01_HeadersAndWeight(t *testing.T) {
	t.Parallel()
	logo := picture(t, 200, 60)
	h := cryptopaytest.New(t)
	p := pages(t, h, func(o *checkout.Options) {
		o.Merchant = merchantOf(map[string]checkout.Merchant{"": {Logo: logo, Colour: "#FFD400", ReturnURL: "https://shop.example/?a=1&b=2"}})
	})
	link := p.URL(h.Tenant.ID, h.Payment("30", "USDTERC20").ID)
	page := get(t, p, link)
	bytes := page.Body.Len()
	for _, m := range regexp.MustCompile(`(?:href|src)="(/checkout/[^"#?]+\.[a-z]+|/checkout/[^"#?]+/logo-[0-9a-f]+)`).FindAllStringSubmatch(page.Body.String(), -1) {
		got := get(t, p, m[1])
		require.Equal(t, http.StatusOK, got.Code, m[1])
		require.Contains(t, got.Header().Get("Cache-Control"), "max-age", m[1])
		if !strings.Contains(m[1], "icons.") || bytes < 1<<20 && strings.Count(page.Body.String(), m[1]) > 0 {
			bytes += got.Body.Len()
		}
	}
	require.Less(t, bytes, 60_000)
	require.Contains(t, page.Body.String(), `href="https://shop.example/?a=1&amp;b=2"`)
	for _, path := range []string{link, link + "/part", link + "/receipt", "/checkout/none", "/checkout/theme/ffd400.css"} {
		hd := get(t, p, path).Header()
		require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", hd.Get("Content-Security-Policy"), path)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin", "X-Robots-Tag": "noindex, nofollow", "Strict-Transport-Security": "max-age=31536000",
		} {
			require.Equal(t, want, hd.Get(name), path)
		}
		require.NotEmpty(t, hd.Get("Permissions-Policy"))
	}
	require.Equal(t, "no-store", page.Header().Get("Cache-Control"))
	tag := get(t, p, link+"/part").Header().Get("ETag")
	require.Equal(t, http.StatusNotModified, get(t, p, link+"/part", "If-None-Match", tag).Code)
	require.Equal(t, "image/png", get(t, p, regexp.MustCompile(`/checkout/[^"]+/logo-[0-9a-f]+`).FindString(page.Body.String())).Header().Get("Content-Type"))
}

// TestX01_Languages: the language is that of the link, else of the browser, else the host's.
func TestX01_Languages(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	p := pages(t, h, func(o *checkout.Options) {
		o.Language = "de"
		o.Texts = map[string]map[string]string{"fr": {"name": "Français", "direction": "ltr", "waiting": "En attente de votre paiement"}, "es": {"waiting": "Esperando"}}
	})
	link := p.URL(h.Tenant.ID, h.Payment("30", "BTC").ID)
	for _, row := range []struct{ query, accept, want string }{
		{"", "", `<html lang="de" dir="ltr">`},
		{"", "tlh", `<html lang="de" dir="ltr">`},
		{"?lang=xx", "en", `<html lang="en" dir="ltr">`},
		{"?lang=ar", "en", `<html lang="ar" dir="rtl">`},
		{"", "es-MX,es;q=0.9,en;q=0.8", "Esperando"},
		{"", "en;q=0.2, ar-EG;q=0.7", `<html lang="ar" dir="rtl">`},
		{"?lang=fr", "", "En attente de votre paiement"},
		{"?lang=fr", "", "Copy amount"},
		{"", "de;q=x,,;,en;q=", `<html lang="de"`},
		{"", strings.Repeat("x,", 5000) + "es", `<html lang="de"`},
		{"?lang=" + strings.Repeat("-", 5000), "", `<html lang="de"`},
	} {
		require.Contains(t, get(t, p, link+row.query, "Accept-Language", row.accept).Body.String(), row.want, "%+v", row)
	}
}

// TestX01_LiveViewersShareOneRead: what changes reaches every viewer, in his language, and
// costs one read however many there are. Viewers beyond the bound are sent away to ask again,
// and a closed Handler lets its viewers go.
func TestX01_LiveViewersShareOneRead(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	asked := make(chan string, 1000)
	p := pages(t, h, func(o *checkout.Options) {
		o.Poll, o.MaxViewers = 20*time.Millisecond, 30
		o.Merchant = func(_ context.Context, _ string, p *payment.Payment) (checkout.Merchant, error) {
			asked <- p.ID
			return checkout.Merchant{}, nil
		}
	})
	server := httptest.NewServer(p)
	defer server.Close()
	of := h.Payment("30", "USDTERC20")
	path := strings.TrimPrefix(p.URL(h.Tenant.ID, of.ID), origin)
	var viewers []*bufio.Reader
	for i := range 30 {
		r, status := stream(t, server.URL+path+"/events?lang="+[]string{"en", "de"}[i%2])
		require.Equal(t, http.StatusOK, status)
		viewers = append(viewers, r)
		require.Contains(t, next(t, r), []string{"Waiting for your payment", "Wir warten"}[i%2])
	}
	_, status := stream(t, server.URL+path+"/events")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Len(t, asked, 1)
	sends(t, h, of)
	h.Step()
	for i, r := range viewers {
		require.Contains(t, next(t, r), []string{"Payment seen", "Zahlung gesehen"}[i%2])
	}
	require.LessOrEqual(t, len(asked), 3, "30 viewers, one change: a read for each event, not for each viewer")
	p.Close()
	for _, r := range viewers {
		_, err := r.ReadString(0)
		require.Error(t, err) // the end
	}
}

// stream opens a live stream.
func stream(t *testing.T, url string) (*bufio.Reader, int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return bufio.NewReader(resp.Body), resp.StatusCode
}

// next is the next event of a stream.
func next(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		if line == "\n" && strings.Contains(b.String(), "event: part") {
			return b.String()
		}
		b.WriteString(line)
	}
}

// TestX01_AnAddressThatIsNotOursIsNotShown: a payment that somebody edited in the database has
// no page, and nobody is told where he would have the money.
func TestX01_AnAddressThatIsNotOursIsNotShown(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	p := pages(t, h)
	of := h.Payment("30", "USDTERC20")
	link := p.URL(h.Tenant.ID, of.ID)
	part := storage.Tenant(h.Tenant.ID)
	rows, err := h.Store.Find(t.Context(), storage.Query{Table: payment.Payments.Table, Partition: part})
	require.NoError(t, err)
	edited := payment.Payments.Value(rows[0])
	edited.Address = string(h.Chains["ETH"].Customer("thief"))
	for _, err := range h.Store.Commit(t.Context(), storage.Change{
		ID: "an insider's", Partition: part, Put: []storage.Row{payment.Payments.Row(rows[0].ID, rows[0].Version, rows[0].Due, edited)},
	}) {
		require.NoError(t, err)
	}
	for _, path := range []string{"", "/receipt", "/part", "/events"} {
		got := get(t, p, link+path)
		require.Equal(t, http.StatusServiceUnavailable, got.Code, path)
		require.NotContains(t, got.Body.String(), edited.Address, path)
	}
	require.Contains(t, get(t, p, link).Body.String(), "Please do not send money now")
}

// TestX01_OneLinkTakesNotAllStreams: who has the link of one payment cannot keep the viewers of
// others away, a question for the headers of a stream opens none. A stranger who sends no more or takes nothing is let go, and no
// deadline is left for what the connection is used for next.
func TestX01_OneLinkTakesNotAllStreams(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	p := pages(t, h, func(o *checkout.Options) { o.MaxViewers = 1000 })
	path := func() string {
		return strings.TrimPrefix(p.URL(h.Tenant.ID, h.Payment("30", "USDTERC20").ID), origin) + "/events"
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	mine, theirs := path(), path()
	look := func(method, path string) *viewer {
		v := &viewer{ResponseRecorder: httptest.NewRecorder(), began: make(chan int, 1), ended: make(chan struct{})}
		go func() {
			defer close(v.ended)
			p.ServeHTTP(v, httptest.NewRequestWithContext(ctx, method, path, nil))
			v.begin(http.StatusOK)
		}()
		return v
	}
	var open []*viewer
	for range 30 {
		v := look(http.MethodGet, mine)
		require.Equal(t, http.StatusOK, <-v.began)
		open = append(open, v)
	}
	require.Equal(t, http.StatusServiceUnavailable, <-look(http.MethodGet, mine).began)
	v := look(http.MethodGet, theirs)
	require.Equal(t, http.StatusOK, <-v.began)
	<-look(http.MethodHead, theirs).ended
	end()
	for _, v := range append(open, v) {
		<-v.ended
		require.True(t, v.deadline.IsZero())
	}
	for _, path := range []string{strings.TrimSuffix(mine, "/events"), "/checkout/assets/checkout.css", "/checkout/x"} {
		v := look(http.MethodPost, path)
		<-v.ended
		require.NotZero(t, v.readBy, "a body that never comes")
		require.NotZero(t, v.within, "an answer that nobody takes")
		require.True(t, v.deadline.IsZero())
	}
	ctx, end = context.WithCancel(t.Context())
	defer end()
	require.Equal(t, http.StatusOK, <-look(http.MethodGet, mine).began, "who leaves makes room")
}

// viewer is a connection that tells when its answer begins.
type viewer struct {
	*httptest.ResponseRecorder
	began    chan int
	ended    chan struct{}
	deadline time.Time // for writing
	within   time.Time // what that was when the answer began
	readBy   time.Time
}

func (v *viewer) begin(status int) {
	select {
	case v.began <- status:
		v.within = v.deadline
	default:
	}
}

func (v *viewer) WriteHeader(status int) {
	v.begin(status)
	v.ResponseRecorder.WriteHeader(status)
}

func (v *viewer) Flush() { v.begin(http.StatusOK) }

func (v *viewer) SetReadDeadline(at time.Time) error {
	v.readBy = at
	return nil
}

func (v *viewer) SetWriteDeadline(at time.Time) error {
	v.deadline = at
	return nil
}
