package solana

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// TestFP07_CallsOfAPoll: what a poll costs depends neither on how many payments are open nor on
// how many transfers a block has.
func TestFP07_CallsOfAPoll(t *testing.T) {
	t.Parallel()
	var m *testenv.Meter
	n := openTown(t, func(o *Options) {
		at := strings.LastIndexByte(o.URL, '/') // the chain's name
		m = testenv.NewMeter(t, o.URL[:at])
		o.URL = m.URL + o.URL[at:]
	})
	address := func(i int) chain.Address {
		key := sha256.Sum256([]byte(strconv.Itoa(i)))
		return chain.Address(sdk.PublicKey(key).String())
	}
	rows := clienttest.Polls{
		Client: n.client, Registry: n.registry, Meter: m, Address: address,
		Mine: func(testing.TB) { n.Mine(1) },
		Pay: func(_ testing.TB, count int) {
			for i := range count {
				n.pay(chaintest.Payment{To: address(i), Currency: "SOL", Amount: decimal.NewFromInt(1)})
			}
			n.Mine(1)
		},
		Others: func(testing.TB) {
			n.pay(chaintest.Payment{To: address(-1), Currency: "SOL", Amount: decimal.NewFromInt(1)})
			n.Mine(1)
		},
	}.Run(t)
	clienttest.SameCalls(t, rows)
}
