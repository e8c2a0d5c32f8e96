package cardano

import (
	"context"

	"github.com/cryptopay-go/cryptopay/chain"
)

// node is where a client asks: an own one behind Ogmios and Kupo, or a provider's. Every
// method checks that it is on the right chain. Errors wrap chain.ErrNode.
type node interface {
	tip(ctx context.Context) (chain.Block, error)
	// at is the block of a height below a head.
	at(ctx context.Context, head chain.Block, height int64) (chain.Block, error)
	// open begins a reading of the chain, which is closed by its user.
	open(ctx context.Context) (reader, error)
	parameters(ctx context.Context) (params, error)
	// unspent reads outputs that are unspent at the head, nil for one that is not there.
	unspent(ctx context.Context, list []outpoint) ([]*output, error)
	// spenders tells what spent outputs in a block: an empty one where nothing is known to
	// have. A spender whose block is not on the chain is follow.ErrTorn.
	spenders(ctx context.Context, list []outpoint) ([]spender, error)
	// waits reports whether the node keeps a transaction for a block to come.
	waits(ctx context.Context, id string) (bool, error)
	balance(ctx context.Context, a chain.Address) (int64, error)
	// paying lists the blocks from one height to another in which something was paid to an
	// address, whole.
	paying(ctx context.Context, a chain.Address, head chain.Block, from, to int64) ([]block, error)
	// submit hands over a signed transaction. A nil error says that it was taken.
	submit(ctx context.Context, raw []byte) (id string, err error)
}

// reader reads blocks of one view of the chain.
type reader interface {
	head() int64 // height
	stands(ctx context.Context, b chain.Block) (bool, error)
	// after reads n blocks after one that stands, none above the head.
	after(ctx context.Context, last chain.Block, n int) ([]block, error)
	close()
}

// block is a block with its transactions.
type block struct {
	chain.Block
	txs []*tx
}

// At is the block itself.
func (b block) At() chain.Block { return b.Block }

// spender is the transaction that spent an output, and its block; tx is "" where there is none.
type spender struct {
	tx    string
	block chain.Block
	err   error // of this one alone
}
