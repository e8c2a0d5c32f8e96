package planted

// What goes wrong with withdrawals.
var withdrawalBugs = []Bug{
	{
		ID: "hold-not-released", File: "withdrawal/move.go",
		Old:  `m.post = append(m.post, releaseTx(&m.w, m.now))`,
		New:  `_ = releaseTx(&m.w, m.now)`,
		What: "a withdrawal that fails keeps its hold",
	},
	{
		ID: "hold-without-fees", File: "withdrawal/legs.go",
		Old:  `Asset: ledger.Asset(w.Currency), Hold: w.Requested}},`,
		New:  `Asset: ledger.Asset(w.Currency), Hold: w.Amount}},`,
		What: "only what the recipient gets is held",
	},
	{
		ID: "refund-on-unknown-submit", File: "withdrawal/step.go",
		Old:  "default:\n\t\tm.wait(WaitingPayout, retry)\n\t}\n\tif m.w.Waiting",
		New:  "default:\n\t\treturn m.step(onDead, Failed)\n\t}\n\tif m.w.Waiting",
		What: "an error of the payout side is taken for its refusal: refunded, and sent later",
	},
	{
		ID: "hold-expires", File: "withdrawal/outcome.go",
		Old:  "m.wait(o.Reason, m.due)\n\tcase Processing:",
		New:  "m.wait(o.Reason, m.due)\n\t\tif m.now.Sub(m.w.CreatedAt) > time.Hour {\n\t\t\treturn m.step(onDead, Failed)\n\t\t}\n\tcase Processing:",
		What: "a withdrawal that has waited for an hour is refunded, and sent later",
	},
	{
		ID: "cancel-ignores-answer", File: "withdrawal/cancel.go",
		Old:  `case !said.ended: // signed, and the news is still on its way`,
		New:  `case !said.ended && m.w.Tx != "":`,
		What: "a withdrawal is cancelled although the payout side has signed it",
	},
	{
		ID: "cancel-without-asking", File: "withdrawal/cancel.go",
		Old:  "case m.w.Stage != Kept:\n\t\t\treturn errHandedOver",
		New:  "case m.w.Stage == Handing:\n\t\t\treturn errHandedOver",
		What: "what was handed over is cancelled without asking the payout side",
	},
	{
		ID: "fee-charged-twice", File: "withdrawal/price.go",
		Old: `fee, err := platform.Add(network)`,
		New: `platform, _ = platform.Add(platform)
	fee, err := platform.Add(network)`,
		What: "the platform's fee is charged twice",
	},
	{
		ID: "final-amount-ignored", File: "withdrawal/price.go",
		Old:  `if final {`,
		New:  `if final && platform > 0 {`,
		What: "the recipient of a final amount gets it less the network's fee where the platform takes none",
	},
	{
		ID: "price-rounded-up", File: "withdrawal/estimate.go",
		Old:  `a, err := ledger.Quo(*t.PriceAmount, rate, c.Scale, ledger.Down)`,
		New:  `a, err := ledger.Quo(*t.PriceAmount, rate, c.Scale, ledger.Up)`,
		What: "a withdrawal of a price is rounded up",
	},
	{
		ID: "frozen-goes-out", File: "withdrawal/step.go",
		Old:  `case m.w.Frozen:`,
		New:  `case m.w.Frozen && m.w.Review == ReviewWanted:`,
		What: "what an operator has frozen is sent",
	},
	{
		ID: "withdrawal-event-not-told", File: "withdrawal/move.go",
		Old:  `append(m.events, row), append(m.told, made)`,
		New:  `append(m.events, row), append(m.told, made)[:0]`,
		What: "the host is told of no change of a withdrawal but its creation",
	},
}
