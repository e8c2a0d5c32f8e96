package judge

import (
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
)

// I11-free is the one promise about a signature that no outsider could ask: whether the
// store still offers a coin that is spent. Two processes that read it so would both plan
// with it, and only the versions of rows would stand between them and the same coin.

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
	for _, name := range q.Unsigned.Spends {
		first, again := j.spent[slot{q.Intent.Network, name}]
		j.ask("I11-spends", again, first == q.Intent.ID, "%s on %s is spent for %s and for %s", name, q.Intent.Network, first, q.Intent.ID)
	}
	for i := range q.Also {
		j.ask("I4-tenants", true, q.Also[i].Tenant == q.Intent.Tenant, "coins of %s pay %s of %s", q.Intent.Tenant, q.Also[i].ID, q.Also[i].Tenant)
	}
}

// Refusing is told that a signer refuses what breaks a rule of its own, or a token's
// contract what its issuer does not want.
func (j *Judge) Refusing() { j.refusing = true }

// Ways says what a chain knows of what is signed.
type Ways struct {
	// Gone says of a coin that a reorg took it away, and that a process has done all that
	// was due since.
	Gone func(outpoint string) bool
	// Free says of a coin that the store still offers it to others.
	Free func(outpoint string) bool
}

// Signed is told of what a signer has signed.
func (j *Judge) Signed(q *chain.SignRequest, ways Ways) {
	for _, name := range q.Unsigned.Spends {
		at := slot{q.Intent.Network, name}
		j.spent[at] = q.Intent.ID
		j.ask("I11-free", strings.Contains(name, ":"), !ways.Free(name), "%s on %s is signed for %s, and is free for others", name, at.network, q.Intent.ID)
		j.ask("R03", strings.Contains(name, ":"), !ways.Gone(name), "%s on %s is spent for %s, and a reorg took it away", name, at.network, q.Intent.ID)
	}
}

// Sweeping is told which sweeps of one address are under way. No paper says in these words
// that there is one at a time, and no view shows it: the second would move what the first
// has moved already, and cost as much again.
func (j *Judge) Sweeping(address string, sweeps []string) {
	j.ask("I24-once", len(sweeps) > 0, len(sweeps) <= 1, "%v of %s are under way at once", sweeps, address)
}
