package outgoing_test

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/fsm/fsmtest"
)

func TestMachine(t *testing.T) {
	t.Parallel()
	fsmtest.Walk(t, outgoing.Machine(), "testdata/machine.golden", "MACHINE.md")
	fsmtest.Walk(t, outgoing.AttemptMachine(), "testdata/attempt.golden", "ATTEMPT.md")
}
