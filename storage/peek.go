package storage

import (
	"context"
	"slices"
	"time"
)

// Peeker is an optional ability of a Store: it shows what is due along the index that Claim
// walks, however many rows are not due. All backends of this library have it.
type Peeker interface {
	Peek(ctx context.Context, c Claim) ([]Row, error)
}

// Peek returns the rows that a Claim would take, oldest first, and takes none. Their Due is
// when they became due, or when the lease ended that they had last, whichever the backend
// keeps. Where, Partition, Now and Max count; Except and Until play no part. A Store that is
// no Peeker is asked by Find. A row that cannot be read is left out: its *RowError comes
// beside the rows.
func Peek(ctx context.Context, s Store, c Claim) ([]Row, error) {
	c.Except, c.Until = nil, c.Now.Add(time.Microsecond)
	if p, ok := s.(Peeker); ok {
		return p.Peek(ctx, c)
	}
	if _, err := c.Ready(); err != nil {
		return nil, err
	}
	return s.Find(ctx, Query{
		Table: c.Table, Partition: c.Partition, Order: []Order{{Column: ColDue}}, Limit: c.Max,
		Where: slices.Concat(c.Where, []Cond{{Column: ColDue, Op: Gt, Value: time.Time{}}, {Column: ColDue, Op: Le, Value: c.Now}}),
	})
}
