package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/examples/internal/policy"
	"github.com/cryptopay-go/cryptopay/storage"
)

// The signer in this program remembers what it has signed in a registry: in the App's store, or
// in a store of its own (CRYPTOPAY_SIGNER_STORE). A gateway that gets a store of its own for it
// takes along what the App's store has, before anything is signed.

// Marks of a registry. They are slots of the system's partition, where no network has any.
const (
	registryName   = "registry"        // the Intent is the name of the registry's own store
	registryWhole  = "registry/whole"  // in the registry's own store: nothing is taken from the App's store any more
	registryMoving = "registry/moving" // in the App's store: nothing is signed with it any more
	registryMoved  = "registry/moved"  // in the App's store: the name of the store that has all of it now
)

// checkRegistry checks the settings of a signer in this program.
func (s *settings) checkRegistry() (err error) {
	const store, ceilings = "CRYPTOPAY_SIGNER_STORE", "CRYPTOPAY_SIGNER_LIMITS"
	if s.signer.elsewhere() {
		for name, v := range map[string]string{store: s.signerStore, ceilings: s.ceilingsFile} {
			if v != "" {
				err = errors.Join(err, fmt.Errorf("%s has no place beside CRYPTOPAY_SIGNER_URL: that signer has a store and limits of its own", name))
			}
		}
		return err
	}
	if s.ceilingsFile != "" {
		if s.signerStore == "" {
			return fmt.Errorf("%s needs %s: whoever edits the App's store could edit there what is counted", ceilings, store)
		}
		if err := s.readCeilings(); err != nil {
			return fmt.Errorf("%s: %w", ceilings, err)
		}
	}
	if s.signerStore == "" {
		return nil
	}
	if err := checkDSN(store, s.signerStore); err != nil {
		return err
	}
	kind, _, _ := strings.Cut(s.signerStore, ":")
	app, _, _ := strings.Cut(s.store, ":")
	switch {
	case app == "memory" && kind != "memory":
		return fmt.Errorf("%s must be memory, as CRYPTOPAY_STORE is: the next start begins chains anew, and it would remember those before", store)
	case kind == "memory" && app != "memory":
		return fmt.Errorf("%s must not be memory: it would forget at each end what it has signed", store)
	case sameStore(s.signerStore, s.store):
		return fmt.Errorf("%s is the database of CRYPTOPAY_STORE: name another one", store)
	}
	return nil
}

// sameStore reports whether two stores are one database, as far as their names tell.
func sameStore(one, other string) bool {
	placeOf := func(dsn string) string {
		kind, rest, _ := strings.Cut(dsn, ":")
		if kind == "sqlite" {
			if path, err := filepath.Abs(rest); err == nil {
				rest = path
			}
			return kind + ":" + rest
		}
		u, err := url.Parse(dsn)
		if err != nil {
			return dsn
		}
		switch kind {
		case "postgresql":
			kind = "postgres"
		case "rediss":
			kind = "redis"
		}
		return kind + "://" + strings.ToLower(u.Host) + "/" + strings.Trim(u.Path, "/")
	}
	kind, _, _ := strings.Cut(one, ":")
	return kind != "memory" && placeOf(one) == placeOf(other)
}

// ceilingsFile is what CRYPTOPAY_SIGNER_LIMITS names: networks and currencies as a signer on
// another machine has them, with what bounds them alone.
type ceilingsFile struct {
	Networks   map[chain.Network]policy.Network `json:"networks"`
	Currencies map[string]policy.Currency       `json:"currencies"`
}

// readCeilings reads the file, and refuses limits of what is not served, and networks without one.
func (s *settings) readCeilings() error {
	text, err := os.ReadFile(s.ceilingsFile)
	if err != nil {
		return err
	}
	var file ceilingsFile
	if err := policy.Decode(text, &file); err != nil {
		return err
	}
	registry, served := s.all.Registry(), s.networks
	if s.real() {
		if registry, err = s.nodes.Registry(); err != nil {
			return err
		}
		served = nil
		for n := range s.nodes.At {
			served = append(served, n)
		}
	}
	limits, err := policy.Limits(registry, file.Networks, file.Currencies)
	if err == nil {
		err = limits.Check()
	}
	if err != nil {
		return err
	}
	known := slices.Concat(served, s.elsewhere)
	for n := range file.Networks {
		if !slices.Contains(known, n) {
			err = errors.Join(err, fmt.Errorf("networks: %s is not served", n))
		}
	}
	for code := range file.Currencies {
		if c, e := registry.Currency(code); e != nil || !slices.Contains(known, c.Network) || c.Code != code {
			err = errors.Join(err, fmt.Errorf("currencies: %s: its network is not served, or the code is written otherwise", code))
		}
	}
	for _, n := range served {
		if len(limits.Costs[n]) == 0 {
			err = errors.Join(err, fmt.Errorf("networks: %s: costs: name at least one limit: without it nothing is signed there", n))
		}
	}
	s.ceilings = &limits
	return err
}

// registry is where the signer in this program remembers what it has signed.
func (g *gateway) registry(ctx context.Context) (keys.Registry, error) {
	serves := g.s.real() && len(g.s.command) == 0
	if serves && g.s.ceilings == nil {
		g.log.WarnContext(ctx, "signer_without_limits", slog.String("action",
			"nothing bounds what the signer in this program pays: name a file of limits as CRYPTOPAY_SIGNER_LIMITS"))
	}
	if g.s.signerStore == "" {
		if serves {
			g.log.WarnContext(ctx, "signer_registry_in_store", slog.String("action",
				"whoever edits the App's store, or restores an older copy of it, edits what the signer has signed: name another database as CRYPTOPAY_SIGNER_STORE"))
		}
		here := movable{keys.StoreRegistry{Store: g.store}}
		return here, here.check(ctx)
	}
	if g.signerStore == nil {
		var err error
		if g.signerStore, err = g.openSignerStore(ctx); err != nil {
			return nil, fmt.Errorf("CRYPTOPAY_SIGNER_STORE: %w", err)
		}
	}
	if err := g.moveRegistry(ctx); err != nil {
		return nil, fmt.Errorf("CRYPTOPAY_SIGNER_STORE: %w", err)
	}
	if g.s.ceilings == nil {
		return keys.StoreRegistry{Store: g.signerStore}, nil
	}
	return keys.LimitedRegistry{Store: g.signerStore, Limits: *g.s.ceilings, Now: g.world.clock.Now}, nil
}

func (g *gateway) openSignerStore(ctx context.Context) (s storage.Store, err error) {
	if len(g.s.command) > 0 {
		s, err = findStore(g.s.signerStore)
	} else {
		s, err = makeStore(ctx, g.s.signerStore, g.s.migrate, keys.LimitTables())
	}
	if err != nil {
		return nil, err
	}
	if err := s.Open(ctx, keys.LimitTables()...); err != nil {
		if errors.Is(err, storage.ErrSchema) && !g.s.migrate && strings.HasPrefix(g.s.signerStore, "redis") {
			err = fmt.Errorf("%w: stop every process on this store, then start one with -migrate", err)
		}
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// moveRegistry takes what the App's store remembers into the signer's own, once. First it marks
// the App's store, so that no process signs with it any more: see movable.
func (g *gateway) moveRegistry(ctx context.Context) error {
	own, found, err := readMark(ctx, g.signerStore, registryName)
	if err == nil && !found && len(g.s.command) == 0 {
		own, err = setMark(ctx, g.signerStore, registryName, newName())
	}
	if err != nil {
		return err
	}
	app, _, err := readMark(ctx, g.store, registryName)
	if err != nil {
		return err
	}
	if app != "" && app == own {
		return errors.New("it is the database of CRYPTOPAY_STORE: name another one")
	}
	_, whole, err := readMark(ctx, g.signerStore, registryWhole)
	if err != nil {
		return err
	}
	moved, found, err := readMark(ctx, g.store, registryMoved)
	switch {
	case err != nil:
		return err
	case found && (moved != own || !whole):
		return errors.New("it is not the store that has what this gateway's signer has signed: name that one, or put its newest backup back")
	case found:
		return nil
	case whole:
		return g.markAgain(ctx, own)
	case len(g.s.command) > 0:
		return errors.New("it has not got yet what the App's store remembers: start the gateway first")
	}
	networks := g.s.all.Registry().Networks()
	if err := knowsAll(ctx, g.store, networks); err != nil {
		return err
	}
	if _, err := setMark(ctx, g.store, registryMoving, own); err != nil {
		return err
	}
	rows, err := copyRegistry(ctx, g.store, g.signerStore, networks)
	if err != nil {
		return err
	}
	if _, err := setMark(ctx, g.signerStore, registryWhole, own); err != nil {
		return err
	}
	if err := g.markMoved(ctx, own); err != nil {
		return err
	}
	g.log.InfoContext(ctx, "signer_registry_moved", slog.Int64("rows", rows))
	return nil
}

func (g *gateway) markMoved(ctx context.Context, own string) error {
	moved, err := setMark(ctx, g.store, registryMoved, own)
	if err == nil && moved != own {
		err = errors.New("another process names another store: all of a gateway must name the same one")
	}
	return err
}

// markAgain marks an App's store anew whose marks are gone, though the signer's store is whole. An
// interruption leaves it so, an older copy that was put back, and somebody who edits it. Nothing is copied:
// the signer would believe what such a person writes.
func (g *gateway) markAgain(ctx context.Context, own string) error {
	moving, begun, err := readMark(ctx, g.store, registryMoving)
	if err != nil {
		return err
	}
	if !begun || moving != own {
		g.log.WarnContext(ctx, "signer_registry_unmarked", slog.String("action",
			"the App's store does not say any more that the signer has a store of its own: an older copy was put back, or somebody edits it"))
	}
	if len(g.s.command) > 0 {
		return nil
	}
	n, err := lacking(ctx, g.store, g.signerStore, g.s.all.Registry().Networks())
	if err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("the App's store remembers %d rows that it lacks: somebody wrote them, or a gateway signed with the App's store again; "+
			"delete them if they are not yours, or begin with an empty store", n)
	}
	if _, err := setMark(ctx, g.store, registryMoving, own); err != nil {
		return err
	}
	return g.markMoved(ctx, own)
}

// knowsAll refuses a registry with rows of networks that are not known here: they would stay behind.
func knowsAll(ctx context.Context, from storage.Store, networks []chain.NetworkInfo) error {
	for _, t := range keys.Tables() {
		left, err := from.Count(ctx, storage.Query{Table: t})
		if err != nil {
			return err
		}
		parts := []storage.Partition{storage.System} // that of marks
		for _, n := range networks {
			parts = append(parts, storage.Network(string(n.Code)))
		}
		for _, p := range parts {
			known, err := from.Count(ctx, storage.Query{Table: t, Partition: p})
			if err != nil {
				return err
			}
			left -= known
		}
		if left > 0 {
			return fmt.Errorf("the App's store remembers %d rows of networks that are not known here: name their file as CRYPTOPAY_REGISTRY", left)
		}
	}
	return nil
}

// copyRegistry takes along what another registry lacks, and changes nothing that it has. It
// returns how many rows it has read.
func copyRegistry(ctx context.Context, from, to storage.Store, networks []chain.NetworkInfo) (rows int64, err error) {
	err = eachLot(ctx, from, networks, func(t *storage.Table, p storage.Partition, lot []storage.Row) error {
		rows += int64(len(lot))
		return putMissing(ctx, to, t, p, lot)
	})
	return rows, err
}

// lacking counts the rows of a registry that another one does not have.
func lacking(ctx context.Context, from, to storage.Store, networks []chain.NetworkInfo) (n int, err error) {
	err = eachLot(ctx, from, networks, func(t *storage.Table, p storage.Partition, lot []storage.Row) error {
		missing, err := missingOf(ctx, to, t, p, lot)
		n += len(missing)
		return err
	})
	return n, err
}

// copyLot is how many rows are read and written at once.
const copyLot = 200

// eachLot calls f with all rows of a registry.
func eachLot(ctx context.Context, from storage.Store, networks []chain.NetworkInfo, f func(t *storage.Table, p storage.Partition, lot []storage.Row) error) error {
	for _, t := range keys.Tables() {
		for _, n := range networks {
			p := storage.Network(string(n.Code))
			err := storage.Pages(ctx, from, storage.Query{Table: t, Partition: p, Limit: copyLot}, func(lot []storage.Row) error { return f(t, p, lot) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// missingOf is those of some rows that a store does not have.
func missingOf(ctx context.Context, in storage.Store, t *storage.Table, p storage.Partition, rows []storage.Row) (missing []storage.Row, err error) {
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	there, err := in.Rows(ctx, t, storage.Keys(p, ids...)...)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, r := range there {
		has[r.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r storage.Row) bool { return has[r.ID] }), nil
}

func putMissing(ctx context.Context, to storage.Store, t *storage.Table, p storage.Partition, rows []storage.Row) error {
	return storage.Decide(ctx, to, func(ctx context.Context) (storage.Change, error) {
		missing, err := missingOf(ctx, to, t, p, rows)
		if err != nil || len(missing) == 0 {
			return storage.Change{}, err
		}
		c := storage.Change{ID: "registry/" + newName(), Partition: p}
		for _, r := range missing {
			c.Put = append(c.Put, storage.Row{Table: t, ID: r.ID, Value: r.Value})
		}
		return c, nil
	})
}

func readMark(ctx context.Context, s storage.Store, mark string) (value string, found bool, err error) {
	v, _, found, err := keys.SignedSlots.One(ctx, s, storage.System, mark)
	return v.Intent, found, err
}

// setMark sets a mark that is not there yet, and returns what it is.
func setMark(ctx context.Context, s storage.Store, mark, value string) (is string, err error) {
	err = putMissing(ctx, s, keys.SignedSlots.Table, storage.System, []storage.Row{{ID: mark, Value: keys.SignedSlot{Intent: value}}})
	if err == nil {
		is, _, err = readMark(ctx, s, mark)
	}
	return is, err
}

func newName() string {
	name := make([]byte, 16)
	if _, err := random.Read(name); err != nil {
		panic(err) // the system's never fails
	}
	return fmt.Sprintf("%x", name)
}

// movable is a registry in the App's store. What it has bound is not handed out once another
// process has begun to take the registry elsewhere: that process may not have seen it.
type movable struct{ keys.StoreRegistry }

// Bind implements keys.Registry.
func (m movable) Bind(ctx context.Context, b keys.Binding) error {
	return m.BindMany(ctx, []keys.Binding{b})[0]
}

// BindMany is Bind of each.
func (m movable) BindMany(ctx context.Context, bs []keys.Binding) []error {
	errs := make([]error, len(bs))
	err := m.check(ctx) // nothing more is bound here: what is bound while it is copied may be copied in part
	if err == nil {
		errs = m.StoreRegistry.BindMany(ctx, bs)
		err = m.check(ctx)
	}
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
	return errs
}

func (m movable) check(ctx context.Context) error {
	_, found, err := readMark(ctx, m.Store, registryMoving)
	if err == nil && found {
		err = errors.New("CRYPTOPAY_SIGNER_STORE is missing: what this gateway's signer has signed is in a store of its own")
	}
	return err
}

// apart is a signer in this program with a registry in a store of its own.
type apart struct {
	*keys.Signer
	store storage.Store
	name  string // of the store
}

// Ping implements chain.Pinger: without its registry it signs nothing.
func (a apart) Ping(ctx context.Context) error {
	name, _, err := readMark(ctx, a.store, registryName)
	if err == nil && name != a.name {
		err = errors.New("it is another one than at the start, or was emptied: stop every process, and put its newest backup back")
	}
	if err != nil {
		return fmt.Errorf("the signer's store: %w", err)
	}
	return nil
}
