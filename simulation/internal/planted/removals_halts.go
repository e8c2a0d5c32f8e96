package planted

// What an operator halts, what he helps, and what he is told of.
var haltRemovals = []Bug{
	{
		ID: "FT05-store-needs-no-halts", File: "chain/outgoing/send.go",
		Old: "due: now.Add(n.Poll), need: j.guards, with:", New: "due: now.Add(n.Poll), with:",
		What:    "what is signed while a halt is set is stored and sent",
		Package: "./chain/outgoing", Test: "TestFT05_HaltBetweenReserveAndStore",
	},
	{
		ID: "FT05-resend-needs-no-halts", File: "chain/outgoing/poll.go",
		Old: "due: now.Add(n.Poll), need: may.guards,", New: "due: now.Add(n.Poll),",
		What:    "what is sent again does not require the record of halts",
		Package: "./chain/outgoing", Test: "TestFT05_HaltBetweenTheQuestionAndTheResend",
	},
	{
		ID: "FT05-replacement-needs-no-halts", File: "chain/outgoing/finalize.go",
		Old: "s.need, j.guards = union(s.need, guards), guards", New: "s.need = union(s.need, guards)",
		What:    "a replacement that is signed while a halt is set is stored and sent",
		Package: "./chain/outgoing", Test: "TestFT05_HaltWhileAReplacementIsSigned",
	},
	{
		ID: "FT05-plan-goes-on", File: "chain/outgoing/plan.go",
		Old: "	if err := n.planAllowed(ctx, j, p); err != nil {\n		if n.parted", New: "	if err := n.planAllowed(ctx, j, p); false && err != nil {\n		if n.parted",
		What:    "a plan that was stored before a halt is signed again",
		Package: "./chain/outgoing", Test: "TestFT05_CrashAnywhereInAHaltedRun",
	},
	{
		ID: "FT05-holes-stay", File: "chain/outgoing/halt.go",
		Old: "case frees && !h.all():", New: "case false && frees:",
		What:    "nonces that nobody uses are not filled while the network's own coin is halted",
		Package: "./chain/outgoing", Test: "TestFT05_HaltedCurrencysNonceHolesAreFilled",
	},
	{
		ID: "FT05-tenants-alike", File: "chain/outgoing/halt.go",
		Old: "case h.Tenant != \"\" && h.Tenant != in.Tenant:", New: "case false:",
		What:    "the halt of one tenant stops every other",
		Package: "./chain/outgoing", Test: "TestFT05_HaltedTenantStopsNoOther",
	},
	{
		ID: "FT05-gas-goes", File: "chain/outgoing/halt.go",
		Old: "if in.Purpose != chain.ForGas || n.GasFor == nil {", New: "if true {",
		What:    "gas is sent for the sweep of a halted currency",
		Package: ".", Test: "TestFT05_HaltedCurrencyIsNotSwept",
	},
	{
		ID: "FT05-new-network-runs", File: "cryptopay.go",
		Old: "a.list, a.inheritHalts, a.sayMade, a.sayAbilities", New: "a.list, a.sayMade, a.sayAbilities",
		What:    "a network that is opened after a halt of all networks is not halted",
		Package: ".", Test: "TestFT05_HaltByAnotherProcess",
	},
	{
		ID: "FT05-start-unseen", File: "chain/outgoing/halt.go",
		Old: "		if err != nil || there {\n", New: "		if err != nil || there || true {\n",
		What:    "a halt of all networks misses one whose first process has just looked for halts",
		Package: ".", Test: "TestFT05_HaltMeetsANetworkThatStarts",
	},
	{
		ID: "FT05-listed-before", File: "halts.go",
		Old: "		if e.Networks, err = o.networks(ctx); err != nil {\n", New: "		if err != nil {\n",
		What:    "a halt of all networks misses one whose first process started since it listed them",
		Package: ".", Test: "TestFT05_HaltMeetsANetworkThatStarts",
	},
	{
		ID: "FT05-sweep-waits-unseen", File: "wallet/treasury/sweep.go",
		Old: "	v, err := t.halted(ctx, j)\n", New: "	v, err := verdict{}, error(nil)\n",
		What:    "a payment waits for its sweep while that is halted",
		Package: ".", Test: "TestFT05_HookAndHaltStopEverything",
	},
	{
		ID: "FT06-bound-first", File: "operate.go",
		Old: "	if maxCost > v.Intent.MaxCost {\n", New: "	if _, _, err := net.out.SpeedUp(ctx, intent, maxCost, by); err == nil && maxCost > v.Intent.MaxCost {\n",
		What:    "the bound of an order is raised before the gas for it is set aside",
		Package: ".", Test: "TestFT06_SpeedUpRaisesTheBound",
	},
	{
		ID: "FT06-cheap-cancel", File: "chain/outgoing/finalize.go",
		Old: " || n.info.Family == chain.UTXOFamily && !a.v.Rejected", New: "",
		What:    "what takes the coins back pays no more than the payment that nodes have",
		Package: ".", Test: "TestFT06_CancelledPayoutPaysNobody",
	},
	{
		ID: "FT06-waits-in-silence", File: "withdrawal/waits.go",
		Old: "	return w.WaitingSince.Add(s.c.StuckAfter)\n", New: "	return time.Time{}\n",
		What:    "nobody is told of a payout that waits",
		Package: ".", Test: "TestFT06_WhatWaitsIsTold",
	},
	{
		ID: "FT06-flaps", File: "withdrawal/step.go",
		Old: "	m.trying = true\n", New: "",
		What:    "the merchant hears at each try that a payout waits no more",
		Package: ".", Test: "TestFT06_WaitingFlapsAreNotTold",
	},
	{
		ID: "FN08-completed-is-completed", File: "withdrawal/outcome.go",
		Old: "if m.newer(o) && o.Reason == WaitingReorged && m.w.Waiting != WaitingReorged {", New: "if false {",
		What:    "a completed payout whose block was replaced tells nobody",
		Package: ".", Test: "TestFN08_CompletedPayoutThatAReorgUndoesIsTold",
	},
	{
		ID: "FN08-fork-is-not-noted", File: "chain/incoming/fork.go",
		Old: "		err = n.noteFork(ctx, max(cur.Head, head), ancestor, &c)\n", New: "",
		What:    "a settled payout that a deep fork undid is never looked at again",
		Package: ".", Test: "TestFN08_CompletedPayoutThatAReorgUndoesIsTold",
	},
	{
		ID: "FN08-fork-by-what-was-read", File: "chain/incoming/fork.go",
		Old: "n.noteFork(ctx, max(cur.Head, head), ancestor, &c)", New: "n.noteFork(ctx, cur.Head, ancestor, &c)",
		What:    "a settled payout that a deep fork undid is not looked at again where deposits were read far behind",
		Package: "./chain/incoming", Test: "TestFN08_AForkIsAsDeepAsTheChainIsLong",
	},
	{
		ID: "FN08-reverted-is-sent", File: "chain/outgoing/reorg.go",
		Old: "		if o.v.State == AttemptFinal {\n			a = o\n", New: "		if o.v.State == AttemptFinal && a == nil {\n			a = o\n",
		What:    "a transaction that was reverted is sent again beside the one that paid in its place",
		Package: "./chain/outgoing", Test: "TestR05_NonceOfAnIntentThatWasSentAnewIsLeftAlone",
	},
	{
		ID: "FT05-halt-of-nobody", File: "halts.go",
		Old:  "	if s.Tenant != \"\" {\n		if _, err",
		New:  "	if s.Tenant == \"nobody\" {\n		if _, err",
		What: "a halt of a tenant that is misspelt says that it stands", Package: ".", Test: "TestFT05_HaltedTenantOfAnApp",
	},
}
