package planted

// What strangers write into other people's transactions.
var clientRemovals = []Bug{
	{
		ID: "FN04-unsaid-stops-the-ledger", File: "chain/xrp/ledger.go",
		Old:     `if !t.meta || t.index < 0`,
		New:     `if !t.meta || string(t.kind) == "AccountDelete" && t.delivered == nil || t.index < 0`,
		What:    "a ledger with an AccountDelete is not read where the server does not add what it delivered",
		Package: "./internal/e2e", Test: "TestFN04_AnAccountDeletedIntoOursStopsNobody",
	},
	{
		ID: "FN04-metadata-unread", File: "chain/xrp/scan.go",
		Old:     `if amount, native = drops(t.inMeta); !native {`,
		New:     `if amount, native = drops(nil); !native {`,
		What:    "what the metadata says of an AccountDelete is not looked at",
		Package: "./chain/xrp", Test: "TestFN04_AStrangersTransactionStopsNoLedger",
	},
	{
		ID: "FN04-known-types-alone", File: "chain/xrp/scan.go",
		Old:     `if to == paid || !w.Contains(to) {`,
		New:     `if to == paid || string(t.kind) == "TypeOfTomorrow" || !w.Contains(to) {`,
		What:    "balances are looked at of known types of transactions alone",
		Package: "./chain/xrp", Test: "TestFN04_AStrangersTransactionStopsNoLedger",
	},
	{
		ID: "FN04-ordinal-of-the-watched", File: "chain/xrp/scan.go",
		Old: `if to == paid || !w.Contains(to) {`,
		New: `if to == paid || !w.Contains(to) {
			number--`,
		What:    "a transfer's identity depends on which other accounts are watched",
		Package: "./chain/xrp", Test: "TestFN04_TwoAccountsGainByOneTransaction",
	},
	{
		ID: "FN04-recovered-under-another-ordinal", File: "chain/incoming/recover.go",
		Old:     `if list, err = n.unnumbered(ctx, a, list); err != nil {`,
		New:     `if err != nil {`,
		What:    "what an earlier version recorded under another ordinal is recovered a second time",
		Package: "./internal/e2e", Test: "TestFN04_WhatAnOlderVersionRecordedIsNotRecoveredAgain",
	},
	{
		ID: "FN04-operation-of-another-form", File: "chain/stellar/ledger.go",
		Old: `func (w walk) word() []byte {
	if w.Peek() != '"' {`,
		New: `func (w walk) word() []byte {
	if w.Peek() == 'n' {`,
		What:    "an operation of an unknown type whose fields are no texts makes its ledger unreadable",
		Package: "./chain/stellar", Test: "TestConformance/FN04_WhatNoClientKnowsStopsNothing",
	},
	{
		ID: "FN04-logs-listed-alone", File: "chain/evm/scan.go",
		Old:     `case errors.As(logs.Err, &refused) && !unknownBlock(logs.Err):`,
		New:     `case errors.As(logs.Err, &refused) && len(r.hash) == 0:`,
		What:    "a block with more logs than the node lists is never read",
		Package: "./chain/evm", Test: "TestFN04_MoreLogsThanANodeLists",
	},
	{
		ID: "FN04-nonce-of-63-bits", File: "chain/evm/block.go",
		Old: `if n := w.big(); n.IsInt64() {`,
		New: `if n := w.number(); n >= 0 {
				t.nonce = n
			} else if n := new(big.Int); n.IsInt64() {`,
		What:    "a nonce that is no int64 makes its block unreadable",
		Package: "./chain/evm", Test: "TestFN04_AStrangersTransactionStopsNoBlock",
	},
	{
		ID: "FN04-token-without-balances", File: "chain/evm/match.go",
		Old:     `case transport.Replied(k.Err, "revert", "invalid opcode", "out of gas"):`,
		New:     `case transport.Replied(k.Err, "nothing of the kind"):`,
		What:    "a token that refuses to say its balances stops the network",
		Package: "./chain/evm", Test: "TestFN04_ATokenThatDoesNotSayItsBalancesStopsNothing",
	},
	{
		ID: "FN04-waiting-form", File: "chain/utxo/mempool.go",
		Old:     `if err != nil || t.nIn == 0 {`,
		New:     `if t.nIn == 0 && err == nil {`,
		What:    "a waiting transaction of an unknown form ends the reading of all that wait",
		Package: "./chain/utxo", Test: "TestFN04_AWaitingTransactionOfAnUnknownFormIsPassedOver",
	},
	{
		ID: "FN04-odd-address", File: "chain/incoming/sight.go",
		Old:     `return t.Tx != "" && len(t.Tx) <= maxTx && clean(t.Tx) == t.Tx`,
		New:     `return t.Tx != "" && len(t.Tx) <= maxTx && clean(t.Tx) == t.Tx && ownable(t.To)`,
		What:    "a payment to an odd address stops the network",
		Package: "./chain/incoming", Test: "TestFN04_WhatStrangersPayToOddAddressesStopsNothing",
	},
	{
		ID: "FN04-too-full", File: "chain/internal/follow/follow.go",
		Old:     `for errors.Is(err, transport.ErrTooLong) && n > 1 {`,
		New:     `for errors.Is(err, transport.ErrTooLong) && n > 9 {`,
		What:    "blocks that are too full for one answer are never read",
		Package: "./chain/internal/follow", Test: "TestFN04_BlocksThatAreTooFullAreReadOneByOne",
	},
	{
		ID: "FN07-short-is-executed", File: "chain/outgoing/send.go",
		Old:     `	return ReasonDeliveredLess`,
		New:     `	return ""`,
		What:    "a payout that brought less is completed without a word",
		Package: "./internal/e2e", Test: "TestFN07_APayoutThatBringsLessWaitsForTheOperator",
	},
	{
		ID: "FN07-short-is-failed", File: "chain/tron/status.go",
		Old: `	if !moved || cur == nil {
		return moved, 0
	}`,
		New: `	if !moved || cur == nil || cur.Shortfall(t.out.Amount, coins(got, cur.Decimals)) > 0 {
		return false, 0
	}`,
		What:    "a payout that brought less is failed and refunded",
		Package: "./internal/e2e", Test: "TestFN07_APayoutThatBringsLessWaitsForTheOperator/tron",
	},
	{
		ID: "FN07-others-go-on", File: "withdrawal/delivered.go",
		Old:     `return n > 0, err`,
		New:     `return n > 1000, err`,
		What:    "payouts of a currency go on after one brought less",
		Package: "./internal/e2e", Test: "TestFN07_APayoutThatBringsLessWaitsForTheOperator",
	},
	{
		ID: "FN07-rest-from-others", File: "withdrawal/delivered.go",
		Old:     `if err == nil && equity < m.w.Missing() {`,
		New:     `if err == nil && equity < 0 {`,
		What:    "the rest is paid out of merchants' money",
		Package: "./withdrawal", Test: "TestFN07_DeliveredLessWaitsForAnOperator",
	},
	{
		ID: "FN07-through-the-token", File: "chain/evm/status.go",
		Old:     `moved = moved || arrived || l.from() == t.from`,
		New:     `moved = moved || arrived && l.from() == t.from`,
		What:    "a token that moves through its own address counts as not executed",
		Package: "./chain/evm", Test: "TestFN07_WhatTheTokenLoggedIsWhatArrived",
	},
	{
		ID: "FN07-fork-forgotten", File: "withdrawal/outcome.go",
		Old:     `if m.newer(o) && m.w.Waiting == WaitingDeliveredLess {`,
		New:     `if m.newer(o) && m.w.Waiting == "" {`,
		What:    "a withdrawal that a fork took back waits for an operator all the same",
		Package: "./withdrawal", Test: "TestFN07_AForkTakesTheShortPaymentBack",
	},
	{
		ID: "FN07-short-after-completed", File: "withdrawal/outcome.go",
		Old:  "\t\t\tm.shortLate(o)\n",
		New:  "\t\t\t_ = m.shortLate\n",
		What: "a payout that was completed before it landed and brings less is not noticed", Package: ".", Test: "TestFN07_PayoutWithoutConfirmationsBringsLess",
	},
	{
		ID: "FN07-accepted-is-told-once", File: "chain/outgoing/poll.go",
		Old:  "\tcase reached && a.st.Shortfall > 0 && j.v.Reason != ReasonDeliveredLess: // it was accepted before it landed\n",
		New:  "",
		What: "what a payout brings is not told where it was told as executed before it landed", Package: ".", Test: "TestFN07_PayoutWithoutConfirmationsBringsLess",
	},
	{
		ID: "FN07-completed-halts-nothing", File: "withdrawal/delivered.go",
		Old:  "return find(Completed, ",
		New:  "return find(Processing, ",
		What: "of a currency without required confirmations payouts go on after one that brought less", Package: "withdrawal", Test: "TestFN07_DeliveredLessAfterItWasCompleted",
	},
	{
		ID: "FN07-decided-again", File: "withdrawal/outcome.go",
		Old:  "decided := !waits && (m.w.Delivered > 0 || ",
		New:  "decided := !waits && (m.w.Delivered < 0 || ",
		What: "a withdrawal that an operator has decided on waits for him again", Package: "withdrawal", Test: "TestFN07_DeliveredLessAfterItWasCompleted",
	},
	{
		ID: "FN07-rests-beyond-equity", File: "withdrawal/delivered.go",
		Old:  "\t\t\t\tm.level = append(m.level, storage.Level{Name: \"missing/\" + m.w.Currency, Delta: missing, Max: stood + missing})\n",
		New:  "\t\t\t\t_ = missing + stood\n",
		What: "two rests that are paid at once are paid with the money of merchants", Package: "withdrawal", Test: "TestFN07_TwoRestsAtOnceArePaidOutOfWhatTheHouseOwns",
	},
	{
		ID: "FN11-finalized-ahead", File: "chain/evm/evm.go",
		Old:  "\tt.Safe, t.Final = min(t.Safe, t.Head.Height), min(t.Final, t.Head.Height)\n",
		New:  "",
		What: "a finalized block above the head is reported as it is", Package: "chain/evm", Test: "TestFN11_FinalizedAheadOfTheHeadIsTheHead",
	},
	{
		ID: "FN11-solidified-ahead", File: "chain/tron/tron.go",
		Old:  "\tif solid.Height > head.Height {",
		New:  "\tif solid.Height > head.Height+1000 {",
		What: "a solid block above the head is reported as it is", Package: "chain/tron", Test: "TestFN11_SolidifiedAheadOfTheHeadIsTheHead",
	},
}
