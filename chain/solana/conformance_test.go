package solana

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"os"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// server runs the chains of all tests of the package.
var server testenv.Shared

func TestMain(m *testing.M) {
	code := m.Run()
	server.Close()
	os.Exit(code)
}

// town is a chain with a client in front of it.
type town struct {
	*solanatest.Node
	clienttest.Desk
	t        testing.TB
	client   *Client
	registry *chain.Registry
	program  sdk.PublicKey // of the tokens
	mint     sdk.PublicKey
	foreign  sdk.PublicKey
}

func registry(t testing.TB, mint string) *chain.Registry {
	t.Helper()
	r, err := chain.NewRegistry(
		[]chain.NetworkInfo{{Code: "SOL", Name: "Solana", Family: chain.AccountFamily, AddressType: "SOL", Gas: "SOL"}},
		[]chain.Currency{
			{Code: "SOL", Name: "Solana", Network: "SOL", Token: "SOL", Decimals: 9, Scale: 8, Confirmations: 1, WaitFinal: true},
			{Code: "USDTSOL", Name: "Tether USD", Network: "SOL", Token: "USDT", Contract: mint, Decimals: 6, Scale: 6, Confirmations: 1, WaitFinal: true},
		})
	require.NoError(t, err)
	return r
}

// openTown makes a chain of its own, with tokens of the first token program.
func openTown(t testing.TB, change ...func(o *Options)) *town {
	t.Helper()
	return openTownOf(t, solanatest.Token, change...)
}

func openTownOf(t testing.TB, program sdk.PublicKey, change ...func(o *Options)) *town {
	t.Helper()
	n := &town{Node: solanatest.Open(t, server.Get(t, testenv.LiteSVM)), t: t, program: program}
	n.mint, n.foreign = n.Mint("token", program, 6), n.Mint("foreign", program, 6)
	n.registry = registry(t, n.mint.String())
	n.client = n.newClient(change...)
	n.Desk = clienttest.Desk{At: n.client, Add: n.Mine}
	return n
}

func (n *town) newClient(change ...func(o *Options)) *Client {
	n.t.Helper()
	o := Options{Registry: n.registry, Genesis: n.Genesis(), URL: n.URL}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	require.NoError(n.t, err)
	n.t.Cleanup(c.o.HTTP.CloseIdleConnections)
	return c
}

func (n *town) pay(ps ...chaintest.Payment) string {
	n.t.Helper()
	if ps[0].Effect == chaintest.Internal {
		return n.Unwrap(sdk.MustPublicKeyFromBase58(string(ps[0].To)), ps[0].Amount.Shift(9).BigInt().Uint64())
	}
	var do []sdk.Instruction
	if ps[0].Memo != "" {
		do = append(do, solanatest.Words(ps[0].Memo))
	}
	for _, p := range ps {
		to := sdk.MustPublicKeyFromBase58(string(p.To))
		if p.Currency == "SOL" {
			do = append(do, n.MoveCoins(to, p.Amount.Shift(9).BigInt().Uint64()))
			continue
		}
		mint := n.mint
		if p.Effect == chaintest.Foreign {
			mint = n.foreign
		}
		do = append(do, n.OpenATA(to, n.program, mint), n.MoveTokens(solanatest.ATA(to, n.program, mint), n.program, mint, p.Amount.Shift(6).BigInt().Uint64(), 6))
	}
	if ps[0].Effect == chaintest.Reverted {
		do = append(do, n.Fails())
	}
	return n.Send(nil, do...)
}

func (n *town) fund(to chain.Address, currency string, amount decimal.Decimal) {
	n.t.Helper()
	n.pay(chaintest.Payment{To: to, Currency: currency, Amount: amount})
	n.Mine(1)
}

// accountOf makes the account of the key that is the SHA-256 of a seed text.
func accountOf(t testing.TB, c *Client, seed string) chaintest.Account {
	t.Helper()
	sum := sha256.Sum256([]byte(seed))
	k := ed25519.NewKeyFromSeed(sum[:])
	public := chain.PublicKey(k.Public().(ed25519.PublicKey))
	a, err := c.AddressOf(public)
	require.NoError(t, err)
	return chaintest.Account{Address: a, Key: public, SignWhole: func(payload []byte) (chain.Signature, error) {
		return ed25519.Sign(k, payload), nil
	}}
}

func (n *town) harness() *chaintest.Harness {
	return &chaintest.Harness{
		Client: n.client, Registry: n.registry, Family: chain.AccountFamily,
		Native: "SOL", Token: "USDTSOL", Contract: n.foreign.String(),
		Amount: decimal.NewFromInt(1), Finality: solanatest.Finality,
		Effects: []chaintest.Effect{chaintest.Reverted, chaintest.Internal, chaintest.Foreign},
		Batch:   true, Memo: true, Returns: true, NoChecksum: true, CaseMatters: true,
		NewAccount: func(t testing.TB, i int) chaintest.Account { return accountOf(t, n.client, fmt.Sprint(t.Name(), i)) },
		Fund: func(_ testing.TB, to chain.Address, currency string, amount decimal.Decimal) {
			n.fund(to, currency, amount)
		},
		Pay:        func(_ testing.TB, ps ...chaintest.Payment) string { return n.pay(ps...) },
		Mine:       func(_ testing.TB, count int) { n.Mine(count) },
		Reorg:      func(_ testing.TB, depth int, drop ...string) { n.Reorg(depth, drop...) },
		Lag:        func(_ testing.TB, blocks int) { n.Fault("lag", blocks) },
		Partial:    func(_ testing.TB, on bool) { n.Fault("partial", on) },
		Fail:       func(_ testing.TB, on bool) { n.Fault("fail", on) },
		LoseAnswer: func(testing.TB) { n.Fault("lose", true) },
		WrongChain: func(testing.TB) chain.Client {
			return n.newClient(func(o *Options) { o.Genesis = Devnet })
		},
		BadAddresses: []string{
			"0x52908400098527886E0F7030069857D2E4169EE7", "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNY0",
			solanatest.ATA(n.Payer.PublicKey(), n.program, n.mint).String(), // off the curve
			n.Payer.String(),
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness { return openTown(t).harness() })
}

// TestFN09_ConformanceByHistories is the same where few addresses are watched, so that histories
// of them say which blocks are read.
func TestFN09_ConformanceByHistories(t *testing.T) {
	t.Parallel()
	testenv.Draw(t, 3)
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness {
		h := openTown(t).harness()
		h.Histories = true
		return h
	})
}

// TestFN01_ConformanceOfVersion1 is the same where payments go out in version 1.
func TestFN01_ConformanceOfVersion1(t *testing.T) {
	t.Parallel()
	testenv.Draw(t, 3)
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness {
		return openTown(t, func(o *Options) { o.SendVersion1 = true }).harness()
	})
}

// TestConformanceToken2022 is the same with a mint of Token-2022.
func TestConformanceToken2022(t *testing.T) {
	t.Parallel()
	testenv.Draw(t, 3)
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness { return openTownOf(t, solanatest.Token2022).harness() })
}
