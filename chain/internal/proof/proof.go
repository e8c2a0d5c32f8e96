// Package proof makes the values that stand for something already committed.
// It is internal to chain, so that nothing outside can forge one.
package proof

// Stored is a signed transaction that was committed before it is sent.
type Stored struct {
	network, tx string
	raw         []byte
}

// Tx is the transaction's hash.
func (s Stored) Tx() string { return s.tx }

// Network is the code of the network that it was signed for.
func (s Stored) Network() string { return s.network }

// Raw is the signed transaction. The caller must not change it.
func (s Stored) Raw() []byte { return s.raw }

// NewStored is called after the commit, by the package that committed.
func NewStored(network, tx string, raw []byte) Stored {
	return Stored{network: network, tx: tx, raw: raw}
}
