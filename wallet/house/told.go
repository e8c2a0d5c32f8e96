package house

import (
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// PaymentChanged is the event of a house payment: it was made, has another status, waits for
// another reason, or, with Long, has waited for so long that a person should look. Amount is in coins of Currency.
type PaymentChanged struct {
	PaymentID string         `json:"payment_id"`
	From      Status         `json:"from"` // "" = it was made
	To        Status         `json:"to"`
	Source    ledger.Account `json:"source"` // that pays: fees/platform, float, or cold/<network> for a move there
	Network   chain.Network  `json:"network"`
	Currency  string         `json:"currency"`
	Address   string         `json:"address"`
	Amount    string         `json:"amount"`
	Tx        string         `json:"tx,omitempty"`
	Waiting   string         `json:"waiting,omitempty"` // what it waits for
	Since     time.Time      `json:"since,omitzero"`    // when that began
	Long      bool           `json:"long,omitempty"`    // it has waited for withdrawal.Config.StuckAfter
	Reason    string         `json:"reason,omitempty"`  // why it failed
	By        string         `json:"by"`                // who asked for it
}

// EventKind implements stream.Body.
func (PaymentChanged) EventKind() string { return "house.payment_changed" }

// Kinds reads the events of this package.
func Kinds() stream.Kinds { return stream.KindOf[PaymentChanged]() }

// told is the event of a payment that was in another status before.
func (s *Service) told(p *Payment, from Status, now time.Time) (storage.Event, error) {
	return stream.Tell(PaymentChanged{
		PaymentID: p.ID, From: from, To: p.Status, Source: p.Source, Network: chain.Network(p.Network), Currency: p.Currency,
		Address: p.Address, Amount: s.coins(p.Currency, p.Amount), Tx: p.Tx, Waiting: p.Waiting, Since: p.WaitingSince, Long: p.Long, Reason: p.Reason, By: p.By,
	}, p.ID, now)
}

// coins is an amount in coins, "" where this process does not list the currency.
func (s *Service) coins(currency string, a ledger.Amount) string {
	c, err := s.c.Registry.Currency(currency)
	if err != nil {
		return ""
	}
	return c.Decimal(a).String()
}
