// Package cardano is the chain client of Cardano: ada, over Ogmios and Kupo of an own node, or
// over Blockfrost's API of a provider. Addresses are derived as wallets do (CIP-1852).
//
// What it promises:
//   - Transactions are read as the bytes that the chain has, and hash to their ids. A block is
//     taken with all of them, as the child of the one before, or not at all. A node that is
//     behind, is on another chain or contradicts itself is an error and never an empty result.
//   - A transfer's identity is (tx, index of the output); it does not move when the transaction
//     is in another block. Of a transaction whose scripts did not agree only what it returns
//     of its surety is seen.
//   - Ada that comes with native tokens, or with a script, is Unproven; the tokens are seen as
//     unlisted. Coins that hold tokens return them in the change, and pay none to anybody. Our
//     coins are never given as a surety for scripts.
//   - What is signed is the transaction itself, in deterministic CBOR, byte for byte as the
//     reference library writes it, at the very fee that the protocol asks of its size. Its fee
//     is in it, so a signer knows it without trusting whoever built it.
//   - No output is made that holds less ada than the ledger asks of its bytes.
//   - Attempts of one order spend the same coins, so only one can land; each can for
//     Options.Expiry. An attempt is dead once a block has another transaction with a coin of
//     its, and not by its time.
//   - The URLs, the project id and headers, which often hold a key, are in no error.
//
// It was run against a modelled node (package cardanotest), the reference library's bytes and a
// ledger of others, never against a node of Cardano, Ogmios, Kupo or Blockfrost.
package cardano
