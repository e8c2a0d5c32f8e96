package httpapi_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
)

// TestI07_TheHostsGlobalsChangeNothing: whatever the program around sets in the
// decimal package and in net/http, the answers are the same.
func TestI07_TheHostsGlobalsChangeNothing(t *testing.T) { //nolint:paralleltest // it changes the whole program
	ask := func() string {
		w := rich(t)
		out := ""
		for _, r := range w.routes() {
			if r.Access == "public" || r.Access == "client" || r.Method == http.MethodDelete {
				continue
			}
			var body any
			if r.Method != http.MethodGet {
				body = w.sample(r)
			}
			a := w.do(r.Method, place(r.Path, nil)+w.contract.sampleQuery(r), body)
			require.Less(t, a.Status, 500, "%s: %s", r.Name, a.Raw)
			if r.Name != "testWebhooks" { // it says how long it took
				out += r.Name + " " + a.Raw + "\n"
			}
		}
		return out
	}
	before := ask()
	precision, transport, client := decimal.DivisionPrecision, http.DefaultTransport, http.DefaultClient
	power, trim := decimal.PowPrecisionNegativeExponent, decimal.TrimTrailingZeros
	defer func() {
		decimal.DivisionPrecision, decimal.MarshalJSONWithoutQuotes, decimal.UseScientificNotation = precision, false, false
		decimal.PowPrecisionNegativeExponent, decimal.TrimTrailingZeros = power, trim
		http.DefaultTransport, http.DefaultClient = transport, client
	}()
	decimal.DivisionPrecision, decimal.MarshalJSONWithoutQuotes, decimal.UseScientificNotation = 2, true, true
	decimal.PowPrecisionNegativeExponent, decimal.TrimTrailingZeros = 1, !trim
	http.DefaultTransport, http.DefaultClient = broken{}, &http.Client{Transport: broken{}}
	require.Equal(t, before, ask())
}

type broken struct{}

func (broken) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("the host's transport was used")
}
