package planted

// Lines that the clients of chains and the sources of prices lack.
var clientOmissions = []Bug{
	{
		ID: "omit-evm-removed-log", File: "chain/evm/scan.go",
		Old:     "l.block != r.hash || l.removed {",
		New:     "l.block != r.hash {",
		What:    "a log that the node calls removed is counted",
		Package: "chain/evm", Test: "TestR02_RemovedLogIsOfNoBlock",
	},
	{
		ID: "omit-evm-replacement-bump", File: "chain/evm/build.go",
		Old: `	if err := p.bump(o.Attempt, c.o.MaxFeePerGas); err != nil {
		return chain.Unsigned{}, err
	}
`,
		New:     "",
		What:    "a replacement pays no more than what it replaces",
		Package: "chain/evm", Test: "TestReplacementPaysAnEighthMore",
	},
	{
		ID: "omit-utxo-dust-change", File: "chain/utxo/build.go",
		Old:     "rest >= c.p.dust(back) {",
		New:     "rest > 0 {",
		What:    "change below the dust limit is not left to the miner: the payment is refused",
		Package: "chain/utxo", Test: "TestCoinCostsAreBuilds",
	},
	{
		ID: "omit-tron-last-block", File: "chain/tron/status.go",
		Old: `	for at := from.Block; at.Height < over.Height; {
		next, err := c.blocks(ctx, at, int(min(over.Height-at.Height, int64(c.o.Group))))`,
		New: `	for at := from.Block; at.Height < over.Height-1; {
		next, err := c.blocks(ctx, at, int(min(over.Height-1-at.Height, int64(c.o.Group))))`,
		What:    "a transaction is called dead although the last block that could hold it was not read",
		Package: "chain/tron", Test: "TestW09_AnIndexThatForgetsProvesNothing",
	},
	{
		ID: "omit-xrp-reserve", File: "chain/xrp/account.go",
		Old:     "\treturn h.drops - v.Base - v.Owner*h.owned, nil",
		New:     "\treturn h.drops - v.Owner*h.owned, nil",
		What:    "the base reserve of an account is spent",
		Package: "chain/xrp", Test: "TestConformance/SendsAll",
	},
	{
		ID: "omit-stellar-next-page", File: "chain/stellar/ledger.go",
		Old: `		if len(page) < pageSize {
			return nil
		}
	}`,
		New: `		return nil
	}`,
		What:    "only the first two hundred operations of a ledger are read",
		Package: "chain/stellar", Test: "TestD09_ALedgerOfManyPagesIsReadWhole",
	},
	{
		ID: "omit-solana-mint-extension", File: "chain/solana/mint.go",
		Old: `	for _, x := range all {
		if slices.Contains(harmless, x.kind) {
			continue
		}
		why, known := refusals[x.kind]
		if !known {
			why = fmt.Sprintf("extension %d, which is not known to be harmless", x.kind)
		}
		return refuse("has " + why)
	}
`,
		New: `	_, _ = slices.Contains(harmless, 0), all
`,
		What:    "a mint with any extension is accepted",
		Package: "chain/solana", Test: "TestD11_UnsafeMintsAreRefused",
	},
	{
		ID: "omit-rates-spread", File: "chain/rates/median.go",
		Old: `		mid := median(good)
		good = slices.DeleteFunc(good, func(r Rate) bool { return apart(r.Price, mid, m.cfg.Spread) })
`,
		New: `		good = slices.Clip(good)
`,
		What:    "sources that disagree make a price",
		Package: "chain/rates", Test: "TestMedian_Agreement",
	},
	{
		ID: "omit-rates-body-limit", File: "chain/rates/live.go",
		Old: `	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("it has more than %d bytes", maxAnswer)
	}
`,
		New: `	body, err := io.ReadAll(resp.Body)
`,
		What:    "an answer without end is read without end",
		Package: "chain/rates", Test: "TestLive_Bounds",
	},
	{
		ID: "omit-rates-retry-pause", File: "chain/rates/median.go",
		Old: `	if ctx.Err() == nil { // else it is the caller who gave up, not the sources
		p.tried = now
	}
`,
		New:     "",
		What:    "sources that fail are asked again at once",
		Package: "chain/rates", Test: "TestMedian_SourcesAreLeftAlone",
	},
}
