package refund_test

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/internal/fsm/fsmtest"
	"github.com/cryptopay-go/cryptopay/refund"
)

func TestMachine(t *testing.T) {
	t.Parallel()
	fsmtest.Walk(t, refund.Machine(), "testdata/machine.golden", "MACHINE.md")
}
