package incoming

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

func address(i int) chain.Address {
	return chain.Address(fmt.Sprintf("0x%040x", uint64(i)*0x9e3779b97f4a7c15))
}

func hashes(from, to int) []uint64 {
	out := make([]uint64, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, hashAddress(string(address(i))))
	}
	return out
}

// At every size, also while the filter is rebuilt, every member is in.
func TestWatched_NeverANoToAMember(t *testing.T) {
	t.Parallel()
	w := NewWatched(nil, "ETH")
	n := 0
	for _, step := range []int{1, 2, 255, 256, 3000, 4096, 10_000, 100, 60_000, 90_000} {
		w.add(hashes(n, n+step))
		n += step
		for i := range n {
			if !w.Contains(address(i)) {
				require.Fail(t, "lost", "address %d of %d", i, n)
			}
		}
		for i := n; i < 2*n+1000; i++ {
			if w.Contains(address(i)) {
				require.Fail(t, "found", "address %d of %d", i, n)
			}
		}
	}
	s := w.held.Load()
	require.NotEmpty(t, s.old)
	require.Equal(t, n, s.len())
}

func TestWatched_ReadersDuringGrowth(t *testing.T) {
	t.Parallel()
	w := NewWatched(nil, "ETH")
	w.add(hashes(0, 100))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	lost := make([]int, 2)
	for r := range lost {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for i := range 100 {
					if !w.Contains(address(i)) {
						lost[r]++
					}
				}
			}
		})
	}
	for n := 100; n < 40_000; n += 300 {
		w.add(hashes(n, n+300))
	}
	close(stop)
	wg.Wait()
	require.Equal(t, []int{0, 0}, lost)
}

func TestHashAddress_SpreadsShortAndLong(t *testing.T) {
	t.Parallel()
	seen := map[uint64]string{}
	for _, s := range []string{"", "a", "b", "ab", "ba", "abcdefg", "abcdefgh", "abcdefghi", "abcdefghijklmnop", "abcdefghijklmnopq", "\x00", "\x00\x00"} {
		h := hashAddress(s)
		require.NotZero(t, h)
		require.NotContains(t, seen, h, "%q", s)
		seen[h] = s
	}
}

// strangers are addresses that are in no set, one after the other in one text,
// as a block has them: reading on costs little, and what is not at hand is the
// set. They are so many that their places in the set do not stay in a cache,
// and they were written long ago: a processor that reads what it has just
// written waits for all before it, misses included.
type strangers struct {
	text string
	at   int
}

const strangerLen = 2 + 40

func newStrangers() *strangers {
	text := make([]byte, 0, strangerLen<<20)
	for i := range 1 << 20 {
		text = append(text, address(-1-i)...)
	}
	return &strangers{text: string(text)}
}

func (s *strangers) next() chain.Address {
	a := s.text[s.at : s.at+strangerLen]
	if s.at += strangerLen; s.at == len(s.text) {
		s.at = 0
	}
	return chain.Address(a)
}

// next20 is the next as a key of a map of arrays: some 20 of its bytes.
func (s *strangers) next20() [20]byte {
	a := s.next()
	return [20]byte([]byte(a[len(a)-20:]))
}

// BenchmarkWatchedMiss compares misses with the maps that one would write, in
// one run. B/address is what the structure holds per address.
func BenchmarkWatchedMiss(b *testing.B) {
	for _, n := range []int{1e4, 1e5, 1e6, 1e7} {
		b.Run(fmt.Sprintf("watched/%d", n), func(b *testing.B) {
			before := heap()
			w := NewWatched(nil, "ETH")
			// Most at once, as a process that starts; then some of each layer.
			for _, part := range [][2]int{{0, n * 31 / 32}, {n * 31 / 32, n - min(n/100, 2000)}, {n - min(n/100, 2000), n}} {
				w.add(hashes(part[0], part[1]))
			}
			miss(b, n, before, w.Contains)
			runtime.KeepAlive(w)
		})
		b.Run(fmt.Sprintf("map20/%d", n), func(b *testing.B) {
			before := heap()
			m := map[[20]byte]uint32{}
			for i := range n {
				m[[20]byte([]byte(address(i)[22:]))] = uint32(i)
			}
			bytes := heap() - before
			s := newStrangers()
			before = cpu()
			for b.Loop() {
				if _, ok := m[s.next20()]; ok {
					b.Fatal("found")
				}
			}
			report(b, n, bytes, before)
			runtime.KeepAlive(m)
		})
		if n > 1e6 {
			continue // a map of strings of that size is gigabytes
		}
		b.Run(fmt.Sprintf("mapString/%d", n), func(b *testing.B) {
			before := heap()
			m := map[chain.Address]struct{}{}
			for i := range n {
				m[address(i)] = struct{}{}
			}
			miss(b, n, before, func(a chain.Address) bool { _, ok := m[a]; return ok })
			runtime.KeepAlive(m)
		})
	}
}

func miss(b *testing.B, n int, before int64, contains func(chain.Address) bool) {
	bytes := heap() - before
	s := newStrangers()
	before = cpu()
	for b.Loop() {
		if contains(s.next()) {
			b.Fatal("found")
		}
	}
	report(b, n, bytes, before)
}

// report adds the processor time, which other work on the machine moves less.
func report(b *testing.B, n int, bytes, cpuBefore int64) {
	b.ReportMetric(float64(cpu()-cpuBefore)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(bytes)/float64(n), "B/address")
}

func cpu() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
