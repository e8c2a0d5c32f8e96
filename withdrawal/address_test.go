package withdrawal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
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
	var asked []string
	other, err := withdrawal.New(withdrawal.Config{
		Store: store, Registry: later, Parse: parse, Fees: fees{w}, Tenants: w, Wallets: w, Payouts: w.payouts, MaxCost: func(context.Context, chain.Intent) (ledger.Amount, error) { return 1, nil }, Now: w.clock, NewID: w.newID,
		Confirmations: func(c *chain.Currency) int64 {
			asked = append(asked, fmt.Sprint(c.Code, " ", c.Network, " ", c.Token, " ", c.Scale))
			return 1
		},
	})
	require.NoError(t, err)
	list, _, err := other.List(w.ctx, tenant, withdrawal.Filter{Sort: withdrawal.CreatedAsc})
	require.NoError(t, err)
	_, err = other.Hold(w.ctx, tenant, list[0].ID, "ann", "its currency is gone")
	require.NoError(t, err)
	require.Equal(t, []string{"USDTTRC20 TRX USDT 6"}, asked)
	scales := map[string]uint8{}
	for i := range list {
		scales[list[i].Currency] = other.Scale(&list[i])
	}
	for _, v := range list {
		line, row, ok, err := storage.Activities.One(w.ctx, store, storage.Tenant(tenant), v.ID)
		require.NoError(t, err)
		require.True(t, ok)
		require.EqualValues(t, 1, row.Version)
		require.Contains(t, string(line.Metadata), `"network_fee":"`+v.NetworkFee.Format(scales[v.Currency], 8)+`"`)
	}
	require.Equal(t, map[string]uint8{"USDTTRC20": 6, "BTC": 8, "XLM": 7}, scales)
	require.Equal(t, "97.5", decimal.NewFromInt(int64(list[0].Amount)).Shift(-6).String())
}

// TestFieldsNamed: what is wrong is told at its field.
func TestFieldsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "XRP", "1000")
	w.fund("master", "XLM", "1000")
	w.fund("master", "USDTTRC20", "1000")
	w.price = "1"
	terms := func(edit func(*withdrawal.CreateInput)) error {
		in := usdt("100")
		edit(&in)
		_, err := w.Create(w.ctx, tenant, in)
		return err
	}
	address := func(in withdrawal.AddressInput) error {
		_, err := w.ValidateAddress(w.ctx, in)
		return err
	}
	dates := func(start, end string) error {
		_, _, err := withdrawal.DateRange(start, end)
		return err
	}
	for name, c := range map[string]struct {
		err   error
		field string
	}{
		"a blockchain that is not": {address(withdrawal.AddressInput{Address: "T1", Blockchain: "NOPE"}), "blockchain"},
		"a type and no token":      {address(withdrawal.AddressInput{Address: "T1", Type: "TRX", Token: "NOPE"}), "token"},
		"a start":                  {dates("yesterday", ""), "start_date"},
		"an end":                   {dates("", "tomorrow"), "end_date"},
		"both figures":             {terms(func(in *withdrawal.CreateInput) { in.PriceAmount = dec("5") }), "amount"},
		"no figure":                {terms(func(in *withdrawal.CreateInput) { in.Amount = nil }), "amount"},
		"a price for nothing":      {terms(func(in *withdrawal.CreateInput) { in.Amount, in.PriceAmount, w.price = nil, dec("0.01"), "60000" }), "price_amount"},
		"another blockchain":       {terms(func(in *withdrawal.CreateInput) { in.Blockchain = "ETH" }), "blockchain"},
		"a blockchain of none":     {terms(func(in *withdrawal.CreateInput) { in.Blockchain = "NOPE" }), "blockchain"},
		"another token":            {terms(func(in *withdrawal.CreateInput) { in.Token = "TRX" }), "token"},
		"a figure beyond counting": {terms(func(in *withdrawal.CreateInput) { in.Amount, in.FinalAmount = dec("9223372036854.77"), true }), "amount"},
		"a price beyond counting": {terms(func(in *withdrawal.CreateInput) {
			in.Amount, in.PriceAmount, in.FinalAmount, w.price = nil, dec("9223372036854.77"), true, "1"
		}), "price_amount"},
		"no memo":                {terms(func(in *withdrawal.CreateInput) { in.Currency, in.Address = "XRP", "r1" }), "memo"},
		"a tag too large":        {terms(func(in *withdrawal.CreateInput) { in.Currency, in.Address, in.Memo = "XRP", "r1", "4294967296" }), "memo"},
		"a memo with a zero":     {terms(func(in *withdrawal.CreateInput) { in.Currency, in.Address, in.Memo = "XLM", "G1", "a\x00" }), "memo"},
		"a memo that is no text": {terms(func(in *withdrawal.CreateInput) { in.Currency, in.Address, in.Memo = "XLM", "G1", "\xff" }), "memo"},
		"a memo of 29 bytes": {terms(func(in *withdrawal.CreateInput) {
			in.Currency, in.Address, in.Memo = "XLM", "G1", strings.Repeat("m", 29)
		}), "memo"},
	} {
		bad := new(withdrawal.InvalidError)
		require.ErrorAs(t, c.err, &bad, name)
		require.Contains(t, fieldsOf(bad), c.field, name)
	}
	for _, memo := range []string{"0", "10", "4294967295"} {
		require.NoError(t, terms(func(in *withdrawal.CreateInput) { in.Currency, in.Address, in.Memo = "XRP", "r1", memo }), memo)
	}
	require.NoError(t, terms(func(in *withdrawal.CreateInput) {
		in.Currency, in.Address, in.Memo = "XLM", "G1", strings.Repeat("m", 28)
	}))
	require.NoError(t, terms(func(in *withdrawal.CreateInput) { in.Currency, in.Blockchain, in.Token = "", "TRON", "USDT" }))

	w.flat = "99999999999999999999" // no amount: a mistake of the operator's
	bad := new(withdrawal.InvalidError)
	err := terms(func(*withdrawal.CreateInput) {})
	require.Error(t, err)
	require.NotErrorAs(t, err, &bad, "it is none of the merchant's")
	w.flat, w.setErr = "0", errors.New("the tenant cannot be read")
	require.ErrorIs(t, terms(func(*withdrawal.CreateInput) {}), w.setErr)
}

// TestMemoIsSentWhereTheNetworkHasMemos: elsewhere it stays a note of the merchant's.
func TestMemoIsSentWhereTheNetworkHasMemos(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "XRP", "1000")
	w.fund("master", "USDTTRC20", "1000")
	note := usdt("100")
	note.Memo = "a note"
	for _, c := range []struct {
		in   withdrawal.CreateInput
		sent string
	}{
		{note, ""},
		{withdrawal.CreateInput{Terms: withdrawal.Terms{Amount: dec("30"), Currency: "XRP", Address: "r1"}, Memo: "7"}, "7"},
	} {
		v := w.create(c.in)
		require.Equal(t, []string{c.in.Memo, c.sent}, []string{v.Memo, v.SentMemo})
		w.step()
		require.Equal(t, c.sent, w.payouts.intents[v.ID].Memo)
	}
}

// TestW16_AddressThatCarriesATag: the tag is what is sent, and another memo beside it is
// refused.
func TestW16_AddressThatCarriesATag(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *withdrawal.Config) {
		c.Untag = func(_ chain.Network, a chain.Address) (chain.Address, string, bool) {
			account, tag, ok := strings.Cut(string(a), "?")
			return chain.Address(account), tag, ok
		}
	})
	w.fund("master", "XRP", "1000")
	create := func(address, memo string) (withdrawal.Withdrawal, error) {
		return w.Create(w.ctx, tenant, withdrawal.CreateInput{Terms: withdrawal.Terms{Amount: dec("30"), Currency: "XRP", Address: address}, Memo: memo})
	}
	for _, memo := range []string{"", "7"} {
		v, err := create("r1?7", memo)
		require.NoError(t, err)
		require.Equal(t, []string{"r1", "7", "7"}, []string{v.Address, v.Memo, v.SentMemo})
	}
	_, err := create("r1?7", "8")
	bad := new(withdrawal.InvalidError)
	require.ErrorAs(t, err, &bad)
	require.Equal(t, []string{"memo"}, fieldsOf(bad))
	require.Contains(t, bad.Error(), "7")
}
