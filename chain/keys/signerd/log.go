package signerd

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// ErrLog reports a log whose lines do not follow from each other.
var ErrLog = errors.New("signerd: the log was changed")

// Line is one line of the log: signatures that were about to be handed out. A request that
// is asked again has a line each time.
type Line struct {
	Number  int64         `json:"n"` // from 1
	Time    time.Time     `json:"time"`
	Network chain.Network `json:"network"`
	Intent  string        `json:"intent"`
	Attempt string        `json:"attempt"`
	Payload string        `json:"payload"` // hex SHA-256
	Spends  []string      `json:"spends"`
	Pays    []Paid        `json:"pays,omitempty"`  // to others
	Keeps   []Paid        `json:"keeps,omitempty"` // to addresses of ours
	Cost    ledger.Amount `json:"cost"`            // the most that the network can take
	// Tx, Orders and Endings are those of keys.Binding.
	Tx      string           `json:"tx,omitempty"`
	Orders  []string         `json:"orders,omitempty"`
	Endings []mandate.Ending `json:"endings,omitempty"`
	Before  string           `json:"before"` // hex SHA-256 of the line before, of the first zeros
}

// Paid is an output. Amounts are in units of the currency.
type Paid struct {
	To       chain.Address `json:"to"`
	Currency string        `json:"currency"`
	Amount   ledger.Amount `json:"amount"`
	Key      chain.KeyRef  `json:"key,omitempty"` // of an address of ours
}

func lineOf(b *keys.Binding, now time.Time) Line {
	l := Line{
		Time: now.UTC(), Network: b.Network, Intent: b.Intent, Attempt: b.Attempt,
		Payload: hex.EncodeToString(b.Payload[:]), Spends: b.Slots, Cost: b.Cost,
		Tx: b.Tx, Orders: b.Orders, Endings: b.Endings,
	}
	for _, o := range b.Pays {
		l.Pays = append(l.Pays, Paid{To: o.To, Currency: o.Currency, Amount: o.Amount})
	}
	for _, o := range b.Keeps {
		l.Keeps = append(l.Keeps, Paid{To: o.To, Currency: o.Currency, Amount: o.Amount, Key: o.Key})
	}
	return l
}

// binding is what a line was written of. It was signed, so that nothing of it is refused.
func (l *Line) binding() (keys.Binding, error) {
	b := keys.Binding{
		Network: l.Network, Intent: l.Intent, Attempt: l.Attempt, Slots: l.Spends, Cost: l.Cost, Tx: l.Tx, Orders: l.Orders, Endings: l.Endings, Unproved: true,
	}
	if len(l.Orders) == 0 && len(l.Pays) > 0 {
		b.Orders = []string{l.Intent} // an earlier version named none
	}
	payload, err := hex.DecodeString(l.Payload)
	if err != nil || len(payload) != len(b.Payload) || len(b.Slots) == 0 {
		return b, fmt.Errorf("%w: line %d is no signature", ErrLog, l.Number)
	}
	b.Payload = [32]byte(payload)
	for _, p := range l.Pays {
		b.Pays = append(b.Pays, chain.Output{To: p.To, Currency: p.Currency, Amount: p.Amount})
	}
	return b, nil
}

// Log is the file of what was signed: JSON, one Line each. One process at a time may have
// it open.
type Log struct {
	path string
	mu   sync.Mutex
	file file // nil after a failed write: the next one reads the file again
	head head
	torn int64 // bytes of a line that a crash cut off, taken away when it was opened
}

// file is what is done with an open log.
type file interface {
	io.WriteCloser
	Sync() error
}

// head is where a log ends.
type head struct {
	Lines int64
	Hash  [sha256.Size]byte
	End   int64 // bytes of whole lines
}

// OpenLog opens a log or makes it. The end of a line that a crash cut off is taken away:
// nothing of it was handed out. The error wraps ErrLog where another line was changed.
func OpenLog(path string) (*Log, error) {
	l := &Log{path: path}
	return l, l.open()
}

func (l *Log) open() error {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err = lock(f); err == nil {
		l.head, err = readLog(f, nil)
	}
	var size int64
	if err == nil {
		size, err = f.Seek(0, io.SeekEnd)
	}
	if l.torn = size - l.head.End; err == nil && l.torn > 0 {
		err = f.Truncate(l.head.End)
	}
	if err == nil {
		err = errors.Join(f.Sync(), syncDir(filepath.Dir(l.path)))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file = f
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readLog checks every whole line, and gives it to each.
func readLog(r io.Reader, each func(*Line) error) (h head, err error) {
	for in := bufio.NewReader(r); ; {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return h, nil // what has no end was cut off
		}
		if err != nil {
			return h, err
		}
		text = text[:len(text)-1]
		var l Line
		if err := json.Unmarshal(text, &l); err != nil || l.Number != h.Lines+1 || l.Before != hex.EncodeToString(h.Hash[:]) {
			return h, fmt.Errorf("%w: line %d does not follow from the one before", ErrLog, h.Lines+1)
		}
		if each != nil {
			if err := each(&l); err != nil {
				return h, err
			}
		}
		h = head{h.Lines + 1, sha256.Sum256(text), h.End + int64(len(text)) + 1}
	}
}

// append writes lines and returns when they are on the disk.
func (l *Log) append(lines []Line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		if err := l.open(); err != nil {
			return fmt.Errorf("signerd: log: %w", err)
		}
	}
	next := l.head
	var text bytes.Buffer
	for i := range lines {
		lines[i].Number, lines[i].Before = next.Lines+1, hex.EncodeToString(next.Hash[:])
		one, err := json.Marshal(&lines[i])
		if err != nil {
			return fmt.Errorf("signerd: log: %w", err)
		}
		text.Write(one)
		text.WriteByte('\n')
		next = head{next.Lines + 1, sha256.Sum256(one), next.End + int64(len(one)) + 1}
	}
	_, err := l.file.Write(text.Bytes())
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		err = errors.Join(err, l.file.Close())
		l.file = nil
		return fmt.Errorf("signerd: log: %w", err)
	}
	l.head = next
	return nil
}

// ends is where the log ends; ok is false after a write that failed.
func (l *Log) ends() (h head, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head, l.file != nil
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// missing finds what the log has and a registry has not: an older copy was put back. It
// looks for every attempt: the last line may be of one that was asked again.
func (l *Log) missing(ctx context.Context, s storage.Store) error {
	const lot = 500
	said := map[chain.Network]map[string]string{} // payloads by attempt
	look := func(n chain.Network) error {
		rows, err := s.Rows(ctx, keys.SignedAttempts.Table, storage.Keys(storage.Network(string(n)), slices.Collect(maps.Keys(said[n]))...)...)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if keys.SignedAttempts.Value(r).Payload == said[n][r.ID] {
				delete(said[n], r.ID)
			}
		}
		for attempt := range said[n] {
			return fmt.Errorf("%w: it lacks attempt %s of %s, which the log has", ErrRegistry, attempt, n)
		}
		delete(said, n)
		return nil
	}
	err := l.each(func(line *Line) error {
		if said[line.Network] == nil {
			said[line.Network] = map[string]string{}
		}
		said[line.Network][line.Attempt] = line.Payload
		if len(said[line.Network]) < lot {
			return nil
		}
		return look(line.Network)
	})
	for n := range said {
		if err == nil {
			err = look(n)
		}
	}
	return err
}

func (l *Log) each(do func(*Line) error) error {
	f, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	_, err = readLog(f, do)
	return err
}

// ErrRegistry reports a registry that is older than the log.
var ErrRegistry = errors.New("signerd: the registry is older than the log: put the newest copy back, or rebuild it from the log")

// Rebuild binds and counts everything that the log has and the registry lacks. No limit
// refuses any of it. It returns how many lines it read.
func Rebuild(ctx context.Context, l *Log, s storage.Store, limits keys.Limits) (lines int64, err error) {
	return lines, l.each(func(line *Line) error {
		b, err := line.binding()
		if err != nil {
			return err
		}
		lines++
		return keys.LimitedRegistry{Store: s, Limits: boundless(limits, b), Now: func() time.Time { return line.Time }}.Bind(ctx, b)
	})
}

// boundless has the windows of limits that a binding concerns, with room for all.
func boundless(limits keys.Limits, b keys.Binding) keys.Limits {
	open := func(list []keys.Limit) []keys.Limit {
		out := []keys.Limit{{Amount: math.MaxInt64, Per: time.Minute}}
		for _, one := range list {
			out = append(out, keys.Limit{Amount: math.MaxInt64, Per: one.Per})
		}
		return out
	}
	out := keys.Limits{Pays: map[string][]keys.Limit{}, Costs: map[chain.Network][]keys.Limit{b.Network: open(limits.Costs[b.Network])}}
	for _, o := range b.Pays {
		out.Pays[o.Currency] = open(limits.Pays[o.Currency])
	}
	return out
}
