package wallet

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
)

// HistoryEntry is one movement of a wallet. Amount is signed: the step from the
// balance before to BalanceAfter, in units of the currency's scale.
type HistoryEntry struct {
	At           time.Time
	Currency     string
	Type         ledger.Kind
	Amount       ledger.Amount
	BalanceAfter ledger.Amount
	Tx           string // of the ledger
	Ref          string // the payment, withdrawal or transfer it explains
}

// HistoryFilter selects movements; empty fields select all.
type HistoryFilter struct {
	Wallet   string // wallet id; "" = the master account
	Currency string
	Type     ledger.Kind // as shown: transfers are transfer_in or transfer_out
	Limit    int         // 1–100; 0 = 50
	Offset   int
}

// historyTypes are the types that an entry can have.
var historyTypes = []ledger.Kind{
	ledger.KindDeposit, ledger.KindWithdrawal, ledger.KindTransferIn, ledger.KindTransferOut,
	ledger.KindFee, ledger.KindRefund, ledger.KindAdjustment,
}

// History returns a page of a wallet's movements, newest first, and how many
// match in all. *InvalidError names what is wrong with the filter.
func (s *Service) History(ctx context.Context, tenant string, f HistoryFilter) ([]HistoryEntry, int64, error) {
	bad := &InvalidError{}
	or(&f.Limit, 50)
	bad.AddPage(f.Limit, f.Offset)
	s.checkCurrency(bad, f.Currency)
	if f.Type != "" && !slices.Contains(historyTypes, f.Type) {
		bad.Add("type", "is not a type of movements")
	}
	if err := bad.Err(); err != nil {
		return nil, 0, err
	}
	or(&f.Wallet, Master)
	p, account := storage.Tenant(tenant), ledger.Wallet(f.Wallet)
	balances, err := s.c.Store.Balances(ctx, p, account)
	if err != nil {
		return nil, 0, err
	}
	m := merge{store: s.c.Store, p: p, account: account}
	var total int64
	for _, b := range balances {
		if f.Currency == "" || string(b.Asset) == f.Currency {
			m.lines = append(m.lines, line{asset: b.Asset, before: b.Seq + 1})
			total += b.Seq
		}
	}
	if f.Type == "" {
		if int64(f.Offset) >= total {
			return []HistoryEntry{}, total, nil
		}
		page, err := m.page(ctx, f)
		return page, total, err
	}
	balances = slices.DeleteFunc(balances, func(b ledger.Balance) bool { return f.Currency != "" && string(b.Asset) != f.Currency })
	most, counted, err := tally.OfKind(ctx, s.c.Store, p, balances, f.Type)
	if err != nil {
		return nil, 0, err
	}
	if !counted { // what matches is counted by reading it
		return m.filtered(ctx, f, math.MaxInt64)
	}
	if int64(f.Offset) >= most {
		return []HistoryEntry{}, most, nil
	}
	page, _, err := m.filtered(ctx, f, min(most, int64(f.Offset+f.Limit)))
	return page, most, err
}

// historyPage is how many entries are read at once.
const historyPage = 200

// line is one currency's entries, read backwards.
type line struct {
	asset  ledger.Asset
	before int64 // entries from here on were read
	buf    []ledger.Entry
}

// merge walks the entries of several currencies, newest first.
type merge struct {
	store   storage.Store
	p       storage.Partition
	account ledger.Account
	lines   []line
}

// next is the newest entry not given yet; ok is false at the end.
func (m *merge) next(ctx context.Context) (e ledger.Entry, ok bool, err error) {
	best := -1
	for i := range m.lines {
		l := &m.lines[i]
		if len(l.buf) == 0 && l.before > 1 {
			if l.buf, err = m.store.Entries(ctx, m.p, m.account, l.asset, l.before, historyPage); err != nil {
				return e, false, err
			}
			if len(l.buf) > 0 {
				l.before = l.buf[len(l.buf)-1].Seq
			} else {
				l.before = 0
			}
		}
		if len(l.buf) > 0 && (best < 0 || later(&l.buf[0], &m.lines[best].buf[0])) {
			best = i
		}
	}
	if best < 0 {
		return e, false, nil
	}
	l := &m.lines[best]
	e, l.buf = l.buf[0], l.buf[1:]
	return e, true, nil
}

// later orders entries of different currencies: by time, then by currency.
func later(a, b *ledger.Entry) bool {
	return cmp.Or(a.At.Compare(b.At), -cmp.Compare(a.Asset, b.Asset)) > 0
}

// skew is by how much the times of entries may be out of order in one line: processes decide by their
// own clocks.
const skew = time.Hour

// skip passes the newest n entries, which there are, and reads few of them: it returns how many are
// left to pass. Of k lines it looks at the entries n/k places back. What a line has newer than these in
// all other lines has fewer than n entries before it, so it is passed: half of n/k at once.
func (m *merge) skip(ctx context.Context, n int64) (left int64, err error) {
	for {
		m.lines = slices.DeleteFunc(m.lines, func(l line) bool { return l.before <= 1 })
		k := int64(len(m.lines))
		switch {
		case k == 0 || n == 0:
			return n, nil
		case k == 1:
			m.lines[0].before -= n
			return 0, nil
		case n < 8*k*k*historyPage: // to read them costs no more
			return n, nil
		}
		step := n / k
		near, far := make([]time.Time, k), make([]time.Time, k) // zero: the line has not as many
		for i := range m.lines {
			if near[i], err = m.at(ctx, i, step/2); err != nil {
				return n, err
			}
			if far[i], err = m.at(ctx, i, step); err != nil {
				return n, err
			}
		}
		passed := false
		for i := range near {
			newer := !near[i].IsZero()
			for j := range far {
				newer = newer && (i == j || near[i].After(far[j].Add(skew)))
			}
			if newer {
				m.lines[i].before -= step / 2
				n -= step / 2
				passed = true
			}
		}
		if !passed {
			return n, nil
		}
	}
}

// at is the time of the entry so many places back in a line, zero where it has not as many.
func (m *merge) at(ctx context.Context, i int, back int64) (time.Time, error) {
	l := &m.lines[i]
	if l.before <= back {
		return time.Time{}, nil
	}
	got, err := m.store.Entries(ctx, m.p, m.account, l.asset, l.before-back+1, 1)
	if err != nil || len(got) == 0 {
		return time.Time{}, err
	}
	return got[0].At, nil
}

func (m *merge) page(ctx context.Context, f HistoryFilter) ([]HistoryEntry, error) {
	out := []HistoryEntry{}
	skip, err := m.skip(ctx, int64(f.Offset))
	if err != nil {
		return out, err
	}
	for len(out) < f.Limit {
		e, ok, err := m.next(ctx)
		if err != nil || !ok {
			return out, err
		}
		if skip > 0 {
			skip--
			continue
		}
		out = append(out, shown(&e))
	}
	return out, nil
}

// filtered reads entries until so many were of the type, or to the end.
func (m *merge) filtered(ctx context.Context, f HistoryFilter, most int64) ([]HistoryEntry, int64, error) {
	out, total := []HistoryEntry{}, int64(0)
	for total < most {
		e, ok, err := m.next(ctx)
		if err != nil || !ok {
			return out, total, err
		}
		if e.Shown() != f.Type {
			continue
		}
		if total >= int64(f.Offset) && len(out) < f.Limit {
			out = append(out, shown(&e))
		}
		total++
	}
	return out, total, nil
}

func shown(e *ledger.Entry) HistoryEntry {
	return HistoryEntry{
		At: e.At, Currency: string(e.Asset), Type: e.Shown(), Amount: e.Delta, BalanceAfter: e.After, Tx: e.Tx, Ref: e.Ref,
	}
}
