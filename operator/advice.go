package operator

import (
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// advise adds to an error what helps. Errors that are not here say it themselves.
func advise(err error) error {
	for _, a := range []struct {
		of   error
		help string
	}{
		{wallet.ErrNoTenant, "`tenants list` shows those that there are"},
		{wallet.ErrTenantExists, "choose another id, or leave it out to have one made"},
		{wallet.ErrNotFound, "name a wallet of the tenant by its id or external id"},
		{withdrawal.ErrNotFound, "`withdrawals waiting` shows those that wait; is -tenant its tenant?"},
		{payment.ErrNotFound, "`suspense list` shows what is in suspense; is -tenant its tenant?"},
		{refill.ErrNotFound, "`refills list` shows those that there are; is -tenant its tenant?"},
		{refill.ErrUnable, "set its cold address with `policy set`; on BTC and LTC with a descriptor"},
		{house.ErrNotFound, "`house list` shows those that there are; is -tenant its tenant?"},
		{chain.ErrCurrency, "name a network as ETH, a currency as USDTERC20, which this service has"},
		{outgoing.ErrNoIntent, "name the id of a withdrawal or a sweep that was handed over; is -network its network?"},
		{treasury.ErrNoSweep, "`sweeps list` shows those that wait"},
		{treasury.ErrNotApart, "`house held` shows those that are; is -tenant its tenant?"},
		{treasury.ErrNotWaiting, "`transactions show` says how far it is"},
		{auth.ErrNotFound, "`applications list` and `keys list` show those that there are; is -tenant its tenant?"},
		{stream.ErrNoLetter, "`events list` shows those that there are"},
	} {
		if errors.Is(err, a.of) {
			return fmt.Errorf("%w: %s", err, a.help)
		}
	}
	return err
}
