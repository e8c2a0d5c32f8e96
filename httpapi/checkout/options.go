package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/payment"
)

// Options of a Handler. BaseURL is required.
type Options struct {
	// BaseURL is the public address of the pages without Prefix, such as
	// https://pay.example.com.
	BaseURL string
	// Prefix is the path that the pages are mounted under. Defaults to "/checkout".
	Prefix string
	// Merchant describes who is paid. It is asked once for a page and once for all live
	// viewers of a payment. What Merchant.Check refuses is left out of the page and logged.
	// Defaults to the tenant's name alone.
	Merchant func(ctx context.Context, tenant string, p *payment.Payment) (Merchant, error)
	// Language is the code of the language where the customer prefers none that there is.
	// Defaults to "en".
	Language string
	// Texts are the host's own, by code of the language: docs/checkout.md lists the names. A
	// language that is not built in needs name and direction; what it leaves out is English.
	// Defaults to none.
	Texts map[string]map[string]string
	// Keep is how long after the end of its window the page of a payment is shown. Defaults
	// to 90 days.
	Keep time.Duration
	// Poll is how often the event streams of merchants whose pages are open are looked at.
	// Defaults to 1 second.
	Poll time.Duration
	// MaxViewers is how many live streams one process keeps open, a hundredth of them, but at
	// least 30, for one payment. Pages beyond it ask by themselves. Defaults to 20,000.
	MaxViewers int
	// Log defaults to discarding.
	Log *slog.Logger
}

// Merchant is who is paid, as the page shows it.
type Merchant struct {
	// Name defaults to the tenant's.
	Name string
	// Logo is a PNG, JPEG or WebP image of at most 32 KiB and 2048 pixels a side. Defaults to none.
	Logo []byte
	// LogoPath is the path of an image on the page's own origin, in place of Logo.
	LogoPath string
	// Colour of buttons and links, as #rrggbb. The page makes it darker or lighter until text
	// can be read. Defaults to the page's own.
	Colour string
	// ReturnURL is where the customer goes back to: https, or a path on the page's own origin.
	// Defaults to none.
	ReturnURL string
	// Contact is whom the customer asks where something went wrong: mailto: and an address, or
	// as ReturnURL. Defaults to none.
	Contact string
}

// Check returns nil, or an error that names every field that the page would leave out.
func (m Merchant) Check() error {
	_, err := m.sound()
	return err
}

// sound is what can be shown of a Merchant.
func (m Merchant) sound() (Merchant, error) {
	var errs []error
	m.Name = oneLine(m.Name, maxName)
	if len(m.Logo) > 0 {
		if _, err := imageType(m.Logo); err != nil {
			errs = append(errs, fmt.Errorf("checkout: Merchant.Logo: %w", err))
			m.Logo = nil
		}
	}
	if m.LogoPath != "" && !ownPath(m.LogoPath) {
		errs = append(errs, errors.New("checkout: Merchant.LogoPath must be a path on the page's own origin, such as /logo.png"))
		m.LogoPath = ""
	}
	if m.Colour != "" {
		if _, ok := parseColour(m.Colour); !ok {
			errs = append(errs, errors.New("checkout: Merchant.Colour must be #rrggbb"))
			m.Colour = ""
		}
	}
	if m.ReturnURL != "" && !returnable(m.ReturnURL) {
		errs = append(errs, errors.New("checkout: Merchant.ReturnURL must be an https URL without credentials, or a path on the page's own origin, without . and .. in it"))
		m.ReturnURL = ""
	}
	if m.Contact != "" && !returnable(m.Contact) && !mail.MatchString(m.Contact) {
		errs = append(errs, errors.New("checkout: Merchant.Contact must be mailto: and an address, or an https URL without credentials, or a path on the page's own origin, without . and .. in it"))
		m.Contact = ""
	}
	return m, errors.Join(errs...)
}

// mail is a link to an email address, with nothing that would be written for the customer.
var mail = regexp.MustCompile(`^mailto:[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,190}$`)

// ownPath reports whether a browser takes s for a path on the origin that it is on.
func ownPath(s string) bool {
	if !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") || len(s) > 512 {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\\\"'<>`", r) })
}

// climbs finds what a browser takes for the way out of a folder: an order id that a host wrote
// into a link leads to another page of his with it.
var climbs = regexp.MustCompile(`(?i)^[^?#]*/(\.|%2e){1,2}([/?#]|$)`)

// returnable reports whether customers may be sent to a URL.
func returnable(s string) bool {
	if climbs.MatchString(s) {
		return false
	}
	if ownPath(s) {
		return true
	}
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil && len(s) <= 2048
}

func (o Options) withDefaults() (Options, error) {
	u, err := url.Parse(o.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return o, errors.New("checkout: Options.BaseURL is required: the public address of the pages without a path, such as https://pay.example.com")
	}
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	if o.Prefix == "" {
		o.Prefix = "/checkout"
	}
	if !ownPath(o.Prefix) || strings.HasSuffix(o.Prefix, "/") || strings.ContainsAny(o.Prefix, "?#%") {
		return o, errors.New("checkout: Options.Prefix must begin with a slash and not end with one")
	}
	if o.Language == "" {
		o.Language = "en"
	}
	if o.Keep < 0 || o.Poll < 0 || o.MaxViewers < 0 {
		return o, errors.New("checkout: Options.Keep, Poll and MaxViewers must not be negative")
	}
	if o.Keep == 0 {
		o.Keep = 90 * 24 * time.Hour
	}
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	if o.MaxViewers == 0 {
		o.MaxViewers = 20_000
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
