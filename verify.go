package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/seal"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// Report is what Verify found about one tenant.
type Report struct {
	Tenant string // "" = what was found in audit logs, directories of addresses and nonces, which are of no tenant; there is none where nothing was
	Ledger ledger.Report
	// Holds are wallets whose held amount is not what live withdrawals and
	// pending transfers hold.
	Holds []HoldMismatch
	// Unexplained are payments, withdrawals, transfers and deposits resolved out of
	// suspense whose postings are not what their own rows say, and postings that
	// belong to none of them.
	Unexplained []Unexplained
	// Contradictions are withdrawals and their orders, hot and change addresses,
	// addresses of payments that may still be paid, forwardings under way and webhook
	// secrets whose stored rows contradict each other or the keys, and entries of the audit log
	// that do not follow from each other: somebody edited them. Those that are gone, as other rows
	// name them, were deleted.
	Contradictions []Contradiction
	// Gas are gas currencies of which more or less is set aside than what is in
	// flight may cost.
	Gas []GasMismatch
	// Counters are those that are not what the rows come to: lists and statistics show
	// something else than there is. See App.Recount.
	Counters []tally.Difference
	// Seals are what the journal's seals prove, and entries that are not as they were
	// sealed.
	Seals seal.Proof
	// Unreadable are rows that cannot be decoded: somebody edited them, or the disk has.
	// Nothing is proved of them, and what depends on one may be reported, too.
	Unreadable storage.RowErrors
}

// Unexplained is a difference between the books and what they are about.
type Unexplained struct {
	Kind   string // "payment", "deposit", "withdrawal" or "transfer"
	ID     string
	Posted ledger.Amount // on wallets and their receivables
	Stated ledger.Amount // by the row itself; 0 where there is none
}

// Contradiction is an object whose stored rows do not agree.
type Contradiction struct {
	Kind   string // "withdrawal", "order", "payment", "permanent address", "address", "nonce", "sweep", "webhook", "listing", "audit log", or one of Config.Verify
	ID     string // of an address: network/address, or network/number of one that is gone
	Detail string // what does not agree
}

// HoldMismatch is a hold without an owner, or an owner without its hold.
type HoldMismatch struct {
	Account ledger.Account
	Asset   ledger.Asset
	Held    ledger.Amount // in the ledger
	Owed    ledger.Amount // by live withdrawals and pending transfers
}

// GasMismatch is a gas float that is not the sum of its open reservations.
type GasMismatch struct {
	Asset    ledger.Asset
	Reserved ledger.Amount // by the float
	Owed     ledger.Amount // by open reservations
	Count    int64         // of reservations, by the float
	Open     int64         // reservations
}

// Sound reports whether nothing was found.
func (r *Report) Sound() bool {
	return len(r.Ledger.Findings)+len(r.Holds)+len(r.Unexplained)+len(r.Contradictions)+len(r.Gas)+len(r.Counters)+len(r.Seals.Findings)+len(r.Unreadable) == 0
}

const page = 500

// Verify proves every tenant's books from what is stored: see ledger.Verify for
// the postings; that each hold has a live owner and each live owner its hold;
// that every payment, withdrawal and transfer is explained by its postings and
// they by it; that the rows of withdrawals agree, and that our own addresses are those of
// our keys; that what is set aside for gas is what open reservations say; that counters are what there is to count; and that
// every sealed entry of the journal is what it was when it was sealed, by a process
// with one of Config.Keys (see storage/seal); and that the audit logs are whole: see Operate.AuditLog.
// A row that cannot be decoded is named under Unreadable, and all others are proved.
// Others may write meanwhile: Verify looks at each difference again, and reports one whose rows do
// not change while it looks. It also reports one whose rows change at each of twenty looks. If
// nothing is wrong there, the next Verify does not find it.
func (a *App) Verify(ctx context.Context) ([]Report, error) {
	var out []Report
	var v Verified
	var tenants int
	verify := func(tenant string) error {
		r, err := a.VerifyTenant(ctx, tenant)
		if err != nil {
			return fmt.Errorf("cryptopay: verifying tenant %s: %w", tenant, err)
		}
		out = append(out, r)
		if tenants++; !r.Sound() {
			v.Unsound++
		}
		return nil
	}
	var unread storage.RowErrors // also they are tenants
	err := unread.Take(each(ctx, a.cfg.Store, storage.Query{Table: wallet.TenantRows.Table, Partition: storage.System}, func(row storage.Row) error {
		return verify(row.ID)
	}))
	for _, r := range unread {
		if err == nil {
			err = verify(r.ID)
		}
	}
	if err == nil && a.Addresses != nil {
		var r Report
		if r, err = a.verifyHouse(ctx); !r.Sound() {
			out = append(out, r)
			v.Unsound++
		}
	}
	if err == nil && a.cfg.Clock != nil { // VerifyStore has none
		v.At, v.Tenants = a.cfg.Clock.Now(), tenants
		a.record.verify(v)
	}
	return out, err
}

// VerifyTenant proves one tenant's books; see Verify.
func (a *App) VerifyTenant(ctx context.Context, tenant string) (Report, error) {
	p := storage.Tenant(tenant)
	balances, err := a.cfg.Store.Balances(ctx, p)
	if err != nil {
		return Report{}, err
	}
	r, j, book := Report{Tenant: tenant}, &journal{p, postings{}, map[line]int64{}}, &tally.Book{}
	r.Ledger, err = ledger.Verify(ledger.Books{
		Live: true,
		Balances: func(yield func(ledger.Balance, error) bool) {
			for _, b := range balances {
				if !yield(b, nil) {
					return
				}
			}
		},
		Entries: j.watch(book, r.readable(seal.Prove(ctx, a.cfg.Store, p, balances, a.sealKeys(), &r.Seals))),
	})
	if err != nil {
		return r, err
	}
	for _, look := range []func() error{
		func() (err error) { r.Holds, err = a.holds(ctx, p); return err },
		func() (err error) { r.Unexplained, err = a.explain(ctx, j, book); return err },
		func() (err error) { r.Contradictions, err = a.lasting(ctx, p, tenant); return err },
		func() (err error) { r.Gas, err = a.gas(ctx, p); return err },
		func() (err error) { r.Counters, err = book.Verify(ctx, a.cfg.Store, p, allTallies()...); return err },
		func() error {
			_, err := a.cfg.Store.Rows(ctx, wallet.TenantRows.Table, storage.Keys(storage.System, tenant)...)
			return err
		},
	} {
		err := r.Unreadable.Take(look())
		if err != nil && !errors.Is(err, tally.ErrMoving) { // that proves nothing, and nothing is wrong
			return r, err
		}
	}
	return r, nil
}

// lasting returns the contradictions that several looks find, one after the other. What others write
// between two reads of one look contradicts once.
func (a *App) lasting(ctx context.Context, p storage.Partition, tenant string) (found []Contradiction, err error) {
	var unread storage.RowErrors
	for look := range alike {
		now, err := a.contradictions(ctx, p)
		if err = unread.Take(err); err == nil && a.cfg.Verify != nil {
			var more []Contradiction
			more, err = a.cfg.Verify(ctx, tenant)
			now, err = append(now, more...), unread.Take(err)
		}
		if err != nil {
			return found, err
		}
		if look > 0 {
			before := map[[2]string]bool{}
			for _, c := range found {
				before[[2]string{c.Kind, c.ID}] = true
			}
			now = slices.DeleteFunc(now, func(c Contradiction) bool { return !before[[2]string{c.Kind, c.ID}] })
		}
		if found = now; len(found) == 0 {
			break
		}
	}
	return found, unread.With(nil)
}

// readable passes entries on, and takes what could not be read beside them to the report.
func (r *Report) readable(entries iter.Seq2[ledger.Entry, error]) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for e, err := range entries {
			unread := len(r.Unreadable)
			if err = r.Unreadable.Take(err); err == nil && len(r.Unreadable) > unread {
				continue // behind the entries
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// postings sums up what the books say was moved for each payment, withdrawal and
// transfer, by kind and id.
type postings map[[2]string]ledger.Amount

const (
	ofPayment    = "payment"
	ofPermanent  = "permanent address"
	ofWithdrawal = "withdrawal"
	ofTransfer   = "transfer"
	ofHouse      = "house payment"
	ofRefill     = "refill proposal"
	ofDeposit    = "deposit"     // one that a person gave to a wallet, out of suspense
	ofCold       = "cold coins"  // by currency: the note of what lies at cold addresses
	ofApart      = "held top-up" // by transfer: what may have come back from there
)

// watch passes entries on, counts them, and sums up those of wallets and their receivables.
func (j *journal) watch(book *tally.Book, entries iter.Seq2[ledger.Entry, error]) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for e, err := range entries {
			if err == nil {
				book.Entry(&e)
				j.read[line{e.Account, e.Asset}] = e.Seq // maybe above its balance: a new seal covers entries that are younger
				err = j.sums.add(e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s postings) add(e ledger.Entry) (err error) {
	what, _, _ := strings.Cut(e.Tx, "/")
	_, wallet := e.Account.WalletID()
	var kind string
	switch {
	case what == "settle" && wallet && e.Kind == ledger.KindWithdrawal:
		kind = ofWithdrawal
	case what == "settle" && wallet && e.Delta < 0:
		kind = ofTransfer
	case what == "settle" && e.Account.House() && house.Is(e.Ref):
		kind = ofHouse
	case strings.HasPrefix(what, "apart") && e.Account == ledger.Suspense:
		kind = ofApart
	case (what == "resolve" || what == "reverse" || what == "recover") && (wallet || e.Account.Owed()) && strings.Contains(e.Ref, "/"):
		kind = ofDeposit // its id begins with its network; a payment's has no "/"
	case (what == "credit" || what == "resolve" || what == "reverse" || what == "recover") && (wallet || e.Account.Owed()):
		kind = ofPayment
	default:
		return nil
	}
	k := [2]string{kind, e.Ref}
	s[k], err = s[k].Add(e.Delta)
	return err
}

// gas compares what is set aside for network fees with what is reserved. Floats are read
// before and after: one that moved meanwhile proves nothing, and is looked at again.
func (a *App) gas(ctx context.Context, p storage.Partition) (out []GasMismatch, err error) {
	before, err := a.floats(ctx, p)
	for range looks {
		if err != nil {
			break
		}
		var after map[string]storage.Row
		out, err = a.gasAgainst(ctx, p, before)
		if err == nil && len(out) > 0 {
			after, err = a.floats(ctx, p)
		}
		if err != nil || len(out) == 0 || maps.EqualFunc(before, after, func(x, y storage.Row) bool { return x.Version == y.Version }) {
			break
		}
		before = after
	}
	return out, err
}

// floats reads a tenant's gas floats, by asset.
func (a *App) floats(ctx context.Context, p storage.Partition) (map[string]storage.Row, error) {
	out := map[string]storage.Row{}
	return out, each(ctx, a.cfg.Store, storage.Query{Table: treasury.GasFloats.Table, Partition: p}, func(row storage.Row) error {
		out[row.ID] = row
		return nil
	})
}

func (a *App) gasAgainst(ctx context.Context, p storage.Partition, floats map[string]storage.Row) ([]GasMismatch, error) {
	found := map[ledger.Asset]*GasMismatch{}
	of := func(asset string) *GasMismatch {
		k := ledger.Asset(asset)
		if found[k] == nil {
			found[k] = &GasMismatch{Asset: k}
		}
		return found[k]
	}
	for asset, row := range floats {
		m, float := of(asset), treasury.GasFloats.Value(row)
		m.Reserved, m.Count = float.Reserved, float.Count
	}
	err := each(ctx, a.cfg.Store, storage.Query{
		Table: treasury.Reservations.Table, Partition: p, Where: []storage.Cond{{Column: "open", Op: storage.Eq, Value: true}},
	}, func(row storage.Row) (err error) {
		r := treasury.Reservations.Value(row)
		m := of(r.Asset)
		m.Open++
		m.Owed, err = m.Owed.Add(r.Amount)
		return err
	})
	var out []GasMismatch
	for _, k := range slices.Sorted(maps.Keys(found)) {
		if m := *found[k]; m.Reserved != m.Owed || m.Count != m.Open {
			out = append(out, m)
		}
	}
	return out, err
}

// each calls f with all rows of a query by id. It goes on past rows that cannot be read,
// here or by f, and joins their *storage.RowErrors to one error at the end.
func each(ctx context.Context, s storage.Store, q storage.Query, f func(storage.Row) error) error {
	q.Limit = page
	return storage.Pages(ctx, s, q, func(rows []storage.Row) error {
		var unread storage.RowErrors
		for _, row := range rows {
			if err := unread.Take(f(row)); err != nil {
				return unread.With(err)
			}
		}
		return unread.With(nil)
	})
}

// byKeys reads rows. It leaves out those that cannot be read, and joins their
// *storage.RowErrors.
func byKeys(ctx context.Context, s storage.Store, t *storage.Table, keys []storage.Key) ([]storage.Row, error) {
	rows, err := s.Rows(ctx, t, keys...)
	var unread storage.RowErrors
	if other := unread.Take(err); len(unread) == 0 || other != nil || len(keys) == 1 {
		return rows, err
	}
	first, err := byKeys(ctx, s, t, keys[:len(keys)/2])
	second, more := byKeys(ctx, s, t, keys[len(keys)/2:])
	return append(first, second...), errors.Join(err, more)
}
