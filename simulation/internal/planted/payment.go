package planted

// What goes wrong with payments.
var paymentBugs = []Bug{
	{
		ID: "credit-before-final", File: "payment/deposit.go",
		Old:  "if s.State == incoming.Final {\n\t\td.Proven = d.Proven || f.final",
		New:  "if s.State == incoming.Final || s.State == incoming.Included {\n\t\td.Proven = true",
		What: "a deposit is credited once it is in a block",
	},
	{
		ID: "confirmed-before-final", File: "payment/decide.go",
		Old:  `if e.d.Proven {`,
		New:  `if e.d.State != incoming.Seen {`,
		What: "a payment is confirmed by deposits that are not final",
	},
	{
		ID: "expiry-off-by-one", File: "payment/deposit.go",
		Old:  `inTime := d.FirstSeen.Before(x.p.ExpiresAt) ||`,
		New:  `inTime := !d.FirstSeen.After(x.p.ExpiresAt) ||`,
		What: "what comes at the very end of the window is in time",
	},
	{
		ID: "late-in-time", File: "payment/deposit.go",
		Old:  `if x.p.Cancelled || !inTime {`,
		New:  `if x.p.Cancelled && !inTime {`,
		What: "late deposits are credited as if they had been in time",
	},
	{
		ID: "wrong-token", File: "payment/deposit.go",
		Old:  `case s.Currency != x.p.Currency:`,
		New:  `case s.Network != x.p.Network:`,
		What: "another token counts for what was asked for",
	},
	{
		ID: "fee-of-the-whole", File: "payment/posting.go",
		Old:  `platform, err = rest.MulDiv(uint64(percent), uint64(feeUnits+percent), ledger.Down)`,
		New:  `platform, err = rest.MulDiv(uint64(percent), uint64(feeUnits), ledger.Down)`,
		What: "a fee that the customer paid on top is taken of the sum with it",
	},
	{
		ID: "due-rounded-down", File: "payment/create.go",
		Old:  `coins, err := ledger.Quo(q.Price, q.Rate, c.Scale, ledger.Up)`,
		New:  `coins, err := ledger.Quo(q.Price, q.Rate, c.Scale, ledger.Down)`,
		What: "what a customer has to send is rounded down",
	},
	{
		ID: "no-tolerance", File: "payment/decide.go",
		Old:  `return sum >= x.p.Due-x.p.Tolerance }`,
		New:  `return sum >= x.p.Due }`,
		What: "a payment that is short by less than the tolerance is not paid",
	},
	{
		ID: "tolerance-unbounded", File: "payment/create.go",
		Old:  `return min(part, most), err`,
		New:  `return max(part, most), err`,
		What: "the bound of the tolerance is taken for the tolerance",
	},
	{
		ID: "suspense-not-unwound", File: "payment/posting.go",
		Old:  "if d.Booking == Unbooked || d.Booking == Reversed || d.Booking == Written {\n\t\treturn nil\n\t}\n\tx.alert(AlertReversed",
		New:  "if d.Booking == Unbooked || d.Booking == Reversed || d.Booking == Written || d.Booking == InSuspense {\n\t\treturn nil\n\t}\n\tx.alert(AlertReversed",
		What: "a deep reorg takes suspended money away and the books keep it",
	},
	{
		ID: "suspense-untold", File: "payment/posting.go",
		Old:  `x.alert(AlertSuspense, e, "money that matches no payment was booked to suspense: "+string(d.Role)+d.said())`,
		New:  `_ = AlertSuspense`,
		What: "nobody is told that money was booked to suspense",
	},
	{
		ID: "older-fact-wins", File: "payment/deposit.go",
		Old:  `} else if f.version < e.d.FactVersion || s.Generation < e.d.Generation {`,
		New:  `} else if s.Generation < e.d.Generation {`,
		What: "an older fact that comes late overwrites a newer one",
	},
	{
		ID: "outbox-forgotten", File: "payment/store.go",
		Old:  "	webhook.Put(&c, x.events...)\n",
		New:  "",
		What: "the events of a payment are not in the Change that they tell of",
	},
	{
		ID: "sequence-from-clock", File: "payment/event.go",
		Old:  `x.p.Events++`,
		New:  `x.p.Events = x.now.UnixMilli()`,
		What: "events are numbered by the clock",
	},
	{
		ID: "merged-told-again", File: "payment/event.go",
		Old:  `d.Merged = true`,
		New:  `d.Merged = false`,
		What: "every later fact tells anew that a deposit was merged",
	},
	{
		ID: "receivable-not-repaid", File: "payment/posting.go",
		Old:  `owed := min(d.Owed, brings)`,
		New:  `owed := min(d.Owed, brings, 0)`,
		What: "a deposit that is back leaves its wallet owing what its reversal took",
	},
	{
		ID: "reversal-not-split", File: "payment/posting.go",
		Old: `d.Booking = Reversed
		return x.repost(e, "reverse", ledger.KindAdjustment, ledger.Chain(d.Network), x.p.Received-d.Amount)`,
		New: `d.Booking = Reversed
		return nil`,
		What: "a deep reorg takes a credited deposit away and the wallet keeps it",
	},
	{
		ID: "payment-event-not-told", File: "payment/store.go",
		Old:  `append(c.Tell, x.told...)`,
		New:  `c.Tell`,
		What: "the host is told of no change of a payment but its creation",
	},
}
