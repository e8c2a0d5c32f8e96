package wallet_test

import (
	"encoding/json"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/wallet"
)

// What is stored of a tenant does not depend on what the host has set in the
// decimal package, and is read back by a host that has set it otherwise.
//
//nolint:paralleltest // it changes globals
func TestI07_StoredFeesAreOfNoHostsSettings(t *testing.T) {
	tenant := wallet.Tenant{
		TransactionFee: dec("0.50"), WithdrawalFlat: dec("12.5"),
		WithdrawalFlats: wallet.Flats{"BTC": dec("0.00010"), "DOGE": decimal.New(5, 3), "ETH": dec("0.003")},
	}
	stored, err := wallet.TenantRows.Encode(tenant)
	require.NoError(t, err)
	require.Contains(t, stored, `{"BTC":"0.00010","DOGE":"5000","ETH":"0.003"}`)

	quotes, trim, science, exponent := decimal.MarshalJSONWithoutQuotes, decimal.TrimTrailingZeros, decimal.UseScientificNotation, decimal.MaxDecodeExponent
	defer func() {
		decimal.MarshalJSONWithoutQuotes, decimal.TrimTrailingZeros, decimal.UseScientificNotation, decimal.MaxDecodeExponent = quotes, trim, science, exponent
	}()
	for _, flip := range []func(){
		func() { decimal.MarshalJSONWithoutQuotes = !quotes },
		func() { decimal.TrimTrailingZeros = !trim },
		func() { decimal.UseScientificNotation = !science },
		func() { decimal.MaxDecodeExponent = 0 },
	} {
		flip() // beside those before it
		again, err := wallet.TenantRows.Encode(tenant)
		require.NoError(t, err)
		require.Equal(t, stored, again)
		read, err := wallet.TenantRows.Decode(stored)
		require.NoError(t, err)
		flats := read.(wallet.Tenant).WithdrawalFlats
		require.Len(t, flats, 3)
		for code, d := range tenant.WithdrawalFlats {
			require.True(t, d.Equal(flats[code]), code)
		}
	}
}

func TestFlatsInJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]wallet.Flats{"null": nil, "{}": {}, `{"X":"1.5"}`: {"X": dec("1.5")}} {
		var f wallet.Flats
		require.NoError(t, json.Unmarshal([]byte(text), &f))
		require.Equal(t, want, f)
		b, err := json.Marshal(f)
		require.NoError(t, err)
		require.Equal(t, text, string(b))
	}
	var f wallet.Flats
	for _, text := range []string{`{"X":1.5}`, `{"X":"1e9"}`, `{"X":""}`, `[]`, `{"X":"1e999999999"}`} {
		require.Error(t, json.Unmarshal([]byte(text), &f), text)
	}
}
