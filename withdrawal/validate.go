package withdrawal

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cryptopay-go/cryptopay/chain"
)

// The bounds of a request's texts, in characters.
const (
	maxRef      = 200 // an id that the store can hold
	maxAddress  = 255
	maxMemo     = 255
	maxCustomID = 64
	maxAccount  = 255
	maxURL      = 2048
)

// validate finds everything that is wrong with the form of a request, and the
// currency that it names.
func (s *Service) validate(in *CreateInput) (*chain.Currency, error) {
	bad := &InvalidError{}
	if in.Address == "" {
		bad.add("address", "is required")
	}
	tooLong(bad, "address", in.Address, maxAddress)
	tooLong(bad, "memo", in.Memo, maxMemo)
	tooLong(bad, "custom_id", in.CustomID, maxCustomID)
	tooLong(bad, "account_id", in.AccountID, maxAccount)
	tooLong(bad, "callback_url", in.CallbackURL, maxURL)
	if s.c.CheckURL != nil && in.CallbackURL != "" {
		if err := s.c.CheckURL(in.CallbackURL); err != nil {
			bad.add("callback_url", err.Error())
		}
	}
	c, unknown := s.oneForm(in, bad)
	scale := uint8(8)
	if c != nil {
		scale = c.Scale
		s.checkMemo(bad, c, in.Memo)
	}
	figures(bad, &in.Terms, scale)
	if err := bad.err(); err != nil {
		return nil, err
	}
	return c, unknown
}

// oneForm looks the currency up. Creating takes one form of naming it, not both.
func (s *Service) oneForm(in *CreateInput, bad *InvalidError) (*chain.Currency, error) {
	if in.Currency != "" && (in.Blockchain != "" || in.Token != "") {
		bad.add("currency", "give currency or blockchain and token, not both")
		return nil, nil
	}
	c, err := s.currency(in.Currency, in.Blockchain, in.Token)
	var invalid *InvalidError
	if errors.As(err, &invalid) {
		for field, messages := range invalid.Fields {
			for _, m := range messages {
				bad.add(field, m)
			}
		}
		return nil, nil
	}
	return c, err
}

func figures(bad *InvalidError, t *Terms, scale uint8) {
	if (t.Amount == nil) == (t.PriceAmount == nil) {
		bad.add("amount", "give exactly one of amount and price_amount")
		return
	}
	if t.Amount != nil {
		if _, why := units(*t.Amount, scale); why != "" {
			bad.add("amount", why)
		}
		return
	}
	if _, why := units(*t.PriceAmount, 2); why != "" {
		bad.add("price_amount", why)
	}
}

func tooLong(bad *InvalidError, field, text string, most int) {
	if utf8.RuneCountInString(text) > most {
		bad.add(field, "must have at most "+strconv.Itoa(most)+" characters")
	}
}

// checkMemo refuses a memo that a network which needs one could not carry. On
// other networks it is the merchant's own note and is not sent.
func (s *Service) checkMemo(bad *InvalidError, c *chain.Currency, memo string) {
	n, err := s.c.Registry.Network(string(c.Network))
	if err != nil || !n.NeedsMemo {
		return
	}
	if why := MemoError(n, memo); why != "" {
		bad.add("memo", why)
	}
}

// MemoError says in words what is wrong with a memo on a network, "" = nothing.
func MemoError(n chain.NetworkInfo, memo string) string {
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

// burns reports whether an address is one that is known to have no key.
func burns(a chain.Address) bool {
	switch strings.ToLower(string(a)) {
	case "0x0000000000000000000000000000000000000000",
		"0x000000000000000000000000000000000000dead":
		return true
	}
	switch a {
	case "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb", // Tron's zero address
		"11111111111111111111111111111111",            // Solana's system program
		"1nc1nerator11111111111111111111111111111111", // Solana's incinerator
		"rrrrrrrrrrrrrrrrrrrrrhoLvTp",                 // XRP's ACCOUNT_ZERO
		"rrrrrrrrrrrrrrrrrrrrBZbvji",                  // XRP's ACCOUNT_ONE
		"1111111111111111111114oLvT2",                 // Bitcoin's empty hash160
		"1BitcoinEaterAddressDontSendf59kuE":
		return true
	}
	return false
}
