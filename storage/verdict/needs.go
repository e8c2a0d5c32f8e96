package verdict

import (
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Needs is what verdicts depend on, each named once, in order of first mention.
type Needs struct {
	Rows     []RowKey    // with stamp and, where the table has Uniques, its own keys
	Uniques  []UniqueKey // who holds it
	Values   [][]any     // the scalars of Uniques, for the backend's query
	Txs      []TxKey
	Balances []BalanceKey
	Accounts []AccountKey // all balances of the account
	Levels   []LevelKey
}

// Needs collects what the well-formed Changes of the batch depend on.
func (b *Batch) Needs() *Needs {
	n := &Needs{}
	rows := map[RowKey]struct{}{}
	uniques := map[UniqueKey]struct{}{}
	txs := map[TxKey]struct{}{}
	balances := map[BalanceKey]struct{}{}
	accounts := map[AccountKey]struct{}{}
	levels := map[LevelKey]struct{}{}
	for i := range b.items {
		it := &b.items[i]
		if it.err != nil {
			continue
		}
		c, p := it.c, it.c.Partition
		for j := range c.Require {
			n.Rows = once(rows, RowKey{c.Require[j].Table, p, c.Require[j].ID}, n.Rows)
		}
		for j := range c.Drop {
			n.Rows = once(rows, RowKey{c.Drop[j].Table, p, c.Drop[j].ID}, n.Rows)
		}
		for j := range c.Put {
			t := c.Put[j].Table
			n.Rows = once(rows, RowKey{t, p, c.Put[j].ID}, n.Rows)
			for u, key := range it.puts[j].keys {
				had := len(n.Uniques)
				if n.Uniques = once(uniques, UniqueKey{t, p, u, key}, n.Uniques); len(n.Uniques) > had {
					n.Values = append(n.Values, UniqueScalars(t, u, it.puts[j].scalars))
				}
			}
		}
		for j := range c.Count {
			n.Rows = once(rows, RowKey{storage.Counters.Table, p, c.Count[j].Name}, n.Rows)
		}
		for j := range c.Post {
			n.Txs = once(txs, TxKey{p, c.Post[j].ID}, n.Txs)
			for k := range c.Post[j].Legs {
				l := &c.Post[j].Legs[k]
				n.Balances = once(balances, BalanceKey{p, l.Account, l.Asset}, n.Balances)
			}
		}
		for _, a := range c.Empty {
			n.Accounts = once(accounts, AccountKey{p, a}, n.Accounts)
		}
		for j := range c.Level {
			n.Levels = once(levels, LevelKey{p, c.Level[j].Name}, n.Levels)
		}
	}
	return n
}

func once[K comparable](seen map[K]struct{}, k K, list []K) []K {
	if _, ok := seen[k]; ok {
		return list
	}
	seen[k] = struct{}{}
	return append(list, k)
}

// Stamp is a stored row as far as verdicts go. Version 0: there is none.
type Stamp struct {
	Version int64
	Change  string
	Keys    []string // its unique keys, see Keys
	Value   int64    // of a counter
}

// State answers what is stored at the moment of judging. It is asked for
// nothing that Needs does not name.
type State interface {
	Row(RowKey) Stamp
	Holder(UniqueKey) (id string, taken bool)
	Tx(TxKey) (change string, posted bool)
	Balance(BalanceKey) ledger.Balance // zero where there is none
	Account(AccountKey) []ledger.Balance
	Level(LevelKey) int64
}

// Loaded is a State read beforehand; fill its maps with what was found.
type Loaded struct {
	Rows     map[RowKey]Stamp
	Holders  map[UniqueKey]string
	Txs      map[TxKey]string
	Balances map[BalanceKey]ledger.Balance
	Accounts map[AccountKey][]ledger.Balance
	Levels   map[LevelKey]int64
}

// NewLoaded makes an empty Loaded: nothing is stored yet.
func NewLoaded() *Loaded {
	return &Loaded{
		Rows: map[RowKey]Stamp{}, Holders: map[UniqueKey]string{}, Txs: map[TxKey]string{},
		Balances: map[BalanceKey]ledger.Balance{}, Accounts: map[AccountKey][]ledger.Balance{}, Levels: map[LevelKey]int64{},
	}
}

// Row implements State.
func (l *Loaded) Row(k RowKey) Stamp { return l.Rows[k] }

// Holder implements State.
func (l *Loaded) Holder(k UniqueKey) (string, bool) { id, ok := l.Holders[k]; return id, ok }

// Tx implements State.
func (l *Loaded) Tx(k TxKey) (string, bool) { c, ok := l.Txs[k]; return c, ok }

// Balance implements State.
func (l *Loaded) Balance(k BalanceKey) ledger.Balance { return l.Balances[k] }

// Account implements State.
func (l *Loaded) Account(k AccountKey) []ledger.Balance { return l.Accounts[k] }

// Level implements State.
func (l *Loaded) Level(k LevelKey) int64 { return l.Levels[k] }

var _ State = (*Loaded)(nil)

// Tables is the set of tables that a store was opened with.
type Tables map[*storage.Table]bool

// Has is the open function that Prepare takes.
func (t Tables) Has(table *storage.Table) bool { return t[table] }

// Held is the unique keys that the loaded rows hold themselves.
func (l *Loaded) Held() map[UniqueKey]string {
	held := map[UniqueKey]string{}
	for k, s := range l.Rows {
		for u, key := range s.Keys {
			held[UniqueKey{k.Table, k.Partition, u, key}] = k.ID
		}
	}
	return held
}
