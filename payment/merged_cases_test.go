package payment

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// Every value of deposit_merged is its own: above all the hash of the customer's
// transaction and that of the transaction that forwarded it.
func TestFQ10_ValuesOfDepositMerged(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt, func(in *CreateInput) { in.WalletID = "branch" })
	x := h.transfer(p, "100").final()
	x.forward(incoming.Forwarded, "")
	require.NotContains(t, h.events(p), webhook.DepositMerged, "not without a transaction")
	x.forward(incoming.Forwarded, "forwarding-tx")
	rows, err := h.store.Find(ctx, storage.Query{
		Table: webhook.Events.Table, Partition: storage.Tenant(tenant), Limit: 10,
		Where: []storage.Cond{{Column: "object", Op: storage.Eq, Value: p.ID}, {Column: "type", Op: storage.Eq, Value: webhook.DepositMerged}},
	})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	var body struct{ Data DepositMerged }
	require.NoError(t, json.Unmarshal([]byte(webhook.Events.Value(rows[0]).Body), &body))
	require.Equal(t, DepositMerged{
		DepositID: x.deposit().ID, TransactionID: p.ID, WalletID: "branch", Amount: "100.00000000",
		Currency: usdt, Token: "USDT", BlockchainNetwork: "ETH", FromAddress: "customer", ToAddress: p.Address,
		TransactionHash: x.s.Tx, MergeTransactionHash: "forwarding-tx", NetworkFee: "0.00010000",
		Timestamp: webhook.Timestamp(h.now),
	}, body.Data)
}

// A reversed deposit left its closed wallet in debt. It comes back and is credited to
// the master wallet: what it repays is the debt of the closed one.
func TestFQ10_DebtOfAClosedWalletIsRepaid(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt, func(in *CreateInput) { in.WalletID = "branch" })
	x := h.transfer(p, "100").final()
	h.closed["branch"] = true
	x.gone()
	require.Equal(t, "-99", h.balance(ledger.Receivable("branch"), usdt))
	x.again().final()
	require.Equal(t, "0", h.balance(ledger.Receivable("branch"), usdt))
	require.Equal(t, "0", h.balance(ledger.Receivable("w"), usdt))
	require.Equal(t, "0", h.balance(ledger.Wallet("w"), usdt))
	require.Zero(t, x.deposit().Owed)
}
