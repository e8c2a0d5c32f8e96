package payment

import (
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// feePlaces bounds how finely a fee percentage may be given.
const feePlaces = 6

// split is what becomes of the received sum of a payment.
type split struct{ net, platform, network ledger.Amount }

// CheckFee says whether a transaction fee is a percentage that can be charged:
// 0 to 100 with at most 6 places.
func CheckFee(percent decimal.Decimal) error {
	if percent.Sign() < 0 || percent.GreaterThan(hundred) || !percent.Equal(percent.Truncate(feePlaces)) {
		return fmt.Errorf("payment: transaction fee %s is not a percentage from 0 to 100 with at most %d places", ledger.PlainString(percent), feePlaces)
	}
	return nil
}

var (
	hundred     = decimal.New(100, 0)
	feeUnits, _ = ledger.FromDecimal(hundred, feePlaces, ledger.Down)
)

// divide splits a received sum: the network fee first, at most all of it, then
// the platform's percentage of the whole (fee by merchant) or of what it was
// added to (fee by user); the wallet gets the rest.
func (p *Payment) divide(received ledger.Amount) (split, error) {
	percent, err := ledger.FromDecimal(p.FeePercent, feePlaces, ledger.Down)
	if err != nil {
		return split{}, err
	}
	network := min(p.NetworkFee, received)
	rest := received - network
	var platform ledger.Amount
	if p.FeeByUser {
		platform, err = rest.MulDiv(uint64(percent), uint64(feeUnits+percent), ledger.Down)
	} else {
		platform, err = received.MulDiv(uint64(percent), uint64(feeUnits), ledger.Down)
		platform = min(platform, rest)
	}
	return split{net: rest - platform, platform: platform, network: network}, err
}

// creditable are the bookings of money that can go to a wallet. Money with any other booking is in
// a wallet already, or a person has dealt with it.
var creditable = []Booking{Unbooked, Reversed, InSuspense}

// credit posts every counted deposit that is final and stands in no account
// yet, in the order of first sighting: each the difference that it makes to
// what the whole received sum is split into.
func (x *decision) credit() error {
	for _, e := range x.deposits {
		d := &e.d
		if !d.Role.counted() || !d.Proven || !d.live() || !slices.Contains(creditable, d.Booking) {
			continue
		}
		if d.Rate.Sign() <= 0 { // there was no price when its last fact came
			d.Rate = x.price
		}
		if d.Rate.Sign() <= 0 {
			return errNoPrice
		}
		received, err := x.p.Received.Add(d.Amount)
		if err != nil {
			return err
		}
		kind, from := "credit", ledger.Chain(d.Network)
		if d.Booking == InSuspense { // where it waited for the rest of the minimum
			kind, from = "resolve", ledger.Suspense
		}
		debtor := d.Wallet
		d.Wallet, d.Booking = x.wallet, InWallet
		if err := x.repost(e, kind, ledger.KindDeposit, from, received); err != nil {
			return err
		}
		if err := x.recover(e, debtor, d.Net); err != nil {
			return err
		}
	}
	return nil
}

// repost brings what was posted for the payment to a new received sum. The difference comes
// from an account.
func (x *decision) repost(e *entry, kind string, k ledger.Kind, from ledger.Account, received ledger.Amount) error {
	d, p := &e.d, &x.p
	to, err := p.divide(received)
	if err != nil {
		return err
	}
	net := to.net - p.Net
	tx := ledger.Tx{ID: d.generated(kind), Kind: k, Ref: p.ID, At: x.now}
	tx.Legs = legs(d.Currency, from, p.Received-received)
	if taken := max(net, -x.available); net < 0 && taken != net {
		tx.Legs = append(tx.Legs, legs(d.Currency, ledger.Wallet(d.Wallet), taken)...)
		tx.Legs = append(tx.Legs, legs(d.Currency, ledger.Receivable(d.Wallet), net-taken)...)
		d.Owed += taken - net
	} else {
		tx.Legs = append(tx.Legs, legs(d.Currency, ledger.Wallet(d.Wallet), net)...)
	}
	tx.Legs = append(tx.Legs, legs(d.Currency, ledger.FeesPlatform, to.platform-p.Platform)...)
	tx.Legs = append(tx.Legs, legs(d.Currency, ledger.FeesNetwork, to.network-p.NetworkTaken)...)
	d.Net, d.Platform, d.NetworkTaken = 0, 0, 0
	if net >= 0 {
		d.Net, d.Platform, d.NetworkTaken = net, to.platform-p.Platform, to.network-p.NetworkTaken
	}
	p.Received, p.Net, p.Platform, p.NetworkTaken = received, to.net, to.platform, to.network
	p.ReceivedValue = p.ReceivedValue.Add(net.Decimal(uint8(p.Scale)).Mul(d.Rate))
	if p.Net == 0 || p.ReceivedValue.Sign() < 0 {
		p.ReceivedValue = decimal.Decimal{}
	}
	return x.post(tx)
}

// recover lets a deposit that is back repay what its reversal left its wallet
// owing, as far as what it brings reaches.
func (x *decision) recover(e *entry, debtor string, brings ledger.Amount) error {
	d := &e.d
	owed := min(d.Owed, brings)
	if owed <= 0 {
		return nil
	}
	d.Owed -= owed
	return x.post(ledger.Tx{
		ID: d.generated("recover"), Kind: ledger.KindAdjustment, Ref: x.ref(e), At: x.now,
		Legs: append(legs(d.Currency, ledger.Wallet(d.Wallet), -owed), legs(d.Currency, ledger.Receivable(debtor), owed)...),
	})
}

// book puts a final deposit that counts for no payment into suspense. One that
// was refunded by a person before a reorg took it away stays refunded.
func (x *decision) book(e *entry) error {
	d := &e.d
	if !d.Proven || d.Booking != Unbooked && d.Booking != Reversed && d.Booking != Written {
		return nil
	}
	account := ledger.Suspense
	if d.Booking == Written {
		d.Booking, account = Refunded, ledger.Adjustment
	} else {
		d.Booking = InSuspense
		if d.Role != RoleSmall { // that waits for more, not for a person
			x.alert(AlertSuspense, e, "money that matches no payment was booked to suspense: "+string(d.Role)+d.said())
		}
	}
	return x.post(ledger.Tx{
		ID: d.generated("credit"), Kind: ledger.KindDeposit, Ref: x.ref(e), At: x.now,
		Legs: append(legs(d.Currency, ledger.Chain(d.Network), -d.Amount), legs(d.Currency, account, d.Amount)...),
	})
}

// takeBack reverses what is booked for a deposit that its chain has taken away.
func (x *decision) takeBack(e *entry) error {
	d := &e.d
	if d.Booking == Unbooked || d.Booking == Reversed || d.Booking == Written {
		return nil
	}
	x.alert(AlertReversed, e, "a reorg took a final deposit away; its posting was reversed")
	if d.Booking == InWallet {
		if err := Machine.Move(x.p.Status, onReversed, x.p.Status); err != nil {
			return err
		}
		d.Booking = Reversed
		return x.repost(e, "reverse", ledger.KindAdjustment, ledger.Chain(d.Network), x.p.Received-d.Amount)
	}
	tx := ledger.Tx{ID: d.generated("reverse"), Kind: ledger.KindAdjustment, Ref: x.ref(e), At: x.now}
	tx.Legs = legs(d.Currency, ledger.Chain(d.Network), d.Amount)
	after := Reversed
	switch d.Booking {
	case Resolved:
		taken := min(d.Amount, x.available)
		d.Owed += d.Amount - taken
		tx.Legs = append(tx.Legs, legs(d.Currency, ledger.Wallet(d.Wallet), -taken)...)
		tx.Legs = append(tx.Legs, legs(d.Currency, ledger.Receivable(d.Wallet), taken-d.Amount)...)
	case Refunded:
		after = Written
		tx.Legs = append(tx.Legs, legs(d.Currency, ledger.Adjustment, -d.Amount)...)
	default:
		tx.Legs = append(tx.Legs, legs(d.Currency, ledger.Suspense, -d.Amount)...)
	}
	d.Booking = after
	return x.post(tx)
}

var errUnbacked = errors.New("payment: a posting would owe more than the chain brought")

// post adds a transaction, after it has made sure of what is never to happen:
// that more is owed to wallets and suspense than came from the chain.
func (x *decision) post(tx ledger.Tx) error {
	if err := tx.Check(); err != nil {
		return err
	}
	x.posts = append(x.posts, tx)
	return backed(&tx)
}

// backed: of every credit, what wallets and suspense get is at most what the
// chain brought in.
func backed(tx *ledger.Tx) error {
	owed, brought := new(big.Int), new(big.Int)
	for _, l := range tx.Legs {
		if _, wallet := l.Account.WalletID(); wallet || l.Account == ledger.Suspense {
			owed.Add(owed, big.NewInt(int64(l.Delta)))
		} else if !l.Account.House() {
			brought.Sub(brought, big.NewInt(int64(l.Delta)))
		}
	}
	if owed.Sign() > 0 && owed.Cmp(brought) > 0 {
		return fmt.Errorf("%w: %s", errUnbacked, tx.ID)
	}
	return nil
}

// legs is one leg, or none where nothing moves.
func legs(currency string, a ledger.Account, delta ledger.Amount) []ledger.Leg {
	if delta == 0 {
		return nil
	}
	return []ledger.Leg{{Account: a, Asset: ledger.Asset(currency), Delta: delta}}
}

// ref is what histories say that a posting is about.
func (x *decision) ref(e *entry) string {
	if e.d.Role.counted() {
		return x.p.ID
	}
	return e.d.ID
}
