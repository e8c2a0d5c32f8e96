package wallet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Master is the wallet id of every tenant's master account. It has number 0 and
// cannot be renamed or deleted.
const Master = "master"

// Wallet is an account of a tenant: the master account or a sub-account.
type Wallet struct {
	ID string `db:"-"` // the wallet id
	// Replayed says that Create answered from an earlier request with the same Key.
	Replayed bool `db:"-" json:"-"`

	Number     int64  `db:"number"` // 0 = master, 1, 2, 3 …
	Name       string `db:"name"`
	ExternalID string `db:"external_id"`
	// Key keeps external ids unique among the open wallets.
	Key       string    `db:"external_key"`
	Closed    bool      `db:"closed"`
	CreatedAt time.Time `db:"created_at"`
	UpdatedAt time.Time `db:"updated_at"`
}

// WalletRows is the table of wallets, in tenants' partitions, by wallet id.
var WalletRows = storage.NewTable[Wallet]("wallets",
	storage.Unique("number"), storage.Unique("external_key"), storage.Index("closed", "number"))

// sequence is the last number given out, in a row of its own.
type sequence struct {
	Last int64 `db:"last_number"`
}

var sequences = storage.NewTable[sequence]("wallet_sequences")

const sequenceID = "wallets"

// openKey and closedKey cannot meet, whatever a merchant writes.
func openKey(externalID string) string { return "=" + externalID }
func closedKey(id string) string       { return "-" + id }

func (s *Service) makeMaster(ctx context.Context, tenant string) error {
	p, now := storage.Tenant(tenant), s.now()
	return storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		_, _, ok, err := WalletRows.One(ctx, s.c.Store, p, Master)
		if err != nil || ok {
			return storage.Change{}, err
		}
		c := storage.Change{ID: "master/" + tenant, Partition: p, Put: []storage.Row{
			WalletRows.Row(Master, 0, time.Time{}, Wallet{Name: "Master", Key: closedKey(Master), CreatedAt: now, UpdatedAt: now}),
		}}
		marks, err := s.c.Marks(ctx)
		c.Put = append(c.Put, marks...)
		return c, err
	})
}

// CreateInput is a request for a sub-account. Name and ExternalID are required.
type CreateInput struct {
	Name       string
	ExternalID string // the merchant's own; unique among the open wallets
	// Key is the caller's own of this request: sent again with the same content within
	// storage.OnceFor it makes nothing, and answers the first result, Replayed. Defaults to
	// none: each request is a new one. At most storage.MaxOnceKey bytes.
	Key string
}

// Create makes a sub-account. Errors: *InvalidError, ErrExternalID, ErrNoTenant,
// and those of a Key.
func (s *Service) Create(ctx context.Context, tenant string, in CreateInput) (Wallet, error) {
	p := storage.Tenant(tenant)
	once, err := storage.OnceOf(ctx, in.Key, in)
	if err != nil {
		return Wallet{}, err
	}
	leave, err := s.inFlight.Enter(p, once)
	defer leave()
	if err != nil {
		return Wallet{}, err
	}
	if first, replay, err := once.Find(ctx, s.c.Store, p, s.c.Now()); err != nil || replay {
		return replayedWallet(once, first, err)
	}
	if err := checkWallet(in.Name, in.ExternalID); err != nil {
		return Wallet{}, err
	}
	if _, err := s.Tenant(ctx, tenant); err != nil {
		return Wallet{}, err
	}
	turn := s.turn(tenant)
	turn.Lock()
	defer turn.Unlock()
	return s.commitWallet(ctx, p, in, once)
}

func (s *Service) commitWallet(ctx context.Context, p storage.Partition, in CreateInput, once *storage.Once) (Wallet, error) {
	w := Wallet{ID: s.c.NewID(), Name: in.Name, ExternalID: in.ExternalID, Key: openKey(in.ExternalID)}
	first := true
	err := storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		if !first {
			if stored, _, err := s.load(ctx, p, w.ID); !errors.Is(err, ErrNotFound) {
				w = stored
				return storage.Change{}, err
			}
		}
		first = false
		now := s.now()
		response, replay, err := once.Find(ctx, s.c.Store, p, now)
		if err != nil || replay {
			if err == nil {
				w, err = replayedWallet(once, response, nil)
			}
			return storage.Change{}, err
		}
		last, row, _, err := sequences.One(ctx, s.c.Store, p, sequenceID)
		if err != nil {
			return storage.Change{}, err
		}
		if err := s.room(ctx, p, last.Last); err != nil {
			return storage.Change{}, err
		}
		w.Number, w.CreatedAt, w.UpdatedAt = last.Last+1, now, now
		c := storage.Change{ID: s.c.NewID(), Partition: p, Put: []storage.Row{
			WalletRows.Row(w.ID, 0, time.Time{}, w),
			sequences.Row(sequenceID, row.Version, time.Time{}, sequence{Last: w.Number}),
		}}
		return c, once.AddTo(&c, now, w)
	})
	if taken := new(storage.DuplicateError); errors.As(err, &taken) && taken.Key == "external_key" {
		return Wallet{}, ErrExternalID
	}
	return w, err
}

// room refuses one sub-account too many, *InvalidError. made is how many the tenant ever
// made: only where that is above the bound are those that are open counted.
func (s *Service) room(ctx context.Context, p storage.Partition, made int64) error {
	most := int64(s.c.MaxWallets)
	if most < 0 || made < most {
		return nil
	}
	open, err := s.c.Store.Count(ctx, storage.Query{Table: WalletRows.Table, Partition: p, Where: openWallets()})
	if err == nil && open >= most {
		bad := &InvalidError{}
		bad.Add("external_id", fmt.Sprintf("is one too many: an account may have %d wallets", most))
		err = bad
	}
	return err
}

// openWallets selects the sub-accounts that are not closed.
func openWallets() []storage.Cond {
	return []storage.Cond{{Column: "closed", Op: storage.Eq, Value: false}, {Column: "number", Op: storage.Gt, Value: int64(0)}}
}

func replayedWallet(once *storage.Once, response []byte, err error) (Wallet, error) {
	var w Wallet
	if err == nil {
		err = once.Decode(response, &w)
	}
	w.Replayed = err == nil
	return w, err
}

// Check says what is wrong with what Create would be given: *InvalidError.
func (s *Service) Check(in CreateInput) error { return checkWallet(in.Name, in.ExternalID) }

func checkWallet(name, externalID string) error {
	bad := &InvalidError{}
	checkName(bad, name)
	if externalID == "" {
		bad.Add("external_id", "is required")
	}
	if externalID == Master {
		bad.Add("external_id", "is reserved")
	}
	bad.AddLong("external_id", externalID, maxExternalID)
	return bad.Err()
}

func checkName(bad *InvalidError, name string) {
	if name == "" {
		bad.Add("name", "is required")
	}
	bad.AddLong("name", name, maxName)
}

// load reads one open wallet by its wallet id; ErrNotFound.
func (s *Service) load(ctx context.Context, p storage.Partition, id string) (Wallet, storage.Row, error) {
	if id == "" || len(id) > maxRef {
		return Wallet{}, storage.Row{}, ErrNotFound
	}
	w, row, ok, err := WalletRows.One(ctx, s.c.Store, p, id)
	if err == nil && (!ok || w.Closed) {
		err = ErrNotFound
	}
	w.ID = id
	return w, row, err
}

// find reads the open wallet whose unique column has a value; ErrNotFound.
func (s *Service) find(ctx context.Context, p storage.Partition, column string, value any) (Wallet, storage.Row, error) {
	return s.open(ctx, unique(p, column, value))
}

func unique(p storage.Partition, column string, value any) storage.Key {
	return storage.Key{Partition: p, Unique: []string{column}, Values: []any{value}}
}

// open reads the first open wallet that has one of these keys, in one look-up;
// ErrNotFound.
func (s *Service) open(ctx context.Context, keys ...storage.Key) (Wallet, storage.Row, error) {
	rows, err := s.c.Store.Rows(ctx, WalletRows.Table, keys...)
	if err != nil {
		return Wallet{}, storage.Row{}, err
	}
	for _, r := range rows {
		if w := WalletRows.Value(r); !w.Closed {
			w.ID = r.ID
			return w, r, nil
		}
	}
	return Wallet{}, storage.Row{}, ErrNotFound
}

// Get finds a sub-account as paths name it: by wallet id or number. The master
// account is Master or "0".
func (s *Service) Get(ctx context.Context, tenant, id string) (Wallet, error) {
	w, _, err := s.byPath(ctx, tenant, id)
	return w, err
}

func (s *Service) byPath(ctx context.Context, tenant, id string) (Wallet, storage.Row, error) {
	p := storage.Tenant(tenant)
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && strconv.FormatInt(n, 10) == id {
		return s.find(ctx, p, "number", n)
	}
	return s.load(ctx, p, id)
}

// Find finds a sub-account by wallet id or, where that is "", by external id.
func (s *Service) Find(ctx context.Context, tenant, walletID, externalID string) (Wallet, error) {
	p := storage.Tenant(tenant)
	switch {
	case walletID != "":
		w, _, err := s.byRef(ctx, p, walletID)
		return w, err
	case externalID != "":
		w, _, err := s.find(ctx, p, "external_key", openKey(externalID))
		return w, err
	}
	return Wallet{}, &InvalidError{Fields: map[string][]string{"wallet_id": {"is required, or external_id"}}}
}

// FindPast is Find for histories: a wallet id also finds a sub-account that was
// deleted.
func (s *Service) FindPast(ctx context.Context, tenant, walletID, externalID string) (Wallet, error) {
	w, err := s.Find(ctx, tenant, walletID, externalID)
	if !errors.Is(err, ErrNotFound) || walletID == "" || walletID == Master || len(walletID) > maxRef {
		return w, err
	}
	w, _, ok, err := WalletRows.One(ctx, s.c.Store, storage.Tenant(tenant), walletID)
	if err == nil && !ok {
		err = ErrNotFound
	}
	w.ID = walletID
	return w, err
}

// byRef takes a wallet id or an external id. The master account has no name from
// outside, and no sub-account can take its id as one: a reference never means
// the one where the other was meant.
func (s *Service) byRef(ctx context.Context, p storage.Partition, ref string) (Wallet, storage.Row, error) {
	keys := []storage.Key{unique(p, "external_key", openKey(ref))}
	if ref != Master && ref != "" && len(ref) <= maxRef {
		keys = append(storage.Keys(p, ref), keys...)
	}
	return s.open(ctx, keys...)
}

// Resolve finds the wallet that a request names by wallet id or external id, ""
// being the master account, and gives the guard that keeps it open: whatever
// posts to it, or promises to, puts the guard into its Change. ErrNotFound.
func (s *Service) Resolve(ctx context.Context, tenant, ref string) (id string, open storage.Guard, err error) {
	p := storage.Tenant(tenant)
	find := s.byRef
	if ref == "" {
		find, ref = s.load, Master
	}
	w, row, err := find(ctx, p, ref)
	if err != nil {
		return "", storage.Guard{}, err
	}
	return w.ID, WalletRows.Guard(w.ID, row.Version), nil
}

// Guard is the guard that a wallet is open, by its wallet id (Master for the
// master account). ErrNotFound where it is closed.
func (s *Service) Guard(ctx context.Context, tenant, id string) (storage.Guard, error) {
	_, row, err := s.load(ctx, storage.Tenant(tenant), id)
	return WalletRows.Guard(id, row.Version), err
}

// List returns sub-accounts by number, and how many there are. limit 0 = all.
func (s *Service) List(ctx context.Context, tenant string, limit, offset int) ([]Wallet, int64, error) {
	q := storage.Query{
		Table: WalletRows.Table, Partition: storage.Tenant(tenant), Order: []storage.Order{{Column: "number"}},
		Where: openWallets(), Limit: limit, Offset: offset,
	}
	total, err := s.c.Store.Count(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	out := []Wallet{}
	take := func(r storage.Row) {
		w := WalletRows.Value(r)
		w.ID = r.ID
		out = append(out, w)
	}
	if limit > 0 {
		rows, err := s.c.Store.Find(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		for _, r := range rows {
			take(r)
		}
		return out, total, nil
	}
	q.Order, q.Offset = nil, 0
	for r, err := range storage.All(ctx, s.c.Store, q) {
		if err != nil {
			return nil, 0, err
		}
		take(r)
	}
	slices.SortFunc(out, func(a, b Wallet) int { return cmp.Compare(a.Number, b.Number) })
	return out[min(max(offset, 0), len(out)):], total, nil
}

// Rename changes the name of a sub-account, found as Get does. *InvalidError,
// ErrNotFound.
func (s *Service) Rename(ctx context.Context, tenant, id, name string) (Wallet, error) {
	bad := &InvalidError{}
	checkName(bad, name)
	if err := bad.Err(); err != nil {
		return Wallet{}, err
	}
	return s.edit(ctx, tenant, id, func(ctx context.Context, w *Wallet, _ *storage.Change) error {
		w.Name = name
		return nil
	})
}

// Delete closes a sub-account whose every balance is zero; its history stays,
// and its external id is free again. ErrNotEmpty, ErrNotFound.
func (s *Service) Delete(ctx context.Context, tenant, id string) error {
	_, err := s.edit(ctx, tenant, id, func(ctx context.Context, w *Wallet, c *storage.Change) error {
		pending, err := s.pending(ctx, tenant, w.ID)
		if err != nil {
			return err
		}
		if pending {
			return ErrNotEmpty
		}
		w.Closed, w.Key = true, closedKey(w.ID)
		c.Empty = []ledger.Account{ledger.Wallet(w.ID), ledger.Receivable(w.ID)}
		return nil
	})
	if full := new(storage.NotEmptyError); errors.As(err, &full) {
		return fmt.Errorf("%w: %w", ErrNotEmpty, err)
	}
	return err
}

// pending reports whether a transfer or something outside still expects to post.
func (s *Service) pending(ctx context.Context, tenant, id string) (bool, error) {
	n, err := s.c.Store.Count(ctx, storage.Query{
		Table: TransferRows.Table, Partition: storage.Tenant(tenant),
		Where: []storage.Cond{
			{Column: "wallet", Op: storage.Eq, Value: id},
			{Column: "status", Op: storage.Eq, Value: TransferPending},
		},
	})
	if err != nil || n > 0 {
		return n > 0, err
	}
	return s.c.Pending(ctx, tenant, id)
}

// edit changes one sub-account.
func (s *Service) edit(ctx context.Context, tenant, id string, f func(context.Context, *Wallet, *storage.Change) error) (Wallet, error) {
	var out Wallet
	err := storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		w, row, err := s.byPath(ctx, tenant, id)
		if err == nil && w.ID == Master {
			err = ErrNotFound
		}
		if err != nil {
			return storage.Change{}, err
		}
		c := storage.Change{ID: s.c.NewID(), Partition: storage.Tenant(tenant)}
		if err := f(ctx, &w, &c); err != nil {
			return storage.Change{}, err
		}
		w.UpdatedAt = s.now()
		c.Put = []storage.Row{WalletRows.Row(w.ID, row.Version, time.Time{}, w)}
		out = w
		return c, nil
	})
	return out, err
}
