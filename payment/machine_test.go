package payment

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/internal/fsm/fsmtest"
)

func TestMachine(t *testing.T) {
	t.Parallel()
	fsmtest.Walk(t, &Machine, "testdata/machine.golden", "MACHINE.md")
}
