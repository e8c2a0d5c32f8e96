package withdrawal

import (
	"context"
	"math"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
)

// Stage is how far a pending withdrawal has been handed to the payout side.
type Stage string

// The stages. From Handing on the payout side may know it: only its word ends it.
const (
	Kept    Stage = ""        // certainly unknown to the payout side
	Handing Stage = "handing" // about to be submitted, or submitted without an answer
	Handed  Stage = "handed"  // submitted
)

// Review is what people and policy have to say to a pending withdrawal.
type Review string

// The reviews.
const (
	ReviewNone     Review = ""         // nobody has asked for a person yet
	ReviewWanted   Review = "wanted"   // waits for Approve or Refuse
	ReviewApproved Review = "approved" // by as many people as were asked for; policy is asked again
)

// Withdrawal is one payout. Amounts are units of its currency's scale.
// Requested = Amount + PlatformFee + NetworkFee, always.
type Withdrawal struct {
	ID string `db:"-"`
	// Replayed says that Create answered from an earlier request with the same Key.
	Replayed bool `db:"-" json:"-"`

	Tenant      string        `db:"tenant"`
	CustomID    string        `db:"custom_id"` // the merchant's reference, "" = none; need not be unique
	Wallet      string        `db:"wallet"`    // id of the wallet that pays
	Currency    string        `db:"currency"`
	Network     string        `db:"network"`
	Token       string        `db:"token"`
	Address     string        `db:"address"`   // canonical
	Memo        string        `db:"memo"`      // as given
	SentMemo    string        `db:"sent_memo"` // the same where the network carries it
	Requested   ledger.Amount `db:"requested"` // what is held, and leaves the wallet
	Amount      ledger.Amount `db:"amount"`    // what the recipient gets
	PlatformFee ledger.Amount `db:"platform_fee"`
	NetworkFee  ledger.Amount `db:"network_fee"`
	Rank        int64         `db:"amount_rank"` // Amount in 10^-8, so that currencies compare by number

	Status        Status `db:"status"`
	Tx            string `db:"tx"` // "" until signed
	Confirmations int64  `db:"confirmations"`
	Required      int64  `db:"required_confirmations"`
	BatchID       string `db:"batch_id"` // of the payments that one transaction makes; "" = it is alone, or not signed yet
	CallbackURL   string `db:"callback_url"`

	Stage   Stage         `db:"stage"`
	MaxCost ledger.Amount `db:"max_cost"` // of the intent, set once when it is handed over
	Review  Review        `db:"review"`
	Frozen  bool          `db:"frozen"`  // by an operator's Hold
	Waiting string        `db:"waiting"` // why it is not completed yet, "" = no reason known
	// WaitingSince is when Waiting became what it is; zero while that is "".
	WaitingSince time.Time `db:"waiting_since"`
	// Delivered is what the recipient got where that is less than Amount, see
	// WaitingDeliveredLess, or where it was paid after it had failed or was cancelled. 0 otherwise, or where nothing arrived.
	Delivered ledger.Amount `db:"delivered"`
	Reason    string        `db:"reason"`     // why it failed, is held or halted
	OutcomeAt time.Time     `db:"outcome_at"` // of the newest fact applied
	Counter   string        `db:"counter"`    // the daily level that it counts in, "" = none
	Seq       int64         `db:"event_seq"`  // events so far
	// Mandate proves that the withdrawal was ordered as it stands: see package mandate. It
	// is made with it, and only App.Reseal makes it again. "" in rows of earlier versions.
	Mandate string `db:"mandate"`
	// Approval proves that the policy or a person let the withdrawal go out, with the Decisions
	// that were there then. "" until then.
	Approval string `db:"approval"`
	// RequestedBy is who asked for it: CreateInput.By. The Mandate covers it. "" = unknown:
	// the caller gave none, or an earlier version made the withdrawal.
	RequestedBy string `db:"requested_by"`
	// Decisions are what people, the Rules and Config.Policy said of it, oldest first. Each is
	// sealed.
	Decisions []Decision `db:"decisions,json"`

	CreatedAt   time.Time `db:"created_at"`
	UpdatedAt   time.Time `db:"updated_at"`
	ProcessedAt time.Time `db:"processed_at"` // zero until processing
	CompletedAt time.Time `db:"completed_at"` // zero until completed
}

// Fee is PlatformFee + NetworkFee.
func (w *Withdrawal) Fee() ledger.Amount { return w.Requested - w.Amount }

// Live reports whether the withdrawal still holds money.
func (w *Withdrawal) Live() bool { return w.Status == Pending || w.Status == Processing }

// Withdrawals is the table, in tenants' partitions. Due is when a pending one
// is to be picked up.
var Withdrawals = storage.NewTable[Withdrawal]("withdrawals",
	storage.Index("created_at"),
	storage.Index("status", "created_at"),
	storage.Index("currency", "created_at"),
	storage.Index("custom_id"),
	storage.Index("amount_rank"),
	storage.Index("counter"),
	storage.Index("currency", "status", "waiting_since"),
)

// Tally counts withdrawals by status, currency, network and token. Its sum "a" is what
// was requested of those that did not fail and were not cancelled, in units.
var Tally = &tally.Tally{
	Name: "withdrawals", Table: Withdrawals.Table,
	Of: func(r storage.Row) tally.Item {
		w := Withdrawals.Value(r)
		return *w.counted()
	},
}

func (w *Withdrawal) counted() *tally.Item {
	i := tally.Item{At: w.CreatedAt, Key: []string{string(w.Status), w.Currency, w.Network, w.Token}}
	if w.Status != Failed && w.Status != Cancelled {
		i.Sums = []tally.Sum{{Name: "a", Value: decimal.NewFromInt(int64(w.Requested))}}
	}
	return &i
}

// Missing is what the recipient was ordered and did not get of a withdrawal that
// delivered less; of others it means nothing.
func (w *Withdrawal) Missing() ledger.Amount { return w.Amount - w.Delivered }

// Tables lists what this package stores.
func Tables() []*storage.Table {
	return []*storage.Table{Withdrawals.Table, Waits.Table, payoutRows.Table}
}

// Intent is the order to the payout side: the withdrawal's own id, so that
// submitting twice is submitting once. It is made of what is stored and never
// changes, so that the second is the same as the first.
func (w *Withdrawal) intent() chain.Intent {
	return chain.Intent{
		ID: w.ID, Purpose: chain.ForWithdrawal, Tenant: w.Tenant, Network: chain.Network(w.Network), Currency: w.Currency,
		To: chain.Address(w.Address), Memo: w.SentMemo, Amount: w.Amount, MaxCost: w.MaxCost, Confirmations: w.Required,
		Mandate: w.Mandate,
	}
}

// Parent is what the withdrawal is a part of, as its mandate says: Order.Parent, or the id of
// the withdrawal that delivered less. "" = it was ordered for itself.
func (w *Withdrawal) Parent() string {
	of, _ := mandate.Of(w.Mandate) // one that cannot be read is refused when it is checked
	return of.Parent
}

// Terms are what the mandate of w covers, without the Store. The Parent is what the mandate
// says.
func (w *Withdrawal) Terms() mandate.Terms {
	return mandate.Terms{
		Tenant: w.Tenant, Order: w.ID, Kind: chain.ForWithdrawal, Network: chain.Network(w.Network), Currency: w.Currency,
		To: chain.Address(w.Address), Memo: w.SentMemo, Amount: w.Amount, Requested: w.Requested, Wallet: w.Wallet, Parent: w.Parent(), By: w.RequestedBy,
	}
}

// rank is a in units of 10^-8, or the nearest bound.
func rank(a ledger.Amount, scale uint8) int64 {
	for ; scale < 8; scale++ {
		if a > math.MaxInt64/10 {
			return math.MaxInt64
		}
		a *= 10
	}
	return int64(a)
}

// Scale is that of w's amounts. For a currency that is no longer configured it
// follows from Rank.
func (s *Service) Scale(w *Withdrawal) uint8 {
	if c, err := s.c.Registry.Currency(w.Currency); err == nil {
		return c.Scale
	}
	scale, units := uint8(8), int64(w.Amount)
	for ; scale > 0 && units > 0 && units < w.Rank; scale-- {
		units *= 10
	}
	return scale
}

// listing is the currency of w. Where it is not listed any more it is made of what w knows.
func (s *Service) listing(w *Withdrawal) *chain.Currency {
	c, err := s.c.Registry.Currency(w.Currency)
	if err != nil {
		scale := s.Scale(w)
		c = &chain.Currency{Code: w.Currency, Network: chain.Network(w.Network), Token: w.Token, Decimals: scale, Scale: scale}
	}
	return c
}

// load reads one withdrawal with its row; ErrNotFound where there is none.
func (s *Service) load(ctx context.Context, p storage.Partition, id string) (Withdrawal, storage.Row, error) {
	if id == "" || len(id) > maxRef {
		return Withdrawal{}, storage.Row{}, ErrNotFound
	}
	w, row, ok, err := Withdrawals.One(ctx, s.c.Store, p, id)
	if err != nil {
		return w, row, err
	}
	if !ok {
		return w, row, ErrNotFound
	}
	w.ID = row.ID
	return w, row, nil
}
