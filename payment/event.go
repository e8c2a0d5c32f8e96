package payment

import (
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// StatusUpdate is the data of payment_status_update. Crypto amounts have 8
// places, fiat amounts 2.
type StatusUpdate struct {
	TransactionID       string         `json:"transaction_id"`
	Status              Status         `json:"status"`
	PreviousStatus      Status         `json:"previous_status"`
	PaymentType         *Type          `json:"payment_type"` // null before anything came
	OrderID             string         `json:"order_id"`
	PriceAmount         string         `json:"price_amount"`
	PriceCurrency       string         `json:"price_currency"`
	PayAmount           string         `json:"pay_amount"`
	PayCurrency         string         `json:"pay_currency"`
	BlockchainAddress   string         `json:"blockchain_address"`
	TransactionHash     *string        `json:"transaction_hash"`
	Confirmations       int64          `json:"confirmations"`
	MerchantReceivedUSD string         `json:"merchant_received_usd"`
	PaymentHistory      []HistoryItem  `json:"payment_history"`
	Metadata            UpdateMetadata `json:"metadata"`
}

// HistoryItem is one counted deposit in a StatusUpdate.
type HistoryItem struct {
	DepositID       string `json:"deposit_id"`
	Amount          string `json:"amount"`
	TransactionHash string `json:"transaction_hash"`
	Confirmations   int64  `json:"confirmations"`
	Timestamp       string `json:"timestamp"`
}

// UpdateMetadata says when the payment changed.
type UpdateMetadata struct {
	UpdatedAt string `json:"updated_at"`
}

// DepositReceived is the data of deposit_received.
type DepositReceived struct {
	TransactionID     string `json:"transaction_id"`
	DepositID         string `json:"deposit_id"`
	Amount            string `json:"amount"`
	TransactionHash   string `json:"transaction_hash"`
	Confirmations     int64  `json:"confirmations"`
	BlockchainNetwork string `json:"blockchain_network"`
	Token             string `json:"token"`
	Timestamp         string `json:"timestamp"`
}

// DepositMerged is the data of deposit_merged.
type DepositMerged struct {
	DepositID            string `json:"deposit_id"`
	TransactionID        string `json:"transaction_id"`
	WalletID             string `json:"wallet_id"`
	Amount               string `json:"amount"`
	Currency             string `json:"currency"`
	Token                string `json:"token"`
	BlockchainNetwork    string `json:"blockchain_network"`
	FromAddress          string `json:"from_address"`
	ToAddress            string `json:"to_address"`
	TransactionHash      string `json:"transaction_hash"`
	MergeTransactionHash string `json:"merge_transaction_hash"`
	NetworkFee           string `json:"network_fee"`
	Timestamp            string `json:"timestamp"`
}

// DepositUpdate is the data of payment_deposit. TransactionID is null where no payment has
// the address, PreviousStatus where the deposit was not known. Status and PreviousStatus are
// ShownSeen, ShownFinal or ShownGone, Role is one of the other Shown… constants.
type DepositUpdate struct {
	DepositID             string  `json:"deposit_id"`
	TransactionID         *string `json:"transaction_id"`
	Amount                string  `json:"amount"`
	Currency              string  `json:"currency"`
	TransactionHash       string  `json:"transaction_hash"`
	Status                string  `json:"status"`
	PreviousStatus        *string `json:"previous_status"`
	Role                  string  `json:"role"`
	Confirmations         int64   `json:"confirmations"`
	RequiredConfirmations int64   `json:"required_confirmations"`
	Timestamp             string  `json:"timestamp"`
}

const cryptoPlaces = 8

func (x *decision) crypto(a ledger.Amount) string {
	return a.Format(uint8(x.p.Scale), cryptoPlaces)
}

// emit puts one event into the outbox under the payment's next number.
func (x *decision) emit(typ string, data any) error {
	x.p.Events++
	row, err := webhook.NewEvent(typ, x.p.ID, x.p.Events, x.p.CallbackURL, data, x.now)
	if err != nil {
		return err
	}
	x.events = append(x.events, row)
	return nil
}

func (x *decision) statusEvent(from Status) error {
	p := &x.p
	if from == "" { // receivers know no status before this one
		from = Waiting
	}
	u := StatusUpdate{
		TransactionID: p.ID, Status: p.Status, PreviousStatus: from, OrderID: p.OrderID,
		PriceAmount: ledger.FixedString(p.Price, 2), PriceCurrency: p.PriceCurrency,
		PayAmount: x.crypto(p.Due), PayCurrency: p.Currency, BlockchainAddress: p.Address,
		Confirmations: p.Confirmations, MerchantReceivedUSD: p.MerchantReceived(),
		PaymentHistory: []HistoryItem{}, Metadata: UpdateMetadata{UpdatedAt: webhook.Timestamp(x.now)},
	}
	if p.Type != TypeNone {
		u.PaymentType = &p.Type
	}
	if p.Tx != "" {
		u.TransactionHash = &p.Tx
	}
	for _, e := range x.deposits {
		if d := &e.d; d.Role.counted() && d.live() {
			u.PaymentHistory = append(u.PaymentHistory, HistoryItem{
				DepositID: d.ID, Amount: x.crypto(d.Amount), TransactionHash: d.Tx,
				Confirmations: d.Confirmations, Timestamp: webhook.Timestamp(d.FirstSeen),
			})
		}
	}
	return x.emit(webhook.PaymentStatusUpdate, u)
}

func (x *decision) received(e *entry) error {
	d := &e.d
	return x.emit(webhook.DepositReceived, DepositReceived{
		TransactionID: x.p.ID, DepositID: d.ID, Amount: x.crypto(d.Amount), TransactionHash: d.Tx,
		Confirmations: d.Confirmations, BlockchainNetwork: d.Network, Token: x.p.Token,
		Timestamp: webhook.Timestamp(d.FirstSeen),
	})
}

// merged tells once that a deposit was forwarded to the treasury.
func (x *decision) merged(e *entry) error {
	d := &e.d
	if d.Merged || d.Forward != incoming.Forwarded || d.ForwardTx == "" || d.Booking != InWallet {
		return nil
	}
	d.Merged = true
	return x.emit(webhook.DepositMerged, DepositMerged{
		DepositID: d.ID, TransactionID: x.p.ID, WalletID: d.Wallet, Amount: x.crypto(d.Amount),
		Currency: d.Currency, Token: x.p.Token, BlockchainNetwork: d.Network,
		FromAddress: d.From, ToAddress: d.Address, TransactionHash: d.Tx,
		MergeTransactionHash: d.ForwardTx, NetworkFee: d.ForwardFee, Timestamp: webhook.Timestamp(x.now),
	})
}

// shows reports whether what merchants see of a deposit has changed. Nothing is shown of
// dust, of unlisted tokens and of impossible amounts that were never anything else.
func (e *entry) shows() bool {
	d, was := &e.d, &e.was
	silent := d.Role == RoleDust || d.Role == RoleUnlisted || d.Role == RoleQuarantined
	return (!silent || d.Told > 0) && (!e.known() || d.ShownStatus() != was.ShownStatus() || d.ShownRole() != was.ShownRole())
}

// known reports whether merchants could have been told of the deposit before.
func (e *entry) known() bool { return e.was.Role != "" && e.was.Role != RoleUnlisted }

// depositEvent is the payment_deposit of a deposit that shows something new. A callback of
// the payment's own gets its statuses alone, so this has none.
func (x *decision) depositEvent(e *entry) (storage.Row, error) {
	d, was := &e.d, &e.was
	c := x.currency(d.Currency)
	u := DepositUpdate{
		DepositID: d.ID, Amount: shownAmount(d, c), Currency: d.Currency, TransactionHash: d.Tx, Status: d.ShownStatus(),
		Role: d.ShownRole(), Confirmations: d.Confirmations, Timestamp: webhook.Timestamp(d.FirstSeen),
	}
	if x.p.ID != "" {
		u.TransactionID = &x.p.ID
	}
	if e.known() {
		before := was.ShownStatus()
		u.PreviousStatus = &before
	}
	u.RequiredConfirmations = needed(c, &x.p, d.Exact, e.given)
	d.Told++
	return webhook.NewEvent(webhook.PaymentDeposit, d.ID, d.Told, "", u, x.now)
}
