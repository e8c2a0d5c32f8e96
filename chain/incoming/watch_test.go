package incoming

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"unsafe"

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
		require.NoError(t, w.add(hashes(n, n+step)))
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
	require.NotNil(t, s.old.filter)
	require.Equal(t, n, len(s.old.sorted)+len(s.young.sorted)+s.recent.n)
}

func TestWatched_ReadersDuringGrowth(t *testing.T) {
	t.Parallel()
	w := NewWatched(nil, "ETH")
	require.NoError(t, w.add(hashes(0, 100)))
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
		require.NoError(t, w.add(hashes(n, n+300)))
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

// stranger writes addresses that are in no set into one buffer: in a scan, too,
// what is looked up has just been decoded and is at hand; what is not is the set.
type stranger struct {
	n   uint64
	buf [42]byte
}

func (s *stranger) next() chain.Address {
	s.n++
	h := mix(s.n, 0x9e3779b97f4a7c15)
	binary.LittleEndian.PutUint64(s.buf[24:], h)
	return chain.Address(unsafe.String(&s.buf[0], len(s.buf)))
}

func (s *stranger) next20() [20]byte {
	s.next()
	return [20]byte(s.buf[22:])
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
				require.NoError(b, w.add(hashes(part[0], part[1])))
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
			var s stranger
			for b.Loop() {
				if _, ok := m[s.next20()]; ok {
					b.Fatal("found")
				}
			}
			b.ReportMetric(float64(bytes)/float64(n), "B/address")
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
	var s stranger
	for b.Loop() {
		if contains(s.next()) {
			b.Fatal("found")
		}
	}
	b.ReportMetric(float64(bytes)/float64(n), "B/address")
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
