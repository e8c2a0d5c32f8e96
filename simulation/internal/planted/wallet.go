package planted

// What goes wrong with transfers between wallets, and in the treasury.
var walletBugs = []Bug{
	{
		ID: "transfer-keeps-hold", File: "wallet/transfer.go",
		Old:  `Asset: asset, Delta: -t.Amount, Hold: -t.Amount},`,
		New:  `Asset: asset, Delta: -t.Amount},`,
		What: "a transfer that is done keeps its hold",
	},
	{
		ID: "overview-without-holds", File: "wallet/balances.go",
		Old:  `c.Total, err = c.Total.Add(b.Amount); err != nil {`,
		New:  `c.Total, err = c.Total.Add(b.Available); err != nil {`,
		What: "the overview of the sub-accounts leaves out what is held",
	},
	{
		ID: "never-due-again", File: "wallet/treasury/defer.go",
		Old:  "	q.IDs, q.Limit, q.Where[1].Value = false, t.cfg.Batch, int64(typical)\n	rows, err := t.unread.Found(ctx, t.cfg.Store, q, t.cfg.Now(), t.cfg.Log)\n",
		New:  "	q.IDs, q.Limit, q.Where[1].Value = false, t.cfg.Batch, int64(typical)\n	rows, err := []storage.Row(nil), error(nil)\n",
		What: "coins that wait for lower fees are not looked at again when they have fallen",
	},
	{
		ID: "transfer-not-told", File: "wallet/apply.go",
		Old:  "	webhook.Put(c, event)\n",
		New:  "	_ = event\n",
		What: "nobody is told of a transfer that is done",
	},
	{
		ID: "transfer-of-another", File: "wallet/transfer.go",
		Old:  `ID: "hold/" + t.ID, Kind: ledger.KindTransfer,`,
		New:  `ID: "hold/" + t.Wallet, Kind: ledger.KindTransfer,`,
		What: "holds are named by the wallet, so that there is one of each for ever",
	},
	{
		ID: "gas-stays-reserved", File: "wallet/treasury/landed.go",
		Old:  `[]outgoing.State{outgoing.Final, outgoing.Failed, outgoing.Cancelled}, o.State)`,
		New:  `[]outgoing.State{outgoing.Final, outgoing.Failed}, o.State)`,
		What: "the gas of a cancelled order stays set aside",
	},
	{
		ID: "failed-costs-nothing", File: "wallet/treasury/gas.go",
		Old:  `if o.CostTx == "" {`,
		New:  `if o.CostTx == "" || o.State == outgoing.Failed {`,
		What: "what the network took for a failed order is not booked",
	},
	{
		ID: "gas-from-platform-fees", File: "wallet/treasury/gas.go",
		Old:  `{Account: ledger.FeesNetwork, Asset: asset, Delta: -cost},`,
		New:  `{Account: ledger.FeesPlatform, Asset: asset, Delta: -cost},`,
		What: "gas is booked against what the platform earned",
	},
	{
		ID: "cost-booked-again", File: "wallet/treasury/gas.go",
		Old:  `costID(o.Network, o.CostTx, landed[o.CostTx])`,
		New:  `costID(o.Network, o.CostTx+t.cfg.Now().Format(time.RFC3339), 0)`,
		What: "an outcome that is told twice costs twice",
	},
	{
		ID: "two-sweeps-at-once", File: "wallet/treasury/sweep.go",
		Old:  `return row.ID != id && Sweeps.Value(row).holds()`,
		New:  `return row.ID == "" && Sweeps.Value(row).holds()`,
		What: "two sweeps of one address are under way at once",
	},
	{
		ID: "empty-says-a-node-behind", File: "wallet/treasury/funding.go",
		Old:  `case tip.Head.Height >= d.FinalAt:`,
		New:  `case tip.Head.Height >= 0:`,
		What: "a sweep is given up on the word of a node that has not seen its deposits",
	},
	{
		ID: "gas-swept-back", File: "wallet/treasury/sweep.go",
		Old:  "\t\t\t{Column: \"internal\", Op: storage.Eq, Value: false},\n",
		New:  "",
		What: "gas that was sent to a deposit address is swept as a deposit",
	},
	{
		ID: "top-up-booked-again", File: "wallet/treasury/treasury.go",
		Old: `id := "topup/" + s.Generated()
	c :=`,
		New: `id := "topup/" + s.Generated() + t.cfg.Now().Format(time.RFC3339)
	c :=`,
		What: "a top-up that is told twice is booked twice",
	},
	{
		ID: "gas-margin-ignored", File: "wallet/treasury/gas.go",
		Old:  `if err != nil || reserved > equity {`,
		New:  `if err != nil || r.Amount > equity {`,
		What: "what is set aside already is forgotten when more is",
	},
	{
		ID: "gas-intent-reused", File: "wallet/treasury/funding.go",
		Old:  `For: sweep, Number: funding}`,
		New:  `For: sweep, Number: min(funding, 1)}`,
		What: "a sweep that needs gas a second time waits for the first",
	},
	{
		ID: "lost-coin-spent", File: "wiring.go",
		Old:  `return a.Treasury.Lost(ctx, s)`,
		New:  `return nil`,
		What: "a coin that a deep reorg took away is still spent",
	},
	{
		ID: "listed-anew", File: "listing.go",
		Old:  `wrong = append(wrong, was.differs(code, listing(cur)))`,
		New:  `_ = was`,
		What: "a currency whose contract or units were mistaken is taken as it is listed now",
	},
}
