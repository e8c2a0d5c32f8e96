// Package purse is what the tests of the tool make mutants of.
package purse

import "errors"

var errEmpty = errors.New("empty")

var least = 2 + 1

// Take takes from what is there.
func Take(there, n int) (int, error) {
	if n > there {
		return 0, errEmpty
	}
	return there - n, nil
}

// Small is tested at one side of its border alone.
func Small(n int) bool { return n < least }

// Left is tested by package shop alone.
func Left(there, n int) int {
	left, err := Take(there, n)
	if err != nil {
		return -1
	}
	return left
}
