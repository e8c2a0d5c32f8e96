package judge

import "slices"

// The states of a payment and of a withdrawal, as the interface writes them.
const (
	waiting    = "waiting"
	partly     = "partially_paid"
	confirming = "confirming"
	confirmed  = "confirmed"
	sending    = "sending"
	completed  = "completed"
	expired    = "expired"
	failed     = "failed"
	pending    = "pending"
	processing = "processing"
	cancelled  = "cancelled"
)

// payEdges is the table of a payment's states: from → to. A deposit that drops out
// leads back; one that was in time and returns leads out of an end.
var payEdges = map[string][]string{
	waiting:    {confirming, partly, expired},
	partly:     {confirming, waiting, failed, expired},
	confirming: {confirmed, partly, waiting, failed},
	confirmed:  {sending, completed},
	sending:    {completed},
	completed:  {},
	expired:    {confirming},
	failed:     {confirming},
}

// outEdges is the table of a withdrawal's states.
var outEdges = map[string][]string{
	pending:    {processing, cancelled, failed},
	processing: {completed, failed},
	completed:  {}, failed: {}, cancelled: {},
}

// moveEdges is the table of a transfer's states.
var moveEdges = map[string][]string{pending: {completed, failed}, completed: {}, failed: {}}

// reaches reports whether a table leads from one state to another, in any number
// of moves.
func reaches(table map[string][]string, from, to string) bool {
	seen, next := map[string]bool{}, []string{from}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		if at == to {
			return true
		}
		for _, n := range table[at] {
			if !seen[n] {
				seen[n] = true
				next = append(next, n)
			}
		}
	}
	return false
}

// moved is I13 between two looks at one object.
func (j *Judge) moved(kind, id, status string, table map[string][]string) {
	before, seen := j.states[id]
	j.states[id] = status
	_, known := table[status]
	j.ask("I13", seen && before != status || !known, known && (!seen || reaches(table, before, status)),
		"%s %s was %s and is %s", kind, id, before, status)
}

// direct reports whether a table has this one move.
func direct(table map[string][]string, e edge) bool { return slices.Contains(table[e.from], e.to) }

// shown is a payment's state as lists show it: they have no word for partly paid.
func shown(status string) string {
	if status == partly {
		return waiting
	}
	return status
}

// paid reports whether a payment's status says that enough has come for good.
func paid(status string) bool { return status == confirmed || status == sending || status == completed }
