package cryptopay

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// looks is how often a difference is looked at again while its rows change. A difference that is
// still there at the last look is reported.
const looks = 20

// object is what postings bear the id of: its kind, and the id.
type object = [2]string

// statement tells what the rows of one table state: how much was posted to wallets for each.
type statement struct {
	kind    string
	table   *storage.Table
	counted *tally.Tally // of the counters of these rows, nil = they are not counted
	stated  func(storage.Row) ledger.Amount
}

var statements = []statement{
	{ofPayment, payment.Payments.Table, payment.Tally, func(row storage.Row) ledger.Amount { return payment.Payments.Value(row).Net }},
	{ofDeposit, payment.Deposits.Table, payment.SuspenseTally, func(row storage.Row) ledger.Amount {
		if v := payment.Deposits.Value(row); v.Booking == payment.Resolved {
			return v.Amount
		}
		return 0
	}},
	{ofWithdrawal, withdrawal.Withdrawals.Table, withdrawal.Tally, func(row storage.Row) ledger.Amount {
		if v := withdrawal.Withdrawals.Value(row); v.Status == withdrawal.Completed {
			return -v.Requested
		}
		return 0
	}},
	{ofTransfer, wallet.TransferRows.Table, wallet.Tally, func(row storage.Row) ledger.Amount {
		if v := wallet.TransferRows.Value(row); v.Status == wallet.TransferCompleted {
			return -v.Amount
		}
		return 0
	}},
	{ofHouse, house.Payments.Table, nil, func(row storage.Row) ledger.Amount {
		if v := house.Payments.Value(row); v.Status == house.Completed && !v.ToCold() { // what goes there has no legs
			return -v.Amount
		}
		return 0
	}},
}

// journal sums up a tenant's entries by the object that they name.
type journal struct {
	p    storage.Partition
	sums postings
	read map[line]int64 // Seq of the newest entry that was read
}

// line is one account's history in one asset.
type line struct {
	account ledger.Account
	asset   ledger.Asset
}

// readOn adds the entries behind those that were read.
func (j *journal) readOn(ctx context.Context, s storage.Store) error {
	balances, err := s.Balances(ctx, j.p)
	if err != nil {
		return err
	}
	for _, b := range balances {
		l := line{b.Account, b.Asset}
		for before := b.Seq + 1; before-1 > j.read[l]; {
			list, err := s.Entries(ctx, j.p, b.Account, b.Asset, before, int(min(page, before-1-j.read[l])))
			if err != nil {
				return err
			}
			for _, e := range list {
				if err := j.sums.add(e); err != nil {
					return err
				}
			}
			if len(list) == 0 {
				break
			}
			before = list[len(list)-1].Seq
		}
		j.read[l] = b.Seq
	}
	return nil
}

// explain compares every row with the postings that bear its id, and counts the row. Others may
// post while it reads, so it looks at each difference again.
func (a *App) explain(ctx context.Context, j *journal, book *tally.Book) (out []Unexplained, err error) {
	var unread storage.RowErrors
	rows := func(t *storage.Table, visit func(storage.Row)) error {
		return unread.Take(each(ctx, a.cfg.Store, storage.Query{Table: t, Partition: j.p}, func(row storage.Row) error {
			visit(row)
			return nil
		}))
	}
	suspects := map[object]bool{}
	for _, of := range statements {
		err := rows(of.table, func(row storage.Row) {
			if of.counted != nil {
				book.Row(of.counted, row)
			}
			k := object{of.kind, row.ID}
			if j.sums[k] != of.stated(row) {
				suspects[k] = true
				return
			}
			delete(j.sums, k)
		})
		if err != nil {
			return nil, err
		}
	}
	for k := range j.sums {
		if k[0] != ofApart {
			suspects[k] = true
		}
	}
	for _, t := range []*tally.Tally{webhook.Tally, refund.Tally} { // counted, and no money moves by them
		if err := rows(t.Table, func(row storage.Row) { book.Row(t, row) }); err != nil {
			return nil, err
		}
	}
	out, err = a.unexplained(ctx, j, suspects)
	if err = unread.Take(err); err != nil {
		return out, err
	}
	cold, err := a.unexplainedCold(ctx, j)
	if err = unread.Take(err); err != nil {
		return out, err
	}
	out = append(out, cold...)
	slices.SortFunc(out, func(x, y Unexplained) int { return strings.Compare(x.Kind+x.ID, y.Kind+y.ID) })
	return out, unread.With(nil)
}

// unexplained returns the suspects whose row states something else than was posted for them. A look
// decides about a suspect if its row has not changed while the postings were read; the last look
// decides about all.
func (a *App) unexplained(ctx context.Context, j *journal, suspects map[object]bool) (out []Unexplained, err error) {
	if len(suspects) == 0 {
		return nil, nil
	}
	var unread storage.RowErrors
	before, err := a.readStated(ctx, j.p, suspects)
	if err = unread.Take(err); err != nil {
		return nil, err
	}
	for look := range looks {
		if err := j.readOn(ctx, a.cfg.Store); err != nil {
			return out, err
		}
		after, err := a.readStated(ctx, j.p, suspects)
		if err = unread.Take(err); err != nil {
			return out, err
		}
		for k := range suspects {
			now := after[k]
			if now.version != before[k].version && look < looks-1 {
				continue
			}
			delete(suspects, k)
			posted, known := j.sums[k]
			if posted != now.amount || known && now.version == 0 { // postings without a row, also if they add up to 0
				out = append(out, Unexplained{k[0], k[1], posted, now.amount})
			}
		}
		if before = after; len(suspects) == 0 {
			break
		}
	}
	return out, unread.With(nil)
}

// statedAt is what a row states at one of its versions. Both are 0 if there is no row.
type statedAt struct {
	version int64
	amount  ledger.Amount
}

// readStated reads what the rows of objects state. It deletes the objects whose row cannot be read:
// nothing is known of them.
func (a *App) readStated(ctx context.Context, p storage.Partition, of map[object]bool) (map[object]statedAt, error) {
	out := map[object]statedAt{}
	var unread storage.RowErrors
	for _, s := range statements {
		var ids []string
		for k := range of {
			if k[0] == s.kind {
				ids = append(ids, k[1])
			}
		}
		slices.Sort(ids)
		for ids := range slices.Chunk(ids, page) {
			rows, err := byKeys(ctx, a.cfg.Store, s.table, storage.Keys(p, ids...))
			if err = unread.Take(err); err != nil {
				return nil, err
			}
			for _, row := range rows {
				out[object{s.kind, row.ID}] = statedAt{row.Version, s.stated(row)}
			}
		}
		for _, r := range unread {
			delete(of, object{s.kind, r.ID})
		}
	}
	return out, unread.With(nil)
}

// unexplainedCold compares the notes of coins at cold addresses with what the house moved there and
// what came back, and top-ups that are held apart with their postings. If the notes change while it
// reads, it looks again.
func (a *App) unexplainedCold(ctx context.Context, j *journal) (out []Unexplained, err error) {
	var unread storage.RowErrors
	before, err := a.coldNotes(ctx, j.p)
	for look := range looks {
		if err = unread.Take(err); err != nil {
			return nil, err
		}
		moved, err := a.movedToCold(ctx, j.p)
		if err = unread.Take(err); err != nil {
			return nil, err
		}
		if len(before.against(j.sums, moved)) == 0 {
			break
		}
		if err := j.readOn(ctx, a.cfg.Store); err != nil {
			return nil, err
		}
		after, err := a.coldNotes(ctx, j.p)
		if err = unread.Take(err); err != nil {
			return nil, err
		}
		if before.equal(after) || look == looks-1 {
			return before.against(j.sums, moved), unread.With(nil)
		}
		before = after
	}
	return nil, unread.With(nil)
}

// coldNotes are treasury.ColdBooks.
type coldNotes struct{ noted, back, apart map[string]ledger.Amount }

func (a *App) coldNotes(ctx context.Context, p storage.Partition) (n coldNotes, err error) {
	n.noted, n.back, n.apart, err = treasury.ColdBooks(ctx, a.cfg.Store, p)
	return n, err
}

func (n coldNotes) equal(o coldNotes) bool {
	return maps.Equal(n.noted, o.noted) && maps.Equal(n.back, o.back) && maps.Equal(n.apart, o.apart)
}

// against returns the differences between the notes and what was posted for held top-ups, and what
// was moved to cold addresses by currency.
func (n coldNotes) against(sums postings, moved map[string]ledger.Amount) (out []Unexplained) {
	check := func(kind, id string, posted, stated ledger.Amount) {
		if posted != stated {
			out = append(out, Unexplained{kind, id, posted, stated})
		}
	}
	for currency, amount := range moved {
		check(ofCold, currency, n.noted[currency], amount-n.back[currency])
	}
	for currency, amount := range n.noted {
		if _, known := moved[currency]; !known {
			check(ofCold, currency, amount, 0)
		}
	}
	for id, amount := range n.apart {
		check(ofApart, id, sums[object{ofApart, id}], amount)
	}
	for k, posted := range sums {
		if _, known := n.apart[k[1]]; k[0] == ofApart && !known {
			check(ofApart, k[1], posted, 0)
		}
	}
	return out
}

// movedToCold adds up what payments of the house have moved to cold addresses, by currency.
func (a *App) movedToCold(ctx context.Context, p storage.Partition) (map[string]ledger.Amount, error) {
	out := map[string]ledger.Amount{}
	return out, each(ctx, a.cfg.Store, storage.Query{Table: house.Payments.Table, Partition: p}, func(row storage.Row) (err error) {
		if v := house.Payments.Value(row); v.Status == house.Completed && v.ToCold() {
			out[v.Currency], err = out[v.Currency].Add(v.Amount)
		}
		return err
	})
}

// holds compares what each account holds with the withdrawals, transfers and payments of the house
// that hold it. A look counts for an account if their rows have not changed while the balance was
// read. One of them may have begun and ended in between, so several looks must find the same
// difference; or it is still there at the last.
func (a *App) holds(ctx context.Context, p storage.Partition) (out []HoldMismatch, err error) {
	var unread storage.RowErrors
	before, err := a.holdings(ctx, p)
	if err = unread.Take(err); err != nil {
		return nil, err
	}
	type suspect struct {
		differs uint64 // held less owed, modulo 2^64: it is only compared
		times   int    // in a row that a look found this difference
	}
	var suspects map[line]suspect
	for look := range looks {
		balances, err := a.cfg.Store.Balances(ctx, p)
		if err != nil {
			return nil, err
		}
		now := compared(balances, before)
		if suspects == nil {
			suspects = map[line]suspect{}
			for l, m := range now {
				if m.Held != m.Owed {
					suspects[l] = suspect{}
				}
			}
		}
		if len(suspects) == 0 {
			break
		}
		after, err := a.holdings(ctx, p)
		if err = unread.Take(err); err != nil {
			return nil, err
		}
		for l, s := range suspects {
			m := now[l]
			differs := uint64(m.Held) - uint64(m.Owed)
			switch still := slices.Equal(before[l].by, after[l].by); {
			case still && differs == 0:
				delete(suspects, l)
				continue
			case still && differs == s.differs:
				s.times++
			case still:
				s = suspect{differs: differs, times: 1}
			}
			if s.times < alike && (look < looks-1 || differs == 0) {
				suspects[l] = s
				continue
			}
			out = append(out, m)
			delete(suspects, l)
		}
		before = after
	}
	slices.SortFunc(out, func(x, y HoldMismatch) int {
		return strings.Compare(string(x.Account)+string(x.Asset), string(y.Account)+string(y.Asset))
	})
	return out, unread.With(nil)
}

// alike is how many looks must find the same.
const alike = 3

// holding is what rows hold of an account together, and the rows.
type holding struct {
	owed ledger.Amount
	by   []holder
}

type holder struct {
	id      string
	version int64
}

// holdings reads what holds each account.
func (a *App) holdings(ctx context.Context, p storage.Partition) (map[line]holding, error) {
	out := map[line]holding{}
	add := func(row storage.Row, account ledger.Account, asset string, amount ledger.Amount) (err error) {
		l := line{account, ledger.Asset(asset)}
		h := out[l]
		h.owed, err = h.owed.Add(amount)
		h.by = append(h.by, holder{row.ID, row.Version})
		out[l] = h
		return err
	}
	var unread storage.RowErrors
	for _, of := range []struct {
		table *storage.Table
		open  any // the states in which it holds
		add   func(storage.Row) error
	}{
		{withdrawal.Withdrawals.Table, []withdrawal.Status{withdrawal.Pending, withdrawal.Processing}, func(row storage.Row) error {
			w := withdrawal.Withdrawals.Value(row)
			return add(row, ledger.Wallet(w.Wallet), w.Currency, w.Requested)
		}},
		{wallet.TransferRows.Table, []wallet.TransferStatus{wallet.TransferPending}, func(row storage.Row) error {
			t := wallet.TransferRows.Value(row)
			return add(row, ledger.Wallet(t.Source()), t.Currency, t.Amount)
		}},
		{house.Payments.Table, []house.Status{house.Pending, house.Processing}, func(row storage.Row) error {
			v := house.Payments.Value(row)
			if v.ToCold() {
				return nil
			}
			return add(row, v.Source, v.Currency, v.Amount)
		}},
	} {
		q := storage.Query{Table: of.table, Partition: p, Where: []storage.Cond{{Column: "status", Op: storage.In, Value: of.open}}}
		if err := unread.Take(each(ctx, a.cfg.Store, q, of.add)); err != nil {
			return nil, err
		}
	}
	return out, unread.With(nil)
}

// compared puts what each account holds beside what rows hold of it.
func compared(balances []ledger.Balance, holdings map[line]holding) map[line]HoldMismatch {
	out := map[line]HoldMismatch{}
	for l, h := range holdings {
		out[l] = HoldMismatch{l.account, l.asset, 0, h.owed}
	}
	for _, b := range balances {
		l := line{b.Account, b.Asset}
		out[l] = HoldMismatch{b.Account, b.Asset, b.Held, holdings[l].owed}
	}
	return out
}
