package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

var addressFields = []string{
	"is_valid", aBool, "address", aText, "type", aText, "blockchain", aText, "token", aText, "currency", aText, "error_message", aNull,
}

func TestW16_ValidateAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.networks = []chain.Network{"ETH", "BTC", "POLYGON", "TRX", "XRP"} })
	hot, err := w.app.Hot(t.Context(), "ETH", w.tenant)
	require.NoError(t, err)
	eth, btc, trx, xrp := w.recipient("ETH"), w.recipient("BTC"), w.recipient("TRX"), w.recipient("XRP")
	const checksum = "The address is invalid: its checksum is wrong."
	const tag = "The memo is invalid: it must be a destination tag: a whole number of 0 to 4294967295."
	for name, c := range map[string]struct {
		body map[string]any
		want string // type, blockchain, token, currency, error_message
	}{
		"currency":              {map[string]any{"address": eth, "currency": "USDTERC20"}, "EVM ETH USDT USDTERC20 <nil>"},
		"pair":                  {map[string]any{"address": eth, "blockchain": "ETH", "token": "USDT"}, "EVM ETH USDT USDTERC20 <nil>"},
		"all that agree":        {map[string]any{"address": eth, "blockchain": "ETH", "token": "ETH", "currency": "ETH", "type": "EVM"}, "EVM ETH ETH ETH <nil>"},
		"blockchain":            {map[string]any{"address": btc, "blockchain": "BTC"}, "BTC BTC <nil> <nil> <nil>"},
		"blockchain and type":   {map[string]any{"address": btc, "blockchain": "BTC", "type": "BTC"}, "BTC BTC <nil> <nil> <nil>"},
		"alias":                 {map[string]any{"address": trx, "blockchain": "TRON"}, "TRX TRX <nil> <nil> <nil>"},
		"type":                  {map[string]any{"address": eth, "type": "EVM"}, "EVM <nil> <nil> <nil> <nil>"},
		"type of many networks": {map[string]any{"address": w.recipient("POLYGON"), "type": "EVM"}, "EVM <nil> <nil> <nil> <nil>"},
		"type and token":        {map[string]any{"address": eth, "type": "EVM", "token": "USDT"}, "EVM <nil> USDT <nil> <nil>"},
		"nulls":                 {map[string]any{"address": eth, "type": "EVM", "blockchain": nil, "memo": nil}, "EVM <nil> <nil> <nil> <nil>"},
		"note of the merchant":  {map[string]any{"address": eth, "currency": "ETH", "memo": "rent"}, "EVM ETH ETH ETH <nil>"},
		"tag":                   {map[string]any{"address": xrp, "currency": "XRP", "memo": "7"}, "XRP XRP XRP XRP <nil>"},
		"no tag":                {map[string]any{"address": xrp, "currency": "XRP"}, "XRP XRP XRP XRP <nil>"},
		"bad tag":               {map[string]any{"address": xrp, "blockchain": "XRP", "memo": "x"}, "<nil> XRP <nil> <nil> " + tag},
		"bad tag by type":       {map[string]any{"address": xrp, "type": "XRP", "memo": "-1"}, "<nil> <nil> <nil> <nil> " + tag},
		"checksum":              {map[string]any{"address": spoiled(eth), "currency": "ETH"}, "<nil> ETH ETH ETH " + checksum},
		"checksum by type":      {map[string]any{"address": spoiled(btc), "type": "BTC"}, "<nil> <nil> <nil> <nil> " + checksum},
		"another network's":     {map[string]any{"address": eth, "currency": "BTC"}, "<nil> BTC BTC BTC The address is invalid: it does not begin with simbtc."},
		"our own":               {map[string]any{"address": string(hot), "currency": "ETH"}, "<nil> ETH ETH ETH The address is invalid: it belongs to this service."},
		"255 characters":        {map[string]any{"address": strings.Repeat("é", 255), "blockchain": "BTC"}, "<nil> BTC <nil> <nil> The address is invalid: it does not begin with simbtc."},
	} {
		a := w.ok(http.StatusOK, "POST", "/withdrawal/validate-address/", c.body)
		kinds := []string{}
		for _, f := range []string{"type", "blockchain", "token", "currency", "error_message"} {
			kind := aText
			if a.Body[f] == nil {
				kind = aNull
			}
			kinds = append(kinds, f, kind)
		}
		hasExactly(t, a.Raw, a.Body, withKinds(addressFields, kinds...)...)
		b := a.Body
		require.Equal(t, c.want, fmt.Sprint(b["type"], " ", b["blockchain"], " ", b["token"], " ", b["currency"], " ", b["error_message"]), name)
		require.Equal(t, b["error_message"] == nil, b["is_valid"], name)
		require.Equal(t, c.body["address"], b["address"], name)
	}
}

func TestValidateAddressErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for body, want := range map[string]string{
		`{}`:                                                                             "invalid_request [address currency]",
		`{"address":"x"}`:                                                                "invalid_request [currency]",
		`{"address":"","type":"EVM"}`:                                                    "invalid_request [address]",
		`{"address":5,"type":"EVM"}`:                                                     "invalid_request [address]",
		`{"address":"x","type":"evm"}`:                                                   "invalid_request [type]",
		`{"address":"x","type":"SOL"}`:                                                   "invalid_request [type]", // no chain of that type here
		`{"address":"x","blockchain":"NO"}`:                                              "invalid_request [blockchain]",
		`{"address":"x","blockchain":"TRX"}`:                                             "invalid_request [blockchain]", // no chain of it here
		`{"address":"x","blockchain":"ETH","type":"BTC"}`:                                "invalid_request [type]",
		`{"address":"x","currency":"ETH","blockchain":"BTC"}`:                            "invalid_request [blockchain]",
		`{"address":"x","currency":"ETH","token":"USDT"}`:                                "invalid_request [token]",
		`{"address":"x","type":"EVM","token":"NO"}`:                                      "invalid_request [token]",
		`{"address":"x","currency":"` + strings.Repeat("N", 21) + `"}`:                   "invalid_request [currency]",
		`{"address":"x","type":"EVM","memo":"` + strings.Repeat("é", 256) + `"}`:         "invalid_request [memo]",
		`{"address":"` + strings.Repeat("é", 256) + `","type":"EVM"}`:                    "invalid_request [address]",
		`{"address":1,"currency":2,"blockchain":3,"type":4,"token":5,"memo":6}`:          "invalid_request [address blockchain currency memo token type]",
		`{"address":"` + strings.Repeat("é", 256) + `","type":"no","memo":7,"token":""}`: "invalid_request [address memo type]",
		`{"address":"x","currency":"NOPE"}`:                                              "invalid_currency [currency]",
		`{"address":"x","currency":"` + strings.Repeat("N", 20) + `"}`:                   "invalid_currency [currency]",
		`{"address":"x","currency":"USDTTRC20"}`:                                         "invalid_currency [currency]",
		`{"address":"x","blockchain":"ETH","token":"NO"}`:                                "invalid_currency [currency]",
	} {
		a := w.ok(http.StatusBadRequest, "POST", "/withdrawal/validate-address/", body)
		require.Equal(t, want, a.code()+" "+fmt.Sprint(fieldsOf(a.at("error", "details"))), body)
	}
}
