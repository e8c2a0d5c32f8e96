package planted

// What goes wrong with money itself, and with prices.
var ledgerBugs = []Bug{
	{
		ID: "no-floor", File: "ledger/ledger.go",
		Old:  `func (a Account) Floored() bool { return strings.HasPrefix(string(a), walletPrefix) }`,
		New:  `func (a Account) Floored() bool { return string(a) == walletPrefix }`,
		What: "no wallet has a floor any more",
	},
	{
		ID: "floor-ignores-holds", File: "ledger/ledger.go",
		Old:  `if posted < held {`,
		New:  `if posted < 0 {`,
		What: "what is held can be spent a second time",
	},
	{
		ID: "round-up", File: "ledger/amount.go",
		Old:  `if rem != 0 && r == Up {`,
		New:  `if rem != 0 {`,
		What: "shares are rounded up where they should be rounded down",
	},
	{
		ID: "entries-not-numbered", File: "ledger/ledger.go",
		Old:  "if l.Delta != 0 {\n\t\tb.Seq++",
		New:  "if l.Delta > 0 {\n\t\tb.Seq++",
		What: "what is taken from an account gets no number of its own in the history",
	},
	{
		ID: "stale-price", File: "chain/rates/rates.go",
		Old:  `case age >= most || age <= -min(most, ahead):`,
		New:  `case age <= -min(most, ahead):`,
		What: "a price is used however old it is",
	},
	{
		ID: "price-of-the-future", File: "chain/rates/rates.go",
		Old:  `case age >= most || age <= -min(most, ahead):`,
		New:  `case age >= most:`,
		What: "a price is used that is dated hours ahead",
	},
}
