package mysql_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
)

// A page near the oldest end of a long history reads that page, also one of payments of one
// status. MariaDB 10.11 takes the partition, and the status, of the index alone there, and
// reads past all rows that are newer.
func TestFP08_OldPagesAreNotReachedThroughNewerRows(t *testing.T) {
	t.Parallel()
	t.Run("history", func(t *testing.T) {
		t.Parallel()
		oldPages(t, storage.Query{Table: storage.Activities.Table}, `INSERT INTO cryptopay_activity (part, id, version, change_id, due, kind, status, currency, amount, fee, net, address,
			tx_hash, reference, created_at, updated_at, metadata) SELECT 'tenant/a', concat('0190a1b2-', lpad(seq, 12, '0')), 1, '', 0, 'payment',
			'completed', 'BTC', 1, 0, 1, '', '', '', ? + seq * 60000000, 0, 'null' FROM seq_1_to_60000`)
	})
	t.Run("payments", func(t *testing.T) {
		t.Parallel()
		q := storage.Query{Table: payment.Payments.Table, IDs: true, Where: []storage.Cond{{Column: "status", Op: storage.Eq, Value: payment.Completed}}}
		oldPages(t, q, `INSERT IGNORE INTO cryptopay_payments (part, id, version, status, currency, network, address, created_at)
			SELECT 'tenant/a', concat('0190a1b2-', lpad(seq, 12, '0')), 1, 'completed', 'BTC', 'BTC', seq, ? + seq * 60000000 FROM seq_1_to_60000`)
	})
}

// oldPages reads pages of 60,000 rows, one of each minute.
func oldPages(t *testing.T, q storage.Query, insert string) {
	t.Helper()
	const rows, page = 60_000, 500
	place := migrated(t)
	s := at(t, place, mysql.Options{}).(*mysql.Store)
	require.NoError(t, s.Open(t.Context(), append(storage.Tables(), payment.Tables()...)...))
	db := hostPool(t, place)
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err := db.Exec(insert, begun.UnixMicro())
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // ends what only reads
	read := func() (n int) {
		var name string
		var total int
		for _, counter := range []string{"Handler_read_prev", "Handler_read_next", "Handler_read_rnd_next"} {
			require.NoError(t, tx.QueryRow("SHOW SESSION STATUS LIKE '"+counter+"'").Scan(&name, &n))
			total += n
		}
		return total
	}
	for _, minutes := range []int{rows, rows / 2, rows / 10, rows / 20} {
		before := read()
		older := q
		older.Partition, older.Limit, older.Order = storage.Tenant("a"), page, []storage.Order{{Column: "created_at", Desc: true}}
		older.Where = append(slices.Clone(q.Where), storage.Cond{Column: "created_at", Op: storage.Lt, Value: begun.Add(time.Duration(minutes) * time.Minute)})
		found, err := s.WithTx(tx).Find(t.Context(), older)
		require.NoError(t, err)
		require.Len(t, found, page)
		require.Less(t, read()-before, 2*page, "rows read for a page of those before minute %d of %d", minutes, rows)
	}
}
