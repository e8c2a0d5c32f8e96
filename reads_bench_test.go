package cryptopay_test

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/report"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

var (
	readsRows   = flag.String("reads.rows", "10000", "sizes of a tenant's history that BenchmarkReads measures, by comma")
	readsStores = flag.String("reads.stores", "sqlite,postgres,mariadb", "stores that BenchmarkReads measures, by comma")
)

// BenchmarkReads reads a tenant's history of so many payments, as merchants and the
// operator do: see make bench-reads. Each payment has its row, its line of the unified
// history, and two ledger entries.
func BenchmarkReads(b *testing.B) {
	open := map[string]func(b *testing.B) storage.Store{
		"sqlite": func(b *testing.B) storage.Store {
			file := b.TempDir() + "/reads.db"
			require.NoError(b, sqlite.Migrate(b.Context(), file))
			s, err := sqlite.Open(file, sqlite.Options{})
			require.NoError(b, err)
			return s
		},
		"postgres": func(b *testing.B) storage.Store {
			dsn := testenv.Postgres(b).DSN("postgres")
			require.NoError(b, postgres.Migrate(b.Context(), dsn, postgres.Options{}))
			s, err := postgres.Open(dsn, postgres.Options{})
			require.NoError(b, err)
			return s
		},
		"mariadb": func(b *testing.B) storage.Store {
			dsn := testenv.MariaDB(b).MySQLDSN("test")
			require.NoError(b, mysql.Migrate(b.Context(), dsn, mysql.Options{}))
			s, err := mysql.Open(dsn, mysql.Options{})
			require.NoError(b, err)
			return s
		},
	}
	for name := range strings.SplitSeq(*readsStores, ",") {
		for size := range strings.SplitSeq(*readsRows, ",") {
			rows, err := strconv.Atoi(size)
			require.NoError(b, err)
			b.Run(fmt.Sprintf("%s/%d", name, rows), func(b *testing.B) {
				store := open[name](b)
				defer store.Close() //nolint:errcheck // a benchmark's end
				h := newHostOn(b, store, 1, "ETH")
				began := time.Now()
				h.history(rows)
				_, err := h.app.Recount(b.Context(), h.tenant)
				require.NoError(b, err)
				b.Logf("%s with %d payments was filled in %s", name, rows, time.Since(began).Round(time.Second))
				for _, r := range reads {
					b.Run(r.name, func(b *testing.B) {
						for b.Loop() {
							require.NoError(b, r.read(h))
						}
					})
				}
			})
		}
	}
}

// history puts so many completed payments into the tenant's books, one each minute.
func (h *host) history(rows int) {
	const chunk = 500
	p := storage.Tenant(h.tenant)
	for at := 0; at < rows; at += chunk {
		c := storage.Change{ID: fmt.Sprint("history/", at), Partition: p}
		for i := at; i < min(at+chunk, rows); i++ {
			id, when := fmt.Sprintf("0190a1b2-%012d", i), h.clock.Now().Add(-time.Duration(rows-i)*time.Minute)
			status := payment.Completed
			if i%10 == 0 {
				status = payment.Expired
			}
			v := payment.Payment{Status: status, Currency: "USDTERC20", Network: "ETH", Address: id, Scale: 6, CreatedAt: when, UpdatedAt: when, WatchedUntil: when}
			line := storage.Activity{
				Kind: storage.ActivityPayment, Status: string(status), Currency: "USDTERC20", Address: id, CreatedAt: when, UpdatedAt: when,
			}
			if status == payment.Completed {
				v.Live, v.Net = 25_000_000, 25_000_000
				line.Amount, line.Net = v.Live, v.Net
				c.Post = append(c.Post, ledger.Tx{ID: "credit/" + id, Kind: ledger.KindDeposit, Ref: id, At: when, Legs: []ledger.Leg{
					{Account: "chain/ETH", Asset: "USDTERC20", Delta: -v.Net}, {Account: ledger.Wallet(wallet.Master), Asset: "USDTERC20", Delta: v.Net},
				}})
			}
			c.Put = append(c.Put, payment.Payments.Row(id, 0, time.Time{}, v), storage.Activities.Row(id, 0, time.Time{}, line))
		}
		require.NoError(h.t, storage.CommitOne(h.t.Context(), h.store, c))
	}
}

// reads are what is read, each by the call that the REST interface makes.
var reads = []struct {
	name string
	read func(h *host) error
}{
	{"payments, first page", func(h *host) error {
		_, _, _, err := h.app.Payments.List(h.t.Context(), h.tenant, payment.Filter{Limit: 20})
		return err
	}},
	{"payments, oldest page", func(h *host) error {
		_, count, _, err := h.app.Payments.List(h.t.Context(), h.tenant, payment.Filter{Limit: 1})
		if err == nil {
			_, _, _, err = h.app.Payments.List(h.t.Context(), h.tenant, payment.Filter{Limit: 20, Offset: int(max(20, count)) - 20})
		}
		return err
	}},
	{"payments, by status", func(h *host) error {
		_, _, _, err := h.app.Payments.List(h.t.Context(), h.tenant, payment.Filter{Limit: 20, Status: payment.Expired})
		return err
	}},
	{"withdrawals, first page", func(h *host) error {
		_, _, err := h.app.Withdrawals.List(h.t.Context(), h.tenant, withdrawal.Filter{Limit: 20})
		return err
	}},
	{"transactions, first page", func(h *host) error {
		_, _, err := h.app.Reports.Transactions(h.t.Context(), h.tenant, report.Filter{PageSize: 20})
		return err
	}},
	{"transactions, by status", func(h *host) error {
		_, _, err := h.app.Reports.Transactions(h.t.Context(), h.tenant, report.Filter{PageSize: 20, Status: "expired"})
		return err
	}},
	{"transactions, by currency", func(h *host) error {
		_, _, err := h.app.Reports.Transactions(h.t.Context(), h.tenant, report.Filter{PageSize: 20, Currency: "USDTERC20"})
		return err
	}},
	{"transactions, withdrawals alone", func(h *host) error {
		_, _, err := h.app.Reports.Transactions(h.t.Context(), h.tenant, report.Filter{PageSize: 20, Type: storage.ActivityWithdrawal})
		return err
	}},
	{"transactions, page 100", func(h *host) error {
		_, _, err := h.app.Reports.Transactions(h.t.Context(), h.tenant, report.Filter{PageSize: 20, Page: 100})
		return err
	}},
	{"statistics of 30 days", func(h *host) error {
		_, err := h.app.Reports.Stats(h.t.Context(), h.tenant, report.StatsFilter{})
		return err
	}},
	{"export of all", func(h *host) error {
		all, err := h.app.Reports.Export(h.t.Context(), h.tenant, report.Filter{})
		if err != nil {
			return err
		}
		for _, err := range all {
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"balance history", func(h *host) error {
		_, _, err := h.app.Wallets.History(h.t.Context(), h.tenant, wallet.HistoryFilter{Limit: 50})
		return err
	}},
	{"balance history, deposits", func(h *host) error {
		_, _, err := h.app.Wallets.History(h.t.Context(), h.tenant, wallet.HistoryFilter{Limit: 50, Type: ledger.KindDeposit})
		return err
	}},
	{"open payments", func(h *host) error {
		_, err := h.app.Payments.Open(h.t.Context(), "ETH")
		return err
	}},
	{"verify", func(h *host) error {
		r, err := h.app.VerifyTenant(h.t.Context(), h.tenant)
		if err == nil && !r.Sound() {
			err = fmt.Errorf("not sound: %+v", r)
		}
		return err
	}},
}
