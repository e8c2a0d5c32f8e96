package transport

import "sync/atomic"

// Trust is that a node was found to be the right one. It ends when the node breaks:
// it may be another one that answers from then on.
type Trust struct {
	breaks atomic.Int64
	found  atomic.Int64 // 1 + the breaks before the look that found it; 0 = never
}

// Broke ends it.
func (t *Trust) Broke() { t.breaks.Add(1) }

// Check looks whether the node is the right one, unless that was found since it last
// broke. Nobody passes while another one still looks.
func (t *Trust) Check(look func() error) error {
	now := t.breaks.Load() + 1
	if t.found.Load() == now {
		return nil
	}
	if err := look(); err != nil {
		return err
	}
	t.found.Store(now) // one that broke meanwhile is looked at again
	return nil
}
