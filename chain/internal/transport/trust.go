package transport

import "sync/atomic"

// Trust is that a node was found to be the right one. It ends when the node breaks:
// it may be another one that answers from then on.
type Trust struct{ found, broke atomic.Bool }

// Broke ends it.
func (t *Trust) Broke() { t.broke.Store(true) }

// Check looks whether the node is the right one, unless that was found and still holds.
func (t *Trust) Check(look func() error) error {
	if t.found.Load() && !t.broke.Load() {
		return nil
	}
	t.broke.Store(false) // before the look: one that breaks meanwhile is looked at again
	if err := look(); err != nil {
		t.Broke()
		return err
	}
	t.found.Store(true)
	return nil
}
