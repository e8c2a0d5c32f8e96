package storage

// Counter is the row of a counter, its id the counter's name. Counters are for what is
// shown at once however much there is: how many payments of a status, the sum of a day.
// They are read like every row, by Rows and Find. What moves them is Change.Count; a Put
// or Drop is for whoever counts everything again.
type Counter struct {
	Value int64 `db:"value"`
}

// Counters is the table of Counter, in any partition.
var Counters = NewTable[Counter]("counters")

// Count moves a counter of the partition: value += Delta. It relies on no version and has
// neither floor nor ceiling, so that no Change is refused for what is only shown; a sum
// beyond 64 bits is ledger.ErrOverflow.
type Count struct {
	Name  string
	Delta int64
}
