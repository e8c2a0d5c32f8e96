package cardano

import (
	"crypto/sha256"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/cardanotest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// TestFP07_CallsOfAPoll: what a poll of Blockfrost costs does not depend on how many payments are
// open. Ogmios is asked over one connection that stays, which a Meter does not see.
func TestFP07_CallsOfAPoll(t *testing.T) {
	t.Parallel()
	n := openTown(t, "Blockfrost")
	m := testenv.NewMeter(t, n.url)
	n.url = m.URL
	n.connect(t, "Blockfrost")
	address := func(i int) chain.Address {
		key := sha256.Sum256([]byte(strconv.Itoa(i)))
		a, err := n.client.AddressOf(key[:])
		require.NoError(t, err)
		return a
	}
	pay := func(from, count int) {
		for i := range count {
			n.Send(nil, cardanotest.Pay{To: string(address(from + i)), Lovelace: 2_000_000})
		}
		n.Mine(1)
	}
	rows := clienttest.Polls{
		Client: n.client, Registry: n.registry, Meter: m, Address: address,
		Mine:   func(testing.TB) { n.Mine(1) },
		Pay:    func(_ testing.TB, count int) { pay(0, count) },
		Others: func(testing.TB) { pay(1_000_000, 1) },
	}.Run(t)
	clienttest.SameCalls(t, rows)
}
