package planted

// What sweeps cost, and prices.
var treasuryRemovals = []Bug{
	{
		ID: "FT01-given-up-for-good", File: "wallet/treasury/defer.go",
		Old:  "	q.Limit, q.Where[1].Value = t.cfg.Batch, int64(typical)\n	rows, err := t.cfg.Store.Find(ctx, q)\n",
		New:  "	q.Limit, q.Where[1].Value = t.cfg.Batch, int64(typical)\n	rows, err := []storage.Row(nil), error(nil)\n",
		What: "a sweep that waits for lower fees is not due again when they have fallen", Package: "wallet/treasury",
		Test: "TestFT01_PaymentMadeInAFeeSpikeIsSpendableADayLater",
	},
	{
		ID: "FT01-refused-for-good", File: "wallet/treasury/landed.go",
		Old:  "		due = now.Add(tryPause(next.note.Tries))\n",
		New:  "		due = time.Time{}\n",
		What: "a sweep that a token's issuer refused is not tried again", Package: "wallet/treasury",
		Test: "TestFT01_SweepThatWasRefusedIsTriedAgain",
	},
	{
		ID: "FT01-old-rows-left", File: "wallet/treasury/defer.go",
		Old:  "	for _, row := range rows {\n		if err := t.takeUp(",
		New:  "	for _, row := range rows[:0] {\n		if err := t.takeUp(",
		What: "sweeps that an earlier version gave up stay so", Package: "wallet/treasury",
		Test: "TestFT01_SweepsThatWereGivenUpAreTakenUpAgain",
	},
	{
		ID: "FT01-dust-is-swept", File: "wallet/treasury/sweep.go",
		Old:  "err != nil || d.Amount <= 0 || d.Exact.LessThan(c.Dust)",
		New:  "err != nil || d.Amount <= 0 || c == nil",
		What: "a sweep waits for ever for a deposit that is never moved", Package: "wallet/treasury",
		Test: "TestFT01_NothingWaitsForDustAlone",
	},
	{
		ID: "FT01-gas-that-came-back", File: "wallet/treasury/landed.go",
		Old:  "case o.Purpose == chain.ForGas && s.State == SweepDeferred && landed:",
		New:  "case o.Purpose == chain.ForGas && s.State == SweepDeferred && dead:",
		What: "a sweep waits for lower fees although the gas that a fork took away is there again", Package: "wallet/treasury",
		Test: "TestFT01_GasThatComesBackAfterAFork",
	},
	{
		ID: "FT02-no-share", File: "wallet/treasury/look.go",
		Old:  "	if room < need {",
		New:  "	if room < 0 {",
		What: "a sweep goes whatever it costs", Package: "wallet/treasury",
		Test: "TestFT02_CoinsThatAPayoutNeedsAreJudgedAgainstThePayout",
	},
	{
		ID: "FT02-dust-is-looked-at", File: "wallet/treasury/look.go",
		Old:  "	allowed, err := worth.MulDiv(1, t.cfg.MinSweep, ledger.Down)",
		New:  "	allowed, err := worth.MulDiv(1000, t.cfg.MinSweep, ledger.Down)",
		What: "forwarding may cost 500 times what it moves", Package: "wallet/treasury",
		Test: "TestFT02_SmallPayoutDoesNotCauseDearMoves",
	},
	{
		ID: "FT02-no-daily-limit", File: "wallet/treasury/gas.go",
		Old:  "c.Level, err = t.dayLimit(ctx, in, gas, most, since)",
		New:  "_, err = t.dayLimit(ctx, in, gas, most, since)",
		What: "forwarding may cost any amount a day", Package: "wallet/treasury",
		Test: "TestFT02_ForwardingHasADailyLimit",
	},
	{
		ID: "FT02-payout-needs-unbounded", File: "wallet/treasury/needed.go",
		Old:  "sum > allowed",
		New:  "sum > 1000*allowed",
		What: "a small payout causes moves that cost more than it", Package: "wallet/treasury",
		Test: "TestFT02_SmallPayoutDoesNotCauseDearMoves",
	},
	{
		ID: "FT09-second-life-counted", File: "wallet/treasury/holdings.go",
		Old:  "s.Forward == incoming.ForwardNone && s.Generation <= 1",
		New:  "s.Forward == incoming.ForwardNone",
		What: "a deposit that is mined again is counted beside the coins that its sweep brought", Package: "wallet/treasury",
		Test: "TestFT09_NothingIsCountedTwiceAfterADeepReorg",
	},
	{
		ID: "FM03-contradiction-believed", File: "chain/incoming/assethalt.go",
		Old:  "		if !t.Contradicted || ",
		New:  "		if t.Contradicted || ",
		What: "a token that logs more than it moves is paid out on", Package: ".",
		Test: "TestFM03_TokenThatLogsMoreThanItMovesIsHalted",
	},
	{
		ID: "FM03-audit-off", File: "chain/evm/scan.go",
		Old:  "	if !c.o.NoTokenAudit {",
		New:  "	if false {",
		What: "a token's logs are believed", Package: "chain/evm",
		Test: "TestD05_AuditedTokenThatDeliversLess",
	},
}
