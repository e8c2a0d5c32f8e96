package withdrawal_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Fifty at once for what covers ten: exactly ten win.
func TestW11_ConcurrentOverdraw(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 50 {
		wg.Go(func() {
			_, err := w.Create(w.ctx, tenant, usdt("100"))
			var short *withdrawal.InsufficientError
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
				return
			}
			require.ErrorAs(t, err, &short)
		})
	}
	wg.Wait()
	require.Equal(t, 10, won)
	require.EqualValues(t, 1000_000000, w.books("USDTTRC20")["H"])
	w.sound()
}

func TestInsufficientIncludesFees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "101")
	in := usdt("100")
	in.FinalAmount = true
	_, err := w.Create(w.ctx, tenant, in)
	var short *withdrawal.InsufficientError
	require.ErrorAs(t, err, &short)
	require.Equal(t, "102.5 101 USDTTRC20", short.Requested.String()+" "+short.Available.String()+" "+short.Currency)
	list, total, err := w.List(w.ctx, tenant, withdrawal.Filter{})
	require.NoError(t, err)
	require.Empty(t, list)
	require.Zero(t, total)
}

func TestCreateTellsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("é", 256)
	for name, c := range map[string]struct {
		change func(in *withdrawal.CreateInput)
		fields []string
	}{
		"both figures":  {func(in *withdrawal.CreateInput) { in.PriceAmount = dec("1") }, []string{"amount"}},
		"no figure":     {func(in *withdrawal.CreateInput) { in.Amount = nil }, []string{"amount"}},
		"places":        {func(in *withdrawal.CreateInput) { in.Amount = dec("1.0000001") }, []string{"amount"}},
		"fiat places":   {func(in *withdrawal.CreateInput) { in.Amount, in.PriceAmount = nil, dec("1.001") }, []string{"price_amount"}},
		"zero":          {func(in *withdrawal.CreateInput) { in.Amount = dec("0") }, []string{"amount"}},
		"fees above":    {func(in *withdrawal.CreateInput) { in.Amount = dec("2.01") }, []string{"amount"}},
		"below minimum": {func(in *withdrawal.CreateInput) { in.Amount = dec("3") }, []string{"amount"}},
		"both forms":    {func(in *withdrawal.CreateInput) { in.Blockchain, in.Token = "TRX", "USDT" }, []string{"currency"}},
		"no form":       {func(in *withdrawal.CreateInput) { in.Currency, in.Token = "", "USDT" }, []string{"currency"}},
		"everything":    {func(in *withdrawal.CreateInput) { *in = withdrawal.CreateInput{} }, []string{"address", "amount", "currency"}},
		"too long": {func(in *withdrawal.CreateInput) {
			in.Address, in.Memo, in.AccountID, in.CustomID = long, long, long, long[:130]
		}, []string{"account_id", "address", "custom_id", "memo"}},
		"no tag on XRP":    {func(in *withdrawal.CreateInput) { in.Currency = "XRP" }, []string{"memo"}},
		"bad tag on XRP":   {func(in *withdrawal.CreateInput) { in.Currency, in.Memo = "XRP", "007" }, []string{"memo"}},
		"large tag on XRP": {func(in *withdrawal.CreateInput) { in.Currency, in.Memo = "XRP", "4294967296" }, []string{"memo"}},
		"long memo on XLM": {func(in *withdrawal.CreateInput) { in.Currency, in.Memo = "XLM", strings.Repeat("x", 29) }, []string{"memo"}},
	} {
		in := usdt("100")
		c.change(&in)
		_, err := w.Create(w.ctx, tenant, in)
		var bad *withdrawal.InvalidError
		require.ErrorAs(t, err, &bad, name)
		for _, f := range c.fields {
			require.Contains(t, bad.Fields, f, name)
		}
		require.Len(t, bad.Fields, len(c.fields), "%s: %v", name, bad.Fields)
		require.Contains(t, bad.Error(), c.fields[0])
	}
	w.sound()
}

func TestCreateErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	w.own["Thot"] = "hot"
	create := func(change func(in *withdrawal.CreateInput)) error {
		in := usdt("100")
		change(&in)
		_, err := w.Create(w.ctx, tenant, in)
		return err
	}
	for _, address := range []string{"bad", "Thot", "0x0000000000000000000000000000000000000000", "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb"} {
		var bad *chain.AddressError
		require.ErrorAs(t, create(func(in *withdrawal.CreateInput) { in.Address = address }), &bad, address)
	}
	require.ErrorIs(t, create(func(in *withdrawal.CreateInput) { in.Currency = "usdttrc20" }), chain.ErrCurrency)
	require.ErrorIs(t, create(func(in *withdrawal.CreateInput) { in.AccountID = "nobody" }), errNoAccount)
	w.feeErr = errors.New("node is down")
	require.ErrorIs(t, create(func(*withdrawal.CreateInput) {}), withdrawal.ErrFee)
	w.sound()
}

// W18: a rate that is zero or stale prices nothing; W14: nor does a fee that
// cannot be true.
func TestW18_StaleOrZeroRate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "BTC", "1000")
	in := withdrawal.CreateInput{Terms: withdrawal.Terms{PriceAmount: dec("100"), Currency: "BTC", Address: "bc1"}}
	for _, price := range []string{"0", "-1"} {
		w.price = price
		_, err := w.Create(w.ctx, tenant, in)
		require.ErrorIs(t, err, rates.ErrUnavailable, price)
	}
	w.price, w.priceAge = "60000", rates.DefaultMaxAge
	_, err := w.Create(w.ctx, tenant, in)
	require.ErrorIs(t, err, rates.ErrUnavailable)
	w.priceAge -= time.Microsecond
	_, err = w.Create(w.ctx, tenant, in)
	require.NoError(t, err)
}

func TestW14_AbsurdFeeEstimate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000000")
	in := usdt("100")
	in.FinalAmount = true
	w.fee["USDTTRC20"] = "10000.000001"
	_, err := w.Create(w.ctx, tenant, in)
	require.ErrorIs(t, err, withdrawal.ErrFee)
	w.fee["USDTTRC20"] = "10000"
	_, err = w.Create(w.ctx, tenant, in)
	require.NoError(t, err, "a hundred times of what is asked is not absurd yet")
	w.fee["USDTTRC20"] = "-1"
	_, err = w.Create(w.ctx, tenant, in)
	require.ErrorIs(t, err, withdrawal.ErrFee)
	w.sound()
}

func TestFromASubAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("sub", "USDTTRC20", "100")
	in := usdt("100")
	in.AccountID = "sub"
	v := w.create(in)
	before := w.books("USDTTRC20")
	executed(w, v.ID)
	require.Equal(t, "H sub -100, sub -100, c +97.5, P +0.5, N +2", w.books("USDTTRC20").since(before, "USDTTRC20"))
}

// A wallet that is closed while a withdrawal is being made does not pay.
func TestClosedAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("sub", "USDTTRC20", "100")
	in := usdt("100")
	in.AccountID = "sub"
	w.commit(storage.Change{ID: "close", Put: []storage.Row{accounts.Row("sub", 1, time.Time{}, account{})}})
	_, err := w.Create(w.ctx, tenant, in)
	require.ErrorIs(t, err, errNoAccount)
	require.Zero(t, w.books("USDTTRC20")["H sub"])
}

func TestOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	first, err := w.Create(w.ctx, tenant, keyed("k", usdt("100")))
	require.NoError(t, err)
	require.False(t, first.Replayed)
	_, err = w.Cancel(w.ctx, tenant, first.ID)
	require.NoError(t, err)

	again, err := w.Create(w.ctx, tenant, keyed("k", usdt("100")))
	require.NoError(t, err)
	require.True(t, again.Replayed)
	again.Replayed = false
	require.Equal(t, first, again, "the first answer, whatever has happened since")

	_, err = w.Create(w.ctx, tenant, withdrawal.CreateInput{Key: "k"})
	require.ErrorIs(t, err, storage.ErrIdempotencyMismatch, "judged before validation")
	require.ErrorContains(t, err, `"k"`)
	for name, other := range map[string]func(in *withdrawal.CreateInput){
		"amount": func(in *withdrawal.CreateInput) { in.Amount = dec("100.000001") },
		"final":  func(in *withdrawal.CreateInput) { in.FinalAmount = true },
		"memo":   func(in *withdrawal.CreateInput) { in.Memo = "m" },
	} {
		in := keyed("k", usdt("100"))
		other(&in)
		_, err = w.Create(w.ctx, tenant, in)
		require.ErrorIs(t, err, storage.ErrIdempotencyMismatch, name)
	}
	same := keyed("k", usdt("100"))
	same.Amount = dec("100.00")
	again, err = w.Create(w.ctx, tenant, same)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID, "the same amount")

	w.advance(storage.OnceFor)
	later, err := w.Create(w.ctx, tenant, keyed("k", usdt("100")))
	require.NoError(t, err)
	require.NotEqual(t, first.ID, later.ID)
	w.sound()
}

// A key of an earlier version counts: its caller told its content apart by a fingerprint of
// his own. What it answered was a withdrawal, or it was another request.
func TestOnceOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	first, err := w.Create(w.ctx, tenant, keyed("k", usdt("100")))
	require.NoError(t, err)
	edit := func(response func([]byte) []byte) {
		kept, row, ok, err := storage.OnceTable.One(w.ctx, w.store, storage.Tenant(tenant), "k")
		require.NoError(t, err)
		require.True(t, ok)
		kept.Fingerprint, kept.Response = "10 to the supplier", response(kept.Response)
		w.commit(storage.Change{ID: fmt.Sprint("earlier ", row.Version), Put: []storage.Row{storage.OnceTable.Row("k", row.Version, row.Due, kept)}})
	}
	edit(func(b []byte) []byte { return b })
	again, err := w.Create(w.ctx, tenant, keyed("k", usdt("100")))
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.ID, again.ID)
	edit(func([]byte) []byte { return []byte(`{"transaction_id": "a payment"}`) })
	_, err = w.Create(w.ctx, tenant, keyed("k", usdt("100")))
	require.ErrorIs(t, err, storage.ErrIdempotencyMismatch)
	require.EqualValues(t, 100_000000, w.books("USDTTRC20")["H"])
}

func TestOnceConcurrently(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := w.Create(w.ctx, tenant, keyed("k", usdt("100")))
			if !errors.Is(err, storage.ErrInProgress) {
				require.NoError(t, err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 100_000000, w.books("USDTTRC20")["H"])
}

func TestMinimumItselfIsEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	limits, err := w.Limits(w.ctx, tenant, "USDTTRC20")
	require.NoError(t, err)
	for units, ok := range map[ledger.Amount]bool{limits[0].Min: true, limits[0].Min - 1: false} {
		amount := decimal.New(int64(units), -6)
		in := usdt("100")
		in.Amount, in.FinalAmount = &amount, true
		_, err := w.Create(w.ctx, tenant, in)
		if ok {
			require.NoError(t, err)
			continue
		}
		var bad *withdrawal.InvalidError
		require.ErrorAs(t, err, &bad)
	}
}

func TestCeilings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "10000")
	w.ceiling = withdrawal.Ceiling{Max: 150_000000, Daily: 250_000000}
	var bad *withdrawal.InvalidError
	_, err := w.Create(w.ctx, tenant, usdt("150.000001"))
	require.ErrorAs(t, err, &bad)
	first := w.create(usdt("150"))
	_, err = w.Create(w.ctx, tenant, usdt("100.000001"))
	require.ErrorAs(t, err, &bad)
	require.Contains(t, bad.Error(), "100 USDTTRC20")
	require.Equal(t, []string{"amount"}, fieldsOf(bad))
	w.create(usdt("100"))

	limits, err := w.Limits(w.ctx, tenant, "USDTTRC20")
	require.NoError(t, err)
	require.Equal(t, []int64{1_000000, 150_000000, 250_000000, 250_000000},
		[]int64{int64(limits[0].Min), int64(limits[0].Max), int64(limits[0].Daily), int64(limits[0].Used)})

	_, err = w.Cancel(w.ctx, tenant, first.ID)
	require.NoError(t, err)
	w.create(usdt("150")) // what did not happen is given back
	_, err = w.Create(w.ctx, tenant, usdt("10"))
	require.ErrorAs(t, err, &bad)
	w.advance(14 * time.Hour) // midnight exactly
	w.create(usdt("150"))

	all, err := w.Limits(w.ctx, tenant, "")
	require.NoError(t, err)
	require.Len(t, all, len(registry.Codes()))
	_, err = w.Limits(w.ctx, tenant, "XXX")
	require.ErrorIs(t, err, chain.ErrCurrency)
	w.sound()
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	terms := withdrawal.Terms{Amount: dec("100"), FinalAmount: true, Blockchain: "TRON", Token: "USDT"}
	e, err := w.Estimate(w.ctx, tenant, terms)
	require.NoError(t, err)
	require.Equal(t, "USDTTRC20", e.Currency.Code)
	require.Equal(t, withdrawal.Price{Requested: 102_500000, Amount: 100_000000, PlatformFee: 500000, NetworkFee: 2_000000}, e.Price)
	require.EqualValues(t, 2_500000, e.Fee())

	terms.Amount, terms.FinalAmount = dec("1"), false
	_, err = w.Estimate(w.ctx, tenant, terms)
	var bad *withdrawal.InvalidError
	require.ErrorAs(t, err, &bad)
	e, err = w.FeeEstimate(w.ctx, tenant, terms)
	require.NoError(t, err)
	require.EqualValues(t, 2_005000, e.Fee())

	terms.Address = "bad"
	var address *chain.AddressError
	_, err = w.Estimate(w.ctx, tenant, terms)
	require.ErrorAs(t, err, &address)

	c, err := w.MinAmount("", "TRX", "USDT")
	require.NoError(t, err)
	require.Equal(t, "USDTTRC20 1", c.Code+" "+c.MinWithdrawal.String())

	terms = withdrawal.Terms{Amount: dec("9223372036854"), FinalAmount: true, Currency: "USDTTRC20"}
	_, err = w.Estimate(w.ctx, tenant, terms)
	require.ErrorAs(t, err, &bad)
}

func TestAvailableCurrencies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "100")
	w.fund("master", "BTC", "1")
	w.fund("sub", "ETH", "1")
	w.create(usdt("100"))
	list, err := w.AvailableCurrencies(w.ctx, tenant)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "BTC", list[0].Currency.Code)
	require.Equal(t, decimal.RequireFromString("0.0001").String(), list[0].Currency.Decimal(list[0].Min).String())
}

func TestList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	w.fund("master", "BTC", "10")
	var ids []string
	for _, amount := range []string{"50", "20", "90"} {
		in := usdt(amount)
		in.CustomID = "c" + amount
		ids = append(ids, w.create(in).ID)
		w.advance(time.Second)
	}
	ids = append(ids, w.create(withdrawal.CreateInput{Terms: withdrawal.Terms{Amount: dec("3"), Currency: "BTC", Address: "bc1"}}).ID)
	_, err := w.Cancel(w.ctx, tenant, ids[1])
	require.NoError(t, err)
	start := w.clock().Add(-3 * time.Second)

	for name, c := range map[string]struct {
		f     withdrawal.Filter
		want  []int
		total int64
	}{
		"default":        {withdrawal.Filter{}, []int{3, 2, 1, 0}, 4},
		"ascending":      {withdrawal.Filter{Sort: withdrawal.CreatedAsc}, []int{0, 1, 2, 3}, 4},
		"amount":         {withdrawal.Filter{Sort: withdrawal.AmountDesc}, []int{2, 0, 1, 3}, 4},
		"amount_asc":     {withdrawal.Filter{Sort: withdrawal.AmountAsc}, []int{3, 1, 0, 2}, 4},
		"page":           {withdrawal.Filter{Limit: 2, Offset: 1}, []int{2, 1}, 4},
		"past the end":   {withdrawal.Filter{Offset: 9}, []int{}, 4},
		"status":         {withdrawal.Filter{Status: withdrawal.Cancelled}, []int{1}, 1},
		"network":        {withdrawal.Filter{Blockchain: "BTC"}, []int{3}, 1},
		"alias alone":    {withdrawal.Filter{Blockchain: "TRON"}, []int{2, 1, 0}, 3},
		"alias":          {withdrawal.Filter{Blockchain: "TRON", Token: "USDT"}, []int{2, 1, 0}, 3},
		"currency":       {withdrawal.Filter{Currency: "BTC"}, []int{3}, 1},
		"custom_id":      {withdrawal.Filter{CustomID: "c90"}, []int{2}, 1},
		"from inclusive": {withdrawal.Filter{From: start.Add(time.Second)}, []int{3, 2, 1}, 3},
		"before":         {withdrawal.Filter{Before: start.Add(time.Second)}, []int{0}, 1},
	} {
		page, total, err := w.List(w.ctx, tenant, c.f)
		require.NoError(t, err, name)
		require.Equal(t, c.total, total, name)
		got := []int{}
		for _, v := range page {
			for i, id := range ids {
				if v.ID == id {
					got = append(got, i)
				}
			}
		}
		require.Equal(t, c.want, got, name)
	}
	other, total, err := w.List(w.ctx, "t2", withdrawal.Filter{})
	require.NoError(t, err)
	require.Empty(t, other)
	require.Zero(t, total)
	_, err = w.Get(w.ctx, "t2", ids[0])
	require.ErrorIs(t, err, withdrawal.ErrNotFound)

	_, _, err = w.List(w.ctx, tenant, withdrawal.Filter{
		Status: "done", Currency: "XXX", Blockchain: "XXX", Token: "XXX", Sort: "up", Limit: 101, Offset: -1,
	})
	var bad *withdrawal.InvalidError
	require.ErrorAs(t, err, &bad)
	require.ElementsMatch(t, []string{"status", "currency", "blockchain", "token", "sort", "limit", "offset"}, fieldsOf(bad))
}
