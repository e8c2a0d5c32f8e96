// Package wallet keeps merchants (tenants), their master account and
// sub-accounts, the balances of these, and transfers between them.
//
// # What it promises
//
//   - A tenant that can be found has a master account. A sub-account has an id
//     for good: the wallet id (a UUID), a number 1, 2, 3 … and the merchant's own
//     external id, unique among the open ones.
//   - What posts to a wallet requires it open, in the same Change. Deleting one
//     requires every balance of it to be zero, in the same Change; its history
//     stays.
//   - A transfer that was accepted has its amount held on the source, so that it
//     cannot fail for want of money; it is completed or failed exactly once, with
//     one event.
//   - Balances are read, never added up: amount is what is posted, pending what
//     is held, available the difference. History has one entry per movement.
//
// The states of a transfer are one table: see TransferMachine, and MACHINE.md.
package wallet
