// Package fault holds what payment, withdrawal and wallet say alike about a
// request that cannot be fulfilled. Each shows the types under its own name, as
// an alias, so that hosts need not know this package.
//
// It promises that a request's figures are bounded before they are calculated
// with.
package fault

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// InvalidError names every field of a request that is wrong, and why.
type InvalidError struct {
	Fields map[string][]string // by the name on the wire
}

// Invalid is an InvalidError with one field.
func Invalid(field, message string) error {
	return &InvalidError{Fields: map[string][]string{field: {message}}}
}

func (e *InvalidError) Error() string {
	names := slices.Sorted(maps.Keys(e.Fields))
	for i, n := range names {
		names[i] = n + ": " + strings.Join(e.Fields[n], ", ")
	}
	return "invalid request: " + strings.Join(names, "; ")
}

// Add notes what is wrong with a field.
func (e *InvalidError) Add(field, message string) {
	if e.Fields == nil {
		e.Fields = map[string][]string{}
	}
	e.Fields[field] = append(e.Fields[field], message)
}

// AddLong notes a text of more than most characters, or one that no store keeps.
func (e *InvalidError) AddLong(field, text string, most int) {
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		e.Add(field, "must be valid text without NUL")
	case utf8.RuneCountInString(text) > most:
		e.Add(field, "must have at most "+strconv.Itoa(most)+" characters")
	}
}

// MaxPage is the longest page that a list gives.
const MaxPage = 100

// AddPage notes what no page of a list is.
func (e *InvalidError) AddPage(limit, offset int) {
	if limit < 1 || limit > MaxPage {
		e.Add("limit", "must be 1 to "+strconv.Itoa(MaxPage))
	}
	if offset < 0 {
		e.Add("offset", "must not be negative")
	}
}

// Err is e, or nil where nothing was found wrong.
func (e *InvalidError) Err() error {
	if len(e.Fields) == 0 {
		return nil
	}
	return e
}

// InsufficientError says that a wallet cannot pay. Figures are whole coins;
// Requested includes the fees.
type InsufficientError struct {
	Available decimal.Decimal
	Requested decimal.Decimal
	Currency  string
	Scale     uint8
}

func (e *InsufficientError) Error() string {
	return fmt.Sprintf("insufficient balance: %s %s available, %s requested",
		ledger.PlainString(e.Available), e.Currency, ledger.PlainString(e.Requested))
}

// The bounds of a figure in a request: no less than ledger.ParseDecimal has.
const (
	maxDigits   = 70
	maxExponent = 40
)

// Exact reports whether d has at most so many places, trailing zeros not
// counted, and is of a size that we count in at all.
func Exact(d decimal.Decimal, places uint8) bool {
	return !huge(d) && d.Equal(d.Truncate(int32(places)))
}

func huge(d decimal.Decimal) bool {
	return d.Exponent() > maxExponent || d.Exponent() < -maxExponent || d.NumDigits() > maxDigits
}

// Units converts a figure of a request, refusing what is not positive, not
// exact or too large, in words for the one who asked; "" where nothing is wrong.
func Units(d decimal.Decimal, scale uint8) (ledger.Amount, string) {
	switch {
	case huge(d):
		return 0, "has too many digits"
	case d.Sign() <= 0:
		return 0, "must be greater than 0"
	case !Exact(d, scale):
		return 0, fmt.Sprintf("has more than %d decimal places", scale)
	}
	a, err := ledger.FromDecimal(d, scale, ledger.Down)
	if err != nil {
		return 0, "is too large"
	}
	return a, ""
}
