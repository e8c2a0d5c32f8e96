package treasury_test

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/internal/fsm/fsmtest"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

func TestMachine(t *testing.T) {
	t.Parallel()
	fsmtest.Walk(t, treasury.Machine(), "testdata/machine.golden", "MACHINE.md")
}
