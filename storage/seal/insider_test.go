package seal_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/seal"
)

// cell is one field of one row in the database.
type cell struct {
	table, column, where string
	number               bool
}

// bytesOf is every value that differs from v in one byte.
func bytesOf(v any, number bool) (out []any) {
	if number {
		for i := range 8 {
			out = append(out, v.(int64)^1<<(8*i))
		}
		return out
	}
	var b []byte
	switch v := v.(type) {
	case string:
		b = []byte(v)
	case []byte:
		b = v
	}
	for i := range b {
		c := slices.Clone(b)
		if c[i] ^= 1; c[i] < ' ' || c[i] > '~' {
			c[i] = 'x'
		}
		if _, text := v.(string); text {
			out = append(out, string(c))
		} else {
			out = append(out, c)
		}
	}
	return out
}

// changeEach changes every byte of the cells, or each stride-th, one at a time, and
// says what Prove finds. What the database refuses is not looked at.
func changeEach(t *testing.T, s storage.Store, db *sqlx.DB, stride int, cells []cell, found func(cell, any, seal.Proof)) (changed int) {
	t.Helper()
	for _, c := range cells {
		where := " WHERE " + c.where
		var old any
		require.NoError(t, db.QueryRowx("SELECT "+c.column+" FROM cryptopay_"+c.table+where).Scan(&old), "%v", c)
		set := func(v any, where string) error {
			_, err := db.Exec(db.Rebind("UPDATE cryptopay_"+c.table+" SET "+c.column+" = ?"+where), v)
			return err
		}
		for i, v := range bytesOf(old, c.number) {
			if i%stride != 0 {
				continue
			}
			if set(v, where) != nil {
				continue
			}
			changed++
			p, _ := prove(t, s, key)
			found(c, v, p)
			back := where
			if strings.Contains(c.where, c.column+" =") { // it is now found by its new value
				back = strings.ReplaceAll(where, c.column+" = "+quoted(old), c.column+" = "+quoted(v))
			}
			require.NoError(t, set(old, back))
		}
	}
	clean(t, s, 3, 60)
	return changed
}

func quoted(v any) string {
	switch v := v.(type) {
	case int64:
		return fmt.Sprint(v)
	case []byte:
		return "'" + string(v) + "'"
	}
	return fmt.Sprintf("'%s'", v)
}

var inSQL = []string{"sqlite", "postgres", "mariadb"}

// strides: over a server each look takes its time.
var strides = map[string]int{"sqlite": 1, "postgres": 5, "mariadb": 5}

// Every byte of a sealed entry, and of the transaction that it is of, is changed in
// the database, one at a time: each time the seal is named, and what is not as it was.
func TestL12_EveryByteOfASealedRow(t *testing.T) {
	t.Parallel()
	for _, name := range inSQL {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := filled(t, name)
			const entry = "part = 'tenant/here' AND account = 'wallet/w1' AND asset = 'ETH' AND seq = 3"
			const tx = "part = 'tenant/here' AND id = 'credit/7'"
			n := changeEach(t, s, db, strides[name], []cell{
				{"entries", "part", entry, false},
				{"entries", "account", entry, false},
				{"entries", "asset", entry, false},
				{"entries", "seq", entry, true},
				{"entries", "tx", entry, false},
				{"entries", "delta", entry, true},
				{"entries", "balance_after", entry, true},
				{"ledger_txs", "part", tx, false},
				{"ledger_txs", "id", tx, false},
				{"ledger_txs", "kind", tx, false},
				{"ledger_txs", "ref", tx, false},
				{"ledger_txs", "at", tx, true},
			}, func(c cell, v any, p seal.Proof) {
				require.NotEmpty(t, p.Findings, "%v %v", c, v)
				f := p.Findings[0]
				require.EqualValues(t, 2, f.Seal, "%v %v", c, v)
				require.Contains(t, []seal.Fault{seal.FaultEntry, seal.FaultGone}, f.Fault)
				if c.table == "entries" { // a transaction is on three accounts
					require.Equal(t, ledger.Wallet("w1"), f.Account)
					require.EqualValues(t, 3, f.Seq)
				}
			})
			require.Greater(t, n, 90/strides[name])
		})
	}
}

// A seal cannot be changed, taken out or put in another's place either.
func TestL12_EveryByteOfASeal(t *testing.T) {
	t.Parallel()
	for _, name := range inSQL {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := filled(t, name)
			const second = "part = 'tenant/here' AND id = '0000000000000002'"
			var w1 string
			require.NoError(t, db.Get(&w1, "SELECT id FROM cryptopay_seal_heights WHERE account = 'wallet/w1'"))
			w1 = "id = '" + w1 + "'"
			changeEach(t, s, db, strides[name], []cell{
				{"seals", "id", second, false},
				{"seals", "part", second, false},
				{"seals", "number", second, true},
				{"seals", "sealed_at", second, true},
				{"seals", "marks", second, false},
				{"seals", "hash", second, false},
				{"seals", "mac", second, false},
				{"seal_heights", "seq", w1, true},
				{"seal_heights", "account", w1, false},
			}, func(c cell, v any, p seal.Proof) { require.NotEmpty(t, p.Findings, "%v %v", c, v) })
			for change, fault := range map[string]seal.Fault{
				"UPDATE cryptopay_seals SET ranges = '[]' WHERE number = 2":                                                                  seal.FaultSeal,
				"UPDATE cryptopay_seals SET ranges = '[{\"account\":\"wallet/w1\",\"asset\":\"ETH\",\"from\":1,\"to\":9}]' WHERE number = 2": seal.FaultRange,
				"UPDATE cryptopay_seals SET mac = marks WHERE number = 2":                                                                    seal.FaultKey,
				"DELETE FROM cryptopay_seals WHERE number = 1":                                                                               seal.FaultMissing,
				"DELETE FROM cryptopay_seals WHERE number = 2":                                                                               seal.FaultMissing,
				"DELETE FROM cryptopay_seals WHERE number = 3":                                                                               seal.FaultHeight,
				"DELETE FROM cryptopay_seals":                                                                                                seal.FaultHeight,
				"UPDATE cryptopay_seals SET id = '0000000000000009' WHERE number = 1":                                                        seal.FaultMissing,
			} {
				_, err := db.Exec("CREATE TABLE kept AS SELECT * FROM cryptopay_seals")
				require.NoError(t, err)
				_, err = db.Exec(change)
				require.NoError(t, err)
				p, _ := prove(t, s, key)
				require.NotEmpty(t, p.Findings, change)
				require.Equal(t, fault, p.Findings[0].Fault, change)
				for _, q := range []string{"DELETE FROM cryptopay_seals", "INSERT INTO cryptopay_seals SELECT * FROM kept", "DROP TABLE kept"} {
					_, err = db.Exec(q)
					require.NoError(t, err)
				}
				clean(t, s, 3, 60)
			}
		})
	}
}

// An insider who knows double entry leaves books that the ledger finds nothing in.
// The seals do, unless he has the key as well, and then a hash that was kept
// elsewhere does.
func TestL12_InsiderWhoKnowsDoubleEntry(t *testing.T) {
	t.Parallel()
	for _, name := range inSQL {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := filled(t, name)
			kept, _, err := seal.Newest(ctx, s, here)
			require.NoError(t, err)
			for _, q := range []string{ // three units more of payment 7 are w1's: two of the platform's fee, one of the chain's
				"UPDATE cryptopay_entries SET delta = delta + 3, balance_after = balance_after + 3 WHERE account = 'wallet/w1' AND seq = 3",
				"UPDATE cryptopay_entries SET balance_after = balance_after + 3 WHERE account = 'wallet/w1' AND seq > 3",
				"UPDATE cryptopay_balances SET posted = posted + 3 WHERE account = 'wallet/w1'",
				"UPDATE cryptopay_entries SET delta = 1, balance_after = balance_after - 2 WHERE account = 'fees/platform' AND seq = 7",
				"UPDATE cryptopay_entries SET balance_after = balance_after - 2 WHERE account = 'fees/platform' AND seq > 7",
				"UPDATE cryptopay_balances SET posted = posted - 2 WHERE account = 'fees/platform'",
				"UPDATE cryptopay_entries SET delta = delta - 1, balance_after = balance_after - 1 WHERE account = 'chain/ETH' AND seq = 7",
				"UPDATE cryptopay_entries SET balance_after = balance_after - 1 WHERE account = 'chain/ETH' AND seq > 7",
				"UPDATE cryptopay_balances SET posted = posted - 1 WHERE account = 'chain/ETH'",
			} {
				_, err := db.Exec(q)
				require.NoError(t, err)
			}
			p, books := prove(t, s, key)
			require.Empty(t, books, "the books are right in themselves")
			require.Equal(t, []seal.Finding{
				{Fault: seal.FaultEntry, Seal: 2, Account: "chain/ETH", Asset: "ETH", Seq: 7, Tx: "credit/7"},
				{Fault: seal.FaultEntry, Seal: 3, Account: "chain/ETH", Asset: "ETH", Seq: 14, Tx: "credit/14"},
			}, p.Findings)

			// He makes the chain again, without the key.
			forge := func(key []byte) {
				for _, q := range []string{"DELETE FROM cryptopay_seals", "DELETE FROM cryptopay_seal_heights"} {
					_, err := db.Exec(q)
					require.NoError(t, err)
				}
				for n := 1; n > 0; {
					_, n, err = seal.Next(ctx, s, here, key, day)
					require.NoError(t, err)
				}
			}
			forge([]byte("another key"))
			p, books = prove(t, s, key)
			require.Empty(t, books)
			require.Equal(t, []seal.Finding{{Fault: seal.FaultKey, Seal: 1}}, p.Findings)
			p, _ = prove(t, s, nil)
			require.Empty(t, p.Findings, "who has no key sees a chain")

			// He has the key.
			forge(key)
			p, _ = prove(t, s, key)
			require.Empty(t, p.Findings)
			now, ok, err := seal.At(ctx, s, here, kept.Number)
			require.NoError(t, err)
			require.False(t, ok && string(now.Hash) == string(kept.Hash), "what was kept elsewhere is no longer so")
		})
	}
}
