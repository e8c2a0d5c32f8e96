package withdrawal_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// salaries are n requests of an amount each, to an address each.
func salaries(n int, amount string) []withdrawal.CreateInput {
	out := make([]withdrawal.CreateInput, n)
	for i := range out {
		out[i] = usdt(amount)
		out[i].Address, out[i].CustomID = fmt.Sprintf("Tworker%d", i), fmt.Sprintf("pay-%d", i)
	}
	return out
}

// by is a list that somebody asks for.
func by(who string, list []withdrawal.CreateInput) []withdrawal.CreateInput {
	for i := range list {
		list[i].By = who
	}
	return list
}

// nothing checks that nothing was made or held.
func (w *world) nothing() {
	w.Helper()
	_, total, err := w.List(w.ctx, tenant, withdrawal.Filter{})
	require.NoError(w, err)
	require.Zero(w, total)
	w.sound()
}

func TestPayout_AllAreMadeInTheOrderOfTheRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	w.fund("sub", "USDTTRC20", "500")
	in := salaries(4, "100")
	in[1].AccountID, in[2].Address = "sub", in[0].Address
	in[3].FinalAmount, in[3].Currency, in[3].Blockchain, in[3].Token = true, "", "TRON", "USDT"
	p, err := w.CreatePayout(w.ctx, tenant, "", by("alice", in))
	require.NoError(t, err)
	require.Equal(t, []any{false, map[withdrawal.Status]int{withdrawal.Pending: 4}}, []any{p.Replayed, p.Counts()})
	again, err := w.Payout(w.ctx, tenant, p.ID)
	require.NoError(t, err)
	require.Equal(t, p, again)
	for i, v := range p.Withdrawals {
		require.Equal(t, []string{in[i].Address, in[i].CustomID, "alice", "USDTTRC20"}, []string{v.Address, v.CustomID, v.RequestedBy, v.Currency})
		require.Equal(t, v, w.get(v.ID), "one of a payout is a withdrawal like any other")
	}
	require.EqualValues(t, 100_000000+100_000000+102_500000, w.books("USDTTRC20")["H"])
	require.EqualValues(t, 100_000000, w.books("USDTTRC20")["H sub"])
	w.sound()

	// Each goes its own way.
	_, err = w.Cancel(w.ctx, tenant, p.Withdrawals[0].ID)
	require.NoError(t, err)
	w.step()
	for _, v := range p.Withdrawals[1:] {
		require.True(t, w.payouts.sign(v.ID))
		w.tell(v.ID, "signed", "tx-"+v.ID, 0)
	}
	w.tell(p.Withdrawals[1].ID, "executed", "tx-"+p.Withdrawals[1].ID, 1)
	p, err = w.Payout(w.ctx, tenant, p.ID)
	require.NoError(t, err)
	require.Equal(t, map[withdrawal.Status]int{withdrawal.Cancelled: 1, withdrawal.Completed: 1, withdrawal.Processing: 2}, p.Counts())
	w.sound()

	for _, id := range []string{"", "nobody", p.Withdrawals[0].ID} {
		_, err = w.Payout(w.ctx, tenant, id)
		require.ErrorIs(t, err, withdrawal.ErrNotFound, id)
	}
	_, err = w.Payout(w.ctx, "t2", p.ID)
	require.ErrorIs(t, err, withdrawal.ErrNotFound)
}

// The balance has to cover the sum: two withdrawals that each could be paid are not.
func TestPayout_TheBalanceCoversTheSum(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	w.fund("sub", "USDTTRC20", "500")
	in := salaries(4, "400")
	in[3].AccountID = "sub"
	_, err := w.CreatePayout(w.ctx, tenant, "", in)
	var short *withdrawal.InsufficientError
	require.ErrorAs(t, err, &short)
	require.Equal(t, "1200 1000 USDTTRC20", short.Requested.String()+" "+short.Available.String()+" "+short.Currency)
	w.nothing()
	_, err = w.CreatePayout(w.ctx, tenant, "", append(in[:2:2], in[3]))
	require.NoError(t, err)
	w.sound()
}

// Fifty payouts at once for what covers ten: exactly ten win.
func TestPayout_ConcurrentOverdraw(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	var wg sync.WaitGroup
	var won atomic.Int64
	for range 50 {
		wg.Go(func() {
			_, err := w.CreatePayout(w.ctx, tenant, "", salaries(4, "25"))
			var short *withdrawal.InsufficientError
			if err == nil {
				won.Add(1)
				return
			}
			require.ErrorAs(t, err, &short)
		})
	}
	wg.Wait()
	require.EqualValues(t, 10, won.Load())
	require.EqualValues(t, 1000_000000, w.books("USDTTRC20")["H"])
	w.sound()
}

func TestPayout_LimitsOfADayBoundTheSum(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ceiling = withdrawal.Ceiling{Max: 500_000000, Daily: 1000_000000}
	w.fund("master", "USDTTRC20", "10000")
	w.create(usdt("150"))
	var bad *withdrawal.InvalidError
	_, err := w.CreatePayout(w.ctx, tenant, "", salaries(3, "300"))
	require.ErrorAs(t, err, &bad)
	require.Equal(t, map[string][]string{"withdrawals": {"those of USDTTRC20 are together above what is left of today's limit: 850 USDTTRC20"}}, bad.Fields)
	in := salaries(3, "300")
	in[1].Amount = dec("500.000001")
	_, err = w.CreatePayout(w.ctx, tenant, "", in)
	require.Equal(t, map[int]map[string][]string{1: {"amount": {"is above the maximum of 500 USDTTRC20"}}}, itemFields(t, err))
	p, err := w.CreatePayout(w.ctx, tenant, "", salaries(2, "300"))
	require.NoError(t, err)
	limits, err := w.Limits(w.ctx, tenant, "USDTTRC20")
	require.NoError(t, err)
	require.EqualValues(t, 750_000000, limits[0].Used)
	_, err = w.Cancel(w.ctx, tenant, p.Withdrawals[1].ID)
	require.NoError(t, err)
	_, err = w.CreatePayout(w.ctx, tenant, "", salaries(2, "275"))
	require.NoError(t, err, "what was cancelled is given back to its day")
	_, err = w.Create(w.ctx, tenant, usdt("10"))
	require.ErrorAs(t, err, &bad)
	w.sound()
}

// itemFields are the wrong fields of each withdrawal that a *PayoutError names.
func itemFields(t *testing.T, err error) map[int]map[string][]string {
	t.Helper()
	var items *withdrawal.PayoutError
	require.ErrorAs(t, err, &items)
	out := map[int]map[string][]string{}
	for i, errs := range items.Items {
		var bad *withdrawal.InvalidError
		require.ErrorAs(t, errors.Join(errs...), &bad)
		out[i] = bad.Fields
	}
	return out
}

// One that is wrong refuses all, and each that is wrong is named.
func TestPayout_NamesEachThatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	w.own["Thot"] = "hot"
	in := salaries(6, "10")
	in[1].Amount, in[3].Address, in[4].Memo, in[5].Key = nil, "", strings.Repeat("m", 256), "k"
	_, err := w.CreatePayout(w.ctx, tenant, "", in)
	require.Equal(t, map[int]map[string][]string{
		1: {"amount": {"give exactly one of amount and price_amount"}}, 3: {"address": {"is required"}},
		4: {"memo": {"must have at most 255 characters"}}, 5: {"key": {"is the payout's"}},
	}, itemFields(t, err))
	require.Equal(t, err, w.CheckPayout(in))

	in = salaries(7, "10")
	in[1].Address, in[2].AccountID, in[4].Address = "bad", "nobody", "Thot"
	in[4].AccountID, in[0].Amount, in[5].Amount, in[5].PriceAmount = "nobody", nil, nil, dec("0.00000001")
	_, err = w.CreatePayout(w.ctx, tenant, "", in)
	var items *withdrawal.PayoutError
	require.ErrorAs(t, err, &items)
	require.Equal(t, []int{0, 1, 2, 4, 5}, slices.Sorted(maps.Keys(items.Items)), "whatever found it: the request, the store or the rates")
	var address *chain.AddressError
	require.ErrorAs(t, errors.Join(items.Items[1]...), &address)
	require.ErrorIs(t, errors.Join(items.Items[2]...), errNoAccount)
	require.ErrorAs(t, errors.Join(items.Items[4]...), &address)
	require.ErrorIs(t, errors.Join(items.Items[4]...), errNoAccount)
	require.Contains(t, err.Error(), "withdrawals[1]")

	in = salaries(3, "10")
	in[2].Amount = dec("2")
	_, err = w.CreatePayout(w.ctx, tenant, "", in)
	require.Contains(t, itemFields(t, err)[2]["amount"][0], "fees")

	in = salaries(3, "10")
	in[2].Currency = "NONE"
	_, err = w.CreatePayout(w.ctx, tenant, "", in)
	require.ErrorAs(t, err, &items)
	require.ErrorIs(t, errors.Join(items.Items[2]...), chain.ErrCurrency)
	require.Len(t, items.Items, 1)

	for _, n := range []int{0, 1001} {
		_, err = w.CreatePayout(w.ctx, tenant, "", salaries(n, "10"))
		var bad *withdrawal.InvalidError
		require.ErrorAs(t, err, &bad)
		require.Contains(t, bad.Fields, "withdrawals")
	}
	w.feeErr, w.setErr = errors.New("node is down"), errors.New("store is down")
	in = salaries(3, "10")
	in[1].Amount = nil
	_, err = w.CreatePayout(w.ctx, tenant, "", in)
	require.Equal(t, map[int]map[string][]string{1: {"amount": {"give exactly one of amount and price_amount"}}}, itemFields(t, err), "also while nobody can say more")
	require.ErrorIs(t, err, w.setErr, "what kept the rest from being looked at is not lost")
	require.Contains(t, err.Error(), "store is down")
	w.setErr = nil
	_, err = w.CreatePayout(w.ctx, tenant, "", salaries(3, "10"))
	require.ErrorIs(t, err, withdrawal.ErrFee)
	w.feeErr, w.setErr = nil, errors.New("store is down")
	_, err = w.CreatePayout(w.ctx, tenant, "", salaries(3, "10"))
	require.ErrorIs(t, err, w.setErr)
	w.nothing()
}

func TestPayout_OneKeyIsOnePayout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	in := by("alice", salaries(3, "100"))
	first, err := w.CreatePayout(w.ctx, tenant, "march", in)
	require.NoError(t, err)
	_, err = w.Cancel(w.ctx, tenant, first.Withdrawals[1].ID)
	require.NoError(t, err)
	again, err := w.CreatePayout(w.ctx, tenant, "march", by("bob", in))
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.ID, again.ID)
	require.Equal(t, first.Withdrawals, again.Withdrawals, "the first answer, whatever has happened since")
	in = salaries(3, "100")
	in[2].CustomID = "another"
	_, err = w.CreatePayout(w.ctx, tenant, "march", in)
	require.ErrorIs(t, err, storage.ErrIdempotencyMismatch)
	_, err = w.CreatePayout(w.ctx, tenant, "march", nil)
	require.ErrorIs(t, err, storage.ErrIdempotencyMismatch, "judged before anything else")
	_, err = w.Create(w.ctx, tenant, keyed("march", usdt("10")))
	require.ErrorIs(t, err, storage.ErrIdempotencyMismatch)
	require.EqualValues(t, 200_000000, w.books("USDTTRC20")["H"])

	// Two processes, one key: one payout.
	second := newWorldOn(t, w.store)
	second.ids = 500
	var wg sync.WaitGroup
	ids := make([]string, 16)
	in = salaries(2, "50")
	for i := range ids {
		wg.Go(func() {
			for {
				p, err := []*world{w, second}[i%2].CreatePayout(w.ctx, tenant, "april", in)
				if errors.Is(err, storage.ErrInProgress) {
					continue
				}
				require.NoError(t, err)
				ids[i] = p.ID
				return
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
	require.EqualValues(t, 300_000000, w.books("USDTTRC20")["H"])
	w.sound()
}

// asking counts what a store is asked.
type asking struct {
	storage.Store
	reads, commits atomic.Int64
}

func (s *asking) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	s.reads.Add(1)
	return s.Store.Rows(ctx, t, keys...)
}

func (s *asking) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	s.reads.Add(1)
	return s.Store.Find(ctx, q)
}

func (s *asking) Commit(ctx context.Context, changes ...storage.Change) []error {
	s.commits.Add(1)
	return s.Store.Commit(ctx, changes...)
}

// quoting counts quotes, and reads the free coins where coins are outputs, as the real one does.
type quoting struct {
	withdrawal.Fees
	store  storage.Store
	quotes atomic.Int64
}

func (q *quoting) Quote(ctx context.Context, in chain.Intent) (ledger.Amount, error) {
	q.quotes.Add(1)
	if in.Network == "BTC" {
		_, err := storage.Joined(q.store).Find(ctx, storage.Query{Table: accounts.Table, Partition: storage.Tenant(in.Tenant), Order: []storage.Order{{Column: storage.ColID}}})
		if err != nil {
			return 0, err
		}
	}
	return q.Fees.Quote(ctx, in)
}

// counted counts the prices that are asked for.
type counted struct {
	rates.Rates
	asked *atomic.Int64
}

func (c counted) Rate(ctx context.Context, token, fiat string) (rates.Rate, error) {
	c.asked.Add(1)
	return c.Rates.Rate(ctx, token, fiat)
}

// A payout of many withdrawals asks the store as rarely as one of few, and what is the same once.
func TestPayout_ThousandCostFewCalls(t *testing.T) {
	t.Parallel()
	store := &asking{Store: memory.New()}
	q := &quoting{store: store}
	var prices atomic.Int64
	w := newWorldOn(t, store, func(c *withdrawal.Config) {
		q.Fees, c.Fees = c.Fees, q
		inner := c.Own
		c.Own = func(ctx context.Context, n chain.Network, a chain.Address) (string, bool, error) {
			_, _, _, err := accounts.One(ctx, storage.Joined(store), storage.Network(string(n)), string(a))
			if err != nil {
				return "", false, err
			}
			return inner(ctx, n, a)
		}
		rate := c.Rates
		c.Rates = counted{rate, &prices}
	})
	w.fund("master", "USDTTRC20", "1000000")
	w.fund("master", "BTC", "1000")
	ask := func(in []withdrawal.CreateInput) [4]int64 {
		reads, commits, quotes, asked := store.reads.Load(), store.commits.Load(), q.quotes.Load(), prices.Load()
		_, err := w.CreatePayout(w.ctx, tenant, "", in)
		require.NoError(t, err)
		return [4]int64{store.reads.Load() - reads, store.commits.Load() - commits, q.quotes.Load() - quotes, prices.Load() - asked}
	}
	few, many := ask(salaries(2, "20")), ask(salaries(1000, "20"))
	require.Equal(t, [4]int64{few[0], 1, 1000, 0}, many)
	coins := func(n int) []withdrawal.CreateInput {
		in := salaries(n, "1")
		for i := range in {
			in[i].Amount, in[i].PriceAmount, in[i].Currency = nil, dec(fmt.Sprint(100+i)), "BTC"
		}
		return in
	}
	few, many = ask(coins(2)), ask(coins(500))
	require.Equal(t, [4]int64{few[0], 1, 500, 1}, many)
	same := salaries(1000, "20")
	for i := range same {
		same[i].Address = "Tone"
	}
	require.EqualValues(t, 1, ask(same)[2], "one address and figure has one quote")
}

// A payout stands on the wallets that pay: one that closes meanwhile refuses all.
func TestPayout_AWalletThatClosesMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	w.fund("sub", "USDTTRC20", "1000")
	in := salaries(3, "10")
	in[2].AccountID = "sub"
	closing := &closes{Store: w.store, w: w}
	second := newWorldOn(t, closing)
	second.ids = 500
	closing.on = true
	_, err := second.CreatePayout(w.ctx, tenant, "", in)
	var items *withdrawal.PayoutError
	require.ErrorAs(t, err, &items)
	require.Len(t, items.Items, 1)
	require.ErrorIs(t, errors.Join(items.Items[2]...), errNoAccount)
	w.nothing()
}

// closes is a store in which somebody closes a wallet before the first commit.
type closes struct {
	storage.Store
	w  *world
	on bool
}

func (s *closes) Commit(ctx context.Context, changes ...storage.Change) []error {
	if s.on {
		s.on = false
		_, row, _, err := accounts.One(ctx, s.Store, storage.Tenant(tenant), "sub")
		require.NoError(s.w, err)
		s.w.commit(storage.Change{ID: "close", Put: []storage.Row{accounts.Row("sub", row.Version, time.Time{}, account{})}})
	}
	return s.Store.Commit(ctx, changes...)
}

// A store that does not tell whether it has committed is asked again, and nothing is made twice.
func TestPayout_UnknownOutcome(t *testing.T) {
	t.Parallel()
	lost := &loses{Store: memory.New()}
	w := newWorldOn(t, lost)
	w.fund("master", "USDTTRC20", "1000")
	lost.on.Store(true)
	p, err := w.CreatePayout(w.ctx, tenant, "", salaries(3, "100"))
	require.NoError(t, err)
	require.Len(t, p.Withdrawals, 3)
	require.EqualValues(t, 300_000000, w.books("USDTTRC20")["H"])
	w.sound()
}

type loses struct {
	storage.Store
	on atomic.Bool
}

func (s *loses) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := s.Store.Commit(ctx, changes...)
	if s.on.CompareAndSwap(true, false) {
		for i := range errs {
			errs[i] = errors.New("connection lost")
		}
	}
	return errs
}

// In a host's transaction a payout is there with the host's row, or neither is.
func TestPayout_InAHostsTransaction(t *testing.T) {
	t.Parallel()
	store := memory.New()
	w := newWorldOn(t, store)
	w.fund("master", "USDTTRC20", "1000")
	for _, commit := range []bool{false, true} {
		tx, err := store.Begin(w.ctx)
		require.NoError(t, err)
		in := newWorldOn(t, store.WithTx(tx))
		in.ids = 900
		p, err := in.CreatePayout(w.ctx, tenant, "k", salaries(3, "100"))
		require.NoError(t, err)
		if !commit {
			require.NoError(t, tx.Rollback())
			w.nothing()
			continue
		}
		require.NoError(t, tx.Commit())
		p, err = w.Payout(w.ctx, tenant, p.ID)
		require.NoError(t, err)
		require.Len(t, p.Withdrawals, 3)
	}
	w.sound()
}
