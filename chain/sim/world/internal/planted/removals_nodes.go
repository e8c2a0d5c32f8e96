package planted

// What the sources of nodes say that a model of them did not.
var nodeRemovals = []Bug{
	{
		ID: "FN31-remembered-is-waiting", File: "chain/xrp/status.go",
		Old:     `if err == nil && at == waiting {`,
		New:     `if err == nil && (at == waiting || known) {`,
		What:    "a payment that rippled refused and remembers is taken to wait",
		Package: "./chain/xrp", Test: "TestW03_WhatTheOpenLedgerHasIsNotReplaced",
	},
	{
		ID: "FN31-remembered-is-sent", File: "chain/xrp/send.go",
		Old:     `err == nil && known && r.validated {`,
		New:     `err == nil && known && r.id == t.id {`,
		What:    "a payment that rippled refuses and remembers is taken to be sent",
		Package: "./chain/xrp", Test: "TestW03_WhatTheOpenLedgerHasIsNotReplaced",
	},
	{
		ID: "FN31-clio-alone", File: "chain/xrp/waiting.go",
		Old:     `"ledger_index": "current", "queue": true}, &answer)`,
		New:     `"ledger_index": "validated"}, &answer)`,
		What:    "what waits behind Clio is sent in vain again and again",
		Package: "./chain/xrp", Test: "TestW01_ThereAlreadyIsSuccess",
	},
	{
		ID: "FN31-outbid-for-ever", File: "chain/outgoing/watch.go",
		Old:     `!n.Now().Before(j.v.BumpAt) && j.v.Reason != ReasonOccupied)`,
		New:     `!n.Now().Before(j.v.BumpAt))`,
		What:    "dearer and dearer replacements are signed that nodes refuse",
		Package: "./internal/e2e", Test: "TestW03_WhatRippledKeepsIsNotReplaced",
	},
	{
		ID: "FN31-first-left-alone", File: "chain/outgoing/watch.go",
		Old:     `err != nil || j.v.Reason != ReasonOccupied {`,
		New:     `err != nil || j.v.Reason == ReasonOccupied {`,
		What:    "the attempt that nodes keep is not sent again",
		Package: "./chain/outgoing", Test: "TestW03_RefusedReplacementLeavesTheFirstAlive",
	},
	{
		ID: "FN31-kept-back-for-ever", File: "chain/outgoing/send.go",
		Old: `slog.String("cause", err.Error()))
		return n.released(ctx, j, a)`,
		New: `slog.String("cause", err.Error()))
		return nil`,
		What:    "a payout whose time is over after its replacement was refused is never sent anew",
		Package: "./chain/outgoing", Test: "TestW03_ReleasedReplacementIsReplacedInItsTurn",
	},
	{
		ID: "FN31-reason-kept-to-itself", File: "withdrawal/outcome.go",
		Old:     `why == WaitingOccupied || why == WaitingStuck }`,
		New:     `why == WaitingStuck }`,
		What:    "a withdrawal does not say that its replacement was refused",
		Package: "./internal/e2e", Test: "TestW03_WhatRippledKeepsIsNotReplaced",
	},
	{
		ID: "FT06-not-told", File: "chain/outgoing/watch.go",
		Old:     `>= stuckShown {`,
		New:     `< 0 {`,
		What:    "a payout that is in no block for hours shows no reason",
		Package: "./chain/outgoing", Test: "TestFT06_StuckIsShown",
	},
	{
		ID: "FN34-ours-is-searched-for", File: "chain/internal/follow/contest.go",
		Old:     `case taken:`,
		New:     `case taken && w.tx == attempts[i].Tx:`,
		What:    "what strangers pay an account makes each look at a replaced payout longer",
		Package: "./chain/stellar", Test: "TestFN34_StrangersDoNotLengthenTheSearch",
	},
	{
		ID: "FN34-search-begins-anew", File: "chain/stellar/search.go",
		Old:     `c.searches.Keep(t.tx, s)`,
		New:     `c.searches.End(t.tx)`,
		What:    "behind many payments of strangers, what took a number is never found",
		Package: "./chain/stellar", Test: "TestFN34_SearchIsBoundedAndGoesOn",
	},
	{
		ID: "FN34-search-begins-anew-xrp", File: "chain/xrp/search.go",
		Old:     `c.searches.Keep(t.tx(), s)`,
		New:     `c.searches.End(t.tx())`,
		What:    "behind many payments of strangers, what took a Sequence is never found",
		Package: "./chain/xrp", Test: "TestFN34_SearchIsBoundedAndGoesOn",
	},
	{
		ID: "FN34-search-begins-too-late", File: "chain/stellar/search.go",
		Old:     `		case late: // what took it is older`,
		New:     `		case late && s.from < 0:`,
		What:    "what took a number before the search begins is never found",
		Package: "./chain/stellar", Test: "TestFN34_SearchThatBeganTooLateGoesBack",
	},
	{
		ID: "FN35-silence-believed", File: "chain/tron/internal.go",
		Old:     `		if x.logs[i].contract != called {`,
		New:     `		if x.logs[i].contract == called && x.failed {`,
		What:    "TRX that contracts pay is lost on a node that keeps no inner calls",
		Package: "./internal/e2e", Test: "TestFN35_ANodeThatKeepsNoInnerCallsCreditsNothingInSilence",
	},
	{
		ID: "FN35-forgotten-at-once", File: "chain/tron/internal.go",
		Old:     `	case s == unclear && c.keeping.silent:`,
		New:     `	case s == unclear && c.keeping.silent && len(rs) < 0:`,
		What:    "a node that was seen to keep no inner calls is believed at the next block",
		Package: "./chain/tron", Test: "TestFN35_NodeThatKeepsNoInnerCallsIsRefused",
	},
	{
		ID: "FN35-first-block-unasked", File: "chain/tron/internal.go",
		Old:     `if s == unclear && !c.keeping.known {`,
		New:     `if s == unclear && c.keeping.silent {`,
		What:    "the first blocks are believed whether the node keeps inner calls or not",
		Package: "./chain/tron", Test: "TestFN35_NodeIsFoundOutBeforeTheFirstBlock",
	},
	{
		ID: "FN36-accounts-or-nothing", File: "chain/solana/unread.go",
		Old:     `	if !said(err, badRequest, noMethod, badParams) {`,
		New:     `	if !said(err, badRequest, noMethod, badParams) || b == nil {`,
		What:    "a node that does not give accounts alone reads no block with a transaction of a later version",
		Package: "./chain/solana", Test: "TestFN36_NodesThatKnowNoAccountsAreAskedForAll",
	},
}
