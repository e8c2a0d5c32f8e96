package storage_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
)

// scripted answers each Commit with the next of its errors.
type scripted struct {
	storage.Store
	answers []error
}

func (s *scripted) Commit(context.Context, ...storage.Change) []error {
	next := s.answers[0]
	s.answers = s.answers[1:]
	return []error{next}
}

// A Change of which nothing is known is sent again, and never told as one that did not happen.
func TestCommitOne(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	for name, c := range map[string]struct {
		noWait  bool
		answers []error
		left    int // answers that were not asked for
		want    error
		unknown bool
	}{
		"committed":             {answers: []error{nil}},
		"lost, then there":      {answers: []error{lost, nil}},
		"lost, then a conflict": {answers: []error{lost, storage.ErrConflict}, want: storage.ErrConflict},
		"lost three times":      {answers: []error{lost, lost, lost}, want: lost, unknown: true},
		"busy, then there":      {answers: []error{storage.ErrBusy, nil}},
		"busy three times":      {answers: []error{storage.ErrBusy, storage.ErrBusy, storage.ErrBusy}, want: storage.ErrBusy},
		"lost, then busy":       {answers: []error{lost, storage.ErrBusy, storage.ErrBusy}, want: storage.ErrBusy, unknown: true},
		"busy, then lost":       {answers: []error{storage.ErrBusy, storage.ErrBusy, lost}, want: lost, unknown: true},
		"busy, and in a hurry":  {noWait: true, answers: []error{storage.ErrBusy, nil}, left: 1, want: storage.ErrBusy},
		"lost, and in a hurry":  {noWait: true, answers: []error{lost, storage.ErrBusy, nil}, left: 1, want: storage.ErrBusy, unknown: true},
		"final":                 {answers: []error{storage.ErrMalformed, nil}, left: 1, want: storage.ErrMalformed},
	} {
		s := &scripted{answers: c.answers}
		err := storage.CommitOne(t.Context(), s, storage.Change{ID: "1", NoWait: c.noWait})
		require.ErrorIs(t, err, c.want, name)
		require.Equal(t, c.unknown, errors.Is(err, storage.ErrUnknown), name)
		require.Len(t, s.answers, c.left, name)
	}
}
