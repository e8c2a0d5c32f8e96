package testenv

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Cost is what clients asked of a node.
type Cost struct {
	Calls    int            // JSON-RPC calls; where the node is asked by URL, requests
	Requests int            // a batch of calls is one
	Bytes    int            // of bodies, both ways
	Refused  int            // calls that the budget refused; they are not in Calls
	Methods  map[string]int // calls by method, or by path
}

// Budget is what a public server allows: so many calls within each Per.
type Budget struct {
	Calls int
	Per   time.Duration
	Now   func() time.Time
}

// Meter stands between clients and a node that speaks JSON-RPC or REST over HTTP. It counts
// what they ask, and can keep them to a public server's budget.
type Meter struct {
	URL string

	target string
	mu     sync.Mutex
	cost   Cost
	budget *Budget
	until  time.Time // end of the budget's time
	left   int       // calls until then
}

// NewMeter listens on a port of its own and passes everything to the node at target.
func NewMeter(t testing.TB, target string) *Meter {
	t.Helper()
	m := &Meter{target: target, cost: Cost{Methods: map[string]int{}}}
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	m.URL = s.URL
	return m
}

// Take returns the cost since the last Take.
func (m *Meter) Take() Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.cost
	m.cost = Cost{Methods: map[string]int{}}
	return c
}

// Limit enforces a budget from now on; nil ends it.
func (m *Meter) Limit(b *Budget) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budget, m.until = b, time.Time{}
}

// ServeHTTP passes a request on, or refuses it with 429 and Retry-After.
func (m *Meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	asked := methods(r, body)
	if wait := m.refuse(asked); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	on, err := http.NewRequestWithContext(r.Context(), r.Method, m.target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	on.Header = r.Header.Clone()
	on.Header.Del("Accept-Encoding") // the transport asks for it, and counts what was packed
	resp, err := http.DefaultClient.Do(on)
	if err != nil {
		http.Error(w, "gone", http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		http.Error(w, "gone", http.StatusBadGateway)
		return
	}
	m.add(asked, len(body)+len(answer))
	maps.Copy(w.Header(), resp.Header)
	w.Header().Del("Content-Length")
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(answer)
}

// methods are those of the calls in a request.
func methods(r *http.Request, body []byte) (all []string) {
	type call struct{ Method string }
	var calls []call
	if json.Unmarshal(body, &calls) != nil {
		calls = make([]call, 1)
		_ = json.Unmarshal(body, &calls[0])
	}
	for _, c := range calls {
		if c.Method == "" {
			c.Method = r.URL.Path
		}
		all = append(all, c.Method)
	}
	return all
}

func (m *Meter) add(asked []string, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cost.Requests++
	m.cost.Calls += len(asked)
	m.cost.Bytes += bytes
	for _, k := range asked {
		m.cost.Methods[k]++
	}
}

// refuse returns how long a request has to wait, 0 = it need not.
func (m *Meter) refuse(asked []string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget == nil {
		return 0
	}
	now := m.budget.Now()
	if !now.Before(m.until) {
		m.until, m.left = now.Add(m.budget.Per), m.budget.Calls
	}
	if len(asked) > m.left {
		m.cost.Refused += len(asked)
		return m.until.Sub(now)
	}
	m.left -= len(asked)
	return 0
}
