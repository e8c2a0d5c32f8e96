package simulation_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/internal/fsm"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/simulation"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// state is a column that says how far something has come, and the event that tells of it.
type state struct {
	table   *storage.Table
	column  string
	machine []pair // that it moves by; nil = none
	of      func(r storage.Row) string
	kind    string // of the event; "" = none is told
	object  string // the field of the event that names the row
	field   string // the field of the event that has the new state; "" = the event itself is enough
	told    func(r storage.Row) bool
	why     string // there is no event, or none for some rows
}

// pair is a move between two states.
type pair struct{ from, to string }

func pairs[S, T ~string](m *fsm.Machine[S, T]) (out []pair) {
	for i := range m.Edges {
		e := &m.Edges[i]
		for _, from := range e.From {
			p := pair{string(from), string(e.To)}
			if p.to != "" && p.from != p.to && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

func read[T any](t storage.TableOf[T], get func(T) string) func(storage.Row) string {
	return func(r storage.Row) string { return get(t.Value(r)) }
}

// states are all columns that are states, and more that the host hears of.
func states() []state {
	return []state{
		{
			table: payment.Payments.Table, column: "status", machine: pairs(&payment.Machine), kind: "payment.changed", object: "payment_id", field: "to",
			of: read(payment.Payments, func(v payment.Payment) string { return string(v.Status) }),
		},
		{
			table: payment.Deposits.Table, column: "booking", kind: "payment.deposit_changed", object: "deposit_id", field: "booking",
			of: read(payment.Deposits, func(v payment.Deposit) string { return string(v.Booking) }),
		},
		{
			table: payment.Deposits.Table, column: "role", kind: "payment.deposit_changed", object: "deposit_id", field: "role",
			of: read(payment.Deposits, func(v payment.Deposit) string { return string(v.Role) }),
		},
		{
			table: payment.Deposits.Table, column: "state", kind: "payment.deposit_changed", object: "deposit_id",
			of: read(payment.Deposits, func(v payment.Deposit) string { return fmt.Sprint("gone ", v.State == incoming.Gone) }),
		},
		{
			table: withdrawal.Withdrawals.Table, column: "status", machine: pairs(withdrawal.Machine()), kind: "withdrawal.changed", object: "withdrawal_id", field: "to",
			of: read(withdrawal.Withdrawals, func(v withdrawal.Withdrawal) string { return string(v.Status) }),
		},
		{
			table: refund.Refunds.Table, column: "status", machine: pairs(refund.Machine()), kind: "refund.changed", object: "refund_id", field: "to",
			of: read(refund.Refunds, func(v refund.Refund) string { return string(v.Status) }),
		},
		{
			table: house.Payments.Table, column: "status", machine: pairs(house.Machine()), kind: "house.payment_changed", object: "payment_id", field: "to",
			of: read(house.Payments, func(v house.Payment) string { return string(v.Status) }),
		},
		{
			table: refill.Proposals.Table, column: "status", machine: pairs(refill.Machine()), kind: "refill.proposal_changed", object: "proposal_id", field: "to",
			of: read(refill.Proposals, func(v refill.Proposal) string { return string(v.Status) }),
		},
		{
			table: wallet.TransferRows.Table, column: "status", machine: pairs(wallet.TransferMachine()), kind: "wallet.transfer_changed", object: "transfer_id", field: "to",
			of: read(wallet.TransferRows, func(v wallet.Transfer) string { return string(v.Status) }),
		},
		{
			table: treasury.Sweeps.Table, column: "state", machine: pairs(treasury.Machine()), kind: "treasury.sweep_changed", object: "sweep_id", field: "to",
			of: read(treasury.Sweeps, func(v treasury.Sweep) string { return string(v.State) }),
		},
		{
			table: outgoing.Intents.Table, column: "state", machine: pairs(outgoing.Machine()), kind: "outgoing.order_changed", object: "order_id", field: "to",
			of:   read(outgoing.Intents, func(v outgoing.IntentRow) string { return string(v.State) }),
			told: func(r storage.Row) bool { return ofHouse(outgoing.Intents.Value(r).Purpose) },
			why:  "withdrawal.Changed tells of a payout, treasury.SweepChanged of a sweep",
		},
		{
			table: outgoing.Operations.Table, column: "kind", kind: "outgoing.operated", object: "operation_id", field: "operation",
			of:   read(outgoing.Operations, func(v outgoing.Operation) string { return string(v.Kind) }),
			told: func(r storage.Row) bool { return !decision(outgoing.Operations.Value(r).Kind) },
			why:  "withdrawal.Decided tells of a decision about a withdrawal",
		},
		{
			table: withdrawal.Withdrawals.Table, column: "decisions", kind: "withdrawal.decided", object: "withdrawal_id",
			of: read(withdrawal.Withdrawals, decisions),
		},
		{
			table: outgoing.Halts.Table, column: "halts", kind: "outgoing.halt_changed",
			of: read(outgoing.Halts, func(v outgoing.HaltRow) string { return strings.Repeat("halt ", len(v.Halts)) }),
		},
		{
			table: incoming.Cursors.Table, column: "halted", kind: "incoming.halt_changed",
			of: read(incoming.Cursors, func(v incoming.Cursor) string { return v.Halted }),
		},
		{
			table: incoming.AssetHalts.Table, column: "reason", kind: "incoming.halt_changed", object: "currency",
			of: read(incoming.AssetHalts, func(v incoming.AssetHalt) string { return v.Reason }),
		},
		{
			table: incoming.Forks.Table, column: "height", kind: "incoming.forked",
			of: func(r storage.Row) string { // a new fork makes the row due
				return fmt.Sprint(r.Due.IsZero(), incoming.Forks.Value(r).Height)
			},
			told: func(r storage.Row) bool { return !r.Due.IsZero() },
			why:  "that it was dealt with is no news",
		},
	}
}

// decisions are those that people made; that a rule asks for them is a reason to wait.
func decisions(v withdrawal.Withdrawal) (out string) {
	for _, d := range v.Decisions {
		if d.Human() {
			out += string(d.Answer) + " by " + d.By + " "
		}
	}
	return out
}

func decision(k outgoing.OperationKind) bool { return k == audit.Approve || k == audit.Refuse }

func ofHouse(p chain.Purpose) bool { return p == chain.ForGas || p == chain.ForCancel }

// untold are columns of states of which no event tells, and why.
var untold = map[string]string{
	"attempts.fate":      "an attempt is a means: the order, the payout or the sweep that it is for tells what came of it",
	"outcomes.state":     "a copy of an order's state, for its owner",
	"coins.state":        "a coin is held and spent by orders, which tell",
	"sightings.state":    "payment.DepositChanged tells once the payment's side has taken it; a top-up of the operator's is no customer's money",
	"events.status":      "a webhook is a message itself: the list of deliveries shows how it fares",
	"activity.status":    "a line of the history, written with the payment, the withdrawal or the transfer that tells",
	"deliveries.status":  "a webhook is a message itself",
	"differences.halted": "it is set once, when the difference is named: reconcile.DifferenceChanged tells of that, and of the end",
}

const (
	rare    = "few worlds make it: -world.watched=150 shows it told"
	earlier = "only a process of an earlier version, or its row, goes this way"
	member  = "only members of a batch go this way, all of them payouts: withdrawal.Changed tells"
)

// unplayed are moves that the worlds of this test need not make, and why. The pair without
// states stands for a column that need not change at all.
var unplayed = map[string]map[pair]string{
	"payments.status": {
		{"confirming", "partially_paid"}: rare, {"confirming", "waiting"}: rare, {"confirming", "failed"}: rare,
		{"partially_paid", "failed"}: rare, {"partially_paid", "waiting"}: rare, {"partially_paid", "confirming"}: rare, {"confirmed", "completed"}: rare,
		{"expired", "confirming"}: "one that comes back when it is final goes further in the same Change: the tables of payment's tests tell it",
		{"failed", "confirming"}:  "the same",
	},
	"withdrawals.status": {{"pending", "failed"}: rare, {"pending", "completed"}: rare, {"processing", "failed"}: rare},
	"transfers.status": {
		{"", "pending"}:          "it is requested and applied in one Change: the row is never pending",
		{"pending", "completed"}: earlier, {"pending", "failed"}: earlier,
	},
	"sweeps.state": {
		{"", "waiting"}: rare, {"moving", "funding"}: rare, {"done", "moving"}: rare, {"done", "replaced"}: rare, {"funding", "done"}: rare,
		{"funding", "replaced"}: rare, {"moving", "replaced"}: rare, {"new", "done"}: rare, {"new", "replaced"}: rare, {"waiting", "done"}: rare,
		{"waiting", "new"}: rare, {"waiting", "replaced"}: rare,
		{"moving", "new"}:    "gas that comes while nothing is signed: treasury's own test tells all moves of its table",
		{"replaced", "done"}: "a sweep that lands after it was given up: the same",
		{"deferred", "done"}: earlier, {"deferred", "replaced"}: earlier, {"new", "deferred"}: earlier, {"waiting", "deferred"}: earlier,
	},
	"intents.state": {
		{"executed", "failed"}: rare, {"queued", "cancelled"}: rare, {"settled", "signed"}: rare, {"signed", "queued"}: rare, {"signed", "failed"}: rare,
		{"waiting", "cancelled"}: rare, {"waiting", "queued"}: rare, {"executed", "signed"}: rare,
		{"", "cancelled"}:         "an order that may never be sent: of payouts alone it is stored",
		{"queued", "failed"}:      "one that can never be built: outgoing's own test tells all moves of its table",
		{"waiting", "failed"}:     "the same",
		{"executed", "queued"}:    "one that was executed and reverted: the same",
		{"signed", "waiting"}:     "one that was set aside: the same",
		{"executed", "waiting"}:   "the same",
		{"signed", "cancelled"}:   "a child whose parent landed without it: the same",
		{"executed", "cancelled"}: "the same",
		{"queued", "executed"}:    member, {"waiting", "executed"}: member, {"queued", "settled"}: member, {"waiting", "settled"}: member,
	},
	"asset_halts.reason":    {{}: rare},
	"cursors.halted":        {{}: rare},
	"operations.kind":       {{}: rare},
	"withdrawals.decisions": {{}: rare},

	"refunds.status":        every(pairs(refund.Machine()), "worlds do not refund yet: the tests of refunds hear of their moves"),
	"house_payments.status": every(pairs(house.Machine()), rare),

	"refill_proposals.status": every(pairs(refill.Machine()), "nobody signs elsewhere in a world: the tests of refills hear of all moves"),
}

// every gives all moves of a machine, and the column itself, one reason.
func every(moves []pair, why string) map[pair]string {
	out := map[pair]string{{}: why}
	for _, p := range moves {
		out[p] = why
	}
	return out
}

// watching is a store that holds each Change to what it tells.
type watching struct {
	storage.Store
	w     *watch
	known map[string]string // state, by column, partition and id
}

// watch is what the stores of one test have seen.
type watch struct {
	mu     sync.Mutex
	states []state
	moves  map[string]map[pair]int // by table and column
	silent []string
}

func (w *watch) open() (storage.Store, error) {
	return &watching{Store: memory.New(), w: w, known: map[string]string{}}, nil
}

func (s *watching) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := s.Store.Commit(ctx, changes...)
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for i := range changes {
		if errs[i] == nil {
			s.look(&changes[i])
		}
	}
	return errs
}

func (s *watching) look(c *storage.Change) {
	for i := range s.w.states {
		st := &s.w.states[i]
		at := st.table.Name + "." + st.column
		for _, r := range c.Put {
			if r.Table != st.table {
				continue
			}
			key := at + "\x00" + string(c.Partition) + "\x00" + r.ID
			p := pair{s.known[key], st.of(r)}
			s.known[key] = p.to
			if p.from == p.to {
				continue
			}
			if s.w.moves[at] == nil {
				s.w.moves[at] = map[pair]int{}
			}
			s.w.moves[at][p]++
			if st.told != nil && !st.told(r) {
				continue
			}
			if !st.tells(c, r.ID, p.to) && len(s.w.silent) < 20 {
				s.w.silent = append(s.w.silent, fmt.Sprintf("%s of %s goes from %q to %q, and Change %s tells nothing of it", at, r.ID, p.from, p.to, c.ID))
			}
		}
		for _, r := range c.Drop {
			if r.Table != st.table {
				continue
			}
			key := at + "\x00" + string(c.Partition) + "\x00" + r.ID
			if st.table == incoming.AssetHalts.Table && s.known[key] != "" && !st.tells(c, r.ID, "") {
				s.w.silent = append(s.w.silent, fmt.Sprintf("%s %s is dropped, and Change %s tells nothing of it", at, r.ID, c.ID))
			}
			delete(s.known, key)
		}
	}
}

// tells reports whether a Change has the event of a row's new state.
func (s *state) tells(c *storage.Change, id, to string) bool {
	return slices.ContainsFunc(c.Tell, func(e storage.Event) bool {
		var data map[string]any
		if e.Kind != s.kind || json.Unmarshal(e.Data, &data) != nil {
			return false
		}
		return (s.object == "" || data[s.object] == id) && (s.field == "" || to == "" || data[s.field] == to)
	})
}

// E01: in worlds with all their faults, each change of a stored state is told by the Change
// that makes it; each column that is a state, each machine and each move of a machine is
// among what was watched, or is listed with the reason.
func TestFE01_EveryChangeOfStateIsTold(t *testing.T) {
	t.Parallel()
	w := &watch{states: states(), moves: map[string]map[pair]int{}}
	var all sync.WaitGroup
	seeds := make(chan uint64)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for s := range seeds {
				r := simulation.World{Seed: s, Options: simulation.Options{Store: w.open}}.Run(t.Context())
				if r.Failure != nil {
					t.Error(r.Story(20))
				}
			}
		})
	}
	for s := range *watched {
		seeds <- s + 1
	}
	close(seeds)
	all.Wait()
	if testing.Verbose() {
		for _, at := range slices.Sorted(maps.Keys(w.moves)) {
			t.Logf("%s: %v", at, w.moves[at])
		}
	}
	require.Empty(t, w.silent, "a change of state that the host does not hear of")

	for _, st := range w.states {
		at := st.table.Name + "." + st.column
		if len(w.moves[at]) == 0 && unplayed[at][pair{}] == "" {
			t.Errorf("%s never changed in any world: nothing is shown", at)
		}
		for _, p := range st.machine {
			why := unplayed[at][p]
			if w.moves[at][p] == 0 && why == "" {
				t.Errorf("%s: no world goes from %q to %q: play one that does, or list it in unplayed with the reason", at, p.from, p.to)
			}
		}
		for p := range unplayed[at] {
			if p == (pair{}) {
				continue
			}
			require.Contains(t, st.machine, p, "unplayed lists a move of %s that its machine does not have", at)
		}
	}
}

var watched = flag.Uint64("world.watched", 16, "how many worlds the test of told states plays")

// A column whose name says that it is a state is watched, or listed with the reason why it
// tells nothing.
func TestFE01_EveryStateIsWatched(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range states() {
		seen[s.table.Name+"."+s.column] = true
	}
	for _, table := range cryptopay.Tables() {
		for _, c := range table.Columns {
			at := table.Name + "." + c.Name
			if !slices.Contains([]string{"state", "status", "fate", "booking", "halted"}, c.Name) {
				continue
			}
			if seen[at] == (untold[at] != "") {
				t.Errorf("%s is a state: its changes are told, and watched here, or it is listed in untold with the reason", at)
			}
		}
	}
}

// Each fsm.Machine of the library is watched, or its states are listed as untold.
func TestFE01_EveryMachineIsWatched(t *testing.T) {
	t.Parallel()
	var found []string
	literal := regexp.MustCompile(`= fsm\.Machine\[[^\]]*\]\{\s*Name:\s*"([^"]*)"`)
	root := ".."
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // the library itself
		for _, m := range literal.FindAllStringSubmatch(string(text), -1) {
			found = append(found, m[1])
		}
		return err
	}))
	slices.Sort(found)
	require.Equal(t, []string{"attempt", "house payment", "order", "payment", "refill proposal", "refund", "sweep", "transfer", "withdrawal"}, found,
		"a machine is new: watch its states, or list them in untold")
}
