package xrp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/xrptest"
)

func (n *town) rivals(t testing.TB) clienttest.Rivals {
	t.Helper()
	a, to := n.pair(t)
	return clienttest.Rivals{
		Desk: n.Desk, Intent: n.intent(a.Address, to, 2), By: a,
		Crowd: func(times int) {
			for range times {
				n.Send(xrptest.Pay{To: string(a.Address), Drops: 1})
				n.Mine(1)
			}
		},
		Count: func(page func()) {
			n.Set(func(f *xrptest.Fault) {
				f.Tamper = func(method string, body []byte) []byte {
					if method == "account_tx" {
						page()
					}
					return body
				}
			})
		},
	}
}

func TestFN34_StrangersDoNotLengthenTheSearch(t *testing.T) {
	t.Parallel()
	openTown(t).rivals(t).Known(t, 40)
}

// TestFN34_SearchIsBoundedAndGoesOn: the modelled server's pages are of 3.
func TestFN34_SearchIsBoundedAndGoesOn(t *testing.T) {
	t.Parallel()
	for _, clio := range []bool{false, true} {
		n := openTown(t, func(o *Options) { o.Window = 100 })
		n.Set(func(f *xrptest.Fault) { f.Clio = clio })
		r := n.rivals(t)
		r.Crowd(120) // before it was signed: not looked at
		n.Mine(100)
		require.Equal(t, 3, r.GoesOn(t, 60, pagesPerLook), "60 transactions are twenty pages")
	}
}

func TestFN34_SearchThatBeganTooLateGoesBack(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	n.rivals(t).GoesBack(t, 280, func() { n.client.o.Window = 1 })
}
