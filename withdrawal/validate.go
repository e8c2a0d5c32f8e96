package withdrawal

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/fault"
)

// The bounds of a request's texts, in characters.
const (
	maxRef      = 200 // an id that the store can hold
	maxAddress  = 255
	maxMemo     = 255
	maxCustomID = 64
	maxAccount  = 255
	maxURL      = 2048
	maxActor    = 1000
	maxReason   = 1000
	maxRoles    = 20
)

// validate finds everything that is wrong with the form of a request, and the
// currency that it names.
func (s *Service) validate(in *CreateInput) (*chain.Currency, error) {
	bad := &InvalidError{}
	if in.Address == "" {
		bad.Add("address", "is required")
	}
	bad.AddLong("address", in.Address, maxAddress)
	bad.AddLong("memo", in.Memo, maxMemo)
	bad.AddLong("custom_id", in.CustomID, maxCustomID)
	bad.AddLong("account_id", in.AccountID, maxAccount)
	bad.AddLong("by", in.By, maxActor)
	bad.AddLong("callback_url", in.CallbackURL, maxURL)
	if s.c.CheckURL != nil && in.CallbackURL != "" {
		if err := s.c.CheckURL(in.CallbackURL); err != nil {
			bad.Add("callback_url", err.Error())
		}
	}
	if in.Currency != "" && (in.Blockchain != "" || in.Token != "") {
		bad.Add("currency", "give currency or blockchain and token, not both")
	}
	c, unknown := s.terms(&in.Terms, bad)
	if c != nil {
		if why := s.untag(c.Network, &in.Address, &in.Memo); why != "" {
			bad.Add("memo", why)
		}
		s.checkMemo(bad, c, in.Memo)
	}
	return c, verdict(bad, unknown)
}

// untag brings an address that carries a memo into its two parts, so that one
// destination has one writing. It says what is wrong where the request gives
// another memo beside it.
func (s *Service) untag(n chain.Network, address, memo *string) (why string) {
	to, err := s.c.Parse(n, *address)
	if err != nil {
		return "" // who asks next what the address is will say it
	}
	account, carried, ok := s.c.Untag(n, to)
	switch {
	case !ok:
		return ""
	case *memo != "" && *memo != carried:
		return "differs from the one that the address carries, " + carried
	}
	*address, *memo = string(account), carried
	return ""
}

// Check says what is wrong with a request by itself, without looking at the
// tenant, at prices or at what the address belongs to: *InvalidError with every
// wrong field, or what wraps chain.ErrCurrency.
func (s *Service) Check(in CreateInput) error {
	_, err := s.validate(&in)
	return err
}

// CheckTerms is Check of what decides a price alone. It tells the currency too.
func (s *Service) CheckTerms(t Terms) (*chain.Currency, error) {
	bad := &InvalidError{}
	bad.AddLong("address", t.Address, maxAddress)
	c, unknown := s.terms(&t, bad)
	return c, verdict(bad, unknown)
}

// verdict is every wrong field, the currency among them, or the currency alone.
func verdict(bad *InvalidError, unknown error) error {
	if unknown != nil && len(bad.Fields) > 0 {
		bad.Add("currency", "is not supported")
	}
	if err := bad.Err(); err != nil {
		return err
	}
	return unknown
}

// terms looks the currency up and checks the figures. The error says that there
// is no such currency; everything else is in bad.
func (s *Service) terms(t *Terms, bad *InvalidError) (*chain.Currency, error) {
	c, err := s.named(t.Currency, t.Blockchain, t.Token, bad)
	scale := uint8(8)
	if c != nil {
		scale = c.Scale
	}
	figures(bad, t, scale)
	if t.PriceCurrency != "" && !slices.Contains(s.c.PriceCurrencies, t.PriceCurrency) {
		bad.Add("price_currency", "is not supported")
	}
	return c, err
}

func figures(bad *InvalidError, t *Terms, scale uint8) {
	if (t.Amount == nil) == (t.PriceAmount == nil) {
		bad.Add("amount", "give exactly one of amount and price_amount")
		return
	}
	if t.Amount != nil {
		if _, why := fault.Units(*t.Amount, scale); why != "" {
			bad.Add("amount", why)
		}
		return
	}
	if _, why := fault.Units(*t.PriceAmount, 2); why != "" {
		bad.Add("price_amount", why)
	}
}

// checkMemo refuses a memo that a network which needs one could not carry. On
// other networks it is the merchant's own note and is not sent.
func (s *Service) checkMemo(bad *InvalidError, c *chain.Currency, memo string) {
	n, err := s.c.Registry.Network(string(c.Network))
	if err != nil || !n.NeedsMemo {
		return
	}
	if why := memoError(n, memo); why != "" {
		bad.Add("memo", why)
	}
}

// memoError says in words what is wrong with a memo on a network, "" = nothing.
func memoError(n chain.NetworkInfo, memo string) string {
	switch {
	case !n.NeedsMemo:
		return ""
	case memo == "":
		return "is required on " + string(n.Code)
	case n.AddressType == "XRP":
		// A destination tag is a plain 32-bit number; 007 and 7 must not be two
		// writings of one tag.
		v, err := strconv.ParseUint(memo, 10, 32)
		if err != nil || strconv.FormatUint(v, 10) != memo {
			return "must be a destination tag: a whole number of 0 to 4294967295"
		}
	case n.AddressType == "XLM":
		if len(memo) > 28 {
			return "must have at most 28 bytes"
		}
	}
	if !utf8.ValidString(memo) || strings.ContainsRune(memo, 0) {
		return "must be text"
	}
	return ""
}
