package httpapi

import (
	"time"

	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// The data of test webhooks: what a receiver will see, with made-up figures and
// metadata.test true. Ids and hashes are of nobody.
const (
	samplePayment    = "01890a5d-ac96-774b-bcce-b302099a8057"
	sampleWithdrawal = "01890a5d-ac96-774b-bcce-b302099a8058"
	sampleRefund     = "01890a5d-ac96-774b-bcce-b302099a805a"
	sampleTransfer   = "01890a5d-ac96-774b-bcce-b302099a8059"
	sampleWallet     = "01890a5d-ac96-774b-bcce-b302099a805a"
	sampleHash       = "0x7e57000000000000000000000000000000000000000000000000000000000001"
	sampleMergeHash  = "0x7e57000000000000000000000000000000000000000000000000000000000002"
	sampleCustomer   = "0x7E57000000000000000000000000000000000001"
	sampleAddress    = "0x7E57000000000000000000000000000000000002"
	sampleDeposit    = "ETH/" + sampleHash + ":0"
	sampleCurrency   = "USDTERC20"
	sampleToken      = "USDT"
	sampleAmount     = "100.00000000"
)

// testMark is what the metadata of every sample has.
type testMark struct {
	Test bool `json:"test"`
}

// sample is the data of a test event, nil for an unknown type. A field of the
// outer struct stands in the place of the embedded one's.
func sample(eventType string, now time.Time) any {
	at := webhook.Timestamp(now)
	switch eventType {
	case webhook.PaymentStatusUpdate:
		return samplePaymentUpdate(at)
	case webhook.DepositReceived:
		return struct {
			payment.DepositReceived
			Metadata testMark `json:"metadata"`
		}{payment.DepositReceived{
			TransactionID: samplePayment, DepositID: sampleDeposit, Amount: sampleAmount, TransactionHash: sampleHash,
			BlockchainNetwork: "ETH", Token: sampleToken, Timestamp: at,
		}, testMark{true}}
	case webhook.DepositMerged:
		return struct {
			payment.DepositMerged
			Metadata testMark `json:"metadata"`
		}{payment.DepositMerged{
			DepositID: sampleDeposit, TransactionID: samplePayment, WalletID: sampleWallet, Amount: sampleAmount, Currency: sampleCurrency,
			Token: sampleToken, BlockchainNetwork: "ETH", FromAddress: sampleCustomer, ToAddress: sampleAddress,
			TransactionHash: sampleHash, MergeTransactionHash: sampleMergeHash, NetworkFee: "0.00120000", Timestamp: at,
		}, testMark{true}}
	case webhook.WithdrawalStatusUpdate:
		return sampleWithdrawalUpdate(at)
	case webhook.WithdrawalWaiting:
		reason := withdrawal.ShownHotShort
		return struct {
			withdrawal.WaitingUpdate
			Metadata testMark `json:"metadata"`
		}{withdrawal.WaitingUpdate{
			WithdrawalID: sampleWithdrawal, WaitingReason: &reason, WaitingSince: &at, Currency: sampleCurrency, Amount: sampleAmount,
		}, testMark{true}}
	case webhook.PaymentDeposit:
		id, before := samplePayment, payment.ShownSeen
		return struct {
			payment.DepositUpdate
			Metadata testMark `json:"metadata"`
		}{payment.DepositUpdate{
			DepositID: sampleDeposit, TransactionID: &id, Amount: sampleAmount, Currency: sampleCurrency, TransactionHash: sampleHash,
			Status: payment.ShownFinal, PreviousStatus: &before, Role: payment.ShownCounted, Confirmations: 12, RequiredConfirmations: 12, Timestamp: at,
		}, testMark{true}}
	case webhook.RefundUpdate:
		id, pays, to := samplePayment, sampleWithdrawal, sampleCustomer
		return struct {
			refund.Update
			Metadata testMark `json:"metadata"`
		}{refund.Update{
			Record: refund.Record{
				RefundID: sampleRefund, TransactionID: &id, WithdrawalID: &pays, Status: refund.Completed, Amount: sampleAmount, Currency: sampleCurrency,
				Address: &to, CreatedAt: at, UpdatedAt: at,
			}, PreviousStatus: refund.Processing,
		}, testMark{true}}
	case webhook.TransferStatusUpdate:
		return struct {
			wallet.Update
			Metadata testMark `json:"metadata"`
		}{wallet.Update{
			Record: wallet.Record{
				TransferID: sampleTransfer, WalletID: sampleWallet, ExternalID: "test-wallet", Direction: wallet.ToSub, Currency: sampleCurrency,
				Amount: sampleAmount, Status: wallet.TransferCompleted, CreatedAt: at, UpdatedAt: at, CompletedAt: &at,
			}, PreviousStatus: wallet.TransferPending,
		}, testMark{true}}
	}
	return nil
}

func samplePaymentUpdate(at string) any {
	type metadata struct {
		payment.UpdateMetadata
		testMark
	}
	full, hash := payment.TypeFull, sampleHash
	return struct {
		payment.StatusUpdate
		Metadata metadata `json:"metadata"`
	}{payment.StatusUpdate{
		TransactionID: samplePayment, Status: payment.Completed, PreviousStatus: payment.Confirmed, PaymentType: &full, OrderID: "test-order",
		PriceAmount: "100.00", PriceCurrency: "USD", PayAmount: sampleAmount, PayCurrency: sampleCurrency,
		BlockchainAddress: sampleAddress, TransactionHash: &hash, Confirmations: 12, MerchantReceivedUSD: "99.50",
		PaymentHistory: []payment.HistoryItem{{
			DepositID: sampleDeposit, Amount: sampleAmount, TransactionHash: sampleHash, Confirmations: 12, Timestamp: at,
		}},
	}, metadata{payment.UpdateMetadata{UpdatedAt: at}, testMark{true}}}
}

func sampleWithdrawalUpdate(at string) any {
	type metadata struct {
		withdrawal.Metadata
		testMark
	}
	hash, custom := sampleHash, "test-withdrawal"
	return struct {
		withdrawal.Update
		Metadata metadata `json:"metadata"`
	}{withdrawal.Update{
		WithdrawalID: sampleWithdrawal, Status: withdrawal.Completed, PreviousStatus: withdrawal.Processing, Amount: sampleAmount,
		Currency: sampleCurrency, Address: sampleCustomer, TransactionHash: &hash, NetworkFee: "1.50000000", CustomID: &custom,
	}, metadata{withdrawal.Metadata{ProcessedAt: &at}, testMark{true}}}
}
