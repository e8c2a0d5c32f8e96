package judge

import (
	"time"

	"github.com/shopspring/decimal"
)

// Coin is a currency as its list of settings has it.
type Coin struct {
	Code, Token, Network string
	Scale                int32 // places that the books keep
	Native               bool
	Dust                 decimal.Decimal
	Confirmations        int64
	WaitFinal            bool // beyond its confirmations it waits for the network's word
}

// units is an amount in the books' units, rounded down.
func (c Coin) units(d decimal.Decimal) int64 {
	return d.Shift(c.Scale).Floor().IntPart()
}

// whole is units as whole coins.
func (c Coin) whole(units int64) decimal.Decimal { return decimal.New(units, -c.Scale) }

// Weather is which faults a world has, as far as a rule names them.
type Weather struct {
	Deep     bool            // blocks that were final may be taken back
	Restored bool            // the store was put back to an older moment
	Mistyped bool            // a price was typed wrongly
	Deaf     bool            // receivers may fail
	Purged   bool            // webhooks that have ended are forgotten after a while
	Thrift   bool            // operators bring only what shown reasons ask for
	Aged     bool            // nothing expires while a node stands still, and no block that was left counts again
	Fresh    string          // the coin that a rolling deployment brought
	Taxed    map[string]bool // coins of which an issuer took something from holders
	Took     map[string]bool // withdrawals that brought less, and were completed by an operator
	Crumbs   bool            // merchants are paid in many small pieces
	Lossy    bool            // a process may lose what it did: the store fails, or processes die or sleep
	Skew     time.Duration
}

// Scene is what can be seen at one moment.
type Scene struct {
	Now     time.Time
	Weather Weather
	// End says that the faults are over and that what was open has had its time.
	End bool
	// Calm is for how long the faults have been over.
	Calm time.Duration
	// Stepped is when a process last did all that was due, with nothing in its way;
	// zero = something was.
	Stepped time.Time
	// Risen are withdrawals that were ordered right after the fees of their network had
	// risen, Sieged those ordered right before: both more than a day ago. nil = no such day.
	Risen, Sieged map[string]bool
	// Edited are withdrawals of which a row was edited in the database, before anything of
	// them was signed. They are shown here as they were ordered.
	Edited map[string]Edit
	Spared map[string]bool // withdrawals that may stay open, as promises of their own are asked of them
	// Halted are the coins whose payouts the library has halted.
	Halted map[string]bool
	Named  []Named // what the library said is on the chain otherwise than in the books
	Shops  []Shop
	Houses []House // of each network, and of the system; at the end
	Chains []Chain
	Prices map[string]decimal.Decimal   // in USD, by token
	Quoted map[string][]decimal.Decimal // every price that was ever given
}

// Named is a difference between the books and the chain of which the host was told.
type Named struct{ Coin, What string }

// Edit is what became of a withdrawal that was edited in the database.
type Edit struct {
	Thief string // the address that it was to pay
	Named bool   // Verify names it; asked at the end
}

// Shop is a merchant with all that the public views show it.
type Shop struct {
	ID        string
	Fee       decimal.Decimal // percent of what is received
	OutFee    decimal.Decimal // percent of a withdrawal's figure
	Deaf      bool            // its receiver never answers
	Payments  []Payment
	Addresses []Address // permanent ones
	Payouts   []Payout
	Lists     []Listed // lists of payouts
	Transfers []Transfer
	Wallets   []Wallet
	Overview  map[string]Total // of the sub-accounts, by coin
	Lines     []Line
	Counts    Counts
	Earned    map[string]int64 // platform fees by coin
	Taken     []Taken          // out of those
	Suspense  []Suspended
	Resting   []Resting
	Hot       map[string]int64 // what its hot addresses hold, by coin
	Outbox    []Letter
	Sent      []Letter          // those that were delivered, where it was Verified
	Owed      map[string]int64  // what wallets owe, by "wallet/coin", as the ledger has it: 0 or less
	Held      map[string]int64  // what the ledger says that the chain holds, by "network/coin"
	Left      map[string]int64  // refunds out of suspense, by coin: paid by people, outside
	Books     map[string]Booked // all that the ledger has, by "account/coin"
	Aside     map[string]int64  // for gas, by coin
	Verified  bool              // the library was asked to verify its books
	Findings  []string          // that it found
}

// Taken are platform fees that an operator has taken out.
type Taken struct {
	ID, Status, Coin, Address string
	Amount                    int64
}

// Payment is a payment's view.
type Payment struct {
	ID, Status, Coin, Address, Wallet, Tx   string
	AddressID                               string // of the permanent address, "" = it has one of its own
	OrderID                                 string
	Due, Received, Net, Platform, Network   int64
	Quoted                                  int64 // network fee that was quoted
	Tolerance                               int64 // how much less than due is full
	Type                                    string
	Rate, Percent, Price                    decimal.Decimal
	ByUser, Fixed, Cancelled                bool
	Value                                   string // merchant_received_usd
	Created, Expires                        time.Time
	ShownReceived, ShownPending, ShownShort int64
	Deposits                                []Deposit
}

// Deposit is a transfer that counts for a payment, as its list of deposits has it.
type Deposit struct {
	ID, Tx      string
	Amount, Net int64
	Final, Gone bool
	Credited    bool
}

// Payout is a withdrawal's view.
type Payout struct {
	ID, Status, Coin, Address, CustomID, Wallet, Tx string
	Requested, Amount, Platform, Network            int64
	Reason                                          string // why it waits, as shown
	Since, Created, Completed                       time.Time
}

// Listed is the view of a list of payouts.
type Listed struct {
	ID    string
	Lines []Payout       // in the order in which it shows them; nil = there is none of this id
	Count map[string]int // by status
}

// open reports whether a withdrawal still holds money.
func (p *Payout) open() bool { return p.Status == pending || p.Status == processing }

// Transfer is one between a merchant's own accounts.
type Transfer struct {
	ID, Status, Direction, Wallet, Coin string
	Amount                              int64
}

// Wallet is an account with its balances and its history, newest first.
type Wallet struct {
	ID       string
	Balances map[string]Balance
	History  []Entry
	Count    int64 // that the history says there are
}

// Balance is one of a wallet in one coin.
type Balance struct{ Amount, Pending, Available int64 }

// Total is what all sub-accounts have of one coin.
type Total struct{ Amount, Pending int64 }

// Entry is one line of a wallet's history.
type Entry struct {
	Coin, Kind, Ref string
	Amount, After   int64
}

// Line is one of the unified history.
type Line struct {
	ID, Kind, Status, Coin, Reference string
	Amount, Fee, Net                  int64
}

// Counts are what lists and statistics count.
type Counts struct {
	Payments, Payouts, Lines         int64 // totals beside lists
	StatPayments, StatPayouts        map[string]int64
	Deposits, Withdrawals, SubWallet int64 // of the overview
}

// Suspended is money that matched nothing.
type Suspended struct {
	ID, Coin, Address, Tx, Reason string
	Amount                        int64
}

// Resting is coins on a deposit address that wait to be forwarded.
type Resting struct {
	Address, Coin, Reason string
	Since, Next           time.Time
	Amount, DueBelow      int64
}

// Letter is a webhook: of Shop.Outbox one that was not delivered, yet or for good, of Shop.Sent one that was.
type Letter struct {
	ID, Object, Body string
	Seq              int64 // of its object's events
	Attempts         int
	Failed, Done     bool
	Error            string
	Created, Next    time.Time
	Ended            time.Time // when it was given up
}

// Chain is a network as it is, read past the library.
type Chain struct {
	Network string
	Outputs bool // it keeps outputs, not accounts
	Height  int64
	Undone  int                  // how many forks took blocks back that were final
	Word    int64                // blocks above one at which the network calls it final; 0 = never
	Moves   []Move               // all that really moved on the branch that counts, oldest first
	Sent    []Sent               // what the library broadcast and a block holds
	First   map[string]time.Time // when an outside transaction was first sent
	Unseen  map[string]bool      // outside transactions that nobody can have seen before they were mined
	Own     map[string]bool      // addresses that are the library's
	Hot     map[string]bool      // those of them that withdrawals are paid from
	Held    map[string]decimal.Decimal
	Stuck   map[string]map[string]decimal.Decimal // what deposit addresses hold, by address and coin
	Halted  bool
	Blind   bool // what transactions cost is not known, nor which were reverted
	// Normal says that for a day fees have been at or below their median of seven days.
	Normal  bool
	Forward map[string]decimal.Decimal // what forwarding a coin costs now, in the network's own coin
}

// Move is one movement of value.
type Move struct {
	Tx, From, To, Coin string
	Ordinal            int // place in its transaction
	Amount             decimal.Decimal
	Height             int64
	Time               time.Time
}

// Sent is a transaction of the library's in a block.
type Sent struct {
	Tx       string
	Cost     int64 // in units of the network's own coin
	Executed bool
	From     string // of an account network, where it is known
}
