package memory_test

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

func BenchmarkTransfers(b *testing.B) {
	storagetest.Bench(b, harness(), storagetest.DecimalMap())
}

func BenchmarkDueRows(b *testing.B) { storagetest.BenchDue(b, harness(), 100_000) }
