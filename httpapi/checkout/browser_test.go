package checkout_test

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/httpapi/checkout"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
)

// TestX01_CustomersPayOnThePageAlone: customers see what is due, pay by what the page tells
// them, and read what has come of it without loading the page again, whatever they do wrong.
func TestX01_CustomersPayOnThePageAlone(t *testing.T) {
	b := testenv.Chromium(t)
	h := cryptopaytest.Open(t, cryptopaytest.Options{Networks: []chain.Network{"ETH", "BTC", "XRP"}})
	server := httptest.NewUnstartedServer(nil)
	p, err := checkout.New(h.App, checkout.Options{
		BaseURL: "http://" + server.Listener.Addr().String(), Poll: 50 * time.Millisecond,
		Merchant: merchantOf(map[string]checkout.Merchant{
			"branded":   {Name: "Café Zwölf", Colour: "#ffd400", Logo: picture(t, 120, 40), ReturnURL: "https://shop.example.com/orders/1?done=1"},
			evil:        {Name: evil, Colour: "red;}body{display:none}", Logo: []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`), LogoPath: "//evil.example/x.png", ReturnURL: "javascript:alert(1)"},
			long:        {Name: long, Logo: picture(t, 2, 700), ReturnURL: "/" + long},
			"wide logo": {Name: "W", Logo: picture(t, 2000, 2), Colour: "#ffffff"},
		}),
	})
	require.NoError(t, err)
	server.Config.Handler = p
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(p.Close)
	link := func(of payment.Payment) string { return p.URL(h.Tenant.ID, of.ID) }
	ordered := func(id string) func(*payment.CreateInput) {
		return func(in *payment.CreateInput) {
			in.OrderID, in.Description = id, "Two tickets for the evening of 3 January"
		}
	}

	// Paying what is due, in two parts.
	pay := h.Payment("25", "USDTERC20", ordered("branded"))
	phone, wide := b.Open(link(pay), nil), b.Open(link(pay), map[string]any{"width": 1280, "height": 800, "dark": true})
	phone.Sees("waiting-phone", "Waiting for your payment", "Café Zwölf", "Order", pay.Address)
	wide.Sees("waiting-desktop-dark", "Waiting for your payment")
	var code string
	phone.Do("qr", map[string]any{"selector": ".code img"}, &code)
	require.Equal(t, phone.Run(`document.getElementById("wallet").getAttribute("href")`), code)
	usdt, err := h.App.Config().Registry.Currency("USDTERC20")
	require.NoError(t, err)
	require.Equal(t, h.App.Config().Registry.PaymentURI(usdt, chain.Address(pay.Address), pay.Due, ""), code)
	phone.Do("click", map[string]any{"selector": "#copy-address"}, nil)
	phone.Do("see", map[string]any{"text": "Copied"}, nil)
	require.Equal(t, pay.Address, phone.Run("navigator.clipboard.readText()"))
	phone.Run(`document.getElementById("copy-amount").focus()`)
	require.Regexp(t, `^[45]\d:\d\d$|^1:00:00$`, phone.Run(`document.querySelector("[role=timer]").textContent`))

	h.Customer.PaysShort(pay)
	phone.Sees("partly-phone", "A part is still missing", "12.5 USDT arrived", "Still to pay")
	require.Equal(t, "copy-amount", phone.Run("document.activeElement.id"), "focus stays where it was")
	phone.Do("qr", map[string]any{"selector": ".code img"}, &code)
	require.Contains(t, code, "uint256=12500000", "the code asks for what is missing")
	wide.Do("see", map[string]any{"text": "A part is still missing"}, nil)
	h.Customer.Sends(pay, "12.5", "USDTERC20")
	phone.Sees("paid-phone", "Payment complete", "Back to Café Zwölf", "whether or not you go back")
	wide.Sees("paid-desktop-dark", "Payment complete")
	phone.Close(60_000)
	wide.Close(60_000)
	receipt := b.Open(link(pay)+"/receipt", map[string]any{"width": 1280, "height": 800})
	receipt.Sees("receipt", "Receipt", pay.ID)
	receipt.Do("media", map[string]any{"media": "print"}, nil)
	receipt.Shot("receipt-print")
	receipt.Close(60_000)

	// Seen, with confirmations as they come.
	bitcoin := h.Payment("40", "BTC")
	tab := b.Open(link(bitcoin), map[string]any{"width": 1280, "height": 800})
	tab.Sees("waiting-desktop", "Bitcoin")
	sends(t, h, bitcoin)
	h.Step()
	tab.Sees("seen-desktop", "Payment seen", "Confirmations: 0 of 2")
	h.Mine(1)
	tab.Do("see", map[string]any{"text": "Confirmations: 1 of 2"}, nil)
	h.Settle()
	tab.Do("see", map[string]any{"text": "Payment complete"}, nil)
	tab.Close(60_000)

	// Whatever else can come of a payment: live on a phone, and on a desktop without script.
	back := func(of payment.Payment, part string) payment.Payment {
		of = h.Customer.Pays(of)
		in := refund.CreateInput{Payment: of.ID, All: part == "", Address: string(h.Chains["ETH"].Customer("refunded"))}
		if part != "" {
			in.Amount = new(decimal.RequireFromString(part))
		}
		_, err := h.App.Refunds.Create(t.Context(), h.Tenant.ID, in)
		require.NoError(t, err)
		h.Settle()
		return of
	}
	plain := b.Open(link(bitcoin), map[string]any{"noScript": true, "width": 1280, "height": 800, "dark": true})
	for i, row := range []struct {
		name, says string
		do         func(payment.Payment) payment.Payment
	}{
		{"over", "more than was due", h.Customer.PaysOver},
		{"late", "arrived after the payment had ended", h.Customer.PaysLate},
		{"wrong", "not the coin that was asked for", h.Customer.PaysWrongAsset},
		{"expired", "This payment has expired", h.Customer.LetsExpire},
		{"expired-part", "The time ended before all was paid", func(of payment.Payment) payment.Payment { return h.Customer.LetsExpire(h.Customer.PaysShort(of)) }},
		{"reorged", "gone from the network", h.Customer.PaysAndIsReorged},
		{"failed", "The payment did not go through", func(of payment.Payment) payment.Payment { return fails(t, h, of) }},
		{"refunded-part", "10 USDC of it was given back", func(of payment.Payment) payment.Payment { return back(of, "10") }},
		{"refunded", "Your payment was refunded", func(of payment.Payment) payment.Payment { return back(of, "") }},
		{"cancelled", "This payment was cancelled", func(of payment.Payment) payment.Payment {
			_, err := h.App.Payments.Cancel(t.Context(), h.Tenant.ID, of.ID)
			require.NoError(t, err)
			return of
		}},
	} {
		of := h.Payment("30", "USDCERC20")
		tab := b.Open(link(of), map[string]any{"dark": i%2 == 1})
		row.do(of)
		tab.Sees(row.name+"-phone", row.says)
		tab.Close(60_000)
		plain.Do("go", map[string]any{"url": link(of)}, nil)
		plain.See(row.says)
		plain.Audit(row.name + "-desktop-dark-plain")
	}
	plain.Close(1 << 20) // of many pages

	// What a merchant writes is text, however long it is and whatever it looks like, on the
	// narrowest of phones. His logo is an image, or not there.
	for _, order := range []string{evil, long, "wide logo"} {
		of := h.Payment("30", "BTC", func(in *payment.CreateInput) { in.OrderID, in.Description = order, strings.Repeat(order, 50) })
		for _, with := range []map[string]any{{"width": 320}, {"width": 1280, "language": "ar", "dark": true}} {
			tab := b.Open(link(of), with)
			tab.Sees(fmt.Sprintf("hostile-%d-%d", len(order), with["width"]))
			require.EqualValues(t, 1, tab.Run(`document.scripts.length`))
			require.EqualValues(t, 0, tab.Run(`document.querySelectorAll("[onerror],[style],[src^=x],iframe,object").length`))
			require.EqualValues(t, 0, tab.Run(`[...document.images].filter((i) => i.complete && !i.naturalWidth).length`), "each picture is one")
			tab.Close(60_000)
		}
	}

	// A memo, right to left, without script.
	memo := h.Payment("30", "XRP")
	tab = b.Open(link(memo), map[string]any{"language": "ar"})
	tab.Sees("memo-arabic-phone", "في انتظار دفعتك", "وسم الوجهة")
	require.Equal(t, "rtl", tab.Run("document.dir"))
	tab.Close(60_000)
	tab = b.Open(link(memo), map[string]any{"language": "ar", "width": 1280, "height": 800, "dark": true})
	tab.See("وسم الوجهة")
	tab.Shot("memo-arabic-desktop-dark")
	tab.Close(60_000)
	tab = b.Open(link(memo)+"?lang=de", map[string]any{"noScript": true})
	tab.Sees("no-script-phone", "Jetzt aktualisieren", "Destination-Tag")
	tab.Click(`a:has-text("Alle 20 Sekunden von selbst aktualisieren")`)
	tab.See("Nicht mehr aktualisieren")
	tab.Close(60_000)

	// A link that is made up, another merchant's, or too old says one and the same, with nothing
	// of the payment in it.
	other := h.NewTenant("Another")
	tab = b.Open(link(memo)+"x", nil)
	tab.Sees("unknown-phone", "There is no such page")
	nothing := tab.Run("document.body.innerHTML")
	h.Clock.Advance(memo.ExpiresAt.Sub(h.Clock.Now()) + 91*24*time.Hour)
	for _, bad := range []string{p.URL(other.ID, memo.ID), p.URL(h.Tenant.ID, memo.ID+"x"), link(memo)} {
		tab.Do("go", map[string]any{"url": bad}, nil)
		require.Equal(t, nothing, tab.Run("document.body.innerHTML"), bad)
	}
	require.NotContains(t, nothing, "My shop")
}

// The texts of merchants who mean harm, or have a lot to say.
var (
	evil = `</main><script>alert(1)</script><img src=x onerror=alert(1)>"'` + "`{{.}}\u2067"
	long = strings.Repeat("Donaudampfschifffahrtsgesellschaft", 3)[:100]
)

// fails lets a payment fail: its transaction is gone from the network when the time is over.
func fails(t *testing.T, h *cryptopaytest.Host, of payment.Payment) payment.Payment {
	t.Helper()
	tx, err := h.Chains["ETH"].Pay(chain.Address(of.Address), of.Currency, of.DueCoins())
	require.NoError(t, err)
	h.Step()
	h.Mine(1)
	h.Clock.Advance(2 * time.Hour)
	_, err = h.Chains["ETH"].Reorg(1, tx)
	require.NoError(t, err)
	h.Settle()
	return of
}

// TestX01_EveryStateInEachLook: whatever has come of a payment, the page says so on a phone and
// on a desktop, with script and without, and axe finds nothing.
func TestX01_EveryStateInEachLook(t *testing.T) {
	b := testenv.Chromium(t)
	h := cryptopaytest.New(t)
	server := httptest.NewUnstartedServer(nil)
	p, err := checkout.New(h.App, checkout.Options{BaseURL: "http://" + server.Listener.Addr().String()})
	require.NoError(t, err)
	server.Config.Handler = p
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(p.Close)
	looks := map[string]map[string]any{
		"phone":         {},
		"phone-plain":   {"noScript": true, "dark": true},
		"desktop":       {"width": 1280, "height": 800, "dark": true},
		"desktop-plain": {"width": 1280, "height": 800, "noScript": true},
	}
	names := slices.Sorted(maps.Keys(looks))
	for i, row := range outcomes(t, h, p) {
		of := h.Payment("30", "USDTERC20")
		row.do(of)
		for _, k := range testenv.Drawn(t, 1, []int{0, 1}) { // on both sizes, and with or without scripts
			look := names[(i+2*k)%len(names)]
			tab := b.Open(p.URL(h.Tenant.ID, of.ID), looks[look])
			tab.Sees("state-"+strings.ReplaceAll(row.name, " ", "-")+"-"+look, row.says...)
			tab.Close(60_000)
		}
	}
	of := h.Payment("30", "USDTERC20")
	owed(t, h, of)
	for look, with := range looks {
		tab := b.Open(p.URL(h.Tenant.ID, of.ID)+"?lang=ar", with)
		tab.Sees("refund-arabic-"+look, "ينتظر عنوانك منذ")
		tab.Close(60_000)
	}
}
