package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cryptopay-go/cryptopay/webhook"
)

// mailbox is a receiver of webhooks that checks signatures and remembers what
// came, in the order in which it first came.
type mailbox struct {
	mu     sync.Mutex
	secret string
	bodies map[string]string  // by event
	seqs   map[string][]int64 // of first deliveries, by object
	again  int                // deliveries of what was there already
	faults []string
	arrive func() // called at each delivery, before it is answered
}

func newMailbox() *mailbox {
	return &mailbox{bodies: map[string]string{}, seqs: map[string][]int64{}}
}

func (m *mailbox) open(secret string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.secret = secret
}

// onArrival calls f once, at the next delivery, before it is answered.
func (m *mailbox) onArrival(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arrive = f
}

func (m *mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return // the sender died
	}
	if !m.take(r.Header, text) {
		w.WriteHeader(http.StatusUnauthorized)
	}
}

func (m *mailbox) take(h http.Header, text []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.arrive; f != nil {
		m.arrive = nil
		f()
	}
	if webhook.VerifyBody(h, text, m.secret) != nil {
		m.faults = append(m.faults, "a wrong signature")
		return false
	}
	id := h.Get(webhook.HeaderID)
	object, seq, _ := strings.Cut(id, "/")
	if before, known := m.bodies[id]; known {
		m.again++
		if before != string(text) {
			m.faults = append(m.faults, "two bodies of "+id)
		}
		return true
	}
	n, err := strconv.ParseInt(seq, 10, 64)
	if err != nil {
		m.faults = append(m.faults, "an event without a number: "+id)
	}
	m.bodies[id] = string(text)
	m.seqs[object] = append(m.seqs[object], n)
	return true
}

// disorder lists objects of which a later event came before an earlier one.
func (m *mailbox) disorder() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for object, seqs := range m.seqs {
		if !slices.IsSorted(seqs) {
			out = append(out, fmt.Sprint(object, " ", seqs))
		}
	}
	return out
}
