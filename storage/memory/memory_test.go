package memory_test

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

func harness() storagetest.Harness {
	return storagetest.Harness{
		Open:   func(testing.TB) storage.Store { return memory.New() },
		Second: func(_ testing.TB, s storage.Store) storage.Store { return s },
		Reopen: func(t testing.TB, s storage.Store) storage.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, harness())
}
