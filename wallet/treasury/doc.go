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
// Moves between addresses of ours have no legs, only costs; a transfer to a hot
// address that no attempt of ours made is a top-up of the float.
package treasury
