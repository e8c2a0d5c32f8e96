package cryptopay_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/move"
)

// A store that a move has filled by half would pay again what is not there yet.
func TestU03_HalfFilledStoreIsRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t, 1, "ETH")
	h.step()
	end := func(s storage.Store) move.End {
		return move.End{Store: s, Tables: cryptopay.Tables(), Partitions: cryptopay.Partitions, Levels: cryptopay.LevelsOf}
	}
	from := h.app.Config().Store
	var stream bytes.Buffer
	_, err := move.Export(t.Context(), end(from), &stream, move.Options{})
	require.NoError(t, err)

	target := memory.New()
	require.NoError(t, target.Open(t.Context(), append(cryptopay.Tables(), move.Positions.Table)...))
	whole := stream.Bytes()
	_, err = move.Import(t.Context(), bytes.NewReader(whole[:len(whole)/2]), end(target), move.Options{})
	require.ErrorIs(t, err, move.ErrStream, "it is cut off")
	cfg := h.app.Config()
	cfg.Store, cfg.Key = target, bytes.Repeat([]byte{7}, 32)
	app, err := cryptopay.New(cfg)
	require.NoError(t, err)
	require.ErrorIs(t, app.Open(t.Context()), move.ErrUnfinished)

	_, err = move.Import(t.Context(), bytes.NewReader(whole), end(target), move.Options{})
	require.NoError(t, err)
	require.NoError(t, app.Open(t.Context()))
}
