package withdrawal_test

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/internal/fsm/fsmtest"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

func TestMachine(t *testing.T) {
	t.Parallel()
	fsmtest.Walk(t, withdrawal.Machine(), "testdata/machine.golden", "MACHINE.md")
}
