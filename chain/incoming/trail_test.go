package incoming_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
)

func TestTrailIsStoredShortAndWhole(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, want := range []incoming.Trail{
		nil,
		{{Height: 7, Hash: "h7", Parent: "h6", Time: at}},
		{{Height: 0, Hash: "g"}, {Height: 1, Hash: "h1", Parent: "g", Time: at}, {Height: 5, Hash: "h5", Parent: "h1", Time: at.Add(time.Second)}},
	} {
		b, err := json.Marshal(want)
		require.NoError(t, err)
		var got incoming.Trail
		require.NoError(t, json.Unmarshal(b, &got))
		require.Equal(t, want, got)
	}
	_, err := json.Marshal(incoming.Trail{{Height: 1, Hash: "a"}, {Height: 2, Hash: "b", Parent: "other"}})
	require.Error(t, err)
	var got incoming.Trail
	require.Error(t, json.Unmarshal([]byte(`"p;x y"`), &got))
}
