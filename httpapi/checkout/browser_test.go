package checkout_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/httpapi/checkout"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
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
			"branded": {Name: "Café Zwölf", Colour: "#ffd400", Logo: picture(t, 120, 40), ReturnURL: "https://shop.example.com/orders/1?done=1"},
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

	// Too much, too late, the wrong coin, nothing at all, and a block that is taken back.
	for _, row := range []struct {
		name, says string
		do         func(payment.Payment) payment.Payment
		dark       bool
	}{
		{"over", "more than was due", h.Customer.PaysOver, false},
		{"late", "arrived after the payment had ended", h.Customer.PaysLate, true},
		{"wrong", "not the coin that was asked for", h.Customer.PaysWrongAsset, false},
		{"expired", "This payment has expired", h.Customer.LetsExpire, true},
		{"reorged", "gone from the network", h.Customer.PaysAndIsReorged, false},
	} {
		of := h.Payment("30", "USDCERC20")
		tab := b.Open(link(of), map[string]any{"dark": row.dark})
		row.do(of)
		tab.Sees(row.name+"-phone", row.says)
		tab.Close(60_000)
	}
	cancelled := h.Payment("30", "ETH")
	_, err = h.App.Payments.Cancel(t.Context(), h.Tenant.ID, cancelled.ID)
	require.NoError(t, err)
	tab = b.Open(link(cancelled), nil)
	tab.Sees("cancelled-phone", "This payment was cancelled")
	tab.Close(60_000)

	// A memo, right to left, without script.
	memo := h.Payment("30", "XRP")
	tab = b.Open(link(memo), map[string]any{"language": "ar"})
	tab.Sees("memo-arabic-phone", "في انتظار دفعتك", "وسم الوجهة")
	require.Equal(t, "rtl", tab.Run("document.dir"))
	tab.Close(60_000)
	tab = b.Open(link(memo)+"?lang=de", map[string]any{"noScript": true})
	tab.Shot("no-script-phone")
	tab.Do("see", map[string]any{"text": "Jetzt aktualisieren"}, nil)
	tab.Do("see", map[string]any{"text": "Destination-Tag"}, nil)
	tab.Close(60_000)
	tab = b.Open(link(memo)+"x", nil)
	tab.Shot("unknown-phone")
	var found []string
	tab.Do("axe", nil, &found)
	require.Empty(t, found)
}
