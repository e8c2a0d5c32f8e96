// Package keys derives and uses secp256k1 and ed25519 keys, and gives none of them away.
//
// It promises: private keys never leave a Signer; an AddressSource needs public
// keys alone, so that a process that shows addresses can run without a seed; a
// seed is kept in a file that opens only with its passphrase. A Signer reads
// back for itself what a payload does and signs only what its intent says: this
// asset, this amount, this destination, within the cost that the intent allows,
// and whatever else goes to addresses of ours. One attempt is signed for one
// payload only, and one nonce or input for one intent only, for ever. With mandates one
// withdrawal is paid by transactions that exclude each other, unless the App proves that
// those before are dead.
// Signatures of a Seed are deterministic (RFC 6979 with a low S, RFC 8032). Those of
// a Holder, such as a hardware module, need not be: a LimitedRegistry keeps the first
// ones. All are verified before they are handed out.
//
// Derivation follows BIP39, BIP32 and BIP44 (BIP84 for Bitcoin and Litecoin).
// EVM networks share the account m/44'/60'/0'; ETH uses its branch 0 and every
// other one the branch of its chain id, so that no address is given out on two
// networks. Solana's keys are on ed25519, by SLIP-10, which has hardened steps
// alone: their addresses are derived where the seed is, ahead, and a process
// without it takes them from the directory or from a List. Cardano's are on ed25519 by
// BIP32-Ed25519 (CIP-1852), with the master key that a Ledger makes of the seed (CIP-3):
// other wallets make another one of the same words.
package keys
