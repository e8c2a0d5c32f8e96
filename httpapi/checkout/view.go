package checkout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"html/template"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
)

// The states of a page. Each has a headline and a text of that name.
const (
	stateWaiting     = "waiting"
	stateClosing     = "closing" // the window has ended, and that is not decided yet
	stateSeen        = "seen"
	statePartly      = "partly"
	statePaid        = "paid"
	stateExpired     = "expired"
	stateExpiredPart = "expired_part"
	stateFailed      = "failed"
	stateCancelled   = "cancelled"
	stateRefunded    = "refunded"
)

// tones are how a state looks: its colour and its icon.
var tones = map[string]string{
	stateWaiting: "wait", stateClosing: "wait", stateSeen: "wait", statePartly: "warn", statePaid: "good", stateExpired: "end",
	stateExpiredPart: "warn", stateFailed: "warn", stateCancelled: "end", stateRefunded: "good",
}

// state is what a payment has come to for its customer.
func (f *facts) state(now time.Time) string {
	p := &f.payment
	switch {
	case f.refunded():
		return stateRefunded
	case p.Cancelled:
		return stateCancelled
	}
	switch p.Status {
	case payment.Confirming:
		return stateSeen
	case payment.Confirmed, payment.Sending, payment.Completed:
		return statePaid
	case payment.Expired:
		if f.progress.Received > 0 {
			return stateExpiredPart
		}
		return stateExpired
	case payment.Failed:
		return stateFailed
	}
	switch {
	case !now.Before(p.ExpiresAt):
		return stateClosing
	case f.progress.Received+f.progress.Pending > 0:
		return statePartly
	}
	return stateWaiting
}

// refunded is the one switch to the words about refunds: all that the payment received was
// sent back, or all that came and did not count.
func (f *facts) refunded() bool {
	if f.back > 0 && f.back >= f.payment.Received {
		return true
	}
	back := 0
	for i := range f.arrivals {
		if f.arrivals[i].Booking == payment.Refunded && !f.returning(f.arrivals[i].ID) {
			back++
		}
	}
	return back > 0 && back == len(f.arrivals)
}

// notice is a sentence beside the state: something came that does not count, or more than due,
// or something is given back. Since and Until are moments for people.
type notice struct{ Name, Extra, Coin, Since, Until string }

// held is true where the sentence is about money that arrived and does not count.
func (n notice) held() bool { return n.Name == "late" || n.Name == "wrong" || n.Name == "held" }

// Icon is that of the sentence.
func (n notice) Icon() string {
	if n.Name == refundPending || n.Name == refundProcessing {
		return "wait"
	}
	return "warn"
}

// The sentences about refunds, each named as its text.
const (
	refundAddress    = "refund_address"    // the customer has to name an address
	refundAgain      = "refund_again"      // and it could not be paid
	refundPending    = "refund_pending"    // it is ordered
	refundProcessing = "refund_processing" // it is sent
	refundFailed     = "refund_failed"
	refundExpired    = "refund_expired" // nobody named an address
)

const (
	maxNotices = 4 // bounds what a stranger's transfers make of a page,
	maxRefunds = 8 // and this what refunds do
)

func (h *Handler) notices(f *facts) (out []notice) {
	at := f.progress
	if over := at.Received + at.Pending - f.payment.Due; over > f.back+f.coming && f.payment.AddressID == "" {
		out = append(out, notice{Name: "over", Extra: h.amount(f, over)})
	}
	if f.back > 0 && !f.refunded() {
		out = append(out, notice{Name: "back", Extra: h.amount(f, f.back)})
	}
	refunds := h.refundNotices(f)
	most := len(out) + maxNotices
	out = append(out, refunds...)
	most += len(refunds)
	vanished := false
	for i := range f.arrivals {
		a := &f.arrivals[i]
		if a.ShownStatus() == payment.ShownGone {
			vanished = vanished || a.ShownRole() == payment.ShownCounted
			continue
		}
		if a.Booking != payment.Unbooked && a.Booking != payment.InSuspense || len(out) >= most {
			continue
		}
		n := notice{Extra: plain(a.Exact), Coin: h.token(a.Currency)}
		switch a.Role {
		case payment.RoleUnmatched:
			n.Name = "late"
		case payment.RoleWrongToken:
			n.Name = "wrong"
		case payment.RoleUnproven, payment.RoleExcess, payment.RoleHeld, payment.RoleRefused:
			n.Name = "held"
		default:
			continue
		}
		out = append(out, n)
	}
	if vanished && at.Missing > 0 && f.payment.Status != payment.Failed { // whose own text says so
		out = append(out, notice{Name: "vanished"})
	}
	return out
}

// refundNotices says of each refund that has not ended what it waits for, since when, and what
// ends that. Of those that came to nothing it tells the newest, where none came after it.
func (h *Handler) refundNotices(f *facts) (out []notice) {
	for i := range f.refunds {
		r := &f.refunds[i]
		n := notice{Extra: plain(r.Coins()), Coin: h.token(r.Currency), Since: utc(r.UpdatedAt)}
		newest := !slices.ContainsFunc(f.refunds[:i], func(o refund.Refund) bool { return o.Payment == r.Payment && o.Deposit == r.Deposit })
		switch {
		case len(out) == maxRefunds:
			return out
		case r.Status == refund.AwaitingAddress:
			n.Name, n.Since, n.Until = refundAddress, utc(r.WaitingSince), utc(r.ExpiresAt)
			if r.Waiting != refund.WaitingAddress {
				n.Name = refundAgain
			}
		case r.Status == refund.Pending:
			n.Name = refundPending
		case r.Status == refund.Processing:
			n.Name = refundProcessing
		case newest && r.Status == refund.Failed:
			n.Name = refundFailed
		case newest && r.Status == refund.Cancelled && r.Failure == refund.FailureExpired:
			n.Name = refundExpired
		default:
			continue
		}
		out = append(out, n)
	}
	return out
}

// row is a line of the receipt, or of the facts on the page. Name is that of a text.
type row struct{ Name, Value, Code string }

// view is what the templates show. What depends on the moment has no part in its version.
type view struct {
	W    *texts    `json:"-"`
	Base string    `json:"-"` // prefix of every link
	Self string    `json:"-"` // the page's own path
	Now  time.Time `json:"-"`
	All  languages `json:"-"`

	Update, Stream bool   `json:"-"` // without script: the page asks again by itself
	Version        string `json:"-"`
	Assets         assets `json:"-"`

	State, Tone string
	Notices     []notice
	Merchant    string
	Logo        string
	Colour      string
	Return      string
	Contact     string

	Amount, Token, Network  string // what is to be sent now, or was due
	Partial                 bool   // Amount is less than was due
	Price                   string
	Order, Description      string
	Pays                    bool // money may be sent: the rest of this block is shown
	Address, Memo, MemoName string
	URI                     template.URL
	QR                      string // path of the image, "" = none
	Ends                    time.Time
	Received, Missing       string
	Confirmations, Required int64
	Step                    int // 1 to 3; 0 = the payment has ended otherwise
	Receipt                 []row
	Live                    bool // something may still happen
}

// Say is a text with its values.
func (v *view) Say(name string, values ...string) string { return v.W.say(name, values...) }

// Text is a text about the payment.
func (v *view) Text(name string) string {
	return v.W.say(name, "amount", v.Amount, "token", v.Token, "network", v.Network, "received", v.Received, "missing", v.Missing, "merchant", v.Merchant)
}

// StateText is the name of the text about the state. A customer whose money is held is not
// told to start again: he would pay twice.
func (v *view) StateText() string {
	if v.State == stateExpired && slices.ContainsFunc(v.Notices, func(n notice) bool { return n.held() || n.Since != "" }) {
		return "expired_held_text"
	}
	return v.State + "_text"
}

// CopyMemo is the name of the text of the button that copies the memo.
func (v *view) CopyMemo() string { return "copy_" + v.MemoName }

// PageTitle is what the browser's tab says.
func (v *view) PageTitle() string {
	if v.Merchant == "" {
		return v.Say(v.State)
	}
	return v.Text(v.State) + " · " + v.Merchant
}

// Initial stands for a merchant who has no logo.
func (v *view) Initial() string {
	for _, r := range v.Merchant {
		return strings.ToUpper(string(r))
	}
	return ""
}

// Ask reports whether the customer may have something to ask the merchant.
func (v *view) Ask() bool {
	return v.Contact != "" && (len(v.Notices) > 0 || !v.Live && v.State != statePaid)
}

// Came reports whether anything has come.
func (v *view) Came() bool { return v.Received != "0" }

// Before says until when to pay.
func (v *view) Before() string { return v.W.say("pay_before", "time", v.UTC(v.Ends)) }

// icon is what the template of that name needs.
type icon struct {
	Assets assets
	Icon   string
}

// With is an icon of the sprite.
func (v *view) With(name string) icon { return icon{v.Assets, name} }

// Note is the sentence of a notice.
func (v *view) Note(n notice) string {
	return v.W.say(n.Name, "extra", n.Extra, "coin", n.Coin, "token", v.Token, "merchant", v.Merchant, "since", n.Since, "until", n.Until)
}

// Count says how many confirmations there are.
func (v *view) Count() string {
	return v.W.say("confirmations", "n", strconv.FormatInt(v.Confirmations, 10), "of", strconv.FormatInt(v.Required, 10))
}

// Left is the time that is left, as minutes and seconds.
func (v *view) Left() string {
	s := int64(max(0, v.Ends.Sub(v.Now)).Seconds())
	two := func(n int64) string { return strconv.Itoa(int(n/10)) + strconv.Itoa(int(n%10)) }
	if s >= 3600 {
		return strconv.FormatInt(s/3600, 10) + ":" + two(s/60%60) + ":" + two(s%60)
	}
	return two(s/60) + ":" + two(s%60)
}

// UTC is a moment for people, and Stamp the same for programs.
func (v *view) UTC(t time.Time) string   { return utc(t) }
func (v *view) Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") + " UTC" }

// Millis is a moment for the script's clock.
func (v *view) Millis(t time.Time) int64 { return t.UnixMilli() }

// view makes what is shown of facts, in a language.
func (h *Handler) view(token string, f *facts, w *texts) *view {
	p, at, now := &f.payment, f.progress, h.now()
	v := &view{
		W: w, Base: h.o.Prefix, Self: h.o.Prefix + "/" + token, Now: now, All: h.languages, Assets: h.assets,
		State: f.state(now), Merchant: f.merchant.Name, Return: f.merchant.ReturnURL, Contact: f.merchant.Contact, Logo: f.merchant.LogoPath,
		Token: h.token(p.Currency), Network: p.Network, Ends: p.ExpiresAt.UTC(),
		Price: ledger.FixedString(p.Price, 2) + " " + p.PriceCurrency, Order: oneLine(p.OrderID, maxLines), Description: oneLine(p.Description, maxLines),
		Received: h.amount(f, at.Received+at.Pending), Missing: h.amount(f, at.Missing), Confirmations: min(at.Confirmations, at.Required), Required: at.Required,
	}
	v.Tone, v.Notices = tones[v.State], h.notices(f)
	if f.logo != "" {
		v.Logo = v.Self + "/" + f.logoName
	}
	if c, ok := parseColour(f.merchant.Colour); ok {
		v.Colour = c.String()[1:]
	}
	if info, err := h.registry.Network(p.Network); err == nil {
		v.Network = info.Name
	}
	due := p.Due
	if at.Missing > 0 && (v.State == statePartly || v.State == stateWaiting) {
		due, v.Partial = at.Missing, at.Missing < p.Due
	}
	v.Amount = h.amount(f, due)
	v.Step = map[string]int{stateWaiting: 1, statePartly: 1, stateSeen: 2, statePaid: 3}[v.State]
	v.Pays = v.State == stateWaiting || v.State == statePartly
	v.Live = v.Pays || v.State == stateClosing || v.State == stateSeen || slices.ContainsFunc(f.refunds, func(r refund.Refund) bool { return underWay(&r) })
	h.whereToPay(v, f, due)
	v.Receipt = h.receipt(v, f)
	v.Version = v.version()
	return v
}

// whereToPay fills in the address, the wallet's link and the QR code.
func (h *Handler) whereToPay(v *view, f *facts, due ledger.Amount) {
	p := &f.payment
	to := chain.Address(p.Address)
	account, memo, tagged := h.app.Untag(chain.Network(p.Network), to)
	if tagged {
		to, v.Memo, v.MemoName = account, memo, "memo"
		if p.Network == "XRP" {
			v.MemoName = "tag"
		}
	}
	v.Address = string(to)
	c, err := h.registry.Currency(p.Currency)
	if err != nil || !v.Pays {
		return
	}
	if uri := h.registry.PaymentURI(c, to, due, memo); linkable.MatchString(uri) && !unlinkable.MatchString(uri) {
		v.URI = template.URL(uri) //nolint:gosec // the scheme is a wallet's and no character is left that ends an attribute
		v.QR = v.Self + "/qr-" + sum([]byte(uri)) + ".svg"
	}
}

// linkable is what a wallet's link looks like, and unlinkable are schemes that a browser
// itself does something with.
var (
	linkable   = regexp.MustCompile(`^[a-z][a-z0-9+]*:[A-Za-z0-9@/?&=%.:_~-]+$`)
	unlinkable = regexp.MustCompile(`^(javascript|vbscript|data|blob|file|about|view-source|https?|wss?|ftp|mailto):`)
)

// receipt lists what a customer may want to keep.
func (h *Handler) receipt(v *view, f *facts) []row {
	p := &f.payment
	out := []row{
		{"pay_to", v.Merchant, ""},
		{"order", v.Order, ""},
		{"description", v.Description, ""},
		{"price", v.Price, ""},
		{"due", h.amount(f, p.Due) + " " + v.Token, ""},
		{"received", v.Received + " " + v.Token, ""},
		{"network", v.Network, ""},
		{"address", "", v.Address},
		{v.MemoName, "", v.Memo},
		{"created", v.UTC(p.CreatedAt), ""},
	}
	if !p.ConfirmedAt.IsZero() {
		out = append(out, row{"completed", v.UTC(p.ConfirmedAt), ""})
	}
	for i := range f.arrivals {
		if a := &f.arrivals[i]; a.ShownRole() == payment.ShownCounted && a.ShownStatus() != payment.ShownGone {
			out = append(out, row{"transaction", "", a.Tx})
		}
	}
	out = append(out, row{"payment_id", "", p.ID})
	var full []row
	for _, r := range out {
		if r.Value != "" || r.Code != "" {
			full = append(full, r)
		}
	}
	return full
}

// version names what a view shows: two of the same version look the same in a language.
func (v *view) version() string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // it has texts and numbers alone
	}
	return sum(raw)
}

// sum is a short name of bytes.
func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:8])
}

func itoa(n int) string { return strconv.Itoa(n) }

// amount writes units of the payment's currency as coins, exactly.
func (h *Handler) amount(f *facts, a ledger.Amount) string {
	return plain(a.Decimal(uint8(f.payment.Scale))) //nolint:gosec // a scale is at most 8
}

// plain writes a figure without zeros that say nothing.
func plain(d decimal.Decimal) string {
	s := ledger.PlainString(d)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// token is the symbol of a currency.
func (h *Handler) token(code string) string {
	if c, err := h.registry.Currency(code); err == nil {
		return c.Token
	}
	return code
}
