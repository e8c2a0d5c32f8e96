package withdrawal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// W16: what Create would refuse is invalid, whatever names the network.
func TestW16_ValidateAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.own["Thot"], w.own["Tpaid"] = "hot", "payment"
	const zero, tronZero = "0x0000000000000000000000000000000000000000", "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb"
	for name, c := range map[string]struct {
		in   withdrawal.AddressInput
		want string // type, network, token, reason
	}{
		"currency":            {withdrawal.AddressInput{Address: "T1", Currency: "USDTTRC20"}, "TRX TRX USDT "},
		"pair by alias":       {withdrawal.AddressInput{Address: "T1", Blockchain: "TRON", Token: "USDT"}, "TRX TRX USDT "},
		"blockchain":          {withdrawal.AddressInput{Address: "0x1", Blockchain: "ETH"}, "EVM ETH  "},
		"type":                {withdrawal.AddressInput{Address: "0x1", Type: "EVM"}, "EVM   "},
		"checksum":            {withdrawal.AddressInput{Address: "bad", Type: "EVM"}, "EVM   The address is invalid: checksum."},
		"burned":              {withdrawal.AddressInput{Address: zero, Blockchain: "ETH"}, "EVM ETH  The address is invalid: nobody can spend what is sent there."},
		"burned by type":      {withdrawal.AddressInput{Address: tronZero, Type: "TRX"}, "TRX   The address is invalid: nobody can spend what is sent there."},
		"a token's contract":  {withdrawal.AddressInput{Address: "TR7N", Blockchain: "TRX"}, "TRX TRX  The address is invalid: it is a token's contract: nobody can spend what is sent there."},
		"our own":             {withdrawal.AddressInput{Address: "Thot", Blockchain: "TRX"}, "TRX TRX  The address is invalid: it belongs to this service."},
		"one of our payments": {withdrawal.AddressInput{Address: "Tpaid", Blockchain: "TRX"}, "TRX TRX  "},
		"memo that is sent":   {withdrawal.AddressInput{Address: "r1", Currency: "XRP", Memo: "007"}, "XRP XRP XRP The memo is invalid: it must be a destination tag: a whole number of 0 to 4294967295."},
		"memo that is not":    {withdrawal.AddressInput{Address: "0x1", Currency: "ETH", Memo: "007"}, "EVM ETH ETH "},
	} {
		a, err := w.ValidateAddress(w.ctx, c.in)
		require.NoError(t, err, name)
		require.Equal(t, c.want, fmt.Sprint(a.Type, " ", a.Network, " ", a.Token, " ", a.Reason), name)
	}
	for name, c := range map[string]struct {
		in     withdrawal.AddressInput
		fields []string // nil = the currency is unknown
	}{
		"nothing":   {withdrawal.AddressInput{}, []string{"address", "currency"}},
		"long":      {withdrawal.AddressInput{Address: strings.Repeat("é", 256), Memo: strings.Repeat("é", 256), Type: "no"}, []string{"address", "memo", "type"}},
		"contrary":  {withdrawal.AddressInput{Address: "x", Blockchain: "ETH", Type: "TRX"}, []string{"type"}},
		"all wrong": {withdrawal.AddressInput{Currency: "NOPE", Type: "no"}, []string{"address", "currency", "type"}},
		"unknown":   {withdrawal.AddressInput{Address: "x", Currency: "NOPE"}, nil},
	} {
		_, err := w.ValidateAddress(w.ctx, c.in)
		require.Equal(t, err, w.CheckAddress(c.in), name)
		var bad *withdrawal.InvalidError
		if c.fields == nil {
			require.ErrorIs(t, err, chain.ErrCurrency, name)
			continue
		}
		require.ErrorAs(t, err, &bad, name)
		require.Equal(t, c.fields, fieldsOf(bad), name)
	}
}

func fieldsOf(e *withdrawal.InvalidError) []string {
	var out []string
	for f := range e.Fields {
		out = append(out, f)
	}
	slices.Sort(out)
	return out
}

func TestMinAmountNamesTheField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for field, in := range map[string][3]string{
		"currency": {"NOPE", "", ""}, "blockchain": {"", "NOPE", "BTC"}, "token": {"", "TRX", "NOPE"},
	} {
		_, err := w.MinAmount(in[0], in[1], in[2])
		var bad *withdrawal.InvalidError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, []string{field}, fieldsOf(bad))
	}
}

func TestPriceCurrencies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *withdrawal.Config) { c.PriceCurrencies = []string{"CHF"} })
	in := usdt("100")
	in.PriceCurrency = "EUR"
	var bad *withdrawal.InvalidError
	require.ErrorAs(t, w.Check(in), &bad)
	require.Equal(t, []string{"price_currency"}, fieldsOf(bad))
	in.PriceCurrency = "CHF"
	require.NoError(t, w.Check(in))
}

// W14: a fee that is many times a tiny figure is no fault of the estimator: the
// figure is too small.
func TestW14_FeeAboveATinyFigure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, amount := range []string{"0.000001", "0.01", "1.999999"} {
		_, err := w.Estimate(w.ctx, tenant, withdrawal.Terms{Amount: dec(amount), Currency: "USDTTRC20"})
		var bad *withdrawal.InvalidError
		require.ErrorAs(t, err, &bad, amount)
		require.Contains(t, bad.Error(), "does not cover the fees")
		e, err := w.FeeEstimate(w.ctx, tenant, withdrawal.Terms{Amount: dec(amount), Currency: "USDTTRC20"})
		require.NoError(t, err)
		require.GreaterOrEqual(t, int64(e.Fee()), int64(2_000000))
	}
	w.fee["USDTTRC20"] = "100.000001" // above a hundred times the minimum
	_, err := w.FeeEstimate(w.ctx, tenant, withdrawal.Terms{Amount: dec("0.01"), Currency: "USDTTRC20"})
	require.ErrorIs(t, err, withdrawal.ErrFee)
}

// Limits of many currencies count what each has used.
func TestLimitsOfAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	w.fund("master", "BTC", "10")
	w.ceiling = withdrawal.Ceiling{Daily: 1000_000000}
	w.create(usdt("100"))
	w.create(usdt("150"))
	w.create(withdrawal.CreateInput{Terms: withdrawal.Terms{Amount: dec("3"), Currency: "BTC", Address: "bc1"}})
	list, err := w.Limits(w.ctx, tenant, "")
	require.NoError(t, err)
	used := map[string]string{}
	for _, l := range list {
		used[l.Currency.Code] = l.Currency.Decimal(l.Used).String()
	}
	require.Equal(t, map[string]string{"BTC": "3", "ETH": "0", "TRX": "0", "USDTTRC20": "250", "XLM": "0", "XRP": "0"}, used)
}

// A withdrawal tells its scale also when its currency is gone.
func TestScaleOfARemovedCurrency(t *testing.T) {
	t.Parallel()
	store := memory.New()
	w := newWorldOn(t, store)
	w.fund("master", "USDTTRC20", "1000")
	w.fund("master", "BTC", "10")
	w.fund("master", "XLM", "10")
	for _, in := range []withdrawal.CreateInput{
		usdt("100"),
		{Terms: withdrawal.Terms{Amount: dec("3"), Currency: "BTC", Address: "bc1"}},
		{Terms: withdrawal.Terms{Amount: dec("3"), Currency: "XLM", Address: "G1"}, Memo: "m"},
	} {
		w.create(in)
	}
	later, err := chain.NewRegistry([]chain.NetworkInfo{{Code: "ETH", Gas: "ETH"}}, []chain.Currency{coin("ETH", "ETH", "ETH", "", 18, 8, "0.001")})
	require.NoError(t, err)
	other, err := withdrawal.New(withdrawal.Config{
		Store: store, Registry: later, Parse: parse, Fees: fees{w}, Tenants: w, Wallets: w, Payouts: w.payouts, MaxCost: func(context.Context, *chain.Currency, chain.Address) (ledger.Amount, error) { return 1, nil }, Now: w.clock, NewID: w.newID,
	})
	require.NoError(t, err)
	list, _, err := other.List(w.ctx, tenant, withdrawal.Filter{Sort: withdrawal.CreatedAsc})
	require.NoError(t, err)
	scales := map[string]uint8{}
	for i := range list {
		scales[list[i].Currency] = other.Scale(&list[i])
	}
	require.Equal(t, map[string]uint8{"USDTTRC20": 6, "BTC": 8, "XLM": 7}, scales)
	require.Equal(t, "97.5", decimal.NewFromInt(int64(list[0].Amount)).Shift(-6).String())
}
