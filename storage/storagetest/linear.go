package storagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

type accountInput struct {
	move ledger.Amount // 0 reads
}

type accountOutput struct {
	refused bool
	seen    ledger.Amount // what was read, or the Available of a refusal
}

// oneAccount is an account with a floor, as one that does one thing at a time
// would behave.
var oneAccount = porcupine.Model{
	Init: func() any { return ledger.Amount(0) },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(ledger.Amount), input.(accountInput), output.(accountOutput)
		switch {
		case in.move == 0:
			return out.seen == s, s
		case s+in.move < 0:
			return out.refused && out.seen == s, s
		default:
			return !out.refused, s + in.move
		}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprint(input, " → ", output) },
}

// Everything that callers see of one account, by two handles where there are, could have happened in some order
// that agrees with the clock.
func testLinearizable(t testing.TB, e *env) {
	const clients, each = 5, 20
	w := ledger.Wallet("w")
	stores := []storage.Store{e.s}
	if e.h.Second != nil {
		stores = append(stores, e.h.Second(t, e.s))
		require.NoError(t, stores[1].Open(e.ctx, Tables()...))
	}
	start := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	var wg sync.WaitGroup
	for client := range clients {
		rnd := rand.New(rand.NewPCG(7, uint64(client)))
		wg.Go(func() {
			for range each {
				in := accountInput{move: ledger.Amount(rnd.IntN(13) - 6)}
				op := porcupine.Operation{ClientId: client, Input: in, Call: int64(time.Since(start))}
				out, err := e.act(stores[client%len(stores)], w, in.move)
				op.Return = int64(time.Since(start))
				if err != nil {
					t.Errorf("client %d: %v", client, err)
					return
				}
				op.Output = out
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(oneAccount, history, 20*time.Second))
}

func (e *env) act(s storage.Store, w ledger.Account, move ledger.Amount) (accountOutput, error) {
	if move == 0 {
		b, err := s.Balances(e.ctx, here, w)
		if err != nil || len(b) == 0 {
			return accountOutput{}, err
		}
		return accountOutput{seen: b[0].Posted}, nil
	}
	err := storage.CommitOne(e.ctx, s, e.post(fund(w, move)...))
	var funds *ledger.InsufficientFundsError
	if errors.As(err, &funds) {
		return accountOutput{refused: true, seen: funds.Available}, nil
	}
	return accountOutput{}, err
}
