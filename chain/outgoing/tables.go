package outgoing

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// IntentRow is a stored chain.Intent and how far it has come, under the
// intent's id. Its Due is outgoing's own work.
type IntentRow struct {
	Purpose       chain.Purpose `db:"purpose"`
	Tenant        string        `db:"tenant"`
	Network       chain.Network `db:"network"`
	Currency      string        `db:"currency"`
	From          chain.Address `db:"from_address"`
	FromKey       chain.KeyRef  `db:"from_key"`
	To            chain.Address `db:"to_address"`
	Memo          string        `db:"memo"`
	Amount        ledger.Amount `db:"amount"`
	All           bool          `db:"all_funds"`
	MaxCost       ledger.Amount `db:"max_cost"`
	Confirmations int64         `db:"confirmations"`
	Mandate       string        `db:"mandate"`

	State  State  `db:"state"`
	Reason Reason `db:"reason"`
	// Attempts is the number of the last attempt: never given twice, also where
	// the attempt was refused and not stored.
	Attempts int    `db:"attempts"`
	Tx       string `db:"tx"`    // the attempt that counts now
	Nonce    int64  `db:"nonce"` // −1 where none is bound to it
	// Plan is the transaction that is being signed, as JSON, empty where none
	// is. It is stored before a signer sees it, so that whoever resumes asks for
	// exactly the same bytes under the same attempt.
	Plan []byte `db:"plan"`
	// Cancelling says that the order can never land, and that its nonce or inputs
	// go back to ourselves instead; of a child, that a signer may have bound its
	// coin to it.
	Cancelling bool `db:"filling"`
	// ExecutedReported says that the owner was told Executed: from then on it is sent
	// until it lands and never failed, unless it is for all that an address holds.
	ExecutedReported bool          `db:"reached"`
	Reserved         ledger.Amount `db:"reserved"` // the most that its live attempts may cost
	Tries            int           `db:"tries"`    // failures in a row, for the backoff
	// Endings are those of Config.Ending, of each time that it started again.
	Endings []string `db:"endings,json"`
	// Undone are those of Outcome.Undone.
	Undone  []Landing `db:"undone,json"`
	BumpAt  time.Time `db:"bump_at"` // when a dearer replacement is thought about
	Created time.Time `db:"created_at"`
	Updated time.Time `db:"updated_at"`
}

// AttemptRow is one signed transaction, under its hash. It is committed before
// it is sent, and kept for ever.
type AttemptRow struct {
	Intent  string         `db:"intent"`
	Number  int            `db:"number"` // 1, 2 … of the intent
	Tenant  string         `db:"tenant"`
	Purpose chain.Purpose  `db:"purpose"` // ForCancel where it fills a nonce
	Raw     []byte         `db:"raw"`
	Nonce   int64          `db:"nonce"`
	Spends  []string       `db:"spends,json"`
	Outputs []chain.Output `db:"outputs,json"`
	Coins   []chain.Coin   `db:"coins,json"`
	// ChangeTo is where the rest went; its zero value where there is none.
	ChangeTo chain.Derived `db:"change_to,json"`
	Fee      chain.Fee     `db:"fee,json"`
	MaxCost  ledger.Amount `db:"max_cost"`
	State    AttemptState  `db:"fate"`
	// Cost is what the network took where it is AttemptFinal; 0 where an earlier version
	// stored that.
	Cost     ledger.Amount `db:"cost"`
	Rejected bool          `db:"rejected"` // a node refused it for good; it is watched all the same
	Stored   time.Time     `db:"stored_at"`
	Sent     time.Time     `db:"sent_at"` // when it was last sent, or was about to be
}

// Named is how an Ending names the attempt with the hash tx.
func (r *AttemptRow) Named(tx string) mandate.Attempt {
	return mandate.Attempt{ID: attemptID(r.Intent, r.Number), Tx: tx, Spends: mandate.SpendsOf(r.Spends)}
}

// Fate is what became of an attempt, as far as it is final.
type AttemptState string

// The fates. An open attempt may land at any time.
const (
	Open         AttemptState = "open"
	AttemptFinal AttemptState = "landed" // final in a block, executed or reverted
	Dead         AttemptState = "dead"   // a final transaction took what it spends, or its time is over
)

// InputReservation binds a nonce ("address/nonce") or an outpoint to one intent: the
// row's id is what is bound, so it cannot be bound twice.
type InputReservation struct {
	Intent string    `db:"intent"`
	At     time.Time `db:"at"`
}

// NonceRow is the next nonce of one address. It moves only in the Change that
// stores a transaction using it, so nonces are dense. Holder is the intent
// whose transaction with this nonce is being signed.
type NonceRow struct {
	Next   int64  `db:"next_nonce"`
	Holder string `db:"holder"`
}

// CoinState says whether a coin can be spent.
type CoinState string

// The states of a coin. One that is gone was taken away by a deep reorg, and is
// what it was before where it is mined again: held by its intent, or free. One that
// is unmined is what a transaction of ours returns should it land, held by the
// child that pays for it. A disputed one was an input of a transaction that lost
// against one which is not ours, or was signed for an intent that ended without
// it, so that a signer gives it to no other: a person has to look.
const (
	CoinFree     CoinState = "free"
	CoinReserved CoinState = "reserved"
	CoinSpent    CoinState = "spent"
	CoinGone     CoinState = "gone"
	CoinUnmined  CoinState = "unmined"
	CoinDisputed CoinState = "disputed"
)

// CoinValue is a final unspent output of ours on a UTXO network, under its
// outpoint.
type CoinValue struct {
	Tenant  string        `db:"tenant"`
	Address chain.Address `db:"address"`
	Key     chain.KeyRef  `db:"key_ref"`
	Amount  ledger.Amount `db:"amount"`
	State   CoinState     `db:"state"`
	Intent  string        `db:"intent"` // that holds or spent it
}

// The tables of this package, all in network partitions.
var (
	Intents           = storage.NewTable[IntentRow]("intents", storage.Index("tenant", "state"), storage.Index("state"), storage.Index("from_address", "nonce"), storage.Index("tenant", "updated_at"))
	Attempts          = storage.NewTable[AttemptRow]("attempts", storage.Index("intent", "number"))
	InputReservations = storage.NewTable[InputReservation]("reservations", storage.Index("intent"))
	Nonces            = storage.NewTable[NonceRow]("nonces")
	Coins             = storage.NewTable[CoinValue]("coins", storage.Index("tenant", "state", "amount"))
)

// Tables lists what this package stores.
func Tables() []*storage.Table {
	return []*storage.Table{
		Intents.Table, Attempts.Table, InputReservations.Table, Nonces.Table, Coins.Table, Outcomes.Table, Batches.Table, Halts.Table, Operations.Table,
	}
}

// Slot is what a nonce is called in Spends and reservations.
func Slot(a chain.Address, nonce int64) string { return fmt.Sprintf("%s/%d", a, nonce) }

// record is the stored form of a new intent.
func record(in chain.Intent, now time.Time) IntentRow {
	return IntentRow{
		Purpose: in.Purpose, Tenant: in.Tenant, Network: in.Network, Currency: in.Currency,
		From: in.From, FromKey: in.FromKey, To: in.To, Memo: in.Memo, Amount: in.Amount, All: in.All,
		MaxCost: in.MaxCost, Confirmations: in.Confirmations, Mandate: in.Mandate,
		State: Queued, Nonce: -1, Created: now, Updated: now,
	}
}

// intent is the order as it was submitted.
func (r *IntentRow) intent(id string) chain.Intent {
	return chain.Intent{
		ID: id, Purpose: r.Purpose, Tenant: r.Tenant, Network: r.Network, Currency: r.Currency,
		From: r.From, FromKey: r.FromKey, To: r.To, Memo: r.Memo, Amount: r.Amount, All: r.All,
		MaxCost: r.MaxCost, Confirmations: r.Confirmations, Mandate: r.Mandate,
	}
}

// Order is the order as it was submitted, under its id.
func (r *IntentRow) Order(id string) chain.Intent { return r.intent(id) }

// Misplanned says why the stored plan is not one of this order, "" = it is, or there is
// none. What the plan would have signed is the signer's to read.
func (r *IntentRow) Misplanned(id string) string {
	if len(r.Plan) == 0 {
		return ""
	}
	p, err := r.plan()
	if err != nil {
		return err.Error()
	}
	got, want := p.Intent, r.intent(id)
	if got.Purpose == chain.ForCancel { // it fills the order's nonce or inputs
		got.Purpose, got.Currency, got.To, got.Memo, got.Amount, got.All = want.Purpose, want.Currency, want.To, want.Memo, want.Amount, want.All
	}
	got.Mandate, got.MaxCost, got.Payer, got.PayerKey = want.Mandate, want.MaxCost, "", ""
	if got != want {
		return "its stored plan is of another order"
	}
	return ""
}

// idle reports whether nothing was reserved and nothing can be on its way.
func (r *IntentRow) idle() bool {
	return (r.State == Queued || r.State == Waiting) && len(r.Plan) == 0 && !r.ExecutedReported
}

// plan is a transaction chosen in full and reserved, not yet signed.
type plan struct {
	Intent   chain.Intent   // what the signer is told: the order, or the filling of its nonce
	Also     []chain.Intent `json:",omitempty"` // the other members of its batch
	Number   int
	Fee      chain.Fee
	Unsigned chain.Unsigned
	Keys     []chain.KeyRef
	Nonce    int64 // −1 = none
	Coins    []chain.Coin
	Change   chain.Derived
	// First: nonce or coins were reserved for this plan, and go back with it. A
	// replacement spends what the intent holds already, as a signer that has seen
	// an input with one intent refuses it to every other.
	First bool
	// Extra are the outpoints that a replacement reserved in the place of coins
	// that are gone.
	Extra []string `json:",omitempty"`
}

func (p *plan) attempt() string { return attemptID(p.Intent.ID, p.Number) }

// attemptID is what a signer knows an attempt by.
func attemptID(intent string, number int) string { return fmt.Sprintf("%s/%d", intent, number) }

func (r *IntentRow) plan() (*plan, error) {
	p := new(plan)
	if err := json.Unmarshal(r.Plan, p); err != nil {
		return nil, fmt.Errorf("outgoing: stored plan does not parse: %w", err)
	}
	return p, nil
}
