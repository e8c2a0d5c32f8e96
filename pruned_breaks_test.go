package cryptopay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
)

// prunes is a client whose node keeps no index, as utxo.Options.Pruned says: it finds a
// transaction by its Raw, or by its Spends alone.
type prunes struct{ chain.Client }

func (prunes) Unindexed() bool { return true }

func (p prunes) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	for k := range attempts {
		if len(attempts[k].Raw) == 0 {
			attempts[k].Tx = fmt.Sprintf("%064x", k)
		}
	}
	return p.Client.Status(ctx, attempts...)
}

// A coin whose rows were edited to say that a reorg took it away for good is still there: what
// spends it may land, and nothing is sent beside it.
func TestFS02_EditedCoinsDoNotShowThatATransactionIsDead(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		t.Run(map[bool]string{false: "a deposit", true: "change"}[own], func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "BTC")
			i.apart(i.mandates)
			configure := i.configure
			i.configure = func(c *cryptopay.Config) {
				configure(c)
				c.Chains = []chain.Client{prunes{c.Chains[0]}}
			}
			i.restart()
			world := i.chains["BTC"]
			first := i.withdraw("BTC", "0.004", world.Customer("first"))
			i.work(30)
			second := i.withdraw("BTC", "0.004", world.Customer("second"))
			i.work(30)
			if !own {
				i.edit("UPDATE cryptopay_coins SET state = 'disputed' WHERE state = 'free' AND amount > 10000000")
			}
			to := world.Customer("supplier")
			w := i.withdraw("BTC", "0.004", to)
			world.Front().Swallow(1) // as a mempool does that takes higher fees alone
			require.NoError(t, i.app.Step(t.Context()))
			tx := i.sent(w.ID)
			require.Len(t, tx, 1)
			var coin string
			require.NoError(t, i.db.Get(&coin, "SELECT json_extract(spends, '$[0]') FROM cryptopay_attempts WHERE intent = ?", w.ID))
			require.Equal(t, own, i.sent(second.ID)[0] == coin[:64])
			if own {
				i.edit("UPDATE cryptopay_attempts SET raw = x'', spends = (SELECT spends FROM cryptopay_attempts WHERE intent = ?) WHERE intent = ?", first.ID, second.ID)
			} else {
				i.edit("UPDATE cryptopay_sightings SET spends = (SELECT spends FROM cryptopay_attempts WHERE intent = ?) WHERE id = ?", first.ID, coin)
			}
			i.edit("UPDATE cryptopay_coins SET state = 'gone' WHERE id = ?", coin)
			i.edit("UPDATE cryptopay_intents SET due = 1, bump_at = 1 WHERE id = ?", w.ID)
			i.clock.Advance(time.Minute)
			_ = i.app.Step(t.Context())
			_ = i.app.Step(t.Context())
			require.NoError(t, world.Resend(tx[0])) // by whoever has read it in the database
			i.work(40)
			btc, err := chain.MainnetRegistry().Currency("BTC")
			require.NoError(t, err)
			i.once("BTC", "BTC", to, btc.Decimal(w.Amount).String())
		})
	}
}
