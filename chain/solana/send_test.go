package solana

import (
	"bytes"
	"encoding/base64"
	"math/big"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
)

// lost makes an attempt of a funded account that the network never gets.
func (n *town) lost() (a chain.Attempt, to chain.Address) {
	n.t.Helper()
	from := n.fresh("from")
	to = n.fresh("to").Address
	n.fund(from.Address, "SOL", decimal.NewFromInt(3))
	return n.Sign(n.t, n.order(from.Address, to, "SOL", 1_0000_0000), from), to
}

// TestW08_DeadOnlyWhenAllItsBlocksAreFinal: the blockhash lapses for good only when the
// last block that could hold the transaction is finalized.
func TestW08_DeadOnlyWhenAllItsBlocksAreFinal(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, _ := n.lost()
	from := n.Head(n.t).Height - solanatest.Finality // whose hash it carries
	for n.Head(n.t).Height < from+solanatest.Window+solanatest.Finality {
		require.Equal(t, chain.Unknown, n.Status(n.t, a).State)
		n.Mine(12)
	}
	require.Error(t, n.Broadcast(n.t, a), "the network takes it no more")
	n.Mine(int(from + window + solanatest.Finality - n.Head(n.t).Height - 1))
	require.Equal(t, chain.Unknown, n.Status(n.t, a).State, "nothing is proven one block too early")
	n.Mine(1)
	st := n.Status(n.t, a)
	require.Equal(t, chain.Conflicted, st.State)
	require.True(t, st.Final)
	require.Empty(t, st.By)
	require.Equal(t, from+window, st.Block.Height)
}

// TestW08_AnIndexThatForgetsProvesNothing: the node's index does not know a transaction
// that its blocks hold.
func TestW08_AnIndexThatForgetsProvesNothing(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, _ := n.lost()
	n.Mine(60)
	require.NoError(t, n.Broadcast(n.t, a))
	n.Mine(window + solanatest.Finality)
	require.Equal(t, chain.Included, n.Status(n.t, a).State)
	n.Fault("forget", a.Tx)
	require.Equal(t, chain.Unknown, n.Status(n.t, a).State)
	n.Fault("forget", "")
	require.True(t, n.Status(n.t, a).Executed)
}

// TestW08_BlocksThatAreMissingProveNothing: a node that lacks one of the blocks in
// which it could be.
func TestW08_BlocksThatAreMissingProveNothing(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, _ := n.lost()
	from := n.Head(n.t).Height - solanatest.Finality
	n.Mine(window + solanatest.Finality)
	n.Fault("gap", []int64{from + 70, from + 71})
	require.Equal(t, chain.Unknown, n.Status(n.t, a).State)
	n.Fault("gap", nil)
	require.Equal(t, chain.Conflicted, n.Status(n.t, a).State)
}

// TestW07_AnAttemptToldWrongHoldsUpNoOther: it is Unknown, which is no failure.
func TestW07_AnAttemptToldWrongHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	bad, _ := n.lost()
	require.NoError(t, n.Broadcast(t, bad))
	other := n.fresh("other")
	n.fund(other.Address, "SOL", decimal.NewFromInt(3))
	good := n.Sign(t, n.order(other.Address, n.fresh("to").Address, "SOL", 1_0000_0000), other)
	require.NoError(t, n.Broadcast(t, good))
	n.Mine(1)
	c, x := n.through(same)
	// say changes the answers to questions of a kind that are about the first.
	say := func(kind, from, to string) func() {
		change := func(question, answer []byte) []byte {
			switch {
			case !bytes.Contains(question, []byte(kind)) || !bytes.Contains(append(question, answer...), []byte(bad.Tx)):
				return answer
			case from == "":
				return []byte(`{"jsonrpc":"2.0","id":1,` + to + `}`)
			}
			return bytes.Replace(answer, []byte(from), []byte(to), 1)
		}
		return func() { x.change.Store(&change) }
	}
	clienttest.Desk{At: c}.ToldWrong(t, bad, good, []clienttest.Spoilt{
		clienttest.As("in a block that does not hold it", say(`"signatures"`, bad.Tx, "x")),
		clienttest.As("in a block that is no more kept", say(`"signatures"`, "", `"error":{"code":-32001,"message":"cleaned up"}`)),
		clienttest.As("balances of nobody", say(`"getTransaction"`, `"preBalances":[`, `"preBalances":[1,`)),
		clienttest.As("nonsense", say(`"getTransaction"`, "", `"result":{"slot":"seven"}`)),
	}, say(`"getTransaction"`, "", `"error":{"code":-32005,"message":"too many requests"}`))
}

// TestW08_AWitnessMustAgree: another node that knows it, or has not come as far, keeps
// it from being called dead.
func TestW08_AWitnessMustAgree(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, _ := n.lost()
	witness, x := n.through(same)
	c := n.newClient(func(o *Options) { o.Witnesses = []string{witness.o.URL} })
	n.Mine(window + solanatest.Finality)
	for what, swap := range map[string][2]string{
		"knows it":    {`"getSignatureStatuses"`, `{"jsonrpc":"2.0","id":1,"result":{"context":{"slot":9},"value":[{"slot":9,"confirmationStatus":"finalized"}]}}`},
		"lags behind": {`"getBlockHeight"`, `{"jsonrpc":"2.0","id":1,"result":150}`},
	} {
		change := func(question, answer []byte) []byte {
			if bytes.Contains(question, []byte(swap[0])) {
				return []byte(swap[1])
			}
			return answer
		}
		x.change.Store(&change)
		require.Equal(t, chain.Unknown, (clienttest.Desk{At: c}).Status(n.t, a).State, what)
	}
	x.change.Store(ptr(same))
	require.Equal(t, chain.Conflicted, (clienttest.Desk{At: c}).Status(n.t, a).State)
	other := n.newClient(func(o *Options) {
		o.Witnesses = []string{solanatest.Open(t, server.Get(t, nil)).URL + "-another-cluster"}
	})
	_, err := other.Status(t.Context(), a)
	require.ErrorIs(t, err, chain.ErrWrongNet)
}

// TestW08_AHeightThatIsNotItsBlockhashsProvesNothing: what a transaction says of its own
// age is believed only where the chain says the same.
func TestW08_AHeightThatIsNotItsBlockhashsProvesNothing(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from := n.fresh("from")
	n.fund(from.Address, "SOL", decimal.NewFromInt(3))
	s, err := n.client.sending(&chain.Intent{Network: "SOL", Currency: "SOL", From: from.Address, To: n.fresh("to").Address, Amount: 1_0000_0000}, true)
	require.NoError(t, err)
	v, err := n.client.view(t.Context())
	require.NoError(t, err)
	young := v.final
	young.Height -= 5 // it claims to be older than it is
	payload, err := s.message(1000, &young)
	require.NoError(t, err)
	sig, err := from.SignWhole(payload)
	require.NoError(t, err)
	a := chain.Attempt{Tx: signatureText(sig), Raw: append(append([]byte{1}, sig...), payload...)}
	n.Mine(window + solanatest.Finality - 4)
	require.Equal(t, chain.Unknown, n.Status(n.t, a).State)
	n.Mine(window)
	require.Equal(t, chain.Unknown, n.Status(n.t, a).State)
}

// TestW08_TwoOrdersOfTheSamePaymentAreTwoTransactions: the same bytes would land once.
func TestW08_TwoOrdersOfTheSamePaymentAreTwoTransactions(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from := n.fresh("from")
	n.fund(from.Address, "SOL", decimal.NewFromInt(9))
	o := n.order(from.Address, n.fresh("to").Address, "SOL", 1_0000_0000)
	seen := map[string]bool{}
	for _, id := range []string{"a", "b", "c"} {
		o.Intent.ID = id
		seen[n.Sign(n.t, o, from).Tx] = true
	}
	require.Len(t, seen, 3)
}

// TestD06_FrozenAccountsAreRefused: the issuer can freeze; nothing is sent then, and
// nothing is burned on it.
func TestD06_FrozenAccountsAreRefused(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from, to := n.fresh("from").Address, n.fresh("to").Address
	n.fund(from, "SOL", decimal.NewFromInt(1))
	n.fund(from, "USDTSOL", decimal.NewFromInt(5))
	o := n.order(from, to, "USDTSOL", 1_000_000)
	_, err := n.client.Build(t.Context(), o)
	require.NoError(t, err)
	at := solanatest.ATA(pubOf(to), n.program, n.mint)
	n.Hold(at, pubOf(to), n.program, n.mint, 0, 2)
	_, err = n.client.Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrRejected)
	require.ErrorContains(t, err, "frozen")
	var bad *chain.AddressError
	require.ErrorAs(t, n.client.Deliverable(t.Context(), "USDTSOL", to, "", 1_000_000), &bad)
	n.Hold(at, pubOf(to), n.program, n.mint, 0, 1)
	n.Hold(solanatest.ATA(pubOf(from), n.program, n.mint), pubOf(from), n.program, n.mint, 5_000_000, 2)
	_, err = n.client.Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrRejected)
	require.ErrorContains(t, err, "frozen")
}

// TestW16_RecipientsThatAreNoWallets: programs, token accounts, and accounts that what
// they get would not make.
func TestW16_RecipientsThatAreNoWallets(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from := n.fresh("from").Address
	n.fund(from, "SOL", decimal.NewFromInt(1))
	n.fund(from, "USDTSOL", decimal.NewFromInt(5))
	owned, poor, gave, memo := n.fresh("owned").Address, n.fresh("poor").Address, n.fresh("gave").Address, n.fresh("memo").Address
	n.Hold(pubOf(owned), pubOf(from), n.program, n.mint, 0, 1)
	n.Hold(solanatest.ATA(pubOf(gave), n.program, n.mint), pubOf(from), n.program, n.mint, 0, 1)
	for what, x := range map[string]struct {
		to     chain.Address
		code   string
		amount int64
	}{
		"not a wallet": {owned, "SOL", 1000_0000}, "not a wallet ": {owned, "USDTSOL", 10},
		"do not make one": {poor, "SOL", 89087}, "given its token account away": {gave, "USDTSOL", 10},
	} {
		_, err := n.client.Build(t.Context(), n.order(from, x.to, x.code, x.amount))
		require.ErrorIs(t, err, chain.ErrRejected, what)
		var bad *chain.AddressError
		require.ErrorAs(t, n.client.Deliverable(t.Context(), x.code, x.to, "", n.order(from, x.to, x.code, x.amount).Intent.Amount), &bad)
	}
	_, err := n.client.Build(t.Context(), n.order(from, poor, "SOL", 89088))
	require.NoError(t, err, "exactly what an account must hold")
	_, err = n.client.Build(t.Context(), n.order(from, memo, "USDTSOL", 10))
	require.NoError(t, err)
	require.NoError(t, n.client.Deliverable(t.Context(), "USDTSOL", memo, "", 10))
	off := chain.Address(solanatest.ATA(n.Payer.PublicKey(), n.program, n.mint).String())
	_, err = n.client.Build(t.Context(), chain.Order{Intent: chain.Intent{Network: "SOL", Currency: "SOL", From: from, To: off, Amount: 1000_0000}})
	require.ErrorIs(t, err, chain.ErrRejected)
	require.ErrorContains(t, err, "not a wallet")
}

// TestW16_MemosThatARecipientWants: an account of Token-2022 that takes nothing without.
func TestW16_MemosThatARecipientWants(t *testing.T) {
	t.Parallel()
	n := openTownOf(t, solanatest.Token2022)
	from, to := n.fresh("from"), n.fresh("to").Address
	n.fund(from.Address, "SOL", decimal.NewFromInt(1))
	n.fund(from.Address, "USDTSOL", decimal.NewFromInt(5))
	n.Hold(solanatest.ATA(pubOf(to), n.program, n.mint), pubOf(to), n.program, n.mint, 0, 1, solanatest.Extension{Kind: memoTransfer, Value: []byte{1}})
	o := n.order(from.Address, to, "USDTSOL", 1_000_000)
	_, err := n.client.Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrRejected)
	o.Intent.Memo = "it is a longer memo, to see what it takes: " + string(bytes.Repeat([]byte("żółw "), 40))
	o.Fee.Params = nil
	a := n.Sign(n.t, o, from)
	at := n.Head(n.t)
	require.NoError(t, n.Broadcast(n.t, a))
	n.Mine(1)
	require.True(t, n.Status(n.t, a).Executed, "also within the compute units that it asked for")
	got, err := n.scan(n.client, at, to)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, o.Intent.Memo, got[0].Memo)
}

// TestW14_WhatMustStayIsNotSpent: an account keeps what one must hold, or nothing.
func TestW14_WhatMustStayIsNotSpent(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from, to := n.fresh("from"), n.fresh("to").Address
	n.fund(from.Address, "SOL", decimal.RequireFromString("1"))
	o := n.order(from.Address, to, "SOL", 9991_1000) // 0.00089 are left, less the fee
	_, err := n.client.Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrShort)
	require.ErrorContains(t, err, "must hold")
	o.Intent.Amount = 9990_0000
	a := n.Sign(n.t, o, from)
	require.NoError(t, n.Broadcast(n.t, a))
	n.Mine(1)
	require.True(t, n.Status(n.t, a).Executed)
	all := n.order(from.Address, to, "SOL", 1)
	all.Intent.All = true
	a = n.Sign(n.t, all, from)
	require.NoError(t, n.Broadcast(n.t, a))
	n.Mine(1)
	left, err := n.client.Balance(t.Context(), "SOL", from.Address)
	require.NoError(t, err)
	require.True(t, left.IsZero(), "to the lamport")
}

// TestW14_PricesAreBounded: whatever the node says that others pay.
func TestW14_PricesAreBounded(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from, to := n.fresh("from").Address, n.fresh("to").Address
	n.fund(from, "SOL", decimal.NewFromInt(9))
	n.Fault("prices", []int64{})
	low := n.order(from, to, "SOL", 1_0000_0000).Fee
	n.Fault("prices", []int64{0, 200_000, 400_000, 600_000})
	some := n.order(from, to, "SOL", 1_0000_0000).Fee
	n.Fault("prices", []int64{1 << 50, 1 << 50, 1 << 50})
	high := n.order(from, to, "SOL", 1_0000_0000).Fee
	require.Less(t, low.Max, some.Max)
	require.Less(t, some.Max, high.Max)
	most, err := n.client.cost(5000 + (unitsCoins+salts)*1) // MaxPrice is one lamport for a compute unit
	require.NoError(t, err)
	require.Equal(t, most, high.Max)
	dear, _ := n.through(func(_, answer []byte) []byte {
		return bytes.ReplaceAll(answer, []byte(`"prioritizationFee":1125899906842624`), []byte(`"prioritizationFee":18446744073709551615`))
	})
	fee, err := dear.EstimateFee(t.Context(), n.order(from, to, "SOL", 1_0000_0000).Intent)
	require.NoError(t, err, "a stranger may pay what he likes")
	require.Equal(t, most, fee.Max)
	c := n.newClient(func(o *Options) { o.MaxFee = 6000 })
	_, err = c.EstimateFee(t.Context(), chain.Intent{Network: "SOL", Currency: "SOL", Amount: 1})
	require.ErrorIs(t, err, chain.ErrTooDear)
	_, err = c.Build(t.Context(), n.order(from, to, "SOL", 1_0000_0000))
	require.ErrorIs(t, err, chain.ErrTooDear)
}

// TestW14_AnotherPriceOfSignaturesIsNoticed: a sweep leaves nothing, so the fee must be
// right to the lamport.
func TestW14_AnotherPriceOfSignaturesIsNoticed(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from, to := n.fresh("from").Address, n.fresh("to").Address
	n.fund(from, "SOL", decimal.NewFromInt(9))
	c := n.newClient(func(o *Options) { o.SignatureFee = 4000 })
	_, err := c.Build(t.Context(), n.order(from, to, "SOL", 1_0000_0000))
	require.ErrorContains(t, err, "SignatureFee")
}

// TestW04_OnlyOneWritingOfASignature: adding the order of the group to a signature makes
// another id of the same transaction, for those who do not look.
func TestW04_OnlyOneWritingOfASignature(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, _ := n.lost()
	raw := append([]byte(nil), a.Raw...)
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	s := new(big.Int).SetBytes(reversed(raw[33:65]))
	copy(raw[33:65], reversed(s.Add(s, order).FillBytes(make([]byte, 32))))
	other := chain.Attempt{Tx: signatureText(raw[1:65]), Raw: raw}
	require.ErrorIs(t, n.Broadcast(n.t, other), chain.ErrRejected)
	require.Equal(t, chain.Unknown, n.Status(n.t, other).State)
	var id string
	n.Call(&id, "test_put", base64.StdEncoding.EncodeToString(raw))
	n.Mine(1)
	require.Equal(t, chain.Unknown, n.Status(n.t, other).State, "the network does not take it either")
	require.NoError(t, n.Broadcast(n.t, a))
	n.Mine(1)
	require.True(t, n.Status(n.t, a).Executed)
}

func reversed(b []byte) []byte {
	out := make([]byte, len(b))
	for i := range b {
		out[len(b)-1-i] = b[i]
	}
	return out
}

// sweep moves all tokens of an address to another, who pays for it.
func sweep(id string, from, to chaintest.Account) chain.Intent {
	return chain.Intent{
		ID: id, Purpose: chain.ForSweep, Network: "SOL", Currency: "USDTSOL", From: from.Address, To: to.Address, All: true, Payer: to.Address,
	}
}

// TestSponsoredSweepClosesAndEarns: who pays the network gets the rent; both sign.
func TestSponsoredSweepClosesAndEarns(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]sdk.PublicKey{"spl": solanatest.Token, "token_2022": solanatest.Token2022} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := openTownOf(t, program)
			from, hot := n.fresh("from"), n.fresh("hot")
			n.fund(from.Address, "USDTSOL", decimal.NewFromInt(5))
			n.fund(hot.Address, "SOL", decimal.NewFromInt(1))
			n.fund(hot.Address, "USDTSOL", decimal.NewFromInt(1))
			in := sweep("i", from, hot)
			require.True(t, n.client.Sponsored(in))
			o := chain.Order{Intent: in, Attempt: 1}
			a := n.Sign(n.t, o, hot, from)
			at := n.Head(n.t)
			require.NoError(t, n.Broadcast(n.t, a))
			n.Mine(1)
			st := n.Status(n.t, a)
			require.True(t, st.Executed)
			require.Negative(t, st.Cost, "the rent is more than the fee")
			left, err := n.client.Balance(t.Context(), "SOL", hot.Address)
			require.NoError(t, err)
			require.InDelta(t, float64(left.Shift(8).IntPart()-1_0000_0000), float64(-st.Cost), 1)
			got, err := n.scan(n.client, at, hot.Address)
			require.NoError(t, err)
			require.Len(t, got, 2, "the tokens, and the rent")
			payer := n.client
			in.Payer = ""
			_, err = payer.Build(t.Context(), chain.Order{Intent: in, Attempt: 1})
			require.ErrorIs(t, err, chain.ErrShort)
		})
	}
}

// TestInspectReadsOnlyItsOwnShape: transfers that other libraries make are refused, so
// that a signer never signs what was not looked at.
func TestInspectReadsOnlyItsOwnShape(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	for _, v := range load(t).Transactions {
		raw, err := base64.StdEncoding.DecodeString(v.Wire)
		require.NoError(t, err)
		x, err := readTransaction(raw)
		require.NoError(t, err)
		_, err = n.client.Inspect(x.message)
		require.ErrorIs(t, err, chain.ErrRejected, v.Type)
	}
	for _, v := range loadVersion1(t) {
		payload, err := base64.StdEncoding.DecodeString(v.Message)
		require.NoError(t, err)
		_, err = n.client.Inspect(payload)
		require.ErrorIs(t, err, chain.ErrRejected, v.What)
	}
}
