package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// overtaken is a store where another request comes between a look at an idempotency key and
// what follows from it.
type overtaken struct {
	storage.Store
	other func()
}

func (o *overtaken) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	rows, err := o.Store.Rows(ctx, t, keys...)
	if other := o.other; other != nil && t == storage.OnceTable.Table {
		o.other = nil
		other()
	}
	return rows, err
}

// The first answer to a key is looked for beside the credentials, before the body is read.
// Where a request with the same key is answered in between, this one gets the same answer,
// also where the other one took all that both need, and idempotency_mismatch for another
// body.
func TestFP04_AKeyIsUsedWhileItIsLookedAt(t *testing.T) {
	t.Parallel()
	store := &overtaken{Store: memory.New()}
	w := rich(t, func(s *setup) {
		s.store = store
		s.config = func(c *cryptopay.Config) { c.MaxWallets = 2 }
	})
	for i, r := range append([]onceRoute{
		{path: "/wallets/transfer-to-user/", good: `{"external_id":"sub","currency":"USDTERC20","amount":"99"}`, status: http.StatusAccepted},
		{path: "/wallets/withdraw-to-master/", good: `{"external_id":"sub","currency":"USDTERC20","amount":"100"}`, status: http.StatusAccepted},
	}, once...) {
		good, key := w.filled(r.good), fmt.Sprint("key-", i)
		var first answer
		store.other = func() { first = w.ok(r.status, "POST", r.path, good, onceKey(key)) }
		again := w.ok(r.status, "POST", r.path, good, onceKey(key))
		require.Equal(t, first.Raw, again.Raw, "%s %s", r.path, good)
		require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"), "%s %s", r.path, good)
		if r.other == "" || r.path == "/wallets/" { // there is no room for another wallet
			continue
		}
		key += "-other"
		store.other = func() { w.ok(r.status, "POST", r.path, good, onceKey(key)) }
		a := w.ok(http.StatusUnprocessableEntity, "POST", r.path, w.filled(r.other), onceKey(key))
		require.Equal(t, "idempotency_mismatch", a.code(), "%s %s", r.path, r.other)
	}
}
