package judge

// Promise is one thing that must hold.
type Promise struct {
	ID   string
	Rule string // that it rests on
	Open string // the finding whose repair turns it on; "" = it is on
	Why  string // it is open
	Rare bool   // it comes up in one of some thousand worlds: fewer may never ask it
}

// Table lists every promise, by what it is about.
func Table() []Promise {
	var all []Promise
	for _, part := range [][]Promise{aboutPayments, aboutPayouts, aboutLists, aboutBooks, aboutWebhooks, aboutChains, aboutEnds, aboutHard, aboutSavings, aboutLater} {
		all = append(all, part...)
	}
	return all
}

var aboutPayments = []Promise{
	{ID: "I11", Rule: "Every address is unique and single-use: it is never handed out twice, not even after expiry or a crash."},
	{ID: "asked", Rule: "A payment is in the coin, to the wallet, at the terms and the merchant's fee, as it was asked for and answered."},
	{ID: "rate", Rule: "A payment is priced by a price that a source has given."},
	{ID: "W18", Rule: "Nothing is priced by a source that is silent, stale, ahead of its time, zero or below; a currency that is mistaken in its contract or units does not start."},
	{ID: "due", Rule: "The customer sends the price in crypto, rounded up at the coin's scale; where he bears the fee, the price with the fee's percentage and the quoted network fee on it, rounded up."},
	{ID: "window", Rule: "A payment expires so many minutes after its creation as were asked, by default 60."},
	{ID: "tolerance", Rule: "The tolerance is 0.5 % of what is due, at most 5 USD worth."},
	{ID: "type", Rule: "More than due is credited in full and called over, enough is called full, less is partial."},
	{ID: "fees", Rule: "Of the received sum the network fee is taken once; the platform takes its percentage of the sum rounded down, or where the customer bears it the percentage that is contained in the rest; the wallet gets what is left."},
	{ID: "received-usd", Rule: "merchant_received_usd is what the wallet was credited times the locked rate, two places, rounded down."},
	{ID: "missing", Rule: "amount_missing is what the customer still has to send: nothing once enough has come within the tolerance of half a percent, at most 5 USD."},
	{ID: "expiry", Rule: "A payment that nobody cancelled expires only when its window has ended."},
	{ID: "I5", Rule: "What is credited is final on the chain: it came to the payment's address, in its coin, at least the dust limit, with the required confirmations, and not after the window alone."},
	{ID: "I5-once", Rule: "Each credited unit is of exactly one transfer on the chain, by transaction and place, and no transfer is credited twice."},
	{ID: "deposits", Rule: "Several deposits add up: the list of deposits is what the payment shows as received, pending, and credited."},
	{ID: "enough", Rule: "A payment is confirmed only when the final deposits alone are what is due, less the tolerance."},
	{ID: "cancelled", Rule: "A cancelled payment is expired for good: what comes later goes to suspense."},
	{ID: "permanent", Rule: "A permanent address is one for each merchant, external_id and network, for ever. Each deposit there is a payment to its wallet, with its address_id, is_fixed_rate false and order_id empty, at the merchant's fee, that expires 24 hours after its creation in name alone: it is never waiting, and never expired."},
	{ID: "permanent-due", Rule: "A payment at a permanent address is over what came, and over what that is worth at a price of when it was seen."},
	{ID: "permanent-small", Rule: "What is too little at a permanent address is in suspense with its reason, until it adds up to the minimum."},
	{ID: "suspense-reason", Rule: "Money in suspense shows why: late, wrong_asset where the address expected another coin, or unmatched."},
	{ID: "I13", Rule: "Payments, withdrawals and transfers move along the edges of their tables only; what has ended stays, except for a payment whose deposit returns."},
}

var aboutPayouts = []Promise{
	{ID: "ordered", Rule: "A withdrawal is to the address, in the coin, of the merchant, as it was ordered."},
	{ID: "I11-spends", Rule: "A nonce or a coin is signed for one order alone, with all its attempts."},
	{ID: "I11-free", Rule: "A coin is reserved for one order before that is signed."},
	{ID: "I4-tenants", Rule: "One merchant's coins pay nobody else's withdrawals."},
	{ID: "R03", Rule: "A coin that a reorg took away is not spent once that was read."},
	{ID: "I14", Rule: "The same idempotency key gives the same answer and one effect."},
	{ID: "kept", Rule: "What was accepted, a payment or a withdrawal, is there afterwards."},
	{ID: "charged", Rule: "The platform's fee is its percentage of the figure asked for, the network's a quote; without final_amount they come off the figure, with it they go on top; a price is converted once, rounded down."},
	{ID: "frozen", Rule: "A pending withdrawal that an operator holds is not picked up before he releases it."},
	{ID: "refused", Rule: "A withdrawal that is pending fails only where its approval is refused or a policy is violated."},
	{ID: "reason", Rule: "A withdrawal shows a waiting_reason only while it is open, or while the network has taken its payment back or nobody has decided about what it brought less, and since when."},
	{ID: "I7", Rule: "A withdrawal has at most one executed effect, equal in coin, amount and destination to what was accepted; what was not accepted has none."},
	{ID: "I8", Rule: "A withdrawal that failed or was cancelled, and whose money went back to the balance, was never paid. It fails where it can provably never land: its revert is final, which is after the required confirmations; against a deeper reorg nothing is promised."},
}

var aboutBooks = []Promise{
	{ID: "I3", Rule: "No balance is below zero; amount is pending and available together."},
	{ID: "I1", Rule: "The entries of every transaction of the ledger add up to nothing in each coin, and it is there once."},
	{ID: "I2", Rule: "A stored balance is the sum of its entries."},
	{ID: "verify", Rule: "Asked to verify its books the library finds them right: entries, seals, holds, postings without a cause, gas set aside."},
	{ID: "I15", Rule: "Nobody writes on a version of a row that he has not seen, and a claim gives a row to one alone."},
	{ID: "loss", Rule: "What a token took of a move between addresses of ours is posted once when the move is final, and taken back as it was posted where a fork undoes that."},
	{ID: "cost", Rule: "A cost is posted once per landed transaction of ours: all that left our addresses, less what came back, less what others were to get, rounded up."},
	{ID: "balance", Rule: "A wallet has what its payments left it, less completed withdrawals with their fees, and what transfers and people brought or took; what a deep reorg took beyond that it owes."},
	{ID: "I9", Rule: "pending is what open withdrawals and transfers hold, no more and no less: completed posts the hold once, and what ended has none."},
	{ID: "I9-gas", Rule: "Gas is set aside only for what is in flight: when all has ended, none is."},
	{ID: "platform-fees", Rule: "The platform has earned the platform fees of credited payments and completed withdrawals, less what it took out."},
	{ID: "taken", Rule: "What an operator takes out arrives once."},
	{ID: "history", Rule: "The balance history has an entry per movement, each the step to the balance after it, from zero to the present balance."},
	{ID: "history-withdrawal", Rule: "A completed withdrawal has one entry of minus what was requested; any other has none."},
	{ID: "I29", Rule: "What a merchant is shown agrees with itself at every step: lists, counts, the unified history, statistics, balances, and every webhook."},
	{ID: "total-deposits", Rule: "The overview's total_deposits counts the payments that were paid; no paper says that one which expired and was credited in part counts, too."},
}

var aboutWebhooks = []Promise{
	{ID: "H06", Rule: "X-Signature is the hex HMAC-SHA256 of the raw body under the merchant's secret, and Webhook-Signature that of id, time and body."},
	{ID: "I12", Rule: "A webhook has one body, stored and sent alike; it waits until its receiver has taken it, or it was given up and is listed so."},
	{ID: "H08", Rule: "There are six attempts in all: one at once, then after 1 min, 5 min, 15 min, 1 h and 4 h."},
	{ID: "six", Rule: "A webhook is given up only after all its attempts: one at once, and five retries."},
	{ID: "envelope", Rule: "A webhook's body is event, data and timestamp, the time in UTC with milliseconds."},
	{ID: "fields", Rule: "The payload of each event has the documented fields, and does not grow."},
	{ID: "payment-type", Rule: "A paid payment is told as full or over; one that expires as partial, or without a type where nothing came."},
	{ID: "I16", Rule: "Nothing of one merchant's is told to another, or can be reached by him."},
	{ID: "I27", Rule: "Every change of state of a payment, a withdrawal or a transfer is one event of its object, told or waiting to be, numbered in order: they lead from its first state to the present one, each taken once."},
	{ID: "I27-host", Rule: "A consumer of the host hears of every change of state of a payment, a withdrawal and a transfer, in order, with nothing left out: what it heard last is what is shown."},
	{ID: "I27-house", Rule: "A consumer of the host hears of every change of state of a sweep, of an order of the house's own and of a halt, in the order of its network, with nothing left out: what it heard last is what is stored."},
	{ID: "I27-waiting", Rule: "withdrawal_waiting tells that a withdrawal waits, for what and since when, and that it waits no more."},
	{ID: "I27-deposits", Rule: "payment_deposit tells of every deposit that is seen, final, late, of the wrong asset, or gone: its events lead, each taken once, to how it stands."},
	{ID: "merged", Rule: "deposit_merged is one event per deposit."},
	{ID: "deposit-told", Rule: "Each deposit that is detected for a payment is told."},
}

var aboutChains = []Promise{
	{ID: "I4", Rule: "What merchants have and what stands in suspense is covered by coins on addresses of ours; only a reorg deeper than the required confirmations may break it."},
	{ID: "I4-aside", Rule: "Reserving an outgoing transaction requires equity in the gas asset: what is set aside is there."},
	{ID: "repaid", Rule: "A deposit that is mined again repays what its reversal left its wallet owing, as far as it brings so much."},
	{ID: "I4-house", Rule: "Gas never spends merchants' coins: what the house has of a network's own coin stays at zero or above; only a deep reorg may break it."},
	{ID: "I5-own", Rule: "Change, sweeps and gas of our own are never booked as what came from outside."},
	{ID: "I6", Rule: "Whatever order events came in, what is booked in the end is what a fresh look at the chain finds, transfer by transfer."},
	{ID: "I24", Rule: "A sweep together with its gas costs at most half of the value that it moves, and bringing the coins that withdrawals lack at most half of these: over a week all of them together at most one and a half times that share, and one failed move per address."},
	{ID: "I24-once", Rule: "Of one address one sweep is under way at a time."},
	{ID: "I28", Rule: "No merchant's, stranger's or receiver's act delays another's first attempt or payout by more than the pause of one attempt."},
}

var aboutEnds = []Promise{
	{ID: "I19", Rule: "After the faults every payment, withdrawal, transfer and webhook comes to its end in the papers' times; after a deep reorg a withdrawal may wait and show its reason, and since when."},
	{ID: "I19-restored", Rule: "The same after a backup was put back."},
	{ID: "full", Rule: "A payment for which enough came in time is completed."},
	{ID: "partial", Rule: "What came in time for a payment that was not paid in full is credited when its window has ended."},
	{ID: "empty", Rule: "A payment for which nothing came is expired or failed, and credits nothing."},
	{ID: "paid", Rule: "A completed withdrawal was executed on the chain, by the transaction that it shows; one that a deep reorg took away says so."},
	{ID: "complete", Rule: "While an address is watched every unit that lands on it is booked once: to the payment, or to suspense."},
	{ID: "I26", Rule: "Per network and coin the books are what the chain holds at our addresses, but for dust, for places finer than the books', and for what was paid for a withdrawal that somebody edited and that waits for a person."},
	{ID: "I26-named", Rule: "The host is told of a difference between the books and the chain only where there is a cause."},
	{ID: "I26-named-deep", Rule: "The same after a reorg that was deeper than the required confirmations."},
	{ID: "deposits-deep", Rule: "The list of deposits is what the payment shows also after reorgs that were deeper than the required confirmations.", Open: "rounding-after-deep-reorg", Why: "A net that was rounded over several deposits is some units off the sum of theirs once one of them is taken back."},
	{ID: "I26-deep", Rule: "The same after a reorg that was deeper than the required confirmations: what it took is taken back in the books."},
	{ID: "resting", Rule: "Coins that wait to be forwarded are shown with a reason and since when."},
	{ID: "resting-ends", Rule: "They are shown with what ends it: the next look, or the cost below which they go."},
	{ID: "at-rest", Rule: "Coins at rest on a deposit address are forwarded, or shown with a reason, an age, and what ends it."},
	{ID: "at-rest-deep", Rule: "The same after reorgs that were deeper than the required confirmations."},
}

// aboutLater are promises of which some is not built yet.
var aboutLater = []Promise{
	{ID: "I23", Rule: "After 24 h with fees at or below their median of seven days, no halt, and operator funds at or above need, every unit is spendable, or in a batch, below cost, a reserve, frozen by its issuer, unlisted, in suspense, or waits for more as a policy of its merchant says."},
	{ID: "I23-taxed", Rule: "The same of a token that began to take fees or to rebase.", Open: "M03", Why: "A sweep moves what its address held when it was signed: what a rebase brought until it landed, or a fork gave back, stays behind."},
	{ID: "I25", Rule: "Every unit in suspense is told to the host: it is listed with its merchant, coin, address, transaction and reason, and the list adds up to what the books have in suspense."},
	{ID: "I25-alert", Rule: "The host is also told of it when it happens, at least once, whatever process dies: by an alert, or by the event that its consumer hears."},
}
