package planted

// What goes wrong between a chain and the books.
var incomingBugs = []Bug{
	{
		ID: "final-too-early", File: "chain/incoming/unlisted.go",
		Old:  `return max(1, c.Confirmations)`,
		New:  `return max(1, c.Confirmations-1)`,
		What: "a deposit is final one confirmation too early",
	},
	{
		ID: "key-by-transaction", File: "chain/incoming/sighting.go",
		Old:  `func Key(tx string, ordinal int) string { return fmt.Sprintf("%s:%d", tx, ordinal) }`,
		New:  `func Key(tx string, ordinal int) string { return fmt.Sprintf("%s:%d", tx, min(ordinal, 0)) }`,
		What: "of several transfers in a transaction only one is known",
	},
	{
		ID: "cursor-past-unread", File: "chain/incoming/scan.go",
		Old:  "rows, err := n.merge(ctx, found, fromBlocks)\n\tif err != nil {",
		New:  "rows, err := n.merge(ctx, found, fromBlocks)\n\tif err != nil && ctx.Err() != nil {",
		What: "the cursor moves past blocks whose transfers could not be looked up",
	},
	{
		ID: "fork-off-by-one", File: "chain/incoming/fork.go",
		Old:  `storage.Cond{Column: "height", Op: storage.Gt, Value: above})`,
		New:  `storage.Cond{Column: "height", Op: storage.Gt, Value: above + 1})`,
		What: "a reorg leaves the transfers of the lowest block that it took away",
	},
	{
		ID: "same-life-again", File: "chain/incoming/sight.go",
		Old:  "s.Generation++\n",
		New:  "",
		What: "a deposit that was final, gone, and mined again is taken for the one before",
	},
	{
		ID: "network-word-ignored", File: "chain/incoming/settle.go",
		Old:  `word && s.Height > cur.Final {`,
		New:  `word && s.Height > cur.Head {`,
		What: "deposits do not wait for the network to call their block final",
	},
	{
		ID: "fact-lost", File: "chain/incoming/deliver.go",
		Old:  "slog.String(\"state\", string(s.State)), slog.Any(\"error\", err))\n",
		New:  "slog.String(\"state\", string(s.State)), slog.Any(\"error\", err))\n\t\t\tfallthrough\n",
		What: "a fact that its owner refused is marked as handled",
	},
	{
		ID: "leases-shared", File: "chain/incoming/pool.go",
		Old:  `l := p.lease(leaseKey{network, tenant})`,
		New:  `l := p.lease(leaseKey{network: network})`,
		What: "a tenant is handed an address that was leased for another",
	},
	{
		ID: "address-reused", File: "chain/incoming/pool.go",
		Old:  `l.free = l.free[1:]`,
		New:  `l.free = l.free[:len(l.free)-1]`,
		What: "a process hands the same address out again",
	},
	{
		ID: "float-in-amount", File: "chain/incoming/sight.go",
		Old:  `a, err := c.Units(exact, ledger.Down)`,
		New:  `a, err := c.Units(decimal.NewFromFloat32(float32(exact.InexactFloat64())), ledger.Down)`,
		What: "what a chain moved goes through a floating point number",
	},
	{
		ID: "credit-rounded-up", File: "chain/incoming/sight.go",
		Old:  `a, err := c.Units(exact, ledger.Down)`,
		New:  `a, err := c.Units(exact, ledger.Up)`,
		What: "a deposit finer than the ledger's units is credited rounded up",
	},
}
