// Package refill brings coins of cold addresses back to hot ones, by transactions that are made here
// and signed elsewhere.
//
// A Proposal is such a transaction: which coins it spends, what it pays, and until when it may be
// signed. A person signs its payload with keys that no machine of this service has, and gives it back.
// What came back is checked against the proposal, sent, and followed until it lands or never can.
//
// It promises:
//
//   - A proposal pays the tenant's hot address alone. Where coins are outputs the rest goes back to the
//     cold address. Its fee is worth at most half of what it moves.
//   - A tenant has at most one proposal of a currency that may still land by this package's doing, so
//     that no two spend the same coins. Of those with one nonce, of all currencies and tenants that have
//     the cold address, one goes on. One that expired, was cancelled or lost its coins is in
//     nobody's way.
//   - A proposal is under a seal: whoever can write to the database alone cannot have another one
//     signed, taken back or booked.
//   - The signed transaction is committed before it is sent. A crash at any point is gone on from: it is
//     sent again until its outcome is known.
//   - What came back twice is taken once. What is not as it was proposed changes nothing.
package refill
