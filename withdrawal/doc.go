// Package withdrawal pays merchants' money out to the outside world: it prices,
// holds, hands over, follows and settles, and leaves keys, nonces, coins and
// nodes to chain/outgoing.
//
// # What it promises
//
//   - A withdrawal that was accepted has its whole cost (the recipient's amount,
//     the platform fee and the quoted network fee) held on the wallet in the same
//     Change that made it. Of any number of concurrent requests at most the funded
//     ones are accepted.
//   - The network fee is quoted once, at creation, and kept: the house bears the
//     difference to what the network takes in the end.
//   - A hold ends in exactly one of two ways: posted, when the payment has landed,
//     or released, when it is proven that it never will. No clock ends a hold.
//   - Cancelling has one winner. What may have been handed over is cancelled only
//     after the payout side has given its word that it will never be signed.
//   - Outcomes may come twice, late, out of order, or with steps missing. Each
//     status change is one event of consecutive sequence, in the same Change.
//   - Amounts are exact. A request with more places than the asset has is refused,
//     never rounded; what is computed is rounded down where the house owes it and
//     where it charges a percentage, up where the network fee is quoted.
//
// Points in time are half-open everywhere: a delay of d that begins at t is over
// at t + d exactly, a day holds its first microsecond and not the next day's.
//
// The states and what moves them are one table: see Machine, and MACHINE.md.
package withdrawal
