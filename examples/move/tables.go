package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/move"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

const kinds = "sqlite:FILE, postgres://…, mysql://…, redis://… or stream:FILE"

// libraryTables are the library's, in every store.
func libraryTables() []*storage.Table {
	return slices.Concat(cryptopay.Tables(), keys.Tables(), auth.Tables())
}

// What examples/gateway keeps beside them, here as an example of a host's own
// tables. Whoever forgets one of theirs leaves its rows behind.
type (
	gatewaySeed struct {
		Words []byte `db:"words"`
	}
	gatewayWorld struct {
		State  []byte            `db:"state"`
		Offset int64             `db:"offset"`
		Prices map[string]string `db:"prices,json"`
	}
)

var hostTables = []*storage.Table{
	storage.NewTable[gatewaySeed]("gateway_seeds").Table,
	storage.NewTable[gatewayWorld]("gateway_worlds").Table,
}

func allTables() []*storage.Table { return append(libraryTables(), hostTables...) }

// openSource opens what is there already: nothing of it is made or migrated.
func openSource(ctx context.Context, dsn string) (move.End, error) {
	if file, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		if _, err := os.Stat(file); err != nil {
			return move.End{}, err
		}
	}
	s, err := open(dsn)
	if err != nil {
		return move.End{}, err
	}
	tables := allTables()
	if err = s.Open(ctx, tables...); errors.Is(err, storage.ErrSchema) {
		tables = libraryTables() // of a host that is not the gateway
		err = s.Open(ctx, tables...)
	}
	if err != nil {
		return move.End{}, errors.Join(err, s.Close())
	}
	return end(s, tables), nil
}

// openTarget makes what is missing in the schema, and opens it.
func openTarget(ctx context.Context, dsn string) (move.End, error) {
	tables := append(allTables(), move.Positions.Table)
	var err error
	switch kind, rest, _ := strings.Cut(dsn, ":"); kind {
	case "sqlite":
		err = sqlite.Migrate(ctx, rest, tables...)
	case "postgres", "postgresql":
		err = postgres.Migrate(ctx, dsn, postgres.Options{}, tables...)
	case "mysql":
		err = mysql.Migrate(ctx, dsn, mysql.Options{}, tables...)
	}
	if err != nil {
		return move.End{}, err
	}
	s, err := open(dsn)
	if err != nil {
		return move.End{}, err
	}
	if err := s.Open(ctx, tables...); err != nil {
		return move.End{}, errors.Join(err, s.Close())
	}
	return end(s, allTables()), nil
}

func end(s storage.Store, tables []*storage.Table) move.End {
	return move.End{Store: s, Tables: tables, Partitions: cryptopay.Partitions, Levels: cryptopay.LevelsOf}
}

// open connects. No error repeats a password.
func open(dsn string) (storage.Store, error) {
	switch kind, rest, _ := strings.Cut(dsn, ":"); kind {
	case "sqlite":
		return sqlite.Open(rest, sqlite.Options{})
	case "postgres", "postgresql":
		return postgres.Open(dsn, postgres.Options{})
	case "mysql":
		return mysql.Open(dsn, mysql.Options{})
	case "redis", "rediss":
		o, err := redis.ParseURL(dsn)
		if err != nil {
			return nil, errors.New("redis://… must be redis://USER:PASSWORD@HOST:PORT/0")
		}
		return redisstore.New(redis.NewClient(o), redisstore.Options{}).Own(), nil
	case "memory":
		return nil, errors.New("memory: is gone when this command ends")
	}
	return nil, fmt.Errorf("no such kind of store: %s", kinds)
}
