package simulation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
)

// betray is a process in a stranger's hands: after a request that was decided it asks the
// signer for more, with the same keys.
func (s signer) betray(ctx context.Context, q chain.SignRequest) {
	r := s.r
	n := r.network(q.Intent.Network)
	if r.rate[Traitors] == 0 || r.calm || r.betrayed == r.step || n.sim == nil || n.chain.Family() != chain.AccountFamily || len(q.Unsigned.Spends) != 1 {
		return
	}
	from, number, ok := strings.Cut(q.Unsigned.Spends[0], "/")
	nonce, err := strconv.ParseUint(number, 10, 62)
	if !ok || err != nil {
		return
	}
	r.betrayed = r.step
	r.struck[Traitors]++
	forged := chain.Intent{
		ID: fmt.Sprintf("forged/%d", r.step), Purpose: chain.ForWithdrawal, Tenant: q.Intent.Tenant, Network: n.name, Currency: n.coins[0],
		From: chain.Address(from), FromKey: q.Keys[0], To: n.thiefAt(), Amount: 1, MaxCost: 1 << 50,
	}
	ask := func(what string, in chain.Intent, nonce uint64) {
		client := n.sim.Client()
		fee, err := client.EstimateFee(ctx, in)
		if err != nil {
			r.fail("world", "estimate: %v", err)
			return
		}
		u, err := client.Build(ctx, chain.Order{Intent: in, Fee: fee, Nonce: nonce, Attempt: 1})
		switch {
		case errors.Is(err, chain.ErrShort):
			return // there is nothing to steal
		case err != nil:
			r.fail("world", "building what a traitor asks for: %v", err)
			return
		}
		_, err = s.ManySigner.Sign(ctx, chain.SignRequest{Intent: in, Attempt: in.ID + "/1", Unsigned: u, Keys: q.Keys[:1]})
		r.outside.judge.Betrayed(what, err != nil)
	}
	ask("another payout with the same nonce", forged, nonce)
	gas := forged
	gas.ID, gas.Purpose = gas.ID+"/gas", chain.ForGas
	ask("gas for an address that is not ours", gas, nonce+1000)
	forged.ID += "/more"
	ask("", forged, nonce+2000)
}
