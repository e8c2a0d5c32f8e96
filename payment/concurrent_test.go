package payment

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// TestD08_ConcurrentFactsCreditOnce: many workers hand in the same facts at the
// same time; each deposit is credited once and told once.
func TestD08_ConcurrentFactsCreditOnce(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	var mu sync.Mutex
	id := 0
	h.cfg.NewID = func() string {
		mu.Lock()
		defer mu.Unlock()
		id++
		return fmt.Sprintf("concurrent-%06d", id)
	}
	s, err := New(h.cfg)
	require.NoError(t, err)
	h.s = s
	p := h.create("100", usdt)
	var facts []fact
	for _, amount := range []string{"30", "30", "40"} {
		x := h.transfer(p, amount)
		x.s.Height, x.s.BlockTime, x.s.FirstSeen, x.s.State = 100, h.now, h.now, incoming.Final
		facts = append(facts, fact{sighting: x.s, version: 1, head: 119, final: true})
	}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			for j := range facts {
				require.NoError(t, h.s.handle(ctx, facts[(i+j)%len(facts)]))
			}
		})
	}
	wg.Wait()
	require.Equal(t, "99", h.balance(ledger.Wallet("w"), usdt))
	received := 0
	for _, e := range h.events(p) {
		if e == "deposit_received" {
			received++
		}
	}
	require.Equal(t, 3, received)
	require.Equal(t, Confirmed, h.get(p).Status)
}
