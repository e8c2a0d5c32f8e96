package planted

// What the REST interface shows, and what a host is asked.
var interfaceRemovals = []Bug{
	{
		ID: "FM02-raw-price", File: "config.go",
		Old: "	c.Rates = guarded\n", New: "	_ = guarded\n",
		What:    "rooms ask the host's source of prices itself",
		Package: ".", Test: "TestFM02_OneGuardedPriceForEveryUse",
	},
	{
		ID: "FM02-no-stable-bounds", File: "chain/rates/guarded.go",
		Old: "maps.Copy(g.bounds, stableBounds(token))", New: "maps.Copy(map[[2]string]Bound{}, stableBounds(token))",
		What:    "a stable coin may have any price",
		Package: ".", Test: "TestFM02_OneGuardedPriceForEveryUse",
	},
	{
		ID: "FM02-other-fiat", File: "chain/rates/guarded.go",
		Old: `{token, "EUR"}: elsewhere,`, New: `{token, "CHF"}: elsewhere,`,
		What:    "a stable coin may have any price in euros",
		Package: ".", Test: "TestFM02_OneGuardedPriceForEveryUse",
	},
	{
		ID: "FT05-host-not-asked", File: "cryptopay.go",
		Old: "eitherHalts(a.haltedIntent, o.Halted), c.Retire", New: "a.haltedIntent, c.Retire",
		What:    "a host's halt of what would be sent is overwritten",
		Package: ".", Test: "TestFT05_AHostsHaltStopsWhatWouldBeSent",
	},
	{
		ID: "FT05-host-instead", File: "hooks.go",
		Old: "use, own, err := ours(ctx, n, a)", New: "use, own, err := theirs(ctx, n, a)",
		What:    "a host's hook takes the place of the App's",
		Package: ".", Test: "TestFT05_RefusalsAddUp",
	},
	{
		ID: "FT05-host-own-dropped", File: "cryptopay.go",
		Old: "eitherOwns(a.own, w.Own)", New: "ownership(a.own)",
		What:    "a host's own addresses may be paid to",
		Package: ".", Test: "TestFT05_RefusalsAddUp",
	},
	{
		ID: "FT05-higher-bound", File: "hooks.go",
		Old: "return min(a, b), err", New: "return max(a, b), err",
		What:    "a host's bound of what the network may take replaces the App's",
		Package: ".", Test: "TestFT05_RefusalsAddUp",
	},
	{
		ID: "FR01-overwritten", File: "hooks.go",
		Old: "if !room.FieldByName(field).IsZero() {", New: "if false && !room.FieldByName(field).IsZero() {",
		What:    "what a host sets and the App fills in is overwritten without a word",
		Package: ".", Test: "TestFR01_WhatTheAppFillsInIsRefused",
	},
	{
		ID: "FA03-final-alone", File: "payment/progress.go",
		Old: "v.Pending = addUp(v.Pending, e.d.Amount)", New: "v.Pending = addUp(v.Pending, 0)",
		What:    "a payment does not show what came and is not final",
		Package: "httpapi", Test: "TestFA03_APartialPaymentShowsWhatCame",
	},
	{
		ID: "FA03-due-is-missing", File: "payment/progress.go",
		Old: "v.Missing = max(0, p.Due-live)", New: "v.Missing = p.Due",
		What:    "what is missing of a payment is all of it",
		Package: "httpapi", Test: "TestFA03_APartialPaymentShowsWhatCame",
	},
	{
		ID: "FA03-suspense-hidden", File: "payment/progress.go",
		Old: "d.Role.suspense() && (", New: "d.Role.suspense() && d.Proven && d.Role == RoleWrongToken && (",
		What:    "late money is not shown at the payment whose address it came to",
		Package: "httpapi", Test: "TestFA03_WhatDoesNotCountIsShown",
	},
	{
		ID: "FA04-since-the-last-try", File: "withdrawal/step.go",
		Old: "	if m.w.Waiting == was.Waiting {\n", New: "	if false && m.w.Waiting == was.Waiting {\n",
		What:    "a withdrawal waits since it was last tried",
		Package: "httpapi", Test: "TestFA04_AWithdrawalSaysWhyItWaits",
	},
	{
		ID: "FA04-reason-hidden", File: "withdrawal/waiting.go",
		Old: `"gas_float_short": ShownGasShort, `, New: "",
		What:    "a withdrawal does not say that coins for the network are missing",
		Package: "httpapi", Test: "TestFA04_AWithdrawalSaysWhyItWaits",
	},
	{
		ID: "FA02-carrier-alone", File: "chain/outgoing/together.go",
		Old: "			o.Batch = j.id\n", New: "			o.Batch = \"\"\n",
		What:    "of what one transaction pays the one that carries the others alone shows the batch",
		Package: "httpapi", Test: "TestFA02_PaidTogetherHaveOneBatch",
	},
	{
		ID: "FM09-configured-alone", File: "cryptopay.go",
		Old: "p.Minimums = greaterMinimums(a.minimums, p.Minimums)", New: "_ = greaterMinimums",
		What:    "minimums are constants, whatever forwarding costs",
		Package: "httpapi", Test: "TestFM09_MinimumsFollowWhatForwardingCosts",
	},
	{
		ID: "FM09-present-fee", File: "minimums.go",
		Old: "least, err := s.least(ctx, c, gas, median(m.Samples[c.Code]))", New: "_ = median(m.Samples[c.Code])\n\t\tleast, err := s.least(ctx, c, gas, cost)",
		What:    "a minimum follows the fee of the moment instead of the median of a day",
		Package: "httpapi", Test: "TestFM09_MinimumsFollowWhatForwardingCosts",
	},
}
