package house_test

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/internal/fsm/fsmtest"
	"github.com/cryptopay-go/cryptopay/wallet/house"
)

func TestMachine(t *testing.T) {
	t.Parallel()
	fsmtest.Walk(t, house.Machine(), "testdata/machine.golden", "MACHINE.md")
}
