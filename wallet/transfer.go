package wallet

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// Direction is the type of a transfer.
type Direction string

// The directions.
const (
	ToSub    Direction = "to_sub"    // master account → sub-account
	ToMaster Direction = "to_master" // sub-account → master account
)

// Transfer is one movement between the master account and a sub-account.
type Transfer struct {
	ID string `db:"-"`
	// Replayed says that CreateTransfer answered from an earlier request with the same Key.
	Replayed bool `db:"-" json:"-"`

	Wallet      string         `db:"wallet"` // wallet id of the sub-account
	ExternalID  string         `db:"external_id"`
	Direction   Direction      `db:"transfer_type"`
	Currency    string         `db:"currency"`
	Amount      ledger.Amount  `db:"amount"`
	Status      TransferStatus `db:"status"`
	Error       string         `db:"error"` // "" = none
	CallbackURL string         `db:"callback_url"`
	Seq         int64          `db:"event_seq"`
	CreatedAt   time.Time      `db:"created_at"`
	UpdatedAt   time.Time      `db:"updated_at"`
	CompletedAt time.Time      `db:"completed_at"` // zero until completed
}

// TransferRows is the table of transfers, in tenants' partitions. A pending one
// is due: only versions before this one stored transfers that Step has to settle.
var TransferRows = storage.NewTable[Transfer]("transfers",
	storage.Index("created_at"), storage.Index("wallet", "created_at"), storage.Index("status", "created_at"))

// Tally counts transfers by direction, status and currency, in groups by sub-account.
var Tally = &tally.Tally{
	Name: "transfers", Table: TransferRows.Table, Column: "wallet",
	Of: func(r storage.Row) tally.Item {
		t := TransferRows.Value(r)
		return *t.counted()
	},
}

func (t *Transfer) counted() *tally.Item {
	return &tally.Item{At: t.CreatedAt, Group: t.Wallet, Key: []string{string(t.Direction), string(t.Status), t.Currency}}
}

// Source is the wallet id of the account that pays.
func (t *Transfer) Source() string {
	if t.Direction == ToMaster {
		return t.Wallet
	}
	return Master
}

func (t *Transfer) target() string {
	if t.Direction == ToMaster {
		return Master
	}
	return t.Wallet
}

// TransferInput is a request to move money.
type TransferInput struct {
	Direction   Direction
	WalletID    string // wallet id, or an external id
	ExternalID  string // where WalletID is ""
	Currency    string
	Amount      decimal.Decimal // whole coins
	CallbackURL string
	// Key is the caller's own of this request: sent again with the same content within
	// storage.OnceFor it moves nothing, and answers the first result, Replayed. Defaults to
	// none: each request is a new one. At most storage.MaxOnceKey bytes.
	Key string
}

// CreateTransfer accepts a transfer and settles it in the same Change, with its event, or
// does nothing. Errors: *InvalidError, *InsufficientError, ErrNotFound where the
// sub-account is missing or closed, those that wrap chain.ErrCurrency, and those of a Key.
func (s *Service) CreateTransfer(ctx context.Context, tenant string, in TransferInput) (Transfer, error) {
	p := storage.Tenant(tenant)
	once, err := storage.OnceOf(ctx, in.Key, in)
	if err != nil {
		return Transfer{}, err
	}
	leave, err := s.inFlight.Enter(p, once)
	defer leave()
	if err != nil {
		return Transfer{}, err
	}
	if first, replay, err := once.Find(ctx, s.c.Store, p, s.c.Now()); err != nil || replay {
		return replayedTransfer(once, first, err)
	}
	c, amount, err := s.checkTransfer(in)
	if err != nil {
		return Transfer{}, err
	}
	t := Transfer{
		ID: s.c.NewID(), Direction: in.Direction, Currency: c.Code, Amount: amount,
		Status: TransferPending, CallbackURL: in.CallbackURL,
	}
	return s.commitTransfer(ctx, p, t, in, c, once)
}

// CheckTransfer says what is wrong with a request by itself, without looking at
// wallets or balances: *InvalidError, or what wraps chain.ErrCurrency.
func (s *Service) CheckTransfer(in TransferInput) error {
	_, _, err := s.checkTransfer(in)
	return err
}

func (s *Service) checkTransfer(in TransferInput) (*chain.Currency, ledger.Amount, error) {
	bad := &InvalidError{}
	if in.Direction != ToSub && in.Direction != ToMaster {
		bad.Add("transfer_type", "must be to_sub or to_master")
	}
	if in.WalletID == "" && in.ExternalID == "" {
		bad.Add("wallet_id", "is required, or external_id")
	}
	if in.Currency == "" {
		bad.Add("currency", "is required")
	}
	bad.AddLong("callback_url", in.CallbackURL, maxURL)
	if s.c.CheckURL != nil && in.CallbackURL != "" {
		if err := s.c.CheckURL(in.CallbackURL); err != nil {
			bad.Add("callback_url", err.Error())
		}
	}
	c, unknown := s.c.Registry.Currency(in.Currency)
	scale := uint8(8)
	if unknown == nil {
		scale = c.Scale
	}
	amount, why := fault.Units(in.Amount, scale)
	if why != "" {
		bad.Add("amount", why)
	}
	if err := bad.Err(); err != nil {
		return nil, 0, err
	}
	return c, amount, unknown
}

func (s *Service) commitTransfer(ctx context.Context, p storage.Partition, draft Transfer, in TransferInput, c *chain.Currency, once *storage.Once) (Transfer, error) {
	t, first := draft, true
	err := storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		if !first {
			if stored, _, err := s.loadTransfer(ctx, p, t.ID); !errors.Is(err, ErrNotFound) {
				t = stored
				return storage.Change{}, err
			}
		}
		first = false
		now := s.now()
		response, replay, err := once.Find(ctx, s.c.Store, p, now)
		if err != nil || replay {
			if err == nil {
				t, err = replayedTransfer(once, response, nil)
			}
			return storage.Change{}, err
		}
		w, row, err := s.subAccount(ctx, p, in)
		if err != nil {
			return storage.Change{}, err
		}
		t = draft
		t.Wallet, t.ExternalID, t.CreatedAt, t.UpdatedAt = w.ID, w.ExternalID, now, now
		// The other account is the master account, which is never closed.
		change := storage.Change{
			ID: s.c.NewID(), Partition: p, Require: []storage.Guard{WalletRows.Guard(w.ID, row.Version)},
			Post: []ledger.Tx{holdTx(&t, now)},
		}
		if err := t.settle(&change, nil, 0, c.Scale, now); err != nil {
			return storage.Change{}, err
		}
		return change, once.AddTo(&change, now, t)
	})
	if funds := new(ledger.InsufficientFundsError); errors.As(err, &funds) {
		err = &InsufficientError{
			Available: c.Decimal(max(0, funds.Available)), Requested: c.Decimal(funds.Requested), Currency: c.Code, Scale: c.Scale,
		}
	}
	return t, err
}

// subAccount is the open sub-account that a transfer names.
func (s *Service) subAccount(ctx context.Context, p storage.Partition, in TransferInput) (Wallet, storage.Row, error) {
	if in.WalletID != "" {
		return s.byRef(ctx, p, in.WalletID)
	}
	return s.find(ctx, p, "external_key", openKey(in.ExternalID))
}

func replayedTransfer(once *storage.Once, response []byte, err error) (Transfer, error) {
	var t Transfer
	if err == nil {
		err = once.Decode(response, &t)
	}
	t.Replayed = err == nil
	return t, err
}

func holdTx(t *Transfer, at time.Time) ledger.Tx {
	return ledger.Tx{
		ID: "hold/" + t.ID, Kind: ledger.KindTransfer, Ref: t.ID, At: at,
		Legs: []ledger.Leg{{Account: ledger.Wallet(t.Source()), Asset: ledger.Asset(t.Currency), Hold: t.Amount}},
	}
}

func releaseTx(t *Transfer, at time.Time) ledger.Tx {
	tx := holdTx(t, at)
	tx.ID = "release/" + t.ID
	tx.Legs[0].Hold = -t.Amount
	return tx
}

func settleTx(t *Transfer, at time.Time) ledger.Tx {
	asset := ledger.Asset(t.Currency)
	return ledger.Tx{ID: "settle/" + t.ID, Kind: ledger.KindTransfer, Ref: t.ID, At: at, Legs: []ledger.Leg{
		{Account: ledger.Wallet(t.Source()), Asset: asset, Delta: -t.Amount, Hold: -t.Amount},
		{Account: ledger.Wallet(t.target()), Asset: asset, Delta: t.Amount},
	}}
}

// Transfer returns one of the tenant's transfers, or ErrNotFound.
func (s *Service) Transfer(ctx context.Context, tenant, id string) (Transfer, error) {
	t, _, err := s.loadTransfer(ctx, storage.Tenant(tenant), id)
	return t, err
}

func (s *Service) loadTransfer(ctx context.Context, p storage.Partition, id string) (Transfer, storage.Row, error) {
	if id == "" || len(id) > maxRef {
		return Transfer{}, storage.Row{}, ErrNotFound
	}
	t, row, ok, err := TransferRows.One(ctx, s.c.Store, p, id)
	if err == nil && !ok {
		err = ErrNotFound
	}
	t.ID = id
	return t, row, err
}

// TransferFilter selects transfers; empty fields select all.
type TransferFilter struct {
	Wallet    string // wallet id
	Status    TransferStatus
	Direction Direction
	Currency  string
	Limit     int // 1–100; 0 = 20
	Offset    int
}

// TransferHistory returns a page of transfers, newest first, and how many match
// in all. *InvalidError names what is wrong with the filter.
func (s *Service) TransferHistory(ctx context.Context, tenant string, f TransferFilter) ([]Transfer, int64, error) {
	where, err := s.conditions(&f)
	if err != nil {
		return nil, 0, err
	}
	q := storage.Query{
		Table: TransferRows.Table, Partition: storage.Tenant(tenant), Where: where, Limit: f.Limit, Offset: f.Offset,
		Order: []storage.Order{{Column: "created_at", Desc: true}},
	}
	total, err := s.countTransfers(ctx, q, &f)
	if err != nil {
		return nil, 0, err
	}
	rows, err := s.c.Store.Find(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	out := make([]Transfer, len(rows))
	for i, r := range rows {
		out[i] = TransferRows.Value(r)
		out[i].ID = r.ID
	}
	return out, total, nil
}

// countTransfers says how many match. Where no counters hold yet, it counts rows.
func (s *Service) countTransfers(ctx context.Context, q storage.Query, f *TransferFilter) (int64, error) {
	match := tally.Match{tally.Is(string(f.Direction)), tally.Is(string(f.Status)), tally.Is(f.Currency)}
	if f.Wallet == "" {
		n, counted, err := Tally.Totals(ctx, s.c.Store, q.Partition, match)
		if err != nil || counted {
			return n[0], err
		}
		return s.c.Store.Count(ctx, q)
	}
	counted, err := Tally.Marked(ctx, s.c.Store, q.Partition)
	if err != nil || counted {
		if err != nil {
			return 0, err
		}
		return Tally.InGroup(ctx, s.c.Store, q.Partition, f.Wallet, match)
	}
	return s.c.Store.Count(ctx, q)
}

func (s *Service) conditions(f *TransferFilter) ([]storage.Cond, error) {
	bad := &InvalidError{}
	or(&f.Limit, 20)
	bad.AddPage(f.Limit, f.Offset)
	var where []storage.Cond
	is := func(column string, value any, given bool) {
		if given {
			where = append(where, storage.Cond{Column: column, Op: storage.Eq, Value: value})
		}
	}
	if f.Status != "" && !slices.Contains(TransferStatuses(), f.Status) {
		bad.Add("status", "must be pending, completed or failed")
	}
	if f.Direction != "" && f.Direction != ToSub && f.Direction != ToMaster {
		bad.Add("transfer_type", "must be to_sub or to_master")
	}
	s.checkCurrency(bad, f.Currency)
	is("wallet", f.Wallet, f.Wallet != "")
	is("status", f.Status, f.Status != "")
	is("transfer_type", f.Direction, f.Direction != "")
	is("currency", f.Currency, f.Currency != "")
	return where, bad.Err()
}

func (s *Service) checkCurrency(bad *InvalidError, code string) {
	if code == "" {
		return
	}
	if _, err := s.c.Registry.Currency(code); err != nil {
		bad.Add("currency", "is not supported")
	}
}

// Record is a transfer as histories and events show it. The amount has 8
// places.
type Record struct {
	TransferID  string         `json:"transfer_id"`
	WalletID    string         `json:"wallet_id"`
	ExternalID  string         `json:"external_id"`
	Direction   Direction      `json:"transfer_type"`
	Currency    string         `json:"currency"`
	Amount      string         `json:"amount"`
	Status      TransferStatus `json:"status"`
	Error       *string        `json:"error"`
	CallbackURL *string        `json:"callback_url"`
	CreatedAt   string         `json:"created_at"`
	UpdatedAt   string         `json:"updated_at"`
	CompletedAt *string        `json:"completed_at"`
}

// Update is the data of a transfer_status_update.
type Update struct {
	Record
	PreviousStatus TransferStatus `json:"previous_status"`
}

// Record writes the transfer out; scale is its currency's.
func (t *Transfer) Record(scale uint8) Record {
	r := Record{
		TransferID: t.ID, WalletID: t.Wallet, ExternalID: t.ExternalID, Direction: t.Direction, Currency: t.Currency,
		Amount: t.Amount.Format(scale, 8), Status: t.Status, Error: orNull(t.Error), CallbackURL: orNull(t.CallbackURL),
		CreatedAt: webhook.Timestamp(t.CreatedAt), UpdatedAt: webhook.Timestamp(t.UpdatedAt),
	}
	if !t.CompletedAt.IsZero() {
		r.CompletedAt = orNull(webhook.Timestamp(t.CompletedAt))
	}
	return r
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
