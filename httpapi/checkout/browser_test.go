package checkout_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/httpapi/checkout"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
)

// customer looks at pages with a real browser.
type customer struct {
	t      *testing.T
	b      *testenv.Browser
	folder string // of screenshots
}

// open shows a page. with are browser.cjs's settings.
func (c *customer) open(url string, with map[string]any) *tab {
	c.t.Helper()
	if with == nil {
		with = map[string]any{}
	}
	with["url"] = url
	p := &tab{c: c}
	c.b.Do("open", with, &p.id)
	return p
}

// tab is an open page.
type tab struct {
	c  *customer
	id int
}

func (p *tab) do(what string, args map[string]any, out any) {
	p.c.t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	args["page"] = p.id
	p.c.b.Do(what, args, out)
}

// sees waits for texts, has axe look, and takes a picture.
func (p *tab) sees(picture string, texts ...string) {
	p.c.t.Helper()
	for _, text := range texts {
		p.do("see", map[string]any{"text": text}, nil)
	}
	p.audit(picture)
}

func (p *tab) audit(picture string) {
	p.c.t.Helper()
	p.shot(picture)
	var found []string
	p.do("axe", nil, &found)
	require.Empty(p.c.t, found, picture)
	var wider int
	p.do("run", map[string]any{"expression": "document.documentElement.scrollWidth - document.documentElement.clientWidth"}, &wider)
	require.Zero(p.c.t, wider, "%s scrolls to the side", picture)
}

func (p *tab) shot(picture string) {
	p.c.t.Helper()
	p.do("shot", map[string]any{"file": filepath.Join(p.c.folder, picture+".png")}, nil)
}

func (p *tab) run(expression string) (out any) {
	p.c.t.Helper()
	p.do("run", map[string]any{"expression": expression}, &out)
	return out
}

// close ends the page, and fails the test where its console complained, where it asked
// anybody else for anything, or where it was heavy.
func (p *tab) close() {
	p.c.t.Helper()
	var end struct {
		Problems []string
		Bytes    int
	}
	p.do("close", nil, &end)
	require.Empty(p.c.t, end.Problems)
	require.Less(p.c.t, end.Bytes, 60_000)
}

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
	c := &customer{t: t, b: b, folder: os.Getenv("CRYPTOPAY_SCREENSHOTS")}
	if c.folder == "" {
		c.folder = t.ArtifactDir()
	}
	link := func(of payment.Payment) string { return p.URL(h.Tenant.ID, of.ID) }
	ordered := func(id string) func(*payment.CreateInput) {
		return func(in *payment.CreateInput) {
			in.OrderID, in.Description = id, "Two tickets for the evening of 3 January"
		}
	}

	// Paying what is due, in two parts.
	pay := h.Payment("25", "USDTERC20", ordered("branded"))
	phone, wide := c.open(link(pay), nil), c.open(link(pay), map[string]any{"width": 1280, "height": 800, "dark": true})
	phone.sees("waiting-phone", "Waiting for your payment", "Café Zwölf", "Order", pay.Address)
	wide.sees("waiting-desktop-dark", "Waiting for your payment")
	var code string
	phone.do("qr", map[string]any{"selector": ".code img"}, &code)
	require.Equal(t, phone.run(`document.getElementById("wallet").getAttribute("href")`), code)
	usdt, err := h.App.Config().Registry.Currency("USDTERC20")
	require.NoError(t, err)
	require.Equal(t, h.App.Config().Registry.PaymentURI(usdt, chain.Address(pay.Address), pay.Due, ""), code)
	phone.do("click", map[string]any{"selector": "#copy-address"}, nil)
	phone.do("see", map[string]any{"text": "Copied"}, nil)
	require.Equal(t, pay.Address, phone.run("navigator.clipboard.readText()"))
	phone.run(`document.getElementById("copy-amount").focus()`)
	require.Regexp(t, `^[45]\d:\d\d$|^1:00:00$`, phone.run(`document.querySelector("[role=timer]").textContent`))

	h.Customer.PaysShort(pay)
	phone.sees("partly-phone", "A part is still missing", "12.5 USDT arrived", "Still to pay")
	require.Equal(t, "copy-amount", phone.run("document.activeElement.id"), "focus stays where it was")
	phone.do("qr", map[string]any{"selector": ".code img"}, &code)
	require.Contains(t, code, "uint256=12500000", "the code asks for what is missing")
	wide.do("see", map[string]any{"text": "A part is still missing"}, nil)
	h.Customer.Sends(pay, "12.5", "USDTERC20")
	phone.sees("paid-phone", "Payment complete", "Back to Café Zwölf", "whether or not you go back")
	wide.sees("paid-desktop-dark", "Payment complete")
	phone.close()
	wide.close()
	receipt := c.open(link(pay)+"/receipt", map[string]any{"width": 1280, "height": 800})
	receipt.sees("receipt", "Receipt", pay.ID)
	receipt.do("media", map[string]any{"media": "print"}, nil)
	receipt.shot("receipt-print")
	receipt.close()

	// Seen, with confirmations as they come.
	bitcoin := h.Payment("40", "BTC")
	tab := c.open(link(bitcoin), map[string]any{"width": 1280, "height": 800})
	tab.sees("waiting-desktop", "Bitcoin")
	sends(t, h, bitcoin)
	h.Step()
	tab.sees("seen-desktop", "Payment seen", "Confirmations: 0 of 2")
	h.Mine(1)
	tab.do("see", map[string]any{"text": "Confirmations: 1 of 2"}, nil)
	h.Settle()
	tab.do("see", map[string]any{"text": "Payment complete"}, nil)
	tab.close()

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
		tab := c.open(link(of), map[string]any{"dark": row.dark})
		row.do(of)
		tab.sees(row.name+"-phone", row.says)
		tab.close()
	}
	cancelled := h.Payment("30", "ETH")
	_, err = h.App.Payments.Cancel(t.Context(), h.Tenant.ID, cancelled.ID)
	require.NoError(t, err)
	tab = c.open(link(cancelled), nil)
	tab.sees("cancelled-phone", "This payment was cancelled")
	tab.close()

	// A memo, right to left, without script.
	memo := h.Payment("30", "XRP")
	tab = c.open(link(memo), map[string]any{"language": "ar"})
	tab.sees("memo-arabic-phone", "في انتظار دفعتك", "وسم الوجهة")
	require.Equal(t, "rtl", tab.run("document.dir"))
	tab.close()
	tab = c.open(link(memo)+"?lang=de", map[string]any{"noScript": true})
	tab.shot("no-script-phone")
	tab.do("see", map[string]any{"text": "Jetzt aktualisieren"}, nil)
	tab.do("see", map[string]any{"text": "Destination-Tag"}, nil)
	tab.close()
	tab = c.open(link(memo)+"x", nil)
	tab.shot("unknown-phone")
	var found []string
	tab.do("axe", nil, &found)
	require.Empty(t, found)
}
