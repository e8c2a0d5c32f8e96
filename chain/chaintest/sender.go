package chaintest

import (
	"fmt"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// sender is an account of ours with something to send.
type sender struct {
	Account
	k     *kit
	nonce uint64
	coins []chain.Coin
}

// sender funds a fresh account with four times the usual amount of the native
// coin, on UTXO networks in two outputs.
func (k *kit) sender() *sender {
	k.t.Helper()
	s := &sender{Account: k.account(), k: k}
	double := k.Amount.Add(k.Amount)
	if k.Family == chain.UTXOFamily {
		s.coins = []chain.Coin{k.coin(s.Account, double), k.coin(s.Account, double)}
		return s
	}
	require.NotNil(k.t, k.Fund, "chaintest: Harness.Fund is required on account networks")
	k.Fund(k.t, s.Address, k.Native, double.Add(double))
	s.nonce = k.nonce(s.Address)
	return s
}

// nonce is the account's next one, 0 for a client that does not tell.
func (k *kit) nonce(a chain.Address) uint64 {
	k.t.Helper()
	n, ok := k.Client.(chain.Noncer)
	if !ok {
		return 0
	}
	nonce, err := n.Nonce(k.ctx, a)
	require.NoError(k.t, err)
	return nonce
}

// intent is a withdrawal of the usual amount, or of what a test changes it to.
func (s *sender) intent(code string, to chain.Address) chain.Intent {
	return chain.Intent{
		ID: "intent", Purpose: chain.ForWithdrawal, Tenant: "t", Network: s.k.Client.Network(),
		Currency: code, From: s.Address, To: to, Amount: s.k.units(code, s.k.Amount), Confirmations: 1,
	}
}

// order asks for the fee and takes the first coin; all of them for an intent
// that sends all.
func (s *sender) order(in chain.Intent) chain.Order {
	s.k.t.Helper()
	fee, err := s.k.Client.EstimateFee(s.k.ctx, in)
	require.NoError(s.k.t, err)
	o := chain.Order{Intent: in, Fee: fee, Nonce: s.nonce, Attempt: 1}
	if s.k.Family == chain.UTXOFamily {
		o.Intent.From, o.Coins, o.Change = "", s.coins[:1], s.Address
		if in.All {
			o.Coins = s.coins
		}
	}
	return o
}

// build makes the transaction and checks that what it says of itself is what
// an independent look at the payload says.
func (s *sender) build(o chain.Order) chain.Unsigned {
	k := s.k
	k.t.Helper()
	u, err := k.Client.Build(k.ctx, o)
	require.NoError(k.t, err)
	require.Equal(k.t, k.Client.Network(), u.Network)
	require.NotEmpty(k.t, u.Digests)
	require.NotEmpty(k.t, u.Spends)
	require.Equal(k.t, o.Intent.Memo, u.Memo)
	var inspector chain.Inspector = k.Client
	seen, err := inspector.Inspect(u.Payload)
	require.NoError(k.t, err)
	require.LessOrEqual(k.t, seen.MaxCost, u.MaxCost) // Build may know of a cost that is in no payload
	seen.MaxCost = u.MaxCost
	require.Equal(k.t, seen, u, "Build says what Inspect sees")
	for _, d := range u.Digests {
		require.Equal(k.t, s.Address, d.From)
	}
	if o.Attempt == 1 && len(o.Coins) < 2 {
		require.LessOrEqual(k.t, u.MaxCost, o.Fee.Max, "Fee.Max covers the most it can cost")
	}
	return u
}

// signs gives the account's signature for a digest of a payload.
func (a Account) signs(d chain.Digest, payload []byte) (chain.Signature, error) {
	if d.Whole {
		return a.SignWhole(payload)
	}
	return a.Sign(d.Hash)
}

// sign puts the sender's signatures in.
func (s *sender) sign(u chain.Unsigned) chain.Attempt {
	k := s.k
	k.t.Helper()
	var sigs []chain.Signature
	for _, d := range u.Digests {
		sig, err := s.signs(d, u.Payload)
		require.NoError(k.t, err)
		sigs = append(sigs, sig)
	}
	signed, err := k.Client.Assemble(u, sigs)
	require.NoError(k.t, err)
	require.NotEmpty(k.t, signed.Tx)
	require.NotEmpty(k.t, signed.Raw)
	return chain.Attempt{Tx: signed.Tx, Raw: signed.Raw, Spends: u.Spends, MaxCost: u.MaxCost}
}

// attempt builds and signs one order.
func (s *sender) attempt(o chain.Order) (chain.Attempt, chain.Unsigned) {
	s.k.t.Helper()
	u := s.build(o)
	return s.sign(u), u
}

func (k *kit) broadcast(a chain.Attempt) error {
	return k.Client.Broadcast(k.ctx, k.stored(chain.Signed{Tx: a.Tx, Raw: a.Raw}))
}

func (k *kit) status(a chain.Attempt) chain.Status {
	k.t.Helper()
	all, err := k.Client.Status(k.ctx, a)
	require.NoError(k.t, err)
	require.Len(k.t, all, 1)
	return all[0]
}

// landed mines and expects the attempt to be in the new block, executed.
func (k *kit) landed(a chain.Attempt) chain.Status {
	k.t.Helper()
	k.Mine(k.t, 1)
	s := k.status(a)
	require.Equal(k.t, chain.Included, s.State)
	require.True(k.t, s.Executed)
	require.EqualValues(k.t, 1, s.Confirmations)
	require.Positive(k.t, s.Cost)
	return s
}

// balance reads an address, false where the client cannot.
func (k *kit) balance(code string, a chain.Address) (decimal.Decimal, bool) {
	k.t.Helper()
	b, ok := k.Client.(chain.Balancer)
	if !ok {
		return decimal.Zero, false
	}
	d, err := b.Balance(k.ctx, code, a)
	require.NoError(k.t, err)
	return d, true
}

// paid is what a transaction pays to an address, of what Inspect saw.
func paid(u chain.Unsigned, to chain.Address, change bool) ledger.Amount {
	var sum ledger.Amount
	for _, o := range u.Outputs {
		if o.To == to && o.Change == change {
			sum += o.Amount
		}
	}
	return sum
}

// outpoint of a transfer on a UTXO network.
func outpoint(x chain.Transfer) string { return fmt.Sprintf("%s:%d", x.Tx, x.Ordinal) }
