package wallet

import (
	"encoding/json"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// Flats are flat fees in whole coins by currency code. In JSON they are plain
// decimals in strings, whatever the host has set in the decimal package.
type Flats map[string]decimal.Decimal

// MarshalJSON implements json.Marshaler.
func (f Flats) MarshalJSON() ([]byte, error) {
	if f == nil {
		return []byte("null"), nil
	}
	out := make(map[string]string, len(f))
	for code, d := range f {
		out[code] = ledger.PlainString(d)
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Flats) UnmarshalJSON(b []byte) error {
	var in map[string]string
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*f = nil
	if in != nil {
		*f = make(Flats, len(in))
	}
	for code, s := range in {
		d, err := ledger.ParsePlain(s)
		if err != nil {
			return err
		}
		(*f)[code] = d
	}
	return nil
}
