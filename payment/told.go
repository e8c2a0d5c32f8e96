package payment

import (
	"time"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// Changed is the event of a payment that was made or has changed its status. Amounts are
// in coins of Currency.
type Changed struct {
	PaymentID string `json:"payment_id"`
	From      Status `json:"from"` // "" = it was made
	To        Status `json:"to"`
	OrderID   string `json:"order_id,omitempty"`
	CustomID  string `json:"custom_id,omitempty"`
	AddressID string `json:"address_id,omitempty"` // of the permanent address
	WalletID  string `json:"wallet_id"`
	Network   string `json:"network"`
	Currency  string `json:"currency"`
	Address   string `json:"address"`
	Due       string `json:"due"`      // what the customer must send
	Live      string `json:"live"`     // what came and counts, final or not
	Received  string `json:"received"` // what was booked of it
	Net       string `json:"net"`      // what the wallet got of that
	Tx        string `json:"tx,omitempty"`
}

// EventKind implements stream.Body.
func (Changed) EventKind() string { return "payment.changed" }

// DepositChanged is the event of a deposit that was seen for the first time, or of which
// the role or the booking has changed, or which is gone from the chain or is back. What
// came late, in a wrong asset or for no payment has such a Role; its money is in suspense
// where Booking says so.
type DepositChanged struct {
	DepositID string         `json:"deposit_id"`
	PaymentID string         `json:"payment_id,omitempty"` // "" = it counts for none
	Role      Role           `json:"role"`
	Booking   Booking        `json:"booking"`
	State     incoming.State `json:"state"`
	Was       struct {
		Role    Role           `json:"role,omitempty"` // "" = it was not known
		Booking Booking        `json:"booking"`
		State   incoming.State `json:"state,omitempty"`
	} `json:"was"`
	Network  string `json:"network"`
	Currency string `json:"currency"`           // "" = it is not listed: see Contract
	Contract string `json:"contract,omitempty"` // of a token
	Address  string `json:"address"`
	From     string `json:"from,omitempty"`
	Memo     string `json:"memo,omitempty"`
	Tx       string `json:"tx"`
	Amount   string `json:"amount"` // as the chain has it
	WalletID string `json:"wallet_id,omitempty"`
	// Screen and ScreenReason are what Config.Screen said of it; "" = it was not asked.
	Screen       Verdict `json:"screen,omitempty"`
	ScreenReason string  `json:"screen_reason,omitempty"`
}

// EventKind implements stream.Body.
func (DepositChanged) EventKind() string { return "payment.deposit_changed" }

// AddressChanged is the event of a permanent address that was made, was retired, or is in use
// again.
type AddressChanged struct {
	AddressID  string `json:"address_id"`
	ExternalID string `json:"external_id"`
	WalletID   string `json:"wallet_id"`
	Network    string `json:"network"`
	Address    string `json:"address"`
	Retired    bool   `json:"retired"` // false = it is in use
}

// EventKind implements stream.Body.
func (AddressChanged) EventKind() string { return "payment.address_changed" }

func toldAddress(a *PermanentAddress, now time.Time) (storage.Event, error) {
	return stream.Tell(AddressChanged{
		AddressID: a.ID, ExternalID: a.ExternalID, WalletID: a.Wallet, Network: a.Network, Address: a.Address, Retired: !a.RetiredAt.IsZero(),
	}, a.ID, now)
}

// Kinds reads the events of this package.
func Kinds() stream.Kinds {
	return stream.Join(stream.KindOf[Changed](), stream.KindOf[DepositChanged](), stream.KindOf[AddressChanged]())
}

// tellMove notes a change of status, as it stands after it.
func (x *decision) tellMove(from Status) error {
	e, err := told(&x.p, from, x.now)
	x.told = append(x.told, e)
	return err
}

// told is the event of a payment that is new, or has changed its status.
func told(p *Payment, from Status, now time.Time) (storage.Event, error) {
	coins := func(a ledger.Amount) string { return a.Decimal(uint8(p.Scale)).String() }
	return stream.Tell(Changed{
		PaymentID: p.ID, From: from, To: p.Status, OrderID: p.OrderID, CustomID: p.CustomID, AddressID: p.AddressID, WalletID: p.Wallet,
		Network: p.Network, Currency: p.Currency, Address: p.Address, Due: coins(p.Due), Live: coins(p.Live),
		Received: coins(p.Received), Net: coins(p.Net), Tx: p.Tx,
	}, p.ID, now)
}

// tell is the event of a deposit, where there is one to tell.
func (e *entry) tell(now time.Time) ([]storage.Event, error) {
	d, was := &e.d, &e.was
	gone := (d.State == incoming.Gone) != (was.State == incoming.Gone)
	if d.Role == was.Role && d.Booking == was.Booking && !gone {
		return nil, nil
	}
	b := DepositChanged{
		DepositID: d.ID, PaymentID: d.Payment, Role: d.Role, Booking: d.Booking, State: d.State, Network: d.Network, Currency: d.Currency,
		Contract: d.Contract, Address: d.Address, From: d.From, Memo: d.Memo, Tx: d.Tx, Amount: d.Exact.String(), WalletID: d.Wallet,
	}
	if d.Screen != "" {
		b.Screen, b.ScreenReason = d.Screen, d.ScreenReason
	}
	b.Was.Role, b.Was.Booking, b.Was.State = was.Role, was.Booking, was.State
	object := d.Payment
	if object == "" {
		object = d.ID
	}
	v, err := stream.Tell(b, object, now)
	return []storage.Event{v}, err
}
