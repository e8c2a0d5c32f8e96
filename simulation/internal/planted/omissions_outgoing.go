package planted

// Lines that the sender lacks.
var outgoingOmissions = []Bug{
	{
		ID: "omit-outgoing-coin-release", File: "chain/outgoing/coins.go",
		Old:     "\treturn n.moveCoins(ctx, bound, p.Intent.ID, s, func(string) CoinState { return CoinFree })",
		New:     "\treturn nil",
		What:    "the coins of a plan that was given up stay reserved",
		Package: "chain/outgoing", Test: "TestK05_RefusedReplacementOfALostCoinGivesBackWhatNobodySaw/seen=false",
	},
	{
		ID: "omit-outgoing-max-attempts", File: "chain/outgoing/finalize.go",
		Old:     " || len(p.open) >= n.MaxAttempts && !j.v.Cancelling && !j.v.ExecutedReported {",
		New:     " {",
		What:    "a transaction is replaced without end",
		Package: ".", Test: "TestW03_SoManyAttemptsAndNoMore",
	},
	{
		ID: "omit-outgoing-max-inputs", File: "chain/outgoing/select.go",
		Old:     "\troom := max(n.MaxInputs-len(d.kept), 0)",
		New:     "\troom := len(free)",
		What:    "a transaction has as many inputs as there are coins",
		Package: ".", Test: "TestW03_NoMoreInputsThanAllowed",
	},
	{
		ID: "omit-outgoing-backoff", File: "chain/outgoing/commit.go",
		Old:     "due: n.Now().Add(n.pause(j.v.Tries)), outcome: tell})",
		New:     "due: n.Now(), outcome: tell})",
		What:    "an intent that waits is due again at once",
		Package: "chain/outgoing", Test: "TestW14_FloatIsAskedBeforeGasIsSpent",
	},
	{
		ID: "omit-outgoing-fee-cap", File: "chain/outgoing/plan.go",
		Old: `	if n.MaxFee > 0 {
		return min(in.MaxCost, n.MaxFee)
	}
`,
		New:     "",
		What:    "Config.MaxFee bounds nothing",
		Package: "chain/outgoing", Test: "TestW14_AbsurdFeeWaitsAndBurnsNoNonce",
	},
	{
		ID: "omit-outgoing-halt-at-resend", File: "chain/outgoing/poll.go",
		Old: `	may, err := n.maySend(ctx, j)
	if err != nil {
`,
		New: `	may, err := n.maySend(ctx, j)
	if false && err != nil {
`,
		What:    "what is on its way is sent again and replaced although the asset is halted",
		Package: "chain/outgoing", Test: "TestHaltsAreReadWhereSomethingIsSent",
	},
	{
		ID: "omit-outgoing-follow-to-final", File: "chain/outgoing/poll.go",
		Old:     "\tjobs, err := n.claim(ctx, n.Poll, Signed, Executed, Final)",
		New:     "\tjobs, err := n.claim(ctx, n.Poll, Signed, Final)",
		What:    "nobody looks after an executed transaction until it is final",
		Package: "chain/outgoing", Test: "TestCarriedRowsAreWritten",
	},
	{
		ID: "omit-outgoing-sent-at", File: "chain/outgoing/poll.go",
		Old: `			a.v.Sent = now
`,
		New:     "",
		What:    "an attempt is sent again at each look",
		Package: "chain/outgoing", Test: "TestW03_ChildHasNone",
	},
	{
		ID: "omit-outgoing-told", File: "chain/outgoing/network.go",
		Old:     "\t\t\t\tPut: []storage.Row{Outcomes.Row(r.ID, r.Version, time.Time{}, outcomes[i])},",
		New:     "\t\t\t\tPut: []storage.Row{Outcomes.Row(r.ID, r.Version, now.Add(n.Lease), outcomes[i])},",
		What:    "an outcome that its owner has taken is delivered again at each lease's end",
		Package: "chain/outgoing", Test: "TestW16_RejectedTogetherGoesAlone",
	},
}
