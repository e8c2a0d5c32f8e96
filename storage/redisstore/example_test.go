package redisstore_test

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
)

func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1, MaxRetries: -1})
	store := redisstore.New(client, redisstore.Options{Prefix: "shop"}).Own()
	defer store.Close() //nolint:errcheck // nothing was written
	if err := store.Open(context.Background(), storage.Tables()...); err != nil {
		fmt.Println("the host decides whether to go on without")
	}
	// Output: the host decides whether to go on without
}
