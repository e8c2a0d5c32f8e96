package storagetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// benchChild names the work of a process that BenchProcesses started, as JSON.
const benchChild = "CRYPTOPAY_BENCH_CHILD"

// benchOrder is what such a process does: N transfers among the benchmark's
// accounts under ids of its own.
type benchOrder struct {
	Place   string
	Spread  spread
	Callers int
	Number  int // of this process
	N       int
}

// BenchChild makes this program one of the processes that BenchProcesses starts,
// where it was started as that, and then ends it. The TestMain of a backend calls
// it first; open opens what place, of BenchProcesses, names.
func BenchChild(open func(place string) (storage.Store, error)) {
	text := os.Getenv(benchChild)
	if text == "" {
		return
	}
	if err := benchWork(text, open); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func benchWork(text string, open func(place string) (storage.Store, error)) error {
	var o benchOrder
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	s, err := open(o.Place)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // the process ends
	if err := s.Open(context.Background(), Tables()...); err != nil {
		return err
	}
	names := make([]ledger.Account, benchAccounts)
	for i := range names {
		names[i] = benchAccount(i)
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	failed := make(chan error, o.Callers)
	for range o.Callers {
		wg.Go(func() {
			var own transfer
			var c [1]storage.Change
			for i := int(next.Add(1)); i <= o.N; i = int(next.Add(1)) {
				own.fill(&c[0], names, fmt.Sprintf("0190a1b2-%016x-%d", i, o.Number), i+o.Number*311, o.Spread)
				if err := storage.CommitOne(context.Background(), s, c[0]); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// BenchProcesses measures what one, two and three processes do side by side on one
// store, each with 32 callers who wait for their own commits, on the accounts of
// Bench. place makes an empty store that is there as long as the benchmark and
// names it for BenchChild; at opens it in this process. The ledger is audited after
// each run.
func BenchProcesses(b *testing.B, place func(b testing.TB) string, at func(b testing.TB, place string) storage.Store) {
	for _, how := range []spread{oneTenant, hotOne, tenants} {
		for count := 1; count <= 3; count++ {
			b.Run(fmt.Sprintf("%s/processes=%d", how, count), func(b *testing.B) {
				where := place(b)
				s := at(b, where)
				benchOpen(b, s, how)
				begin := make([]func() error, count)
				for i := range begin {
					begin[i] = benchProcess(b, benchOrder{where, how, 32, i, (b.N + count - 1 - i) / count})
				}
				var wg sync.WaitGroup
				b.ResetTimer()
				for _, run := range begin {
					wg.Go(func() {
						if err := run(); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "transfers/s")
				Audit(b, s, here)
				for _, p := range benchParts {
					Audit(b, s, p)
				}
			})
		}
	}
}

// benchProcess starts one and waits until it is ready; what it returns lets it work
// and waits for its end.
func benchProcess(b *testing.B, o benchOrder) func() error {
	b.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$") //nolint:gosec // this test itself
	cmd.Env = append(os.Environ(), benchChild+"="+string(text))
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if inErr != nil || outErr != nil {
		b.Fatal(inErr, outErr)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); line != "ready\n" {
		b.Fatalf("process %d: %q %v", o.Number, line, err)
	}
	return func() error {
		if _, err := io.WriteString(in, "go\n"); err != nil {
			return err
		}
		last, _ := io.ReadAll(said)
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("process %d: %w: %s", o.Number, err, last)
		}
		return nil
	}
}
