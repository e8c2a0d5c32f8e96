// Package e2e holds tests of whole Apps on real EVM nodes: anvil, and
// go-ethereum in the test's own process. Nothing of ours is replaced in them:
// payments, books, signer, sweeps and withdrawals run as in a host's program,
// and faults are made outside: on the chain, at the node, or by ending the
// process. It has no code of its own.
package e2e
