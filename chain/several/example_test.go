package several_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/several"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// One client of three nodes. Two must report the same before money moves on it.
func ExampleNew() {
	eth := sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry()})
	a, b, c := eth.NewNode(), eth.NewNode(), eth.NewNode() // in earnest: evm.New(…) with three URLs
	client, err := several.New(several.Config{
		Nodes: []several.Node{{Name: "ours", Client: a.Client()}, {Name: "provider 1", Client: b.Client()}, {Name: "provider 2", Client: c.Client()}},
		Now:   time.Now, Agree: 2,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	eth.Mine(3)
	c.FailRate(1000) // one is down
	_, err = client.Tip(context.Background())
	fmt.Println(err)

	b.FailRate(1000) // and another one
	_, err = client.Tip(context.Background())
	fmt.Println(errors.Is(err, several.ErrTooFew))
	// Output:
	// <nil>
	// true
}
