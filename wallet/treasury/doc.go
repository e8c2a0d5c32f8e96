// Package treasury moves the operator's side of the money and nothing of the
// merchants': a final deposit is forwarded from its own address to the tenant's
// hot address, what is sent is paid from there, and what the network takes for
// it is booked once, when it is final, against the operator's own coins.
//
// It promises that gas never spends merchants' coins: before anything is sent,
// the most that it may cost is set aside from the tenant's house equity in the
// gas currency (fees, float, adjustments); where that does not suffice the
// sender is told to wait with the reason gas_float_short. A sweep is a machine
// of its own, stored at every step, and goes on after a crash at any of them.
//
// A sweep together with the gas transfers for it costs at most one part in
// Config.MinSweep (half) of what it moves, tokens included, judged at the fees and
// prices of that moment by the bounds that are stored. What is worth less waits as
// below_cost, adds up with what comes later to the address, and goes within a minute or
// two of the fees falling; coins that a payout waits for are judged against the payout.
// Other waits (no price, no gas float, the day's limit, a refusal by a token's issuer)
// are looked at again after a minute, then with growing pauses: an hour at the longest,
// a day after transactions that failed. Nothing is given up; Waiting lists it.
//
// Moves between addresses of ours have no legs, only costs; a transfer to a hot
// address that no attempt of ours made is a top-up of the float.
package treasury
