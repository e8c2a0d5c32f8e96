package follow

import "sync"

// Searches keeps how far searches have come that are not at their end. Each is for one
// transaction, and S is where it goes on. The zero value is empty. Goroutines may share it.
type Searches[S any] struct {
	mu   sync.Mutex
	open map[string]S
}

// MaxSearches is how many searches are kept.
const MaxSearches = 1000

// Begin returns where the search for a transaction goes on. A search that is not kept
// begins at first.
func (s *Searches[S]) Begin(tx string, first S) S {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.open[tx]; ok {
		return at
	}
	return first
}

// Keep keeps where a search goes on. Where too many are kept, a new one takes the place of
// any other, which then begins anew. It is not the oldest: many searches that go on in turn
// would take each other's places, and none would come to its end.
func (s *Searches[S]) Keep(tx string, at S) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[string]S{}
	}
	if _, ok := s.open[tx]; !ok && len(s.open) >= MaxSearches {
		for other := range s.open {
			delete(s.open, other)
			break
		}
	}
	s.open[tx] = at
}

// End forgets a search.
func (s *Searches[S]) End(tx string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, tx)
}
