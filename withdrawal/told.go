package withdrawal

import (
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// Changed is the event of a withdrawal that was made or has changed its status. Amounts
// are in coins of Currency.
type Changed struct {
	WithdrawalID string `json:"withdrawal_id"`
	From         Status `json:"from"` // "" = it was made
	To           Status `json:"to"`
	CustomID     string `json:"custom_id,omitempty"`
	WalletID     string `json:"wallet_id"`
	Network      string `json:"network"`
	Currency     string `json:"currency"`
	Address      string `json:"address"`
	Requested    string `json:"requested"` // what leaves the wallet
	Amount       string `json:"amount"`    // what the recipient gets
	Tx           string `json:"tx,omitempty"`
	Reason       string `json:"reason,omitempty"` // why it failed
	RequestedBy  string `json:"requested_by,omitempty"`
}

// EventKind implements stream.Body.
func (Changed) EventKind() string { return "withdrawal.changed" }

// WaitChanged is the event of a withdrawal that has another reason to wait, or none any more,
// or that has waited for Config.StuckAfter.
type WaitChanged struct {
	WithdrawalID string    `json:"withdrawal_id"`
	CustomID     string    `json:"custom_id,omitempty"`
	Status       Status    `json:"status"`
	Reason       string    `json:"reason"` // "" = it waits for nothing that is known
	Was          string    `json:"was"`
	Since        time.Time `json:"since,omitzero"`
	Long         bool      `json:"long,omitempty"` // a person should look: it has waited for Config.StuckAfter
}

// EventKind implements stream.Body.
func (WaitChanged) EventKind() string { return "withdrawal.wait_changed" }

// Decided is the event of a person's decision about a withdrawal: Approve or Refuse.
type Decided struct {
	WithdrawalID string    `json:"withdrawal_id"`
	CustomID     string    `json:"custom_id,omitempty"`
	Decision     Answer    `json:"decision"`
	By           string    `json:"by"`
	Reason       string    `json:"reason,omitempty"`
	RequestedBy  string    `json:"requested_by,omitempty"`
	At           time.Time `json:"at"`
}

// EventKind implements stream.Body.
func (Decided) EventKind() string { return "withdrawal.decided" }

// decided is the event of a decision.
func decided(w *Withdrawal, d *Decision, now time.Time) (storage.Event, error) {
	return stream.Tell(Decided{
		WithdrawalID: w.ID, CustomID: w.CustomID, Decision: d.Answer, By: d.By, Reason: d.Reason, RequestedBy: w.RequestedBy, At: d.At,
	}, w.ID, now)
}

// Kinds reads the events of this package.
func Kinds() stream.Kinds {
	return stream.Join(stream.KindOf[Changed](), stream.KindOf[WaitChanged](), stream.KindOf[Decided]())
}

// told is the event of a withdrawal that is new, or has changed its status.
func told(w *Withdrawal, from Status, c *chain.Currency, now time.Time) (storage.Event, error) {
	return stream.Tell(Changed{
		WithdrawalID: w.ID, From: from, To: w.Status, CustomID: w.CustomID, WalletID: w.Wallet, Network: w.Network, Currency: w.Currency,
		Address: w.Address, Requested: c.Decimal(w.Requested).String(), Amount: c.Decimal(w.Amount).String(), Tx: w.Tx, Reason: w.Reason, RequestedBy: w.RequestedBy,
	}, w.ID, now)
}

// tell are the events of a decision: of each change of status, and of a new reason to wait.
func (m *move) tell() ([]storage.Event, error) {
	if m.w.Waiting == m.was.Waiting {
		return m.told, nil
	}
	e, err := waits(&m.w, m.was.Waiting, false, m.now)
	return append(m.told, e), err
}

// waits is the event of what a withdrawal waits for.
func waits(w *Withdrawal, was string, long bool, now time.Time) (storage.Event, error) {
	return stream.Tell(WaitChanged{
		WithdrawalID: w.ID, CustomID: w.CustomID, Status: w.Status, Reason: w.Waiting, Was: was, Since: w.WaitingSince, Long: long,
	}, w.ID, now)
}
