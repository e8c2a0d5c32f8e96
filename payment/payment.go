package payment

import (
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
)

// Type says how much came compared with what was due; "" before anything came.
type Type string

// The payment types.
const (
	TypeNone    Type = ""
	TypeFull    Type = "full"
	TypeOver    Type = "over"
	TypePartial Type = "partial"
	TypeLate    Type = "late"
)

// Payment is one payment as it is stored, in its tenant's partition. Amounts
// are units of Currency, rates are the price of one whole coin in
// PriceCurrency.
type Payment struct {
	ID string `db:"payment_id"` // also the row's id
	// Replayed says that Create answered from an earlier request with the same Key.
	Replayed bool `db:"-" json:"-"`

	Status Status `db:"status"`
	Type   Type   `db:"payment_type"`

	Network string `db:"network"`
	Address string `db:"address"`
	// AddressID is that of the PermanentAddress the payment's deposit came to; "" where the
	// payment has its address to itself.
	AddressID string `db:"address_id"`
	// Slot tells apart the payments at one address: the id of the deposit that made the
	// payment, "" where the payment has its address to itself.
	Slot     string `db:"slot"`
	Currency string `db:"currency"`
	Token    string `db:"token"`
	Scale    int    `db:"scale"` // of the amounts: units are 10^-Scale coins

	Price         decimal.Decimal `db:"price_amount"` // what the merchant asked, in PriceCurrency
	PriceCurrency string          `db:"price_currency"`
	Due           ledger.Amount   `db:"amount_crypto"` // what the customer must send; never changes. At a permanent address: what came
	Tolerance     ledger.Amount   `db:"tolerance"`     // how much less is still full
	Rate          decimal.Decimal `db:"rate"`          // locked at creation
	USDRate       decimal.Decimal `db:"usd_rate"`      // the same in USD
	FixedRate     bool            `db:"is_fixed_rate"`
	FeeByUser     bool            `db:"is_fee_paid_by_user"`
	FeePercent    decimal.Decimal `db:"fee_percent"`
	NetworkFee    ledger.Amount   `db:"network_fee"` // quoted, charged once

	// What was posted so far: Received = Net + Platform + Network.
	Received      ledger.Amount   `db:"received"`
	Net           ledger.Amount   `db:"net"`
	Platform      ledger.Amount   `db:"platform"`
	NetworkTaken  ledger.Amount   `db:"network_taken"`
	ReceivedValue decimal.Decimal `db:"received_value"` // Σ wallet credit × its rate, exact
	Live          ledger.Amount   `db:"live"`           // Σ counted deposits, final or not
	Tx            string          `db:"tx_hash"`        // of the latest counted deposit
	Confirmations int64           `db:"confirmations"`  // lowest among those needed, as last told

	Wallet        string `db:"wallet"`     // id of the wallet that is credited
	WalletRef     string `db:"wallet_ref"` // as given at creation, "" = none was
	OrderID       string `db:"order_id"`
	Description   string `db:"order_description"`
	CallbackURL   string `db:"callback_url"`
	CustomID      string `db:"custom_id"`
	CustomerEmail string `db:"customer_email"`

	CreatedAt   time.Time `db:"created_at"`
	UpdatedAt   time.Time `db:"updated_at"`
	ExpiresAt   time.Time `db:"expires_at"`
	ConfirmedAt time.Time `db:"confirmed_at"`
	Closed      bool      `db:"closed"` // the window's end was decided
	Cancelled   bool      `db:"cancelled"`
	Events      int64     `db:"events"` // how many were put in the outbox
	// WatchedUntil is when the address is no longer watched; zero: not decided yet.
	WatchedUntil time.Time `db:"watched_until"`
}

// Payable reports whether what comes to the payment's address may still be credited: the
// payment has not ended, whatever else its row says, or its address is still watched.
func (p *Payment) Payable(now time.Time) bool {
	return !p.over() || p.WatchedUntil.IsZero() || now.Before(p.WatchedUntil)
}

// over reports whether the payment has ended.
func (p *Payment) over() bool {
	return p.Status == Completed || p.Status == Expired || p.Status == Failed
}

// Shown is the status as REST views, lists and histories show it:
// partially_paid, which only webhooks know, is waiting.
func (p *Payment) Shown() Status {
	if p.Status == PartiallyPaid {
		return Waiting
	}
	return p.Status
}

// DueCoins is what the customer must send, in whole coins.
func (p *Payment) DueCoins() decimal.Decimal { return decimal.New(int64(p.Due), -int32(p.Scale)) } //nolint:gosec // a scale is at most 8

// MerchantReceived is what the wallet got, valued at each deposit's rate, in
// the price currency with 2 places, rounded down.
func (p *Payment) MerchantReceived() string { return ledger.FixedString(p.ReceivedValue, 2) }

// Payments is the table of payments, in tenant partitions.
var Payments = storage.NewTable[Payment]("payments",
	storage.Unique("network", "address", "slot"),
	storage.Index("created_at"), storage.Index("status", "created_at"), storage.Index("currency", "created_at"),
	storage.Across("currency", "status", "created_at"), // Open
	storage.Index("order_id", "created_at"), storage.Index("custom_id", "created_at"),
)

// Tally counts payments by status as shown, currency, network and token. Its sums are
// what was received and is still there: "a" in units of the currency, "u" in USD.
var Tally = &tally.Tally{
	Name: "payments", Table: Payments.Table,
	Of: func(r storage.Row) tally.Item {
		p := Payments.Value(r)
		return *p.counted()
	},
}

func (p *Payment) counted() *tally.Item {
	i := tally.Item{At: p.CreatedAt, Key: []string{string(p.Shown()), p.Currency, p.Network, p.Token}}
	if p.Live != 0 {
		i.Sums = []tally.Sum{
			{Name: "a", Value: decimal.NewFromInt(int64(p.Live))},
			{Name: "u", Value: p.Live.Decimal(uint8(p.Scale)).Mul(p.USDRate)},
		}
	}
	return &i
}

// Role says what a deposit counts for. The first three are counted: they make
// up the payment. The next are booked to suspense when final. The last are
// recorded only.
type Role string

// The roles.
const (
	RoleInTime Role = "in_time"
	RoleLate   Role = "late"  // counted under LateCredit
	RoleAgain  Role = "again" // was credited, taken away by a reorg, and came back later: credited, moves no status

	RoleUnmatched  Role = "unmatched"   // late, or its payment was cancelled
	RoleStray      Role = "stray"       // no payment had the address
	RoleWrongToken Role = "wrong_token" // another listed currency
	RoleUnproven   Role = "unproven"    // the chain's node cannot prove it
	RoleExcess     Role = "excess"      // above MaxCreditUSD or MaxDeposits: a person looks at it
	RoleHeld       Role = "held"        // Config.Screen wants a person to look at it: see Service.Release
	RoleRefused    Role = "refused"     // Config.Screen refuses it: it never counts for a payment
	// RoleSmall is below the currency's minimum, at a permanent address. It counts once what
	// waits there adds up to the minimum.
	RoleSmall Role = "below_minimum"

	RoleDust        Role = "dust"        // below the currency's dust limit
	RoleUnlisted    Role = "unlisted"    // a token that is none of ours
	RoleQuarantined Role = "quarantined" // an amount that cannot be true
)

func (r Role) counted() bool { return r == RoleInTime || r == RoleLate || r == RoleAgain }

// suspenseRoles lists the roles that are booked to suspense.
var suspenseRoles = []Role{RoleUnmatched, RoleStray, RoleWrongToken, RoleUnproven, RoleExcess, RoleHeld, RoleRefused, RoleSmall}

func (r Role) suspense() bool { return slices.Contains(suspenseRoles, r) }

// Booking says where a deposit's money stands in the ledger.
type Booking string

// The bookings.
const (
	Unbooked   Booking = ""           // no leg
	InWallet   Booking = "wallet"     // credited to the payment's wallet
	InSuspense Booking = "suspense"   // matched nothing
	Reversed   Booking = "reversed"   // a reorg took it away again
	Resolved   Booking = "resolved"   // from suspense to a wallet, by a person
	Refunded   Booking = "refunded"   // from suspense back out, by a person
	Ignored    Booking = "ignored"    // in suspense for good, by a person's word
	Written    Booking = "writtenoff" // refunded, then taken away by a reorg: the house lost it
)

// Deposit is one incoming transfer to a payment address, in the tenant's
// partition. Its row's id is "<network>/<tx>:<ordinal>".
type Deposit struct {
	ID         string         `db:"deposit_id"`
	Payment    string         `db:"payment"` // "" = counted for none
	Role       Role           `db:"role"`
	Booking    Booking        `db:"booking"`
	State      incoming.State `db:"state"`
	Proven     bool           `db:"proven"` // a Proof of this generation was seen
	GivenUp    bool           `db:"given_up"`
	Network    string         `db:"network"`
	Address    string         `db:"address"`
	Tx         string         `db:"tx"`
	Ordinal    int            `db:"ordinal"`
	Generation int            `db:"generation"`
	From       string         `db:"from_address"`
	Memo       string         `db:"memo"`
	Currency   string         `db:"currency"`
	Contract   string         `db:"contract"`

	Exact  decimal.Decimal `db:"exact"`
	Amount ledger.Amount   `db:"amount"`
	Rate   decimal.Decimal `db:"rate"`   // that values it; 0 = not known yet
	Weight ledger.Amount   `db:"weight"` // units that it counts towards what is due

	// What its last credit moved: Amount = Net + Platform + NetworkTaken.
	Wallet       string        `db:"wallet"`
	Net          ledger.Amount `db:"net"`
	Platform     ledger.Amount `db:"platform"`
	NetworkTaken ledger.Amount `db:"network_taken"`
	Owed         ledger.Amount `db:"owed"` // what its reversal left the wallet owing

	Height        int64     `db:"height"`
	BlockTime     time.Time `db:"block_time"`
	FirstSeen     time.Time `db:"first_seen"`
	Confirmations int64     `db:"confirmations"`
	FactVersion   int64     `db:"fact_version"`

	Forward    incoming.Forward `db:"forward"`
	ForwardTx  string           `db:"forward_tx"`
	ForwardFee string           `db:"forward_fee"`
	Merged     bool             `db:"merged"` // deposit_merged was told
	Told       int64            `db:"told"`   // how many payment_deposit were put in the outbox

	// What Config.Screen said of it; "" = it was not asked, or did not answer. Then ScreenReason
	// is why, ScreenedAt since when it has been asked, and ScreenNext when it is asked again.
	Screen       Verdict   `db:"screen"`
	ScreenReason string    `db:"screen_reason"` // in its words; "" = it was not asked, or gave none
	ScreenedAt   time.Time `db:"screened_at"`   // when it answered
	ScreenNext   time.Time `db:"screen_next"`
	ScreenTold   bool      `db:"screen_told"` // the operator was told that it does not answer
	// HeldAs is the role that it has where it is not RoleHeld or RoleRefused.
	HeldAs Role `db:"held_as"`

	CreatedAt time.Time `db:"created_at"`
	UpdatedAt time.Time `db:"updated_at"`
}

// Deposits is the table of deposits, in tenant partitions.
var Deposits = storage.NewTable[Deposit]("deposits",
	storage.Index("payment"), storage.Index("network", "address", "booking"), storage.Index("booking", "created_at"),
)

// DepositID is the id of the deposit that a sighting is.
func DepositID(s *incoming.Sighting) string { return s.Network + "/" + s.Key() }

func (d *Deposit) generated(kind string) string {
	return kind + "/" + d.ID + "/" + itoa(d.Generation)
}

// live reports that the deposit is in a block or mempool, and was not given up.
func (d *Deposit) live() bool {
	return d.State != incoming.Gone && !d.GivenUp
}

// Tables lists what this package stores.
func Tables() []*storage.Table {
	return []*storage.Table{Payments.Table, Deposits.Table, PermanentAddresses.Table}
}
