package planted

// Configurations that change.
var configRemovals = []Bug{
	{
		ID: "FM01-never-described-again", File: "chain/incoming/network.go",
		Old:     "listed, err := n.relist(ctx)",
		New:     "listed, err := 0, error(nil)",
		What:    "a token that was read by a process without it stays without a currency",
		Package: ".", Test: "TestFM01_DepositReadByAProcessWithoutItsCurrency",
	},
	{
		ID: "FM01-judged-once", File: "payment/deposit.go",
		Old:     `} else if e.d.Role == RoleUnlisted && s.Currency != "" {`,
		New:     `} else if e.d.Role == RoleUnlisted && s.Currency == "*" {`,
		What:    "a deposit keeps the role unlisted when its currency is listed",
		Package: ".", Test: "TestFM01_DepositReadByAProcessWithoutItsCurrency",
	},
	{
		ID: "FM01-expired-by-another", File: "payment/step.go",
		Old:     "Value: unsettled},\n\t\t\t\ts.listed(),",
		New:     "Value: unsettled},",
		What:    "a process expires payments in a currency that it does not list",
		Package: ".", Test: "TestFM01_DepositReadByAProcessWithoutItsCurrency",
	},
	{
		ID: "FM01-smallest-units", File: "chain/incoming/unlisted.go",
		Old:     "exact = exact.Shift(-int32(c.Decimals))",
		New:     "exact = exact.Shift(0)",
		What:    "smallest units of a token are taken for whole coins when it is described again",
		Package: ".", Test: "TestFM01_DepositReadByAProcessWithoutItsCurrency",
	},
	{
		ID: "FM05-removed-unseen", File: "cryptopay.go",
		Old:     "a.sameKeys, a.served, a.list",
		New:     "a.sameKeys, a.list",
		What:    "Open does not look at what is open in a currency that is not served",
		Package: ".", Test: "TestFM05_WhatIsOpenIsNotRemovedUnseen",
	},
	{
		ID: "FM05-retired-without-a-reason", File: "withdrawal/step.go",
		Old:     "if slices.Contains(s.c.Retired, m.w.Currency) {",
		New:     `if slices.Contains(s.c.Retired, "") {`,
		What:    "withdrawals of a retired currency are handed over as any other",
		Package: ".", Test: "TestFM05_RetiredWaitsAndCanBeCancelled",
	},
	{
		ID: "FM06-fixed-at-inclusion", File: "chain/incoming/settle.go",
		Old:     "at > s.FinalAt {",
		New:     "at < 0 {",
		What:    "a deposit that is in a block does not wait for confirmations that were raised since",
		Package: ".", Test: "TestFM06_RaisedConfirmationsHoldForWhatIsNotFinal",
	},
	{
		ID: "FM07-any-key", File: "fingerprint.go",
		Old:     "return p.wrong",
		New:     "return nil",
		What:    "Open takes any Key and any seed",
		Package: ".", Test: "TestFM07_AnotherKeyIsRefused",
	},
	{
		ID: "FM07-first-key-wins", File: "fingerprint.go",
		Old:     "if same, err = p.agrees(ctx); err != nil {",
		New:     "if same = true; err != nil {",
		What:    "a store without fingerprints takes those of the first process, whatever it holds",
		Package: ".", Test: "TestFM07_AnotherKeyIsRefused",
	},
	{
		ID: "FT08-judged-first", File: "chain/outgoing/submit.go",
		Old: `	stored, err := n.stored(ctx, in)
	if stored || err != nil {
		return err
	}
	now := n.Now()`,
		New: `	if err := n.check(in); err != nil {
		return err
	}
	stored, err := n.stored(ctx, in)
	if stored || err != nil {
		return err
	}
	now := n.Now()`,
		What:    "Submit judges an intent before it looks whether it has it",
		Package: ".", Test: "TestFT08_StoredIntentIsNotRefused",
	},
	{
		ID: "FT08-refusal-forgotten", File: "chain/outgoing/submit.go",
		Old:     `row, op = refusal(in, now), onRefuse`,
		New:     "return bad",
		What:    "an intent that one process refused can be submitted by another",
		Package: ".", Test: "TestFT08_RefusedIsRefusedForGood",
	},
	{
		ID: "FN10-expiry-by-the-reading", File: "wiring.go",
		Old:     "a.cfg.headAge(net.client) > 0 && ",
		New:     "a.cfg.headAge(net.client) < 0 && ",
		What:    "payments expire by when the tip was read, not by the chain's own time",
		Package: ".", Test: "TestFN10_FrozenProviderEndsNoOrder",
	},
	{
		ID: "FN13-gone-at-second-sight", File: "chain/incoming/missing.go",
		Old:     "age >= n.cfg.GoneAfter:",
		New:     "age >= 0:",
		What:    "one process that misses a transaction twice says that it is gone",
		Package: ".", Test: "TestFN13_MempoolsThatDifferDoNotFlap",
	},
	{
		ID: "FN14-always-able", File: "abilities.go",
		Old:     "return v.On, err",
		New:     "return true, err",
		What:    "withdrawals are paid together beside processes that do not know of it",
		Package: ".", Test: "TestFN14_AbilitiesWaitForTheLastOldProcess",
	},
	{
		ID: "FM01-deferred-for-good", File: "chain/incoming/unlisted.go",
		Old:  "\tif s.Forward == NotNeeded || s.Forward == Deferred {",
		New:  "\tif s.Forward == NotNeeded {",
		What: "a deposit that an earlier version deferred for want of its currency is not forwarded once it has one", Package: "wallet/treasury", Test: "TestFM01_DepositThatWasUnlistedIsForwardedOnceItIsRecovered",
	},
	{
		ID: "FM05-nothing-given-back", File: "wiring.go",
		Old:  "\t\t\terr = errors.Join(err, p.a.Treasury.Refused(ctx, in))\n",
		New:  "",
		What: "what was set aside for a withdrawal of a retired network stays so", Package: ".", Test: "TestFM05_RetiredWithdrawalOfADeadWorkerCanBeCancelled",
	},
	{
		ID: "FM05-no-client-no-end", File: "wiring.go",
		Old:  "\tif o, ok := p.a.offline(n); ok {\n",
		New:  "\tif o, ok := p.a.offline(n); ok && id == \"\" {\n",
		What: "a withdrawal whose network is retired cannot be cancelled", Package: ".", Test: "TestFM05_RetiredWithdrawalOfADeadWorkerCanBeCancelled",
	},
	{
		ID: "FM09-dropped-with-the-currency", File: "minimums.go",
		Old:  "\tmaps.Copy(m.Least, was.Least)\n",
		New:  "",
		What: "a process that does not list a currency takes its minimum away", Package: ".", Test: "TestFM09_MinimumsOfCurrenciesThatOthersList",
	},
	{
		ID: "FM09-samples-dropped", File: "minimums.go",
		Old:  "\tmaps.Copy(m.Samples, was.Samples)\n",
		New:  "",
		What: "a process that does not list a currency takes its samples away", Package: ".", Test: "TestFM09_MinimumsOfCurrenciesThatOthersList",
	},
	{
		ID: "FU01-not-mended", File: "storage/redisstore/migrate.go",
		Old:  "\t\t\tif strings.HasPrefix(field, earlier(t.Name, -1)) {",
		New:  "\t\t\tif stored && words == \"\" && strings.HasPrefix(field, earlier(t.Name, -1)) {",
		What: "rows that a process of an earlier version wrote beside Migrate are never readable", Package: "storage/redisstore", Test: "TestFU01_MigrateAgainMendsRowsOfAnOldProcess",
	},
	{
		ID: "FM09-host-instead", File: "minimums.go",
		Old:  "\t\t\tout[code] = max(out[code], least)\n",
		New:  "\t\t\tout[code] = least\n",
		What: "a host's minimum replaces a greater one of the App", Package: ".", Test: "TestFM09_TheGreaterOfTheAppsAndTheHostsMinimumsCounts",
	},
	{
		ID: "FM09-host-not-asked", File: "cryptopay.go",
		Old:  "\tp.Minimums = greaterMinimums(a.minimums, p.Minimums)\n",
		New:  "\tp.Minimums = greaterMinimums(a.minimums, nil)\n",
		What: "a host's minimums are overwritten", Package: ".", Test: "TestFM09_TheGreaterOfTheAppsAndTheHostsMinimumsCounts",
	},
	{
		ID: "FE12-found-by-the-first-customer", File: "fingerprint.go",
		Old:  "\t\t\treturn nil, fmt.Errorf(\"cryptopay: Config.Addresses gives no address of %s: %w\", n.name, err)",
		New:  "\t\t\t_ = fmt.Sprint(err)\n\t\t\tcontinue",
		What: "a network that no address can be derived of is found by the first customer", Package: ".", Test: "TestFE12_NetworkWithoutAnAddressIsFoundAtStart",
	},
	{
		ID: "FU02-migrates-unasked", File: "examples/gateway/gateway.go",
		Old:  "\t\tif !migrate {\n",
		New:  "\t\tif kind == \"\" {\n",
		What: "a store on Redis is changed under the processes of an earlier version", Package: "examples/gateway", Test: "TestFU02_RedisIsMigratedOnTheOperatorsWordAlone",
	},
}
