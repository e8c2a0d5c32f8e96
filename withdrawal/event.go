package withdrawal

import (
	"encoding/json"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// Update is the data of a withdrawal_status_update. Amounts have 8 places.
type Update struct {
	WithdrawalID    string   `json:"withdrawal_id"`
	Status          Status   `json:"status"`
	PreviousStatus  Status   `json:"previous_status"`
	Amount          string   `json:"amount"`
	Currency        string   `json:"currency"`
	Address         string   `json:"address"`
	TransactionHash *string  `json:"transaction_hash"`
	NetworkFee      string   `json:"network_fee"`
	CustomID        *string  `json:"custom_id"`
	Metadata        Metadata `json:"metadata"`
}

// Metadata of an Update. ProcessedAt is null until the withdrawal was signed.
type Metadata struct {
	ProcessedAt *string `json:"processed_at"`
}

// places is how many the interface shows of a crypto amount.
const places = 8

func update(w *Withdrawal, previous Status, c *chain.Currency) Update {
	u := Update{
		WithdrawalID: w.ID, Status: w.Status, PreviousStatus: previous,
		Amount: w.Amount.Format(c.Scale, places), Currency: w.Currency, Address: w.Address,
		TransactionHash: orNull(w.Tx), NetworkFee: w.NetworkFee.Format(c.Scale, places), CustomID: orNull(w.CustomID),
	}
	if !w.ProcessedAt.IsZero() {
		u.Metadata.ProcessedAt = orNull(webhook.Timestamp(w.ProcessedAt))
	}
	return u
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// event is the outbox row of the change of status that w has just made.
func event(w *Withdrawal, previous Status, c *chain.Currency, now time.Time) (storage.Row, error) {
	return webhook.NewEvent(webhook.WithdrawalStatusUpdate, w.ID, w.Seq, w.CallbackURL, update(w, previous, c), now)
}

// activity is the withdrawal's line of the unified history.
func activity(w *Withdrawal, c *chain.Currency) storage.Activity {
	metadata, err := json.Marshal(struct {
		CustomID   *string `json:"custom_id"`
		NetworkFee string  `json:"network_fee"`
	}{orNull(w.CustomID), w.NetworkFee.Format(c.Scale, places)})
	if err != nil {
		metadata = nil // strings always encode
	}
	return storage.Activity{
		Kind: storage.ActivityWithdrawal, Status: string(w.Status), Currency: ledger.Asset(w.Currency),
		Amount: w.Requested, Fee: w.Fee(), Net: w.Amount, Address: w.Address, TxHash: w.Tx, Reference: w.CustomID,
		CreatedAt: w.CreatedAt, UpdatedAt: w.UpdatedAt, Metadata: metadata,
	}
}
