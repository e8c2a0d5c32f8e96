package withdrawal

import (
	"errors"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Price is what a withdrawal costs and brings, in units of its currency.
// Requested = Amount + PlatformFee + NetworkFee.
type Price struct {
	Requested   ledger.Amount // leaves the wallet
	Amount      ledger.Amount // reaches the recipient; may be ≤ 0 where the fees eat it up
	PlatformFee ledger.Amount
	NetworkFee  ledger.Amount
}

// Fee is PlatformFee + NetworkFee.
func (p Price) Fee() ledger.Amount { return p.Requested - p.Amount }

// percentPlaces is how exact a percentage can be.
const percentPlaces = 6

var errFeeSetting = errors.New("withdrawal: the tenant's withdrawal fee must be a percentage of 0 to 100 with at most 6 places, and a flat sum of at least 0")

// price computes fees: percent of the figure asked for, rounded down, plus flat
// and network. With final the figure is what the recipient gets, else what
// leaves the wallet. The error wraps ledger.ErrOverflow or is errFeeSetting.
func price(asked ledger.Amount, final bool, percent decimal.Decimal, flat, network ledger.Amount) (Price, error) {
	share, err := ledger.FromDecimal(percent, percentPlaces, ledger.Down)
	if err != nil || share < 0 || share > 100_000_000 || flat < 0 || !fault.Exact(percent, percentPlaces) {
		return Price{}, errFeeSetting
	}
	platform, err := asked.MulDiv(uint64(share), 100_000_000, ledger.Down)
	if err != nil {
		return Price{}, err
	}
	if platform, err = platform.Add(flat); err != nil {
		return Price{}, err
	}
	fee, err := platform.Add(network)
	if err != nil {
		return Price{}, err
	}
	p := Price{Requested: asked, Amount: asked, PlatformFee: platform, NetworkFee: network}
	if final {
		p.Requested, err = asked.Add(fee)
	} else {
		p.Amount, err = asked.Sub(fee)
	}
	return p, err
}

// coins writes an amount in whole coins, as short as it is exact.
func coins(c *chain.Currency, a ledger.Amount) string {
	s := a.Format(c.Scale, c.Scale)
	if strings.Contains(s, ".") {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return s + " " + c.Code
}
