package several_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/several"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// skilled has every optional ability.
type skilled struct {
	chain.Client
	err error // of all
}

func (skilled) Network() chain.Network { return "SOL" }

func (s skilled) Pending(context.Context, chain.Watch) ([]chain.Transfer, error) {
	return []chain.Transfer{{Tx: "waits"}}, s.err
}

func (s skilled) Balance(context.Context, string, chain.Address) (decimal.Decimal, error) {
	return decimal.NewFromInt(7), s.err
}

func (s skilled) Balances(context.Context, string, []chain.Address) ([]*decimal.Decimal, error) {
	return []*decimal.Decimal{nil}, s.err
}

func (s skilled) History(context.Context, chain.Address, int64, int64) ([]chain.Transfer, error) {
	return []chain.Transfer{{Tx: "paid"}}, s.err
}

func (s skilled) BlockAt(_ context.Context, height int64) (chain.Block, error) {
	return chain.Block{Height: height, Hash: "hash"}, s.err
}

func (s skilled) Holdings(context.Context, chain.Block, []chain.Address) ([]decimal.Decimal, error) {
	return []decimal.Decimal{decimal.NewFromInt(7)}, s.err
}

func (s skilled) Spent(context.Context, chain.Block, []chain.Sender) ([]chain.Spent, error) {
	return []chain.Spent{{Nonce: 7}}, s.err
}

func (s skilled) Received(context.Context, []chain.Address, chain.Block, chain.Block) ([]chain.Transfer, error) {
	return []chain.Transfer{{Tx: "inner"}}, s.err
}

func (s skilled) Deliverable(context.Context, string, chain.Address, string, ledger.Amount) error {
	if s.err != nil {
		return s.err
	}
	return &chain.AddressError{Network: "SOL", Reason: "no wallet"}
}

func (skilled) Untag(a chain.Address) (chain.Address, string, bool) { return a, "memo", true }

func (skilled) Usage() []chain.Usage { return []chain.Usage{{Total: 7}, {Node: "witness 1", Total: 2}} }

func (skilled) Sponsored(chain.Intent) bool { return true }

func (skilled) Build(_ context.Context, o chain.Order) (chain.Unsigned, error) {
	return chain.Unsigned{Memo: string(o.Intent.Payer)}, nil
}

func (skilled) EstimateFee(_ context.Context, in chain.Intent) (chain.Fee, error) {
	return chain.Fee{Currency: string(in.Payer)}, nil
}

// unskilled pays for itself whatever the intent says.
type unskilled struct{ plain }

func (unskilled) Build(context.Context, chain.Order) (chain.Unsigned, error) {
	return chain.Unsigned{Memo: "itself"}, nil
}

func (unskilled) EstimateFee(context.Context, chain.Intent) (chain.Fee, error) {
	return chain.Fee{Currency: "itself"}, nil
}

// TestAbilityIsAskedOfTheNodesThatHaveIt: a node that lacks one, or says that it does, takes
// it from no other, wherever it stands.
func TestAbilityIsAskedOfTheNodesThatHaveIt(t *testing.T) {
	t.Parallel()
	off := skilled{err: fmt.Errorf("switched off: %w", errors.ErrUnsupported)}
	for name, lacking := range map[string]chain.Client{"lacks it": unskilled{}, "switched off": off} {
		for at := range 3 {
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				t.Parallel()
				clients := slices.Insert([]chain.Client{skilled{}, skilled{}}, at, lacking)
				c := openAll(t, clients...)
				for what, ask := range abilities {
					require.NoError(t, ask(t.Context(), c), what)
				}
				var bad *chain.AddressError
				require.ErrorAs(t, c.Deliverable(t.Context(), "SOL", "a", "", 1), &bad)
				_, _, ok := c.Untag("a")
				require.True(t, ok)
				require.True(t, c.Sponsored(chain.Intent{}))
				u, err := c.Build(t.Context(), chain.Order{Intent: chain.Intent{Payer: "hot"}})
				require.NoError(t, err)
				require.Equal(t, "hot", u.Memo)
				fee, err := c.EstimateFee(t.Context(), chain.Intent{Payer: "hot"})
				require.NoError(t, err)
				require.Equal(t, "hot", fee.Currency)
			})
		}
	}
}

// TestAbilityThatTooFewHave: none is off, fewer than must agree is an error that says so.
func TestAbilityThatTooFewHave(t *testing.T) {
	t.Parallel()
	none := openAll(t, unskilled{}, skilled{err: errors.ErrUnsupported})
	for what, ask := range abilities {
		require.ErrorIs(t, ask(t.Context(), none), errors.ErrUnsupported, what)
	}
	require.NoError(t, none.Deliverable(t.Context(), "SOL", "a", "", 1))

	one := openAll(t, unskilled{}, unskilled{}, skilled{})
	for what, ask := range abilities {
		err := ask(t.Context(), one)
		if what == "Pending" || what == "Balance" || what == "Balances" {
			require.NoError(t, err, what)
			continue
		}
		require.ErrorIs(t, err, several.ErrTooFew, what)
		require.NotErrorIs(t, err, errors.ErrUnsupported, what)
		require.ErrorContains(t, err, "2 of 3 nodes cannot do this", what)
	}

	// A node that fails may have it: the ability is not off for that.
	failing := openAll(t, unskilled{}, skilled{err: chain.ErrNode})
	for what, ask := range abilities {
		err := ask(t.Context(), failing)
		require.ErrorIs(t, err, several.ErrTooFew, what)
		require.NotErrorIs(t, err, errors.ErrUnsupported, what)
	}
}

func openAll(t *testing.T, clients ...chain.Client) several.Client {
	t.Helper()
	cfg := several.Config{Now: time.Now}
	for i, c := range clients {
		cfg.Nodes = append(cfg.Nodes, several.Node{Name: fmt.Sprint("node", i), Client: c})
	}
	c, err := several.New(cfg)
	require.NoError(t, err)
	return c
}

var abilities = map[string]func(context.Context, several.Client) error{
	"Pending":  func(ctx context.Context, c several.Client) error { _, err := c.Pending(ctx, watch{}); return err },
	"Balance":  func(ctx context.Context, c several.Client) error { _, err := c.Balance(ctx, "SOL", "a"); return err },
	"Balances": func(ctx context.Context, c several.Client) error { _, err := c.Balances(ctx, "SOL", nil); return err },
	"History":  func(ctx context.Context, c several.Client) error { _, err := c.History(ctx, "a", 1, 2); return err },
	"BlockAt":  func(ctx context.Context, c several.Client) error { _, err := c.BlockAt(ctx, 1); return err },
	"Holdings": func(ctx context.Context, c several.Client) error {
		_, err := c.Holdings(ctx, chain.Block{}, nil)
		return err
	},
	"Spent": func(ctx context.Context, c several.Client) error {
		_, err := c.Spent(ctx, chain.Block{}, nil)
		return err
	},
	"Received": func(ctx context.Context, c several.Client) error {
		_, err := c.Received(ctx, nil, chain.Block{}, chain.Block{})
		return err
	},
}

// TestFN16_UsageOfSeveralNodes: each node is named, and one whose client counts nothing is left out.
func TestFN16_UsageOfSeveralNodes(t *testing.T) {
	t.Parallel()
	c := openAll(t, skilled{}, unskilled{}, skilled{})
	require.Equal(t, []chain.Usage{{Node: "node0", Total: 7}, {Node: "node0, witness 1", Total: 2}, {Node: "node2", Total: 7}, {Node: "node2, witness 1", Total: 2}}, c.Usage())
}
