package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// chunk is how many rows one read takes: a server does nothing else meanwhile.
const chunk = 500

// Rows implements storage.Store.
func (s *Store) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	l, err := s.layout(ctx, t)
	if err != nil {
		return nil, err
	}
	sought, err := t.Seek(keys)
	if err != nil {
		return nil, err
	}
	found := make([]*storage.Stored, 0, len(sought))
	for some := range slices.Chunk(sought, chunk) {
		if found, err = s.sought(ctx, l, some, found); err != nil {
			return nil, err
		}
	}
	return decode(t, found)
}

// sought adds the rows with these keys.
func (s *Store) sought(ctx context.Context, l *layout, keys []storage.Sought, found []*storage.Stored) ([]*storage.Stored, error) {
	rows := make([]*storage.Stored, len(keys))
	if err := s.byID(ctx, l, keys, rows); err != nil {
		return nil, err
	}
	if err := s.byUnique(ctx, l, keys, rows); err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r != nil {
			found = append(found, r)
		}
	}
	return found, nil
}

// byID reads the rows that are named by id, in one round trip.
func (s *Store) byID(ctx context.Context, l *layout, keys []storage.Sought, rows []*storage.Stored) error {
	at := map[storage.Partition][]int{}
	for i := range keys {
		if k := &keys[i]; k.Unique < 0 {
			at[k.Partition] = append(at[k.Partition], i)
		}
	}
	if len(at) == 0 {
		return nil
	}
	pipe := s.client.Pipeline()
	answers := make(map[storage.Partition]*redis.SliceCmd, len(at))
	for p, list := range at {
		ids := make([]string, len(list))
		for n, i := range list {
			ids[n] = keys[i].ID
		}
		answers[p] = pipe.HMGet(ctx, s.keys.rows(l.t, p), ids...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return failed("reading rows of "+l.t.Name, err)
	}
	for p, list := range at {
		for n, v := range answers[p].Val() {
			packed, ok := v.(string)
			if !ok {
				continue
			}
			var err error
			if rows[list[n]], err = unpackRow(l.t, p, keys[list[n]].ID, packed); err != nil {
				return err
			}
		}
	}
	return nil
}

// byUnique reads the rows that are named by a unique key, in one round trip.
func (s *Store) byUnique(ctx context.Context, l *layout, keys []storage.Sought, rows []*storage.Stored) error {
	var at []int
	var calls []evaluation
	for i := range keys {
		k := &keys[i]
		if k.Unique < 0 {
			continue
		}
		var start []byte
		for _, v := range k.Scalars {
			start = encodeScalar(start, v)
		}
		all := spanOf(string(start), "", "")
		at = append(at, i)
		calls = append(calls, evaluation{
			keys: []string{s.keys.index(l.t, l.unique(k.Unique), k.Partition), s.keys.rows(l.t, k.Partition)},
			args: []any{all.from, all.to, "", 0, 1},
		})
	}
	if len(calls) == 0 {
		return nil
	}
	for n, cmd := range s.run(ctx, pageScript, calls) {
		list, err := cmd.Slice()
		if err != nil {
			return failed("reading rows of "+l.t.Name, err)
		}
		if len(list) == 0 {
			continue
		}
		a := answer{of: list}
		id := a.text(1)
		if a.bad {
			return errForeign
		}
		packed, _ := a.item(2).(string) // else somebody took it away, and left it in the index
		if rows[at[n]], err = unpackRow(l.t, keys[at[n]].Partition, id, packed); err != nil {
			return err
		}
	}
	return nil
}

func decode(t *storage.Table, found []*storage.Stored) ([]storage.Row, error) {
	out := make([]storage.Row, len(found))
	for i, r := range found {
		var err error
		if out[i], err = r.Row(t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Balances implements storage.Store. All of them are read at one moment.
func (s *Store) Balances(ctx context.Context, p storage.Partition, accounts ...ledger.Account) ([]ledger.Balance, error) {
	if _, err := s.opened(ctx); err != nil {
		return nil, err
	}
	fields, err := s.balances(ctx, p, accounts)
	if err != nil {
		return nil, failed("reading balances", err)
	}
	var out []ledger.Balance
	for field, text := range fields {
		b, err := parseBalance(field, text)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b ledger.Balance) int {
		if c := strings.Compare(string(a.Account), string(b.Account)); c != 0 {
			return c
		}
		return strings.Compare(string(a.Asset), string(b.Asset))
	})
	return out, nil
}

func (s *Store) balances(ctx context.Context, p storage.Partition, accounts []ledger.Account) (map[string]string, error) {
	if len(accounts) == 0 {
		return s.client.HGetAll(ctx, s.keys.balances(p)).Result()
	}
	names := make([]any, 0, len(accounts))
	for _, a := range accounts {
		names = append(names, string(a))
	}
	call := evaluation{keys: []string{s.keys.balances(p), s.keys.dir(p)}, args: names}
	list, err := s.run(ctx, balancesScript, []evaluation{call})[0].StringSlice()
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string, len(list)/2)
	for i := 1; i < len(list); i += 2 {
		fields[list[i-1]] = list[i]
	}
	return fields, nil
}

func parseBalance(field, text string) (ledger.Balance, error) {
	account, asset, ok := strings.Cut(field, "\x00")
	n, err := integers(text, 3)
	if !ok || err != nil {
		return ledger.Balance{}, fmt.Errorf("%w: balance %q: %q", errForeign, field, text)
	}
	return ledger.Balance{
		Account: ledger.Account(account), Asset: ledger.Asset(asset),
		Posted: ledger.Amount(n[0]), Held: ledger.Amount(n[1]), Seq: n[2],
	}, nil
}

// integers reads n of them with blanks between.
func integers(text string, n int) ([]int64, error) {
	parts := strings.Split(text, " ")
	if len(parts) != n {
		return nil, errForeign
	}
	out := make([]int64, n)
	for i, p := range parts {
		var err error
		if out[i], err = strconv.ParseInt(p, 10, 64); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Entries implements storage.Store.
func (s *Store) Entries(ctx context.Context, p storage.Partition, account ledger.Account, asset ledger.Asset, before int64, max int) ([]ledger.Entry, error) {
	if _, err := s.opened(ctx); err != nil {
		return nil, err
	}
	if max <= 0 || before == 1 {
		return nil, nil
	}
	const most = 1<<31 - 1 // more than a list is asked for, and exact in Lua
	call := evaluation{
		keys: []string{s.keys.history(p, account, asset), s.keys.txs(p)},
		args: []any{min(before, 1<<53), min(max, most)},
	}
	list, err := s.run(ctx, entriesScript, []evaluation{call})[0].Slice()
	if err != nil {
		return nil, failed("reading the history of "+string(account), err)
	}
	a := answer{of: list}
	seq := int64(a.number(0))
	var out []ledger.Entry
	for i := 1; i < len(list); i += 2 {
		e := ledger.Entry{Account: account, Asset: asset, Seq: seq}
		if err := parseEntry(&e, a.text(i), a.text(i+1)); err != nil || a.bad {
			return nil, fmt.Errorf("%w: entry %d of %s in %s", errForeign, seq, account, asset)
		}
		out = append(out, e)
		seq--
	}
	return out, nil
}

// parseEntry reads a line of a history and the record of its transaction.
func parseEntry(e *ledger.Entry, line, record string) error {
	parts := strings.SplitN(line, " ", 3)
	of := strings.Split(record, "\x00")
	if len(parts) != 3 || len(of) != 4 {
		return errForeign
	}
	delta, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return err
	}
	after, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(of[3], 10, 64)
	if err != nil {
		return err
	}
	e.Delta, e.After, e.Tx = ledger.Amount(delta), ledger.Amount(after), parts[2]
	e.Kind, e.Ref, e.At = ledger.Kind(of[1]), of[2], storage.FromMicros(at)
	return nil
}
