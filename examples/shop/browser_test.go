package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// shopper is a customer with a real browser.
type shopper struct {
	t   *testing.T
	r   *running
	tab *testenv.Tab
}

// until loads the page again until it shows a text: the shop's own pages have no script.
func (s *shopper) until(text string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.tab.Do("reload", nil, nil)
		return strings.Contains(s.text(s.tab), text)
	}, time.Minute, 100*time.Millisecond, text)
}

func (s *shopper) text(tab *testenv.Tab) string {
	s.t.Helper()
	text, _ := tab.Run("document.body.innerText").(string)
	return text
}

func (s *shopper) goes(path string) {
	s.t.Helper()
	s.tab.Do("go", map[string]any{"url": s.r.base + path}, nil)
}

// orders a product in a coin, by the pages alone, and is on the order's page then.
func (s *shopper) orders(product, coin string) (path string) {
	s.t.Helper()
	s.goes("/")
	s.tab.Click(`form:has([value="` + product + `"]) button`)
	s.tab.Do("choose", map[string]any{"selector": "#coin", "value": coin}, nil)
	s.tab.Click("#order")
	s.tab.See("waits for its payment")
	return strings.TrimPrefix(s.tab.URL(), s.r.base)
}

// plays the customer of the order that is shown.
func (s *shopper) plays(who string) {
	s.t.Helper()
	s.tab.Click(`button[value="` + who + `"]`)
}

// TestX01_TheShopFromProductToRefund: a customer chooses, orders and pays on a phone with script
// and on a desktop without, whatever he does wrong; the order follows the payment; the desk is
// for whoever is logged in, and gives money back to the address that the customer names.
func TestX01_TheShopFromProductToRefund(t *testing.T) {
	b := testenv.Chromium(t)
	r := start(t, "-dir", t.TempDir())
	wide := map[string]any{"width": 1280, "height": 800}

	// On a phone: from a product to a paid order, in two parts.
	phone := &shopper{t: t, r: r, tab: b.Open(r.base+"/", nil)}
	phone.tab.Sees("goods-phone", "Desk lamp", "89.00 USD", "simulated networks")
	phone.tab.Click(`form:has([value="lamp"]) button`)
	phone.tab.Sees("cart-phone", "Your cart", "Total")
	phone.tab.Click(`button[aria-label="One more: Desk lamp"]`)
	phone.tab.See("178.00 USD")
	phone.tab.Click(`button[aria-label="One less: Desk lamp"]`)
	phone.tab.Do("choose", map[string]any{"selector": "#coin", "value": "USDTERC20"}, nil)
	phone.tab.Click("#order")
	phone.tab.Sees("order-phone", "waits for its payment", "Play the customer")
	order := strings.TrimPrefix(phone.tab.URL(), r.base)
	link, _ := phone.tab.Run(`document.getElementById("pay").href`).(string)
	page := phone.tab.OpenLike(link, nil)
	page.See("Waiting for your payment", "Corner Shop", "Send exactly 89 USDT", "Back to Corner Shop", strings.TrimPrefix(order, "/orders/"))
	phone.plays("short")
	phone.until("Pay what is missing")
	page.See("A part is still missing")
	phone.plays("pays")
	page.See("Payment complete")
	page.Click("#return")
	require.Equal(t, r.base+order, page.URL(), "the way back leads to the order")
	phone.until("We are packing it now")
	phone.tab.Audit("order-paid-phone")
	page.Close(60_000)

	// On a desktop without script: every other customer.
	desk := &shopper{t: t, r: r, tab: b.Open(r.base+"/", map[string]any{"width": 1280, "height": 800, "dark": true, "noScript": true})}
	desk.tab.Sees("goods-desktop-dark", "Desk lamp")
	var late, over string
	for _, row := range []struct{ who, product, coin, order, pay string }{
		{"over", "mug", "ETH", "We are packing it now", "more than was due"},
		{"reorg", "lamp", "BTC", "waits for its payment", "gone from the network"},
		{"wrong", "book", "USDCERC20", "waits for its payment", "not the coin that was asked for"},
		{"late", "tea", "XRP", "The time to pay is over", "arrived after the payment had ended"},
		{"waits", "lamp", "USDTERC20", "The time to pay is over", "This payment has expired"},
	} {
		path := desk.orders(row.product, row.coin)
		link := desk.tab.Run(`document.getElementById("pay").href`).(string)
		desk.plays(row.who)
		desk.until(row.order)
		desk.tab.Shot("order-" + row.who + "-desktop-dark")
		desk.tab.Do("go", map[string]any{"url": link}, nil)
		desk.until(row.pay)
		require.Contains(t, desk.text(desk.tab), "Contact Corner Shop", row.who)
		switch row.who {
		case "late":
			late = path
		case "over":
			over = path
		}
	}
	desk.goes(over)
	desk.tab.Audit("order-over-desktop-dark")

	// The desk wants a login, and takes no other word for it.
	keeper := &shopper{t: t, r: r, tab: b.Open(r.base+"/desk", wide)}
	require.Equal(t, r.base+"/login", keeper.tab.URL())
	keeper.tab.Fill("#password", "guessed")
	keeper.tab.Click("main button")
	keeper.tab.Sees("login-refused-desktop", "is wrong")
	keeper.tab.Fill("#password", r.password)
	keeper.tab.Click("main button")
	keeper.tab.Sees("desk-desktop", "Orders", "Log out", "not paid", strings.TrimPrefix(order, "/orders/"))

	// A refund: the customer names where it goes, and reads that it is on its way.
	keeper.goes("/desk/" + strings.TrimPrefix(order, "/orders/"))
	keeper.tab.Sees("desk-order-desktop", "Refund this order", "Received")
	keeper.tab.Click("#refund")
	keeper.tab.See("The customer names an address")
	phone.goes(order)
	phone.tab.Sees("claim-phone", "Your refund", "Where shall we send it?")
	phone.tab.Fill("#address-claim", "0x123")
	phone.tab.Click("#claim")
	phone.tab.Sees("claim-refused-phone", "Nothing can be sent to that address", "40 hex digits")
	wallet, _ := phone.tab.Run(`document.getElementById("address-claim").value`).(string)
	require.True(t, strings.HasPrefix(wallet, "0x") && len(wallet) == 42, wallet)
	phone.tab.Click("#claim")
	phone.until("We have sent your money back")
	phone.tab.Click(`a:has-text("See the payment")`)
	phone.tab.Sees("refunded-phone", "Your payment was refunded")
	keeper.tab.Do("reload", nil, nil)
	keeper.tab.Sees("desk-refunded-desktop", "given back", "completed")

	// Late money is sent back to the address that the customer has told.
	keeper.goes("/desk/" + strings.TrimPrefix(late, "/orders/"))
	keeper.tab.Sees("desk-late-desktop", "kept safe")
	keeper.tab.Click(".send-back")
	desk.goes(late)
	desk.tab.Click(`a:has-text("See the payment")`)
	desk.until("Your payment was refunded")

	// Nobody else sees the order, and the phone of the shopkeeper shows the desk as well.
	stranger := b.Open(r.base+order, nil)
	stranger.Sees("strange-order-phone", "There is no such page")
	small := keeper.tab.OpenLike(r.base+"/desk/"+strings.TrimPrefix(late, "/orders/"), map[string]any{"dark": true})
	small.Sees("desk-late-phone-dark", "sent back")
	small.Close(60_000)
	keeper.tab.Click(`button:has-text("Log out")`)
	keeper.goes("/desk")
	require.Equal(t, r.base+"/login", keeper.tab.URL())
}
