package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"
)

// What travels together is sent before there is too much of it, whatever it consists of.
func TestX02_WhatTravelsTogetherIsBounded(t *testing.T) {
	t.Parallel()
	const part = mostQueued / 16
	text := strings.Repeat("x", part)
	for name, c := range map[string]struct {
		q    string
		args []any
	}{
		"statements": {text, nil},
		"text":       {"", []any{text}},
		"texts":      {"", []any{[]string{text[:part/2], text[part/2:]}}},
		"bytes":      {"", []any{[]byte(text)}},
		"more bytes": {"", []any{slices.Collect(slices.Chunk([]byte(text), part/2))}},
	} {
		var trips []int // statements of each
		s := &session{together: true, d: &Dialect{Bind: sqlx.QUESTION, Together: func(_ context.Context, _ *sqlx.Conn, list []Stmt) error {
			trips = append(trips, len(list))
			return nil
		}}}
		for range 40 {
			require.NoError(t, s.each(t.Context(), c.q, c.args, func(Scanner) error { return nil }))
		}
		require.NoError(t, s.flush(t.Context()))
		require.NoError(t, s.flush(t.Context()), "nothing is left")
		require.Equal(t, []int{16, 16, 8}, trips, name)
	}
}

// sent is a link that notes what is sent.
type sent struct{ text bytes.Buffer }

func (s *sent) ExecContext(_ context.Context, q string, _ ...any) (sql.Result, error) {
	s.text.WriteString(q + ";")
	return nil, nil //nolint:nilnil // nobody looks at it
}

func (s *sent) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	panic("nothing is read")
}

// Plans are dropped once a connection was used a quarter more, by transactions or by the
// rows that one of them stores.
func TestFP12_PlansAreDroppedWithUse(t *testing.T) {
	t.Parallel()
	to := &sent{}
	s := &Store{d: &Dialect{Replan: "REPLAN", MaxParams: 1000}}
	ss := &session{d: s.d, link: sqlLink{to}, own: true, words: words{[]string{"BEGIN"}, "COMMIT", "ROLLBACK"}}
	replans := func(rows int) bool {
		to.text.Reset()
		require.NoError(t, ss.inTx(t.Context(), func() error {
			return s.store(t.Context(), ss, "INSERT", "", texts(1), make([]any, rows))
		}))
		require.True(t, strings.HasPrefix(to.text.String(), "BEGIN;"))
		return strings.Contains(to.text.String(), "REPLAN")
	}
	n := 0
	for range 1000 {
		if replans(0) {
			n++
		}
	}
	require.InDelta(t, 28, n, 6, "about as often as 1.25 is a factor of 1000")
	for !replans(0) { // from here on a quarter of 1000 and more is needed
	}
	require.False(t, replans(0))
	require.False(t, replans(200))
	require.False(t, replans(1000))
	require.True(t, replans(0), "there are a thousand rows more")
	require.False(t, replans(0))
}
