package chaintest

import (
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

func sendCases() []testCase {
	return []testCase{
		{"FeeIsInTheGasCurrency", nothing, feeIsInGas},
		{"SendsFromBuildToFinal", finality, sendsToFinal},
		{"SendsTokens", all(accounts, tokens), sendsTokens},
		{"SendsAll", nothing, sendsAll},
		{"SendsAllTokens", all(accounts, tokens), sendsAllTokens},
		{"SpendsExactlyTheCoinsAndReturnsChange", outputs, returnsChange},
		{"PaysSeveralTogether", outputs, paysSeveral},
		{"CostIsTheFallOfTheBalance", nothing, costIsTheFall},
		{"D06_RevertedSendIsIncludedAndNotExecuted", all(accounts, tokens), revertedSend},
		{"ShortIsErrShort", nothing, short},
		{"W14_TooDearIsErrTooDear", nothing, tooDear},
		{"ImpossibleOrdersAreRejected", nothing, impossible},
		{"InspectRefusesWhatItCannotRead", nothing, inspectRefuses},
		{"AssembleVerifiesSignatures", nothing, assembleVerifies},
		{"BuildDoesNotSend", nothing, buildDoesNotSend},
	}
}

func feeIsInGas(k *kit) {
	gas, err := k.Registry.Gas(k.Client.Network())
	require.NoError(k.t, err)
	s := k.sender()
	for _, code := range []string{k.Native, k.Token} {
		if code == "" || code == k.Token && k.Family == chain.UTXOFamily {
			continue
		}
		f, err := k.Client.EstimateFee(k.ctx, s.intent(code, k.account().Address))
		require.NoError(k.t, err)
		require.Equal(k.t, gas.Code, f.Currency)
		require.Positive(k.t, f.Cost)
		require.GreaterOrEqual(k.t, f.Max, f.Cost)
	}
}

func sendsToFinal(k *kit) {
	s, to := k.sender(), k.account().Address
	k.start()
	a, u := s.attempt(s.order(s.intent(k.Native, to)))
	require.Equal(k.t, k.units(k.Native, k.Amount), paid(u, to, false))
	require.Equal(k.t, chain.Unknown, k.status(a).State, "nobody knows it before it is sent")
	require.NoError(k.t, k.broadcast(a))
	before := k.status(a)
	if _, ok := k.Client.(chain.Mempool); ok {
		require.Equal(k.t, chain.Pending, before.State)
	}
	require.Contains(k.t, []chain.State{chain.Pending, chain.Unknown}, before.State)
	require.False(k.t, before.Final)

	in := k.landed(a)
	k.catchUp(watch(to))
	require.Equal(k.t, k.trail[len(k.trail)-1], in.Block)
	require.True(k.t, k.Amount.Equal(k.only(a.Tx).Amount), "the recipient sees it under the same hash")
	require.LessOrEqual(k.t, in.Cost, u.MaxCost)
	if k.Finality < 0 {
		k.Mine(k.t, 10)
		require.False(k.t, k.status(a).Final, "final is the network's word, and it has none")
		require.EqualValues(k.t, 11, k.status(a).Confirmations)
		return
	}
	require.Equal(k.t, k.Finality == 0, in.Final)
	k.Mine(k.t, int(k.Finality)+1)
	done := k.status(a)
	require.True(k.t, done.Final)
	require.Equal(k.t, k.Finality+2, done.Confirmations)
	require.Equal(k.t, in.Cost, done.Cost)
}

func sendsTokens(k *kit) {
	s, to := k.sender(), k.account().Address
	k.Fund(k.t, s.Address, k.Token, k.Amount)
	k.start()
	a, u := s.attempt(s.order(s.intent(k.Token, to)))
	require.Len(k.t, u.Outputs, 1)
	require.Equal(k.t, chain.Output{To: to, Currency: k.Token, Amount: k.units(k.Token, k.Amount)}, u.Outputs[0])
	require.NoError(k.t, k.broadcast(a))
	k.landed(a)
	k.catchUp(watch(to))
	x := k.only(a.Tx)
	require.Equal(k.t, k.Token, x.Currency)
	require.True(k.t, k.Amount.Equal(x.Amount))
	require.Equal(k.t, s.Address, x.From)
}

func sendsAll(k *kit) {
	s, to := k.sender(), k.account().Address
	k.start()
	in := s.intent(k.Native, to)
	in.All, in.Amount, in.Purpose = true, 0, chain.ForSweep
	o := s.order(in)
	a, u := s.attempt(o)
	require.NoError(k.t, k.broadcast(a))
	k.landed(a)
	k.catchUp(watch(to, s.Address))
	x := k.only(a.Tx)
	require.Equal(k.t, to, x.To, "nothing comes back")
	require.Equal(k.t, paid(u, to, false), k.units(k.Native, x.Amount))
	if left, ok := k.balance(k.Native, s.Address); ok {
		require.LessOrEqual(k.t, k.units(k.Native, left.Sub(k.Reserve)), u.MaxCost, "at most some of the fee is left behind")
	}
}

func sendsAllTokens(k *kit) {
	s, to := k.sender(), k.account().Address
	k.Fund(k.t, s.Address, k.Token, k.Amount)
	k.start()
	in := s.intent(k.Token, to)
	in.All, in.Amount, in.Purpose = true, 0, chain.ForSweep
	a, _ := s.attempt(s.order(in))
	require.NoError(k.t, k.broadcast(a))
	k.landed(a)
	k.catchUp(watch(to))
	require.True(k.t, k.Amount.Equal(k.only(a.Tx).Amount))
	if left, ok := k.balance(k.Token, s.Address); ok {
		require.True(k.t, left.IsZero(), "%s are left", left)
	}
}

func returnsChange(k *kit) {
	s, to, change := k.sender(), k.account().Address, k.account().Address
	k.start()
	o := s.order(s.intent(k.Native, to))
	o.Coins, o.Change = s.coins, change
	a, u := s.attempt(o)
	require.Len(k.t, u.Digests, len(s.coins), "each input is signed")
	require.ElementsMatch(k.t, []string{s.coins[0].Outpoint, s.coins[1].Outpoint}, u.Spends)
	require.Equal(k.t, k.units(k.Native, k.Amount), paid(u, to, false))
	require.Positive(k.t, paid(u, change, true))
	require.NoError(k.t, k.broadcast(a))
	st := k.landed(a)
	k.catchUp(watch(to, change))
	got := k.of(a.Tx)
	require.Len(k.t, got, 2)
	sum := st.Cost
	for _, x := range got {
		require.ElementsMatch(k.t, u.Spends, x.Spends)
		sum += k.units(k.Native, x.Amount)
		if x.To == change { // and the change can be spent again
			next := s.order(s.intent(k.Native, to))
			next.Coins = []chain.Coin{{Outpoint: outpoint(x), Address: change, Amount: k.units(k.Native, x.Amount)}}
			next.Intent.Amount /= 4
			_, err := k.Client.Build(k.ctx, next)
			require.NoError(k.t, err)
		}
	}
	require.Equal(k.t, s.coins[0].Amount+s.coins[1].Amount, sum, "inputs = outputs + cost")
}

func paysSeveral(k *kit) {
	s, change := k.sender(), k.account().Address
	k.start()
	to := []chain.Address{k.account().Address, k.account().Address, k.account().Address}
	o := s.order(s.intent(k.Native, to[0]))
	o.Coins, o.Change, o.Intent.Amount = s.coins, change, o.Intent.Amount/2
	for i, a := range to[1:] {
		in := o.Intent
		in.ID, in.To, in.Amount = "also "+string(a), a, in.Amount/ledger.Amount(i+2)
		o.Also = append(o.Also, in)
	}
	for what, edit := range map[string]func(in *chain.Intent){
		"nobody":        func(in *chain.Intent) { in.To = "" },
		"nothing":       func(in *chain.Intent) { in.Amount = 0 },
		"dust":          func(in *chain.Intent) { in.Amount = 1 },
		"all":           func(in *chain.Intent) { in.All = true },
		"another asset": func(in *chain.Intent) { in.Currency = "NONE" },
	} {
		bad := o
		bad.Also = append([]chain.Intent(nil), o.Also...)
		edit(&bad.Also[1])
		_, err := k.Client.Build(k.ctx, bad)
		require.ErrorIs(k.t, err, chain.ErrRejected, what)
	}
	much := o
	much.Also = append([]chain.Intent(nil), o.Also...)
	much.Also[1].Amount = s.coins[0].Amount + s.coins[1].Amount
	_, err := k.Client.Build(k.ctx, much)
	require.ErrorIs(k.t, err, chain.ErrShort)
	all := s.intent(k.Native, to[0])
	all.All, all.Amount, all.Purpose = true, 0, chain.ForSweep
	alone := s.order(all)
	alone.Also = o.Also
	_, err = k.Client.Build(k.ctx, alone)
	require.ErrorIs(k.t, err, chain.ErrRejected, "what sends all pays alone")

	a, u := s.attempt(o)
	require.Len(k.t, u.Outputs, 4)
	require.NoError(k.t, k.broadcast(a))
	st := k.landed(a)
	k.catchUp(watch(to[0], to[1], to[2], change))
	sum := st.Cost
	for _, x := range k.of(a.Tx) {
		sum += k.units(k.Native, x.Amount)
	}
	require.Equal(k.t, s.coins[0].Amount+s.coins[1].Amount, sum, "inputs = outputs + cost")
	for i, in := range append([]chain.Intent{o.Intent}, o.Also...) {
		require.Equal(k.t, in.Amount, paid(u, to[i], false))
	}
	require.Positive(k.t, paid(u, change, true))
}

func costIsTheFall(k *kit) {
	s, to := k.sender(), k.account().Address
	before, ok := k.balance(k.Native, s.Address)
	if !ok {
		k.t.Skip("chaintest: the client is no Balancer")
	}
	a, _ := s.attempt(s.order(s.intent(k.Native, to)))
	require.NoError(k.t, k.broadcast(a))
	cost := k.landed(a).Cost
	after, _ := k.balance(k.Native, s.Address)
	fell, err := k.currency(k.Native).Units(before.Sub(after).Sub(k.Amount), ledger.Up)
	require.NoError(k.t, err)
	require.Equal(k.t, fell, cost, "the cost charged is what the balance fell by beyond the amount, rounded up")
}

// revertedSend sends all tokens twice. The second is built while they are still
// there, and fails on the chain.
func revertedSend(k *kit) {
	s, to := k.sender(), k.account().Address
	k.Fund(k.t, s.Address, k.Token, k.Amount)
	o := s.order(s.intent(k.Token, to))
	first, _ := s.attempt(o)
	o.Nonce++
	second, _ := s.attempt(o)
	k.start()
	require.NoError(k.t, k.broadcast(first))
	require.NoError(k.t, k.broadcast(second))
	k.Mine(k.t, 1)
	require.True(k.t, k.status(first).Executed)
	st := k.status(second)
	require.Equal(k.t, chain.Included, st.State)
	require.False(k.t, st.Executed, "it is in a block and did not do what it says")
	require.Positive(k.t, st.Cost, "and it was not free")
	k.catchUp(watch(to))
	require.Empty(k.t, k.of(second.Tx))
}

func short(k *kit) {
	to := k.account().Address
	rich := k.sender()
	fee := rich.order(rich.intent(k.Native, to)).Fee
	over := rich.order(rich.intent(k.Native, to))
	over.Intent.Amount = k.units(k.Native, k.Amount.Shift(2))
	_, err := k.Client.Build(k.ctx, over)
	require.ErrorIs(k.t, err, chain.ErrShort)
	if k.Family == chain.UTXOFamily {
		exact := rich.order(rich.intent(k.Native, to))
		exact.Intent.Amount = exact.Coins[0].Amount
		_, err = k.Client.Build(k.ctx, exact)
		require.ErrorIs(k.t, err, chain.ErrShort, "the amount is there, the fee is not")
		return
	}
	poor := &sender{Account: k.account(), k: k}
	o := chain.Order{Intent: poor.intent(k.Native, to), Fee: fee, Attempt: 1}
	_, err = k.Client.Build(k.ctx, o)
	require.ErrorIs(k.t, err, chain.ErrShort)
	k.Fund(k.t, poor.Address, k.Native, k.Amount)
	_, err = k.Client.Build(k.ctx, o)
	require.ErrorIs(k.t, err, chain.ErrShort, "the amount is there, the fee is not")
	if k.Token != "" {
		_, err = k.Client.Build(k.ctx, chain.Order{Intent: rich.intent(k.Token, to), Fee: fee, Nonce: rich.nonce, Attempt: 1})
		require.ErrorIs(k.t, err, chain.ErrShort, "gas alone moves no tokens")
	}
}

func tooDear(k *kit) {
	s := k.sender()
	o := s.order(s.intent(k.Native, k.account().Address))
	o.Intent.MaxCost = o.Fee.Max
	u, err := k.Client.Build(k.ctx, o)
	require.NoError(k.t, err)
	o.Intent.MaxCost = u.MaxCost - 1
	_, err = k.Client.Build(k.ctx, o)
	require.ErrorIs(k.t, err, chain.ErrTooDear)
}

func impossible(k *kit) {
	s := k.sender()
	good := s.order(s.intent(k.Native, k.account().Address))
	for what, change := range map[string]func(o *chain.Order){
		"no destination":   func(o *chain.Order) { o.Intent.To = "" },
		"bad destination":  func(o *chain.Order) { o.Intent.To = "nowhere" },
		"negative amount":  func(o *chain.Order) { o.Intent.Amount = -1 },
		"unknown currency": func(o *chain.Order) { o.Intent.Currency = "NONE" },
	} {
		o := good
		change(&o)
		_, err := k.Client.Build(k.ctx, o)
		require.ErrorIs(k.t, err, chain.ErrRejected, what)
	}
}

func inspectRefuses(k *kit) {
	s := k.sender()
	u := s.build(s.order(s.intent(k.Native, k.account().Address)))
	for _, bad := range [][]byte{nil, {}, {0}, []byte("{}"), []byte("null"), u.Payload[:len(u.Payload)/2], append(u.Payload[:len(u.Payload):len(u.Payload)], u.Payload...)} {
		_, err := k.Client.Inspect(bad)
		require.Error(k.t, err, "%q", bad)
	}
	for i := range u.Payload { // whatever is changed is either refused or changes what is signed
		changed := append([]byte(nil), u.Payload...)
		changed[i] ^= 1
		seen, err := k.Client.Inspect(changed)
		if err == nil {
			require.NotEqual(k.t, u.Digests, seen.Digests, "byte %d can be changed after signing", i)
		}
	}
}

func assembleVerifies(k *kit) {
	s, thief := k.sender(), k.account()
	u := s.build(s.order(s.intent(k.Native, k.account().Address)))
	var good, stolen, other []chain.Signature
	for _, d := range u.Digests {
		for to, by := range map[*[]chain.Signature]Account{&good: s.Account, &stolen: thief} {
			sig, err := by.signs(d, u.Payload)
			require.NoError(k.t, err)
			*to = append(*to, sig)
		}
		d.Hash[0] ^= 1
		sig, err := s.signs(d, append([]byte{1}, u.Payload...))
		require.NoError(k.t, err)
		other = append(other, sig)
	}
	broken := append([]chain.Signature(nil), good...)
	broken[0] = broken[0][:len(broken[0])-1]
	for what, sigs := range map[string][]chain.Signature{
		"none": nil, "one too many": append(good[:len(good):len(good)], good[0]), "of another key": stolen,
		"of another digest": other, "cut off": broken,
	} {
		_, err := k.Client.Assemble(u, sigs)
		require.Error(k.t, err, "signatures: %s", what)
	}
	one, err := k.Client.Assemble(u, good)
	require.NoError(k.t, err)
	two, err := k.Client.Assemble(u, good)
	require.NoError(k.t, err)
	require.Equal(k.t, one, two, "the same signatures, the same bytes")
}

func buildDoesNotSend(k *kit) {
	s, to := k.sender(), k.account().Address
	k.start()
	a, _ := s.attempt(s.order(s.intent(k.Native, to)))
	k.Mine(k.t, 2)
	k.catchUp(watch(to))
	require.Empty(k.t, k.seen)
	require.Equal(k.t, chain.Unknown, k.status(a).State)
}
