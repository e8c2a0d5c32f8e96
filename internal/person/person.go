// Package person compares the names of people who ask for money to move and decide about it:
// who writes his name in another way is still the same person.
package person

import "strings"

// Same reports whether two names are of one person: they differ in case and in the spaces
// around them at most.
func Same(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }

// None reports whether a name names nobody.
func None(name string) bool { return strings.TrimSpace(name) == "" }
