package planted

// Payouts that need more coins than one transaction holds.
var mergeRemovals = []Bug{
	{
		ID: "FT04-merge-is-not-replaced", File: "chain/outgoing/settle.go",
		Old:     "		d.intent.To = last.v.ChangeTo.Address\n",
		New:     "",
		What:    "a merge that was sent is never replaced by a dearer one",
		Package: "chain/outgoing", Test: "TestFT04_MergesAreReplacedWhenFeesRise",
	},
	{
		ID: "FT04-merged-coin-waits-for-finality", File: "chain/outgoing/watch.go",
		Old: "(a.v.Purpose != chain.ForCancel || j.merge())", New: "a.v.Purpose != chain.ForCancel",
		What:    "what a merge returns is not spent before the merge is final",
		Package: "chain/outgoing", Test: "TestFT04_MergedCoinsAreSpentAtTheirFirstConfirmation",
	},
	{
		ID: "FT04-merged-coins-count-twice", File: "chain/outgoing/merge.go",
		Old: "if in != nil && slices.Contains(in.v.Spends, outpoint) {", New: "if false {",
		What:    "a merge's coins count beside what it returns until it is final",
		Package: "chain/outgoing", Test: "TestFT04_MergedCoinsAreSpentAtTheirFirstConfirmation",
	},
	{
		ID: "FT04-coin-of-a-forked-merge-stays", File: "chain/outgoing/watch.go",
		Old: "n.merged(ctx, j, p, nil, &s)", New: "error(nil)",
		What:    "what a merge returned can be spent while a fork has taken its block",
		Package: "chain/outgoing", Test: "TestFT04_MergeThatAForkTakesBack",
	},
	{
		ID: "FT04-coin-of-a-lost-merge-comes-back", File: "chain/outgoing/merge.go",
		Old: "			c.State = CoinGone\n", New: "",
		What:    "a payout waits for ever for what a merge returns in whose place another landed",
		Package: "chain/outgoing", Test: "TestFT04_ForkTakesMergesWhoseCoinsAreSpent",
	},
	{
		ID: "FT04-no-merges", File: "chain/outgoing/coins.go",
		Old: "n.lacksFee(d, free, n.crowded(ctx, d, free, cause))", New: "n.lacksFee(d, free, cause)",
		What:    "a payout that needs more coins than one transaction holds waits for ever",
		Package: ".", Test: "TestFT04_PayoutOfMoreCoinsThanOneTransactionHolds",
	},
	{
		ID: "FT04-looks-empty", File: "chain/outgoing/coins.go",
		Old: "case why != \"\":\n		return &waitError{why,", New: "case false:\n		return &waitError{why,",
		What:    "a payout whose coins are being merged says that the wallet is empty",
		Package: "chain/outgoing", Test: "TestFT04_AsManyMergesAsItTakes",
	},
	{
		ID: "FT04-others-are-not-seen", File: "chain/outgoing/merge.go",
		Old:     "with: []storage.Row{Coins.Row(c.largest.ID, c.largest.Version, time.Time{}, Coins.Value(c.largest))},",
		New:     "with: []storage.Row{Coins.Row(c.largest.ID, c.largest.Version, time.Time{}, Coins.Value(c.largest))}[:0],",
		What:    "two payouts that decide at the same moment both have the same coins merged",
		Package: "chain/outgoing", Test: "TestFT04_TwoPayoutsNeedMerges",
	},
	{
		ID: "FT04-too-many-merges", File: "chain/outgoing/merge.go",
		Old: "count > most+c.merges*(most-1)", New: "count > c.merges*(most-1)",
		What:    "more merges are made than are needed",
		Package: "chain/outgoing", Test: "TestFT04_AsManyMergesAsItTakes",
	},
	{
		ID: "FT04-merged-twice", File: "chain/outgoing/merge.go",
		Old: "if c.now = min(c.merges, mostMerges); c.merges > most {", New: "if c.now = min(c.merges, mostMerges); false {",
		What:    "where merges return more coins than one transaction holds, more are made than are needed",
		Package: "chain/outgoing", Test: "TestFT04_AsManyMergesAsItTakes",
	},
	{
		ID: "FT04-costs-anything", File: "chain/outgoing/merge.go",
		Old: "if c.all > room {", New: "if false {",
		What:    "merges are made that cost more than half of what they are for",
		Package: ".", Test: "TestFT04_MergingIsWorthHalfOfThePayout",
	},
	{
		ID: "FT04-dust-looks-like-no-gas", File: "chain/outgoing/merge.go",
		Old: "return &waitError{ReasonTooDear, \"its coins bring", New: "return &waitError{ReasonGasShort, \"its coins bring",
		What:    "coins that do not pay for themselves ask for the operator's coins",
		Package: "chain/outgoing", Test: "TestFT04_CoinsThatDoNotPayForThemselves",
	},
	{
		ID: "FT04-nobody-bears-it", File: "chain/outgoing/merge.go",
		Old: "if !j.merge() || n.Raise == nil {", New: "if true {",
		What:    "a merge is signed before what it may cost is set aside",
		Package: "chain/outgoing", Test: "TestFT04_MergeThatNobodyCanPayForYet",
	},
	{
		ID: "FT04-raised-without-end", File: "chain/outgoing/merge.go",
		Old: "return boundsOf(payout, more, allowed), nil", New: "return boundsOf(payout, 0, allowed), nil",
		What:    "the bounds of merges are raised beyond half of what they are for",
		Package: "chain/outgoing", Test: "TestFT04_MergesThatBecomeTooDear",
	},
	{
		ID: "FT04-for-nobody", File: "chain/outgoing/merge.go",
		Old: "if err == nil && (!ok || !v.idle()) {", New: "if err == nil && !ok && !v.idle() {",
		What:    "coins are merged for a payout that was taken back",
		Package: "chain/outgoing", Test: "TestFT04_CancelledWhileCoinsAreMerged",
	},
	{
		ID: "FT04-halt-lets-merges-out", File: "chain/outgoing/halt.go",
		Old: "frees := in.Purpose == chain.ForCancel && !IsHelp(in.ID)", New: "frees := in.Purpose == chain.ForCancel && !IsChild(in.ID)",
		What:    "coins of a halted tenant are merged",
		Package: "chain/outgoing", Test: "TestFT04_HaltKeepsMergesBack",
	},
	{
		ID: "FT04-beside-an-older-version", File: "chain/outgoing/coins.go",
		Old: "case !n.able(ctx, AbilityMerges):", New: "case false:",
		What:    "merges are made that a process of an older version does not know",
		Package: "chain/outgoing", Test: "TestFT04_NoMergesBesideAnOlderVersion",
	},
	{
		ID: "FT04-quoted-without-merges", File: "chain/outgoing/quote.go",
		Old: "cost, merges, err = more.payment, more.all, nil", New: "cost, merges, err = more.payment, 0, nil",
		What:    "a quote leaves out what merging the coins costs",
		Package: ".", Test: "TestFT04_PayoutOfMoreCoinsThanOneTransactionHolds",
	},
	{
		ID: "FT04-nothing-set-aside", File: "wallet/treasury/raise.go",
		Old: "if outgoing.IsMerge(in.ID) { // nothing", New: "if outgoing.IsMerge(in.ID) && false { // nothing",
		What:    "nothing is set aside for a merge",
		Package: ".", Test: "TestFT04_FeesRiseWhileCoinsAreMerged",
	},
	{
		ID: "FT04-set-aside-for-ever", File: "wallet/treasury/gas.go",
		Old: "!r.there && !outgoing.IsHelp(o.Intent)", New: "!r.there && !outgoing.IsChild(o.Intent)",
		What:    "what a merge that has ended may cost is set aside for ever",
		Package: ".", Test: "TestFT04_NothingIsSetAsideForAMergeThatHasEnded",
	},
	{
		ID: "FN02-many-coins-for-no-change", File: "chain/outgoing/select.go",
		Old: "most = min(most, len(withChange)+1)", New: "most = min(most, s.most)",
		What:    "many small coins are spent so that there is no change",
		Package: "chain/outgoing", Test: "TestFN02_ManyCoinsInThePlaceOfChange",
	},
}
