package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// lease is longer than any that a payment, a withdrawal or a transfer in work is
// kept by, and than that of webhooks in delivery, by the fast clock.
const lease = 6 * time.Minute

// Three gateways share one Postgres, started on an empty one at once. Each in
// turn stops for longer than its leases at the worst of moments, after it stored
// a transaction and before it sent it, while it held withdrawals, or webhooks;
// the others take over, and then it goes on with what it believes. One is killed.
func TestC01_C04_C05_PausedAndKilledProcesses(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("servers and processes take seconds")
	}
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-kill.seed=%d", seed)
	w := newTown(t, testenv.Postgres(t).DSN("postgres"))
	stopMining := w.mine(seed) // before they start: a network that stands still is not served
	defer stopMining()
	all := w.startAll(point{}, point{}, point{})
	w.float(all[0])
	m := newMerchant(w, seed)
	m.use(all...)
	g := w.inspect()
	ends, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	require.NoError(t, m.open(ends))
	require.NoError(t, m.settle(ends, g)) // there is money to pay out
	for _, p := range all {
		p.kill()
	}
	stops := []string{stored, "claimed withdrawals", "claimed events"}
	all = w.startAll(stopAt(stops[0]), stopAt(stops[1]), stopAt(stops[2]))
	m.use(all...)

	working, stop := context.WithCancel(t.Context())
	defer stop()
	finish := m.work(working, 4, 40*time.Millisecond)
	stopped := make(chan string, len(all))
	for _, p := range all {
		go func() {
			select {
			case place := <-p.said:
				m.leave(p) // whoever asked it already waits
				stopped <- place
			case <-ends.Done():
			}
		}()
	}
	var got []string
	for range all {
		select {
		case place := <-stopped:
			got = append(got, place)
		case <-ends.Done():
			require.FailNow(t, "not every process gets to its place", "these do: %v", got)
		}
	}
	require.ElementsMatch(t, stops, got)
	// All three stand still, with what they hold.
	require.NoError(t, fast{}.Wait(ends, lease))
	fresh := w.start(point{})
	require.True(t, fresh.serves())
	m.use(fresh) // it takes over what all three held
	require.NoError(t, fast{}.Wait(ends, lease))
	for _, p := range all { // they go on with what they were at
		p.signal(syscall.SIGCONT)
	}
	m.use(append(all, fresh)...)
	require.NoError(t, fast{}.Wait(ends, time.Minute))
	m.use(all...)
	fresh.kill()
	require.NoError(t, fast{}.Wait(ends, time.Minute))
	stop()
	finish()
	require.NoError(t, m.settle(ends, g))
	stopMining()
	resolved, there := m.check(g)
	m.checkAttempts(g)
	t.Logf("%d requests answered, %d answers lost, %d given up (%d were there); %d webhooks, %d again, %d objects out of order",
		m.answered, m.unknown, resolved, there, len(w.box.bodies), w.box.again, len(w.box.disorder()))
}

func stopAt(place string) point { return point{At: place, Nth: 2, Stop: true} }

// startAll starts one process per point at the same moment.
func (w *town) startAll(at ...point) []*process {
	w.t.Helper()
	all := make([]*process, len(at))
	for i, p := range at {
		o := w.order(p)
		o.Hot = true
		all[i] = w.startWith(o)
	}
	for _, p := range all {
		require.True(w.t, p.serves(), "it starts beside the others")
		require.Equal(w.t, all[0].hot, p.hot)
	}
	return all
}

// checkAttempts: two attempts of one intent are for one nonce or share an input.
func (m *merchant) checkAttempts(g *gateway) {
	t := m.w.t
	seen := map[string]map[string]int{} // intent → what attempts spend
	attempts := map[string]int{}
	for _, n := range townNetworks {
		for offset := 0; ; offset += 500 {
			rows, err := g.store.Find(t.Context(), storage.Query{Table: outgoing.Attempts.Table, Partition: storage.Network(string(n)), Limit: 500, Offset: offset})
			require.NoError(t, err)
			for _, row := range rows {
				a := outgoing.Attempts.Value(row)
				attempts[a.Intent]++
				if seen[a.Intent] == nil {
					seen[a.Intent] = map[string]int{}
				}
				for _, s := range a.Spends {
					seen[a.Intent][s]++
				}
			}
			if len(rows) < 500 {
				break
			}
		}
	}
	for intent, n := range attempts {
		most := 0
		for _, c := range seen[intent] {
			most = max(most, c)
		}
		require.Equal(t, n, most, "the attempts of %s do not exclude each other", intent)
	}
}

// BenchmarkProcesses is what one, two and three gateways on one Postgres answer to
// 24 callers: payments, and transfers between a merchant's wallets. One merchant is
// one partition, which is written by one batch at a time; many are spread.
func BenchmarkProcesses(b *testing.B) {
	for _, merchants := range []int{1, 24} {
		for count := 1; count <= 3; count++ {
			b.Run(fmt.Sprintf("merchants=%d/processes=%d", merchants, count), func(b *testing.B) { benchmarkProcesses(b, merchants, count) })
		}
	}
}

func benchmarkProcesses(b *testing.B, merchants, count int) {
	w := newTown(b, testenv.Postgres(b).DSN("postgres"))
	g := w.inspect()
	for _, c := range w.sims {
		c.Mine(3)
	}
	o := w.order(point{})
	o.Clock.Slow = true // what is measured looks for work as often as in production
	var live []*process
	for range count {
		p := w.startWith(o)
		require.True(b, p.serves())
		live = append(live, p)
	}
	all := make([]*merchant, merchants)
	for i := range all {
		all[i] = w.rich(g, i)
		all[i].use(live...)
		_, _, err := all[i].ask(b.Context(), newRandom(1), http.MethodPost, "/wallets/", "sub", body{"name": "sub", "external_id": "sub"}, 0)
		require.NoError(b, err)
	}
	var n atomic.Int64
	failed := make(chan error, 24)
	b.SetParallelism(max(1, 24/runtime.GOMAXPROCS(0)))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		r := newRandom(uint64(n.Add(1)))
		for pb.Next() {
			i := n.Add(1)
			m := all[i%int64(merchants)]
			q := m.request(r, fmt.Sprint("bench-", i))
			if q.kind == "withdrawal" {
				q.kind, q.body = "payment", body{"amount": "20", "currency": q.currency}
			}
			status, answer, err := m.ask(b.Context(), r, http.MethodPost, paths[q.kind], q.key, q.body, 0)
			if err == nil && status >= http.StatusMultipleChoices {
				err = fmt.Errorf("%s: %d %v", q.kind, status, answer)
			}
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	select {
	case err := <-failed:
		b.Fatal(err)
	default:
	}
	for _, p := range live {
		p.kill()
	}
	reports, err := g.app.Verify(b.Context())
	require.NoError(b, err)
	for i := range reports {
		require.True(b, reports[i].Sound(), "%+v", reports[i])
	}
}

// rich is a merchant with money in its wallet; the first is the program's own.
func (w *town) rich(g *gateway, number int) *merchant {
	w.t.Helper()
	ctx, m, tenant := w.t.Context(), newMerchant(w, uint64(number)), tenantID
	if number > 0 {
		tenant, m.client = fmt.Sprint(tenantID, number), fmt.Sprint(testClient, number)
		_, err := g.app.Wallets.CreateTenant(ctx, wallet.NewTenant{ID: tenant, Settings: wallet.Settings{Name: &tenant}})
		require.NoError(w.t, err)
		_, _, err = g.auth.CreateApp(ctx, auth.NewApp{
			Tenant: tenant, Name: tenant, Scopes: []auth.Scope{auth.Read, auth.Write}, Role: auth.TenantAdmin, ClientID: m.client, ClientSecret: testSecret,
		})
		require.NoError(w.t, err)
	}
	for _, c := range currencies {
		asset, units := ledger.Asset(c.code), ledger.Amount(1e15)
		id := "gift/" + c.code
		require.NoError(w.t, storage.CommitOne(ctx, g.store, storage.Change{ID: id, Partition: storage.Tenant(tenant), Post: []ledger.Tx{{
			ID: id, Kind: ledger.KindAdjustment, At: w.now(), Legs: []ledger.Leg{
				{Account: ledger.Wallet(wallet.Master), Asset: asset, Delta: units}, {Account: ledger.Chain(string(c.network)), Asset: asset, Delta: -units},
			},
		}}}))
	}
	return m
}
