// Package house moves the house's own money: fees that it earned and float that it put in
// leave by an ordinary payout, and a correction of the books needs two people.
//
// It promises:
//
//   - What is taken is never more than was earned, or put in, and not yet taken; and never so
//     much that the house's equity in the asset falls below what is set aside for gas, or below
//     zero. What others decide on the same equity at the same moment conflicts: one of both is
//     decided again.
//   - A payment goes only to an address that Config.Addresses lists, under a mandate, by the
//     path of every payout: order, signer, bounds, halts.
//   - The Change that accepts a payment holds its amount on the account that pays; the Change
//     that ends it posts or releases the hold. A crash at any point between is gone on from.
//   - A payment is made once for each key that a caller gives it.
//   - An adjustment is booked when a second person asks for the same within a day.
package house
