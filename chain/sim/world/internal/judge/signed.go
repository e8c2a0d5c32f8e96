package judge

import (
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
)

// A host may give a Signer of its own, so what it is asked to sign is public, and what
// that would spend. A nonce or a coin that is spent for two orders is seen here, before
// any of the two can land.

// slot is a nonce or a coin that a signer was asked to spend.
type slot struct {
	network chain.Network
	name    string // "address/nonce" or "hash:place"
}

// Asked is told of what a signer is asked to sign, whatever it answers.
func (j *Judge) Asked(q *chain.SignRequest) {
	for i := range q.Also {
		j.ask("I4-tenants", true, q.Also[i].Tenant == q.Intent.Tenant, "coins of %s pay %s of %s", q.Intent.Tenant, q.Also[i].ID, q.Also[i].Tenant)
	}
}

// Refusing is told that a signer refuses what breaks a rule of its own.
func (j *Judge) Refusing() { j.refusing = true }

// Signed is told of what a signer has signed. gone says of a coin that a reorg took it
// away, and that a process has done all that was due since.
func (j *Judge) Signed(q *chain.SignRequest, gone func(outpoint string) bool) {
	for _, name := range q.Unsigned.Spends {
		at := slot{q.Intent.Network, name}
		first, again := j.spent[at]
		j.ask("I11-spends", again, first == q.Intent.ID, "%s on %s is spent for %s and for %s", name, at.network, first, q.Intent.ID)
		j.spent[at] = q.Intent.ID
		j.ask("R03", strings.Contains(name, ":"), !gone(name), "%s on %s is spent for %s, and a reorg took it away", name, at.network, q.Intent.ID)
	}
}
