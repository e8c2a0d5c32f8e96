package chaintest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/internal/cputime"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Day is what a client needs to catch up after downtime, and the reader that one
// writes first: one call at a time, encoding/json for each block, a map of addresses.
// Both read the same blocks of a node in this process, which answers from memory.
type Day struct {
	Client chain.Client
	Trail  []chain.Block // up to the node's first block of that size
	Blocks int           // how many there are after it
	PerDay int           // how many the main network makes in a day
	Naive  func(ctx context.Context, has func(address string) bool) error
	Sample chain.Address // what addresses look like here
}

// Bench reads all blocks, for each number of watched addresses, of which none is
// paid. What a day takes is reckoned from those blocks.
func (d Day) Bench(b *testing.B) {
	for _, n := range []int{1e4, 1e5, 1e6, 1e7} {
		b.Run(fmt.Sprintf("ours/%d", n), func(b *testing.B) {
			w := Watching(b, d.Client.Network(), d.Sample, n)
			d.measure(b, func() error {
				trail, read := d.Trail, 0
				for read < d.Blocks {
					s, err := d.Client.Scan(b.Context(), trail, w, d.Blocks-read)
					if err != nil {
						return err
					}
					if s.Rewound > 0 || len(s.Blocks) == 0 {
						return fmt.Errorf("%d blocks read, %d taken back", read, s.Rewound)
					}
					for _, x := range s.Blocks {
						if len(x.Transfers) > 0 {
							return fmt.Errorf("a transfer to nobody of ours: %+v", x.Transfers[0])
						}
						trail = append(trail[:len(trail):len(trail)], x.Block)
					}
					read += len(s.Blocks)
				}
				return nil
			})
		})
		b.Run(fmt.Sprintf("naive/%d", n), func(b *testing.B) {
			all := make(map[string]struct{}, n)
			for i := range n {
				all[somebody(d.Sample, i)] = struct{}{}
			}
			d.measure(b, func() error {
				return d.Naive(b.Context(), func(a string) bool { _, ok := all[a]; return ok })
			})
			runtime.KeepAlive(all)
		})
	}
}

func (d Day) measure(b *testing.B, read func() error) {
	require.NoError(b, read()) // the node's answers are made, and connections open
	runtime.GC()
	before := cputime.Used()
	b.ReportAllocs()
	for b.Loop() {
		if err := read(); err != nil {
			b.Fatal(err)
		}
	}
	blocks := float64(b.N * d.Blocks)
	b.ReportMetric(float64(cputime.Used()-before)/blocks, "cpu-ns/block")
	b.ReportMetric(blocks/b.Elapsed().Seconds(), "blocks/s")
	b.ReportMetric(float64(cputime.Used()-before)/blocks*float64(d.PerDay)/1e9, "cpu-s/day")
}

// CPU reports the processor time of an operation, which other work on the machine moves
// less than the time that passes: defer CPU(b)() before the loop.
func CPU(b *testing.B) func() {
	before := cputime.Used()
	return func() { b.ReportMetric(float64(cputime.Used()-before)/float64(b.N), "cpu-ns/op") }
}

// somebody is the i-th address that looks like the sample.
func somebody(sample chain.Address, i int) string {
	tail := strconv.FormatInt(int64(i)+1e8, 36)
	return string(sample[:len(sample)-len(tail)]) + tail
}

// directory is a store with so many addresses in it.
type directory struct {
	storage.Store
	sample chain.Address
	n      int
}

func (d directory) Find(_ context.Context, q storage.Query) (rows []storage.Row, err error) {
	after, _ := q.Where[0].Value.(int64)
	for i := after; i < min(after+int64(q.Limit), int64(d.n)); i++ {
		rows = append(rows, storage.Row{Table: q.Table, ID: somebody(d.sample, int(i)), Value: incoming.AddressRow{Seq: i + 1}})
	}
	return rows, nil
}

// Watching is the real set of so many watched addresses that look like the sample.
func Watching(b *testing.B, network chain.Network, sample chain.Address, n int) chain.Watch {
	b.Helper()
	w := &watched{incoming.NewWatched(directory{sample: sample, n: n}, network)}
	require.NoError(b, w.Sync(b.Context()))
	require.EqualValues(b, n, w.Len())
	return w
}

type watched struct{ *incoming.Watched }

func (*watched) Open() []chain.Address { return nil }

// Post is how a naive reader asks: one question at a time, whose answer is read whole
// and decoded by encoding/json.
func Post(ctx context.Context, url string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	return fetch(r, answer)
}

// Get is Post for nodes that are asked by URL alone.
func Get(ctx context.Context, url string, answer any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	return fetch(r, answer)
}

func fetch(r *http.Request, answer any) error {
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, answer)
}

// Tape answers as a node did before, from memory: what is new is asked of the node
// once. Ids of JSON-RPC are those of the caller.
type Tape struct {
	node    http.Handler
	enlarge func(answer []byte) []byte // makes an answer as large as the main network's
	mu      sync.Mutex
	known   map[string][]byte
}

// NewTape is a Tape's URL; enlarge may be nil.
func NewTape(t testing.TB, node http.Handler, enlarge func(answer []byte) []byte) string {
	t.Helper()
	server := httptest.NewServer(&Tape{node: node, enlarge: enlarge, known: map[string][]byte{}})
	t.Cleanup(server.Close)
	return server.URL
}

type rpcCall struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// ServeHTTP implements http.Handler.
func (p *Tape) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var calls []rpcCall
	several := json.Unmarshal(body, &calls) == nil
	if !several {
		calls = make([]rpcCall, 1)
		if json.Unmarshal(body, &calls[0]) != nil || calls[0].ID == nil {
			_, _ = w.Write(p.ask(r, body))
			return
		}
	}
	for i, c := range calls {
		if several {
			_, _ = w.Write([]byte("[,"[min(i, 1) : min(i, 1)+1]))
		}
		id := c.ID
		c.ID = json.RawMessage("1")
		one, _ := json.Marshal([]rpcCall{c})
		_, _ = fmt.Fprintf(w, `{"id":%s,`, id)
		_, _ = w.Write(p.ask(r, one)[1:])
	}
	if several {
		_, _ = w.Write([]byte("]"))
	}
}

func (p *Tape) ask(r *http.Request, body []byte) []byte {
	key := r.URL.String() + "\n" + string(body)
	p.mu.Lock()
	defer p.mu.Unlock()
	answer, ok := p.known[key]
	if ok {
		return answer
	}
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	rec := httptest.NewRecorder()
	p.node.ServeHTTP(rec, again)
	answer = rec.Body.Bytes()
	var of []map[string]json.RawMessage
	if json.Unmarshal(answer, &of) == nil && len(of) == 1 {
		delete(of[0], "id") // the caller's stands in its place
		answer, _ = json.Marshal(of[0])
	}
	if p.enlarge != nil {
		answer = p.enlarge(answer)
	}
	p.known[key] = answer
	return answer
}
