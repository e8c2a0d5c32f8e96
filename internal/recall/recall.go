// Package recall has questions to the network asked once within one decision, such as a payout
// to many recipients: what nodes say of prices holds for all of them.
package recall

import (
	"context"
	"sync"
)

// Within is a context in which Of asks each question once.
func Within(ctx context.Context) context.Context {
	return context.WithValue(ctx, memoryKey{}, &memory{of: map[any]*memorized{}})
}

// Of returns what ask answered first under this key in a context of Within; in any other it asks.
// Who asks meanwhile waits for the first. An error is not kept. ask may ask nodes, and no store.
// The key's type is the caller's own. The answer is shared, so nobody may change it.
func Of[T any](ctx context.Context, key any, ask func() (T, error)) (T, error) {
	m, _ := ctx.Value(memoryKey{}).(*memory)
	if m == nil {
		return ask()
	}
	m.mu.Lock()
	one := m.of[key]
	if one == nil {
		one = &memorized{}
		m.of[key] = one
	}
	m.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	if v, ok := one.answer.(T); ok {
		return v, nil
	}
	v, err := ask()
	if err == nil {
		one.answer = v
	}
	return v, err
}

// OneByOne is a context in which one goroutine asks all questions of a decision, one after another.
// In any other context several may be asked at the same time. A simulated world needs it to play
// the same seed in the same way.
func OneByOne(ctx context.Context) context.Context {
	return context.WithValue(ctx, oneByOneKey{}, true)
}

// IsOneByOne reports whether a context is one of OneByOne.
func IsOneByOne(ctx context.Context) bool {
	one, _ := ctx.Value(oneByOneKey{}).(bool)
	return one
}

type oneByOneKey struct{}

type memoryKey struct{}

type memory struct {
	mu sync.Mutex
	of map[any]*memorized
}

type memorized struct {
	mu     sync.Mutex
	answer any // nil = nobody was told yet
}
