package mandate_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
)

var (
	hostA, hostB = bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	a, b         = mandate.Derive(hostA), mandate.Derive(hostB)
	terms        = mandate.Terms{
		Store: "s", Tenant: "t", Order: "w1", Kind: chain.ForWithdrawal, Network: "ETH", Currency: "USDTERC20", To: "0xabc", Memo: "m",
		Amount: 100, Requested: 103, Wallet: "master", Parent: "w0/%",
	}
)

func intent(t mandate.Terms, text string) chain.Intent {
	return chain.Intent{
		ID: t.Order, Purpose: t.Kind, Tenant: t.Tenant, Network: t.Network, Currency: t.Currency, To: t.To, Memo: t.Memo, Amount: t.Amount, Mandate: text,
	}
}

// The text is golden: a mandate that was stored must be checked by every later version.
func TestFS02_MandateIsGolden(t *testing.T) {
	t.Parallel()
	const golden = "1/ce0e445b/s/103/master/w0%2F%25/ow1avbIHK8xHFaSuZT6XmVba-0ezO2owUNnEXQ28dYE" // computed by another program, too
	require.Equal(t, golden, mandate.Keys{a}.Make(terms))
	require.NoError(t, mandate.Keys{b, a}.Check(golden, terms))
}

// Every field is covered: by reflection, so that one that is added is not forgotten.
func TestFS02_MandateCoversEveryField(t *testing.T) {
	t.Parallel()
	keys := mandate.Keys{a}
	text := keys.Make(terms)
	require.NoError(t, keys.Check(text, terms))
	in := intent(terms, text)
	require.NoError(t, keys.CheckIntent(&in))
	for i := range reflect.TypeFor[mandate.Terms]().NumField() {
		edited := terms
		f := reflect.ValueOf(&edited).Elem().Field(i)
		name := reflect.TypeFor[mandate.Terms]().Field(i).Name
		if f.Kind() == reflect.String {
			f.SetString(f.String() + "x")
		} else {
			f.SetInt(f.Int() + 1)
		}
		require.ErrorIs(t, keys.Check(text, edited), mandate.ErrForged, name)
		in := intent(edited, text)
		if in != intent(terms, text) { // else the field is in the text alone
			require.ErrorIs(t, keys.CheckIntent(&in), mandate.ErrForged, name)
		}
		// A text that says the same as the edited order is not of its MAC.
		forged := mandate.Keys{b}.Make(edited)
		forged = text[:10] + forged[10:]
		require.ErrorIs(t, keys.Check(forged, edited), mandate.ErrForged, name)
	}
}

// No two orders have one encoding: what one field ends with is not what the next begins
// with.
func TestFS02_MandateFieldsDoNotRunIntoEachOther(t *testing.T) {
	t.Parallel()
	one, other := terms, terms
	one.To, one.Memo = "0xab", "cm"
	other.To, other.Memo = "0xabc", "m"
	require.NotEqual(t, mandate.Keys{a}.Make(one), mandate.Keys{a}.Make(other))
	for _, text := range []string{"x", "1/2", "2/k/s/1/w/p/mac", "1/k/s/x/w/p/mac", "1/k/%zz/1/w/p/mac", "1//////"} {
		require.ErrorIs(t, mandate.Keys{a}.Check(text, terms), mandate.ErrForged, text)
	}
}

// The newest key makes, all check, and one that is gone is named.
func TestFM08_MandateOfAKeyThatIsListed(t *testing.T) {
	t.Parallel()
	old := mandate.Keys{a}.Make(terms)
	both := mandate.Keys{b, a}
	require.NoError(t, both.Check(old, terms))
	require.False(t, both.Newest(old))
	young := both.Make(terms)
	require.True(t, both.Newest(young))
	require.ErrorIs(t, mandate.Keys{a}.Check(young, terms), mandate.ErrKey)
	require.ErrorContains(t, mandate.Keys{a}.Check(young, terms), b.ID)
	require.ErrorIs(t, both.Check("", terms), mandate.ErrMissing)
	require.NotEqual(t, hostA, a.Secret)
}

func TestK02_MandateKeyPrintsAsStars(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		require.NotContains(t, fmt.Sprintf(verb, a), fmt.Sprintf("%x", a.Secret))
		require.NotContains(t, fmt.Sprintf(verb, mandate.Keys{a}), fmt.Sprint(a.Secret))
	}
}
