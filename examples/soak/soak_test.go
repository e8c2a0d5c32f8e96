package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRecordAddsUp: a second run goes on where the first one ended.
func TestRecordAddsUp(t *testing.T) {
	t.Parallel()
	o := options{seeds: 4, steps: 20, days: 7, parallel: 2, file: filepath.Join(t.TempDir(), "soak.json"), commit: "abc", every: time.Hour}
	for i := range uint64(2) {
		require.NoError(t, run(t.Context(), o))
		r, err := load(o.file, "abc")
		require.NoError(t, err)
		require.Equal(t, 5+4*i, r.Next)
		require.EqualValues(t, 4*(i+1), r.Worlds)
		require.Greater(t, r.days(), 7.0*float64(r.Worlds))
		require.Empty(t, r.Broken)
		require.Positive(t, r.Promises["I4"].Asked)
	}
	o.commit = "another"
	require.ErrorContains(t, run(t.Context(), o), "another -record")
}
