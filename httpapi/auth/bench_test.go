package auth_test

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

// BenchmarkCheck is what every request costs: one keyed hash and two point reads.
func BenchmarkCheck(b *testing.B) {
	for name, on := range map[string]func(testing.TB, ...func(*auth.Config)) *world{"memory": onMemory, "sqlite": onSQLite} {
		w := on(b)
		a, secret := w.app()
		tok := w.token(a, secret)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Check(w.ctx, tok); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGuess compares what an unknown client and a wrong secret cost.
func BenchmarkGuess(b *testing.B) {
	w := onMemory(b)
	a, _ := w.app()
	for name, client := range map[string]string{"wrong": a.ClientID, "unknown": "00112233445566778899aabbccddeeff"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Token(w.ctx, client, "wrong", ""); err == nil {
					b.Fatal("let in")
				}
			}
		})
	}
}
