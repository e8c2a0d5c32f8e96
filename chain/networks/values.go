package networks

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/yamlfile"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Each function here reads one value. Its error says what the value must be, and does not
// repeat it.

func flag(to *bool) func(string) error {
	return func(v string) error {
		if v != "true" && v != "false" {
			return errors.New("must be true or false")
		}
		*to = v == "true"
		return nil
	}
}

// whole reads a whole number within bounds.
func whole[T int64 | uint8 | int](to *T, least, most int64) func(string) error {
	return func(v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < least || n > most || v != strconv.FormatInt(n, 10) {
			return fmt.Errorf("must be a whole number from %d to %d", least, most)
		}
		*to = T(n)
		return nil
	}
}

// steps reads the confirmations of a currency by value: none, suggested or a list.
func steps(c *chain.Currency) func(string) error {
	return func(v string) (err error) {
		c.Steps, err = chain.StepsOf(c.Network, v)
		return err
	}
}

// checkSteps notes steps that contradict each other or the currency.
func (g *given) checkSteps(c *chain.Currency) {
	v, given := g.values["steps"]
	if err := c.CheckSteps(); err != nil && g.r.Err() == nil {
		at := g.at
		if given {
			at = g.r.Place(v.node, yamlfile.Under(g.field, "steps"))
		}
		g.r.Wrong(at, "has steps that cannot be: %v", err)
	}
}

// gwei reads a price per gas into wei.
func gwei(to *int64) func(string) error {
	return func(v string) error {
		d, err := ledger.ParseDecimal(v)
		wei := d.Shift(9)
		if err != nil || !wei.IsInteger() || wei.IsNegative() || wei.GreaterThan(decimal.New(1, 15)) {
			return errors.New("must be a price in gwei from 0 to 1000000, with at most 9 places")
		}
		*to = wei.IntPart()
		return nil
	}
}

// amount reads whole coins with at most so many places.
func amount(to *decimal.Decimal, places uint8) func(string) error {
	return func(v string) error {
		d, err := ledger.ParseDecimal(v)
		if err != nil || !d.IsPositive() || !d.Equal(d.Truncate(int32(places))) || d.GreaterThan(decimal.NewFromInt(math.MaxInt64).Shift(-int32(places))) {
			return fmt.Errorf("must be an amount of coins above 0, with at most %d places", places)
		}
		*to = d
		return nil
	}
}

// period reads a duration.
func period(to *time.Duration, least, most time.Duration) func(string) error {
	return func(v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < least || d > most {
			return fmt.Errorf("must be a duration from %s to %s, such as 10m", least, most)
		}
		*to = d
		return nil
	}
}

// title reads a name for people.
func title(to *string) func(string) error {
	return func(v string) error {
		bad := strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) })
		if v == "" || len(v) > 64 || bad || strings.TrimSpace(v) != v {
			return errors.New("must be 1 to 64 printed characters")
		}
		*to = v
		return nil
	}
}

// note reads where something was taken from.
func note(to *string) func(string) error {
	return func(v string) error {
		if v == "" || len(v) > 500 || strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return errors.New("must be 1 to 500 printed characters")
		}
		*to = v
		return nil
	}
}

var (
	codeForm   = regexp.MustCompile(`^[A-Z][A-Z0-9]{1,19}$`)
	symbolForm = regexp.MustCompile(`^[A-Z0-9]{1,12}$`)
	hrpForm    = regexp.MustCompile(`^[a-z]{1,20}$`)
	methodForm = regexp.MustCompile(`^[a-z]+_[A-Za-z0-9]{1,60}$`)
)

const codeWords = "must be 2 to 20 capital letters and digits, the first a letter"

func text(to *string, form *regexp.Regexp, must string) func(string) error {
	return func(v string) error {
		if !form.MatchString(v) {
			return errors.New(must)
		}
		*to = v
		return nil
	}
}

// hash reads the id of a block.
func hash(to *string) func(string) error {
	return func(v string) error {
		raw, err := hex.DecodeString(v)
		if err != nil || len(raw) != 32 || v != strings.ToLower(v) {
			return errors.New("must be 64 hex digits in lower case")
		}
		*to = v
		return nil
	}
}
