// Package chain has the contracts between the library and networks: what a network and a
// currency are, what a Client reads and sends, and what a Signer signs.
//
//   - Network, NetworkInfo, Currency and Registry name networks and currencies.
//     MainnetRegistry has the shipped ones.
//   - Client is what one network can do. Clients are in the packages evm, utxo, tron, solana,
//     xrp, stellar and sim; several makes one of several nodes. Optional abilities are small
//     interfaces that a Client may have beside it, such as Mempool and Historian.
//     Package chaintest proves a Client.
//   - Transfer and Scan are what a Client reads. Package incoming stores them.
//   - Intent is a decision to send. Package outgoing makes an Order of it, has it built,
//     signed and stored, and sends what was Stored.
//   - Signer and AddressSource keep keys and derive addresses. Package keys has both.
//
// # What it promises
//
//   - An amount on chain is an exact decimal. No Client rounds one.
//   - Only what was stored can be sent: packages under chain alone can make a Stored, after
//     the commit.
//   - An error, an unknown block and a node that is behind are never an empty result.
package chain
