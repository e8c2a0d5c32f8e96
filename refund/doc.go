// Package refund gives customers their money back: what a payment received, or what came
// otherwise and waits in suspense.
//
// A refund is a withdrawal with a parent: it is priced, limited, approved, halted and sent as
// every other one. The amount is what leaves the merchant's wallet; the withdrawal's fees come
// off it, and the customer gets the rest. Where the money goes is always said by somebody,
// never "back to the sender": exchanges and smart contracts send from addresses that cannot
// take it back. The merchant names the address, or gives the customer a claim link, and he does.
//
// What a payment's refunds take together never exceeds what it received less what forks have
// taken away since. The level refunded/<payment> keeps the sum; the Change that makes a refund
// raises it, and the Change in which its withdrawal fails or is cancelled gives it back.
//
// Money in suspense goes to a wallet of the refund's own in the Change that orders its
// withdrawal. Should that end unpaid, the same Change puts the money back into suspense.
//
// A claim link is as good as the money: whoever has it names the address. Its token follows
// from the host's keys and the refund's id, and only a digest of it is stored.
package refund
