package httpapi

import (
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// Number is a decimal of a request, given as a JSON string or as a JSON number
// and read from its characters: it never was a float. The zero Number was not
// given. One whose field allows a word beside decimals may have that as its Text, and no value.
type Number struct {
	Text  string // as written, digits checked
	Given bool
	value decimal.Decimal
}

// Decimal is its exact value.
func (n Number) Decimal() decimal.Decimal { return n.value }

// Pointer is its value, nil where it was not given.
func (n Number) Pointer() *decimal.Decimal {
	if !n.Given {
		return nil
	}
	return &n.value
}

// parseNumber reads digits with at most one point and a minus sign in front:
// what is not positive is for the endpoint to refuse, in its own words.
func parseNumber(s string) (Number, error) {
	digits, negative := strings.CutPrefix(s, "-")
	d, err := ledger.ParseDecimal(digits)
	if err != nil {
		return Number{}, err
	}
	if negative {
		d = d.Neg()
	}
	return Number{Text: s, Given: true, value: d}, nil
}

// Figure is a decimal that an answer shows as a JSON number, exactly.
type Figure decimal.Decimal

// MarshalJSON writes the digits; the decimal package's settings play no part.
func (f Figure) MarshalJSON() ([]byte, error) {
	return []byte(ledger.PlainString(decimal.Decimal(f))), nil
}
