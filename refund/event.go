package refund

import (
	"context"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// Changed is the event of a refund that was made or has changed its status. Amount is in coins
// of Currency.
type Changed struct {
	RefundID     string `json:"refund_id"`
	From         Status `json:"from"` // "" = it was made
	To           Status `json:"to"`
	PaymentID    string `json:"payment_id,omitempty"`
	DepositID    string `json:"deposit_id,omitempty"` // of money that was in suspense
	WithdrawalID string `json:"withdrawal_id,omitempty"`
	WalletID     string `json:"wallet_id"`
	Network      string `json:"network"`
	Currency     string `json:"currency"`
	Amount       string `json:"amount"`
	Address      string `json:"address,omitempty"`
	Reason       string `json:"reason,omitempty"`
	Failure      string `json:"failure,omitempty"`
	RequestedBy  string `json:"requested_by,omitempty"`
}

// EventKind implements stream.Body.
func (Changed) EventKind() string { return "refund.changed" }

// WaitChanged is the event of a refund that still waits for an address, and for another
// reason: the customer named one, and it could not be paid.
type WaitChanged struct {
	RefundID  string    `json:"refund_id"`
	PaymentID string    `json:"payment_id,omitempty"`
	Reason    string    `json:"reason"` // one of the Waiting… constants
	Was       string    `json:"was"`
	Since     time.Time `json:"since"`
}

// EventKind implements stream.Body.
func (WaitChanged) EventKind() string { return "refund.wait_changed" }

// Kinds reads the events of this package.
func Kinds() stream.Kinds { return stream.Join(stream.KindOf[Changed](), stream.KindOf[WaitChanged]()) }

func told(r *Refund, from Status, now time.Time) (storage.Event, error) {
	return stream.Tell(Changed{
		RefundID: r.ID, From: from, To: r.Status, PaymentID: r.Payment, DepositID: r.Deposit, WithdrawalID: r.Withdrawal, WalletID: r.Wallet,
		Network: r.Network, Currency: r.Currency, Amount: r.Coins().String(), Address: r.Address, Reason: r.Reason, Failure: r.Failure,
		RequestedBy: r.RequestedBy,
	}, r.ID, now)
}

// Record is a refund as views and webhooks show it. Amount has 8 places.
type Record struct {
	RefundID      string  `json:"refund_id" format:"uuid"`
	TransactionID *string `json:"transaction_id" format:"uuid" about:"The payment whose money is given back; null of money in suspense."`
	SuspenseID    *string `json:"suspense_id" about:"The entry of suspense whose money is given back; null of a payment's."`
	WithdrawalID  *string `json:"withdrawal_id" format:"uuid" about:"What pays it; null until there is an address."`
	Status        Status  `json:"status" rule:"enum=awaiting_address|pending|processing|completed|failed|cancelled" about:"awaiting_address: the customer has a claim link. Else what its withdrawal is."`
	Amount        string  `json:"amount" format:"decimal" about:"What leaves the wallet, 8 places. The fees of the withdrawal come off it, the customer gets the rest."`
	Currency      string  `json:"currency"`
	Address       *string `json:"address"`
	Memo          *string `json:"memo"`
	Reason        *string `json:"reason"`
	FailureReason *string `json:"failure_reason" about:"Why it failed or was cancelled; expired = the claim link was not used in time. null = it did not, or was cancelled on demand."`
	WaitingReason *string `json:"waiting_reason" about:"What a refund without an address waits for: address; insufficient_balance or payout, where the customer named one, and the wallet could not pay, or no withdrawal could be made: he can try again. Else null: the withdrawal says what it waits for."`
	WaitingSince  *string `json:"waiting_since" format:"date-time"`
	ExpiresAt     *string `json:"expires_at" format:"date-time" about:"When the claim link ends; null where there is none."`
	CallbackURL   *string `json:"callback_url"`
	CreatedAt     string  `json:"created_at" format:"date-time"`
	UpdatedAt     string  `json:"updated_at" format:"date-time"`
}

// Update is the data of a refund_update.
type Update struct {
	Record
	PreviousStatus Status `json:"previous_status"`
}

// places is how many the interface shows of a crypto amount.
const places = 8

// Record writes the refund out.
func (r *Refund) Record() Record {
	v := Record{
		RefundID: r.ID, TransactionID: orNull(r.Payment), SuspenseID: orNull(strings.ReplaceAll(r.Deposit, "/", "~")), WithdrawalID: orNull(r.Withdrawal),
		Status: r.Status, Amount: r.Amount.Format(uint8(r.Scale), places), //nolint:gosec // a scale is at most 8
		Currency: r.Currency, Address: orNull(r.Address), Memo: orNull(r.Memo), Reason: orNull(r.Reason), FailureReason: orNull(r.Failure),
		WaitingReason: orNull(r.Waiting), CallbackURL: orNull(r.CallbackURL), CreatedAt: webhook.Timestamp(r.CreatedAt), UpdatedAt: webhook.Timestamp(r.UpdatedAt),
	}
	if r.Waiting != "" {
		v.WaitingSince = orNull(webhook.Timestamp(r.WaitingSince))
	}
	if !r.ExpiresAt.IsZero() {
		v.ExpiresAt = orNull(webhook.Timestamp(r.ExpiresAt))
	}
	return v
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// announce adds the refund_update of a change of status, where somebody gets it.
func (s *Service) announce(ctx context.Context, tenant string, r *Refund, from Status, now time.Time, c *storage.Change) error {
	if r.CallbackURL == "" {
		if wanted, err := s.c.Wanted(ctx, tenant, webhook.RefundUpdate); err != nil || !wanted {
			return err
		}
	}
	r.Seq++
	row, err := webhook.NewEvent(webhook.RefundUpdate, r.ID, r.Seq, r.CallbackURL, Update{r.Record(), from}, now)
	if err == nil {
		webhook.Put(c, row)
	}
	return err
}
