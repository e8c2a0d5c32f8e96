package testenv

import "testing"

// SQLiteApp skips a test of a whole App on SQLite under the race detector: that store is C
// which was translated to Go, and a test takes a minute there instead of one second. What
// is ours runs on the other stores, too.
func SQLiteApp(t testing.TB) {
	t.Helper()
	if race {
		t.Skip("an App on SQLite takes a minute under the race detector")
	}
}

// Sequential skips a long test of one goroutine under the race detector: there is no race to
// find in it, and it takes ten times as long.
func Sequential(t testing.TB) {
	t.Helper()
	if race {
		t.Skip("one goroutine has no races")
	}
}
