package stellar

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/stellartest"
)

func (n *town) rivals(t testing.TB) clienttest.Rivals {
	t.Helper()
	a, to := n.two(t)
	return clienttest.Rivals{
		Desk: n.Desk, Intent: n.intent(a.Address, to, 2), By: a,
		Crowd: func(times int) {
			for i := range times {
				n.Send(stellartest.Pay{To: string(a.Address), Stroops: 1})
				if i%100 == 99 {
					n.Mine(1)
				}
			}
			n.Mine(1)
		},
		Count: func(page func()) {
			n.Set(func(f *stellartest.Fault) {
				f.Tamper = func(path string, body []byte) []byte {
					if strings.HasSuffix(path, "/transactions") {
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
	openTown(t).rivals(t).Known(t, 1000)
}

func TestFN34_SearchIsBoundedAndGoesOn(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	r := n.rivals(t)
	r.Crowd(1000) // before it was signed: not looked at
	n.Mine(200)
	require.Equal(t, 3, r.GoesOn(t, 2000, pagesPerLook), "2000 transactions are ten pages")
}

func TestFN34_SearchThatBeganTooLateGoesBack(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	n.rivals(t).GoesBack(t, 300, func() { n.client.o.Expiry = 0 })
}
