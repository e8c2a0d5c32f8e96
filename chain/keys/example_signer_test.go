package keys_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// A Signer in this process, which pays known recipients alone. It reads each payload for
// itself, and keeps what it signed in a store, best in another than the App's.
func ExampleNewSigner() {
	seed, err := keys.FromMnemonic(strings.Repeat("abandon ", 11)+"about", "") // never use this one
	if err != nil {
		fmt.Println(err)
		return
	}
	eth, registered := sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry()}), memory.New()
	if err := registered.Open(context.Background(), keys.Tables()...); err != nil {
		fmt.Println(err)
		return
	}
	known := []chain.Address{eth.Customer("supplier")}
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{"ETH": eth.Client()}, Registry: keys.StoreRegistry{Store: registered},
		Allow: func(_ context.Context, in chain.Intent, pays ledger.Amount) error {
			if !slices.Contains(known, in.To) {
				return errors.New("an unknown recipient")
			}
			return nil
		},
	})
	fmt.Println(signer != nil, err)
	// Output:
	// true <nil>
}

// frozen is a Signer of one's own before another one: it signs no payout while it is on.
type frozen struct {
	chain.Signer
	on bool
}

func (f *frozen) Sign(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	if f.on && r.Intent.Purpose == chain.ForWithdrawal {
		return nil, fmt.Errorf("%w: payouts are frozen", chain.ErrRefused)
	}
	return f.Signer.Sign(ctx, r)
}

// A Signer of your own implements one method. One that refuses for good wraps
// chain.ErrRefused; every other error is an unknown outcome, and it is asked again.
func Example_ownSigner() {
	var inner chain.Signer // keys.NewSigner(…), signerd.NewClient(…), or your own
	signer := &frozen{Signer: inner, on: true}
	_, err := signer.Sign(context.Background(), chain.SignRequest{Intent: chain.Intent{ID: "w1", Purpose: chain.ForWithdrawal}})
	fmt.Println(err)
	// Output:
	// chain: the signer refuses: payouts are frozen
}
