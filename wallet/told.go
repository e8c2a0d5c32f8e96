package wallet

import (
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// TransferChanged is the event of a transfer that has ended.
type TransferChanged struct {
	TransferID string         `json:"transfer_id"`
	From       TransferStatus `json:"from"` // "" = it was made, and ended at once
	To         TransferStatus `json:"to"`
	WalletID   string         `json:"wallet_id"` // of the sub-account
	ExternalID string         `json:"external_id"`
	Direction  Direction      `json:"transfer_type"`
	Currency   string         `json:"currency"`
	Amount     string         `json:"amount"` // in coins
	Error      string         `json:"error,omitempty"`
}

// EventKind implements stream.Body.
func (TransferChanged) EventKind() string { return "wallet.transfer_changed" }

// Kinds reads the events of this package.
func Kinds() stream.Kinds { return stream.KindOf[TransferChanged]() }

// told is the event of a transfer that has ended; stored says that it was pending before.
func (t *Transfer) told(stored bool, scale uint8, now time.Time) (storage.Event, error) {
	b := TransferChanged{
		TransferID: t.ID, To: t.Status, WalletID: t.Wallet, ExternalID: t.ExternalID, Direction: t.Direction,
		Currency: t.Currency, Amount: t.Amount.Decimal(scale).String(), Error: t.Error,
	}
	if stored {
		b.From = TransferPending
	}
	return stream.Tell(b, t.ID, now)
}
