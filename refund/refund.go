package refund

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
)

// Refund is one refund, in its tenant's partition. Amount is in units of its currency's scale.
type Refund struct {
	ID string `db:"-"`
	// Replayed says that Create answered from an earlier request with the same Key.
	Replayed bool `db:"-" json:"-"`

	Payment    string        `db:"payment"`    // whose money is given back; "" = money in suspense is
	Deposit    string        `db:"deposit"`    // that was in suspense; "" = a payment's money is given back
	Withdrawal string        `db:"withdrawal"` // id; "" until there is an address
	Status     Status        `db:"status"`
	Amount     ledger.Amount `db:"amount"` // what leaves the wallet; the withdrawal's fees come off it
	Currency   string        `db:"currency"`
	Network    string        `db:"network"`
	Scale      int           `db:"scale"`
	Wallet     string        `db:"wallet"` // id of the wallet that pays
	Address    string        `db:"address"`
	Memo       string        `db:"memo"`
	Reason     string        `db:"reason"` // the merchant's
	// Claim is the digest of the claim link's token; "" = it has no link.
	Claim string `db:"claim"`
	// ExpiresAt is when the claim link ends; zero where there is none.
	ExpiresAt time.Time `db:"expires_at"`
	// Waiting is why an AwaitingAddress refund waits: one of the Waiting… constants.
	Waiting      string    `db:"waiting"`
	WaitingSince time.Time `db:"waiting_since"`
	Failure      string    `db:"failure"` // why it failed or was cancelled, "" = the merchant cancelled it
	CallbackURL  string    `db:"callback_url"`
	RequestedBy  string    `db:"requested_by"` // who asked for it, "" = unknown
	// Seal proves what a claim link gives to whom has it: a mandate over the refund's terms.
	// "" where there is no link.
	Seal string `db:"seal"`
	Seq  int64  `db:"event_seq"` // events so far

	CreatedAt time.Time `db:"created_at"`
	UpdatedAt time.Time `db:"updated_at"`
}

// Why a refund without an address waits.
const (
	WaitingAddress = "address"              // of the customer
	WaitingFunds   = "insufficient_balance" // the customer named an address, and the wallet could not pay
	WaitingPayout  = "payout"               // the customer named an address, and no withdrawal could be made: its fees, limits, an outage, or a fork that took the payment back
)

// FailureExpired is the Failure of a refund whose claim link was not used in time.
const FailureExpired = "expired"

// Refunds is the table, in tenants' partitions. Due is when a claim link ends.
var Refunds = storage.NewTable[Refund]("refunds",
	storage.Index("payment", "created_at"),
	storage.Index("deposit"),
	storage.Index("created_at"), storage.Index("status", "created_at"),
	storage.Across("claim"),
)

// Tally counts refunds by status and currency.
var Tally = &tally.Tally{
	Name: "refunds", Table: Refunds.Table,
	Of: func(row storage.Row) tally.Item {
		r := Refunds.Value(row)
		return *r.counted()
	},
}

func (r *Refund) counted() *tally.Item {
	return &tally.Item{At: r.CreatedAt, Key: []string{string(r.Status), r.Currency}}
}

// Tables lists what this package stores.
func Tables() []*storage.Table { return []*storage.Table{Refunds.Table} }

// parentPrefix begins the Parent of each refund's withdrawal.
const parentPrefix = "refund/"

// payoutID is the id of a refund's withdrawal. It follows from the refund's, so that a refund
// has one withdrawal, whatever its row is made to say.
func payoutID(refund string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("withdrawal of refund "+refund)).String() //nolint:forbidigo // it follows from the other id
}

// walletOf is the ledger's wallet that money in suspense goes through.
func walletOf(refund string) string { return "refund-" + refund }

// level names the level that bounds what is given back of a payment.
func level(payment string) string { return "refunded/" + payment }

// spent is a level that stands at 1 when the claim link of a refund was used or has ended. Both
// happen once, whatever the refund's row is made to say.
func spent(refund string) storage.Level {
	return storage.Level{Name: "claimed/" + refund, Delta: 1, Max: 1}
}

// digest is what is stored of a claim link's token.
func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// ofClaim is the kind of the mandate that is the Seal of a refund.
const ofClaim chain.Purpose = "refund"

// terms are what the Seal covers, without the Store.
func (r *Refund) terms(tenant string) mandate.Terms {
	return mandate.Terms{
		Tenant: tenant, Order: r.ID, Kind: ofClaim, Network: chain.Network(r.Network), Currency: r.Currency,
		Amount: r.Amount, Requested: r.Amount, Wallet: r.Wallet, Parent: r.Payment, By: r.RequestedBy,
		Decision: r.Claim + "/" + strconv.FormatInt(storage.Micros(r.ExpiresAt), 10) + "/" + strconv.Itoa(r.Scale),
	}
}
