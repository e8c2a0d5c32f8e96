package shop

import (
	"testing"

	"example.test/module/purse"
)

func TestLeft(t *testing.T) {
	if purse.Left(5, 2) != 3 || purse.Left(2, 5) != -1 {
		t.Error()
	}
}
