package refill_test

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/internal/fsm/fsmtest"
)

func TestMachine(t *testing.T) {
	t.Parallel()
	fsmtest.Walk(t, refill.Machine(), "testdata/machine.golden", "MACHINE.md")
}
