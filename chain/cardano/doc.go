// Package cardano is what this library has of Cardano: addresses derived as wallets
// do (CIP-1852), what a transaction costs, and the least that an output must hold.
// Addresses are checked by chain/address, Shelley's and Byron's.
//
// It promises: addresses come from an account's public key alone, byte for byte as
// the reference library makes them; an estimate is never below what the network's
// own formula asks of a transaction of that form.
//
// There is no chain client: nothing is scanned, built or sent here. No node and no
// vectors of signed transactions were to be had to hold one to; a payment that was
// never held against either is not shipped.
package cardano
