package ledger

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Asset is the code of what is counted, such as "USDTTRC20" or "ETH". Assets
// never mix: a sum over two of them has no meaning. Codes are case-sensitive.
type Asset string

// Account names one balance sheet line inside a partition.
type Account string

// The house's accounts. A merchant's money is in accounts made by Wallet.
const (
	FeesPlatform Account = "fees/platform" // what the operator earned
	FeesNetwork  Account = "fees/network"  // network fees charged, less network costs paid
	Suspense     Account = "suspense"      // money that matched nothing yet
	Float        Account = "float"         // the operator's own coins: gas, reserves
	Adjustment   Account = "adjustment"    // corrections made by a person
)

const (
	walletPrefix     = "wallet/"
	chainPrefix      = "chain/"
	receivablePrefix = "receivable/"
)

// Wallet is the account of a merchant's wallet. It has a floor.
func Wallet(id string) Account { return Account(walletPrefix + id) }

// Chain is the outside world on one network: minus what is held there.
func Chain(network string) Account { return Account(chainPrefix + network) }

// Receivable is what wallet id owes after a deep reorg took a credited deposit away.
func Receivable(id string) Account { return Account(receivablePrefix + id) }

// Floored reports whether the account keeps Held ≥ 0 and Posted − Held ≥ 0.
// Wallets do; the house's accounts have no floor.
func (a Account) Floored() bool { return strings.HasPrefix(string(a), walletPrefix) }

// WalletID is the id that Wallet was called with, and whether a is a wallet at all.
func (a Account) WalletID() (string, bool) { return strings.CutPrefix(string(a), walletPrefix) }

// Owed reports whether the account was made by Receivable.
func (a Account) Owed() bool { return strings.HasPrefix(string(a), receivablePrefix) }

// House reports whether the account is part of the house's equity: fees, float,
// receivables and adjustments. Equity of an asset ≥ 0 is the same as liabilities
// (wallets and suspense) ≤ what the chains hold.
func (a Account) House() bool {
	k := a.kind()
	return k == kindHouse || k == kindReceivable
}

// accountKind is the side of the balance sheet that an account stands on.
type accountKind uint8

const (
	kindStray accountKind = iota // not made by this package
	kindWallet
	kindChain
	kindSuspense
	kindHouse
	kindReceivable
)

func (a Account) kind() accountKind {
	switch a {
	case FeesPlatform, FeesNetwork, Float, Adjustment:
		return kindHouse
	case Suspense:
		return kindSuspense
	}
	switch {
	case strings.HasPrefix(string(a), walletPrefix):
		return kindWallet
	case strings.HasPrefix(string(a), chainPrefix):
		return kindChain
	case strings.HasPrefix(string(a), receivablePrefix):
		return kindReceivable
	}
	return kindStray
}

// Leg moves one account's balance of one asset: Posted by Delta, Held by Hold.
type Leg struct {
	Account Account
	Asset   Asset
	Delta   Amount // + on a wallet: we owe more
	Hold    Amount // + reserves, − releases
}

// Tx is a balanced set of legs that takes effect whole. Its ID is unique within
// the partition and says what caused it, such as "settle/<withdrawal>".
type Tx struct {
	ID   string
	Kind Kind
	Ref  string // the payment, withdrawal or transfer it explains
	At   time.Time
	Legs []Leg
}

// Kind is the type that histories show for a Tx.
type Kind string

// The kinds, as the balance history names them.
const (
	KindDeposit     Kind = "deposit"
	KindWithdrawal  Kind = "withdrawal"
	KindTransferIn  Kind = "transfer_in"
	KindTransferOut Kind = "transfer_out"
	KindTransfer    Kind = "transfer" // shown as transfer_in or transfer_out by the sign of its leg
	KindFee         Kind = "fee"
	KindRefund      Kind = "refund"
	KindAdjustment  Kind = "adjustment"
)

// Balance is the state of one account in one asset.
type Balance struct {
	Account Account
	Asset   Asset
	Posted  Amount
	Held    Amount
	Seq     int64 // number of entries so far, and the Seq of the last
}

// Available is what may be spent: Posted − Held. An account's floor keeps it
// representable; a house account that overflows yields the nearest bound.
func (b Balance) Available() Amount { return satSub(b.Posted, b.Held) }

// Zero reports whether nothing is posted and nothing is held.
func (b Balance) Zero() bool { return b.Posted == 0 && b.Held == 0 }

// Entry is one line of an account's history: the leg of one Tx that moved
// Posted. A pure hold makes no entry. Seq counts 1, 2, 3 … without a gap per
// account and asset.
type Entry struct {
	Account Account
	Asset   Asset
	Seq     int64
	Tx      string
	Kind    Kind
	Ref     string
	Delta   Amount
	After   Amount // Posted after this entry
	At      time.Time
}

// Shown is the kind as histories name it: a transfer goes in or out by the
// sign of its entry.
func (e Entry) Shown() Kind {
	switch {
	case e.Kind != KindTransfer:
		return e.Kind
	case e.Delta < 0:
		return KindTransferOut
	}
	return KindTransferIn
}

// Errors of the ledger. ErrUnbalanced and ErrMalformed mean a bug in the
// caller, never a customer's mistake; ErrSyntax and ErrPrecision are about a
// number that somebody typed.
var (
	ErrUnbalanced = errors.New("ledger: legs do not sum to zero")
	ErrMalformed  = errors.New("ledger: malformed transaction")
	ErrOverflow   = errors.New("ledger: amount out of range")
	ErrSyntax     = errors.New("ledger: not a plain decimal number")
	ErrPrecision  = errors.New("ledger: too many decimal places")
)

// InsufficientFundsError says which floor a Change would have broken.
type InsufficientFundsError struct {
	Account   Account
	Asset     Asset
	Available Amount // what could have been taken
	Requested Amount // what the Tx asked for
}

func (e *InsufficientFundsError) Error() string {
	return fmt.Sprintf("ledger: insufficient funds on %s: %d units of %s available, %d requested",
		e.Account, e.Available, e.Asset, e.Requested)
}

// Check says whether the Tx is well-formed: an ID, at least one leg, no empty
// or doubled leg, and Σ Delta = 0 for each asset. The error wraps ErrMalformed
// or ErrUnbalanced or ErrOverflow and names the Tx.
func (t *Tx) Check() error {
	if t.ID == "" || len(t.Legs) == 0 {
		return fmt.Errorf("%w: %q has no id or no legs", ErrMalformed, t.ID)
	}
	for i := range t.Legs {
		l := &t.Legs[i]
		if l.Account == "" || l.Asset == "" || l.Delta == 0 && l.Hold == 0 {
			return fmt.Errorf("%w: %q leg %d is empty", ErrMalformed, t.ID, i)
		}
		var sum wide
		for j := range t.Legs {
			o := &t.Legs[j]
			if o.Asset != l.Asset {
				continue
			}
			if j < i && o.Account == l.Account {
				return fmt.Errorf("%w: %q has two legs on %s in %s", ErrMalformed, t.ID, l.Account, l.Asset)
			}
			sum.add(o.Delta)
		}
		if !sum.zero() {
			return fmt.Errorf("%w: %q in %s", ErrUnbalanced, t.ID, l.Asset)
		}
	}
	return nil
}

// Entry is the line of history that the leg l of t makes, given the balance
// after it. A leg with Delta 0 makes none: do not ask.
func (t *Tx) Entry(l Leg, after Balance) Entry {
	return Entry{
		Account: l.Account, Asset: l.Asset, Seq: after.Seq,
		Tx: t.ID, Kind: t.Kind, Ref: t.Ref,
		Delta: l.Delta, After: after.Posted, At: t.At,
	}
}

// Apply returns the balance after the leg; the error is
// *InsufficientFundsError where a floor would break, or wraps ErrOverflow, or
// ErrMalformed where b is another account's or asset's balance (the zero
// Balance is anybody's); b is then unchanged.
func (b Balance) Apply(l Leg) (Balance, error) {
	err := b.Move(&l)
	return b, err
}

// Move is the one place where a leg meets a balance: Apply, in place.
func (b *Balance) Move(l *Leg) error {
	if b.Account != "" && b.Account != l.Account || b.Asset != "" && b.Asset != l.Asset {
		return fmt.Errorf("%w: a leg on %s in %s cannot move %s in %s", ErrMalformed, l.Account, l.Asset, b.Account, b.Asset)
	}
	posted, err := b.Posted.Add(l.Delta)
	if err != nil {
		return fmt.Errorf("%w: posting %d to %s in %s", err, l.Delta, l.Account, l.Asset)
	}
	held, err := b.Held.Add(l.Hold)
	if err != nil {
		return fmt.Errorf("%w: holding %d on %s in %s", err, l.Hold, l.Account, l.Asset)
	}
	if l.Account.Floored() {
		if held < 0 {
			return &InsufficientFundsError{Account: l.Account, Asset: l.Asset, Available: b.Held, Requested: satSub(0, l.Hold)}
		}
		if posted < held {
			return &InsufficientFundsError{Account: l.Account, Asset: l.Asset, Available: b.Available(), Requested: satSub(l.Hold, l.Delta)}
		}
	}
	if b.Account == "" || b.Asset == "" {
		b.Account, b.Asset = l.Account, l.Asset
	}
	b.Posted, b.Held = posted, held
	if l.Delta != 0 {
		b.Seq++
	}
	return nil
}
