package webhook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/webhook"
)

func TestH10_HostileText(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		sec, other := w.setup("a"), w.setup("b")
		for i, text := range hostileTexts {
			row := w.emit("a", "p1", int64(i+1), "", map[string]string{"name": text, text: "key"})
			require.Equal(t, 1, w.step())
			d := w.sent[len(w.sent)-1]
			require.Equal(t, webhook.Events.Value(row).Body, string(d.Body), "what was stored is what is sent")
			require.Equal(t, w.event("a", row.ID).Body, string(d.Body))
			require.True(t, w.verifies(d, sec))
			require.False(t, w.verifies(d, other))
			clean(t, d.Body)
		}
		// What a receiver says is kept, and can be.
		w.answer = func(webhook.Delivery) webhook.Result {
			return webhook.Result{Err: errors.New("malformed header: " + string(bytes.Join(func() (all [][]byte) {
				for _, s := range hostileTexts {
					all = append(all, []byte(s))
				}
				return all
			}(), nil)))}
		}
		row := w.emit("a", "p2", 1, "", 1)
		require.Equal(t, 1, w.step())
		e := w.event("a", row.ID)
		require.Equal(t, 1, e.Attempts)
		require.LessOrEqual(t, len(e.Error), 300)
		require.True(t, utf8.ValidString(e.Error))
		for _, r := range e.Error {
			require.True(t, r >= ' ' && r != 0x7f && r != '\u2028' && r != '\u202e', "%q", e.Error)
		}
	})
}

func clean(t *testing.T, body []byte) {
	require.True(t, json.Valid(body))
	require.True(t, utf8.Valid(body))
	for _, bad := range []string{"\x00", "\n", "\r", "\u2028", "\u2029", "<", ">", "&"} {
		require.NotContains(t, string(body), bad)
	}
	var v struct {
		Event     string          `json:"event"`
		Data      json.RawMessage `json:"data"`
		Timestamp time.Time       `json:"timestamp"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&v))
	require.Equal(t, webhook.PaymentStatusUpdate, v.Event)
	require.Equal(t, start.UnixMilli(), v.Timestamp.UnixMilli())
}

func FuzzH10_NewEvent(f *testing.F) {
	for _, s := range hostileTexts {
		f.Add(s, "p1")
	}
	f.Fuzz(func(t *testing.T, text, object string) {
		row, err := webhook.NewEvent(webhook.PaymentStatusUpdate, object, 1, "", map[string]string{"x": text}, start)
		require.NoError(t, err)
		body := []byte(webhook.Events.Value(row).Body)
		clean(t, body)
		h := signed("a-secret-of-tests", "", "id", start, body)
		require.NoError(t, webhook.Verify(h, body, start, 0, "a-secret-of-tests"))
	})
}

// TestH10_TenantBound: the same object id with two tenants, own callback URLs,
// events that are switched off, no URL at all.
func TestH10_TenantBound(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		secrets := map[string]string{"a": w.setup("a"), "b": w.setup("b")}
		none := []string{webhook.DepositReceived}
		_, err := w.svc.Edit(t.Context(), "c", webhook.Patch{URL: ptr("https://c.example.com/"), Events: &none})
		require.NoError(t, err)
		w.emit("a", "p1", 1, "", "of a")
		w.emit("b", "p1", 1, "", "of b")
		w.emit("a", "p2", 1, "https://own.example.com/", "own")
		w.emit("c", "p1", 1, "", "not wanted")
		w.emit("c", "p3", 1, "https://own.example.com/", "its own callback is told all the same")
		w.emit("d", "p1", 1, "", "no settings")
		require.Equal(t, 6, w.step())
		got := map[string]webhook.Delivery{}
		for _, d := range w.sent {
			got[d.URL+" "+d.Header.Get(webhook.HeaderID)] = d
		}
		require.Len(t, got, 4)
		require.True(t, w.verifies(got["https://a.example.com/hook p1/000001"], secrets["a"]))
		require.True(t, w.verifies(got["https://b.example.com/hook p1/000001"], secrets["b"]))
		require.False(t, w.verifies(got["https://b.example.com/hook p1/000001"], secrets["a"]))
		require.True(t, w.verifies(got["https://own.example.com/ p2/000001"], secrets["a"]))
		require.False(t, w.verifies(got["https://own.example.com/ p3/000001"], secrets["a"]), "one URL, two tenants, two secrets")
		for _, tenant := range []string{"c", "d"} {
			require.Equal(t, webhook.StatusSkipped, w.event(tenant, "p1/000001").Status)
		}
		require.Zero(t, w.step())
		rows, err := w.svc.List(t.Context(), "a", webhook.StatusDelivered, 10, 0)
		require.NoError(t, err)
		require.Len(t, rows, 2)
	})
}
