package purse

import "testing"

func TestTake(t *testing.T) {
	for n, want := range map[int]int{0: 5, 2: 3, 5: 0} {
		if got, err := Take(5, n); got != want || err != nil {
			t.Error(n, got, err)
		}
	}
	if _, err := Take(5, 6); err == nil {
		t.Error("too much")
	}
}

func TestSmall(t *testing.T) {
	if !Small(2) || Small(4) {
		t.Error()
	}
}
