package withdrawal

import (
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// holdTx reserves the whole cost on the wallet.
func holdTx(w *Withdrawal, at time.Time) ledger.Tx {
	return ledger.Tx{
		ID: "hold/" + w.ID, Kind: ledger.KindWithdrawal, Ref: w.ID, At: at,
		Legs: []ledger.Leg{{Account: ledger.Wallet(w.Wallet), Asset: ledger.Asset(w.Currency), Hold: w.Requested}},
	}
}

// releaseTx gives the hold back.
func releaseTx(w *Withdrawal, at time.Time) ledger.Tx {
	t := holdTx(w, at)
	t.ID = "release/" + w.ID
	t.Legs[0].Hold = -w.Requested
	return t
}

// settleTx posts the hold: the recipient's amount has left the chain account,
// the fees are earned. What the network really took is another Tx.
func settleTx(w *Withdrawal, at time.Time) ledger.Tx {
	asset := ledger.Asset(w.Currency)
	t := ledger.Tx{ID: "settle/" + w.ID, Kind: ledger.KindWithdrawal, Ref: w.ID, At: at, Legs: []ledger.Leg{
		{Account: ledger.Wallet(w.Wallet), Asset: asset, Delta: -w.Requested, Hold: -w.Requested},
		{Account: ledger.Chain(w.Network), Asset: asset, Delta: w.Amount},
	}}
	if w.PlatformFee != 0 {
		t.Legs = append(t.Legs, ledger.Leg{Account: ledger.FeesPlatform, Asset: asset, Delta: w.PlatformFee})
	}
	if w.NetworkFee != 0 {
		t.Legs = append(t.Legs, ledger.Leg{Account: ledger.FeesNetwork, Asset: asset, Delta: w.NetworkFee})
	}
	return t
}
