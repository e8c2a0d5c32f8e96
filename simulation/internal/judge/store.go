package judge

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// A host may give a Store of its own, so what passes there is public: a Change with its
// legs and the versions of its rows, and the names of accounts. The judge adds the legs
// up in books of its own and reads no row's content. No view shows a wrong booking that
// the next one puts right, so this is where it is seen.

// record is what the store was told, as the judge has counted it.
type record struct {
	changes  map[string]bool // by partition and id
	posted   map[string]bool // by partition and id of the Tx
	versions map[place]int64
	lines    map[storage.Partition]map[string]Booked // by account and coin: "wallet/master/ETH"
	credits  map[string]credit                       // that stand, by network, transaction and place: "ETH/hash:0"
	topups   map[string]credit                       // the operator's own, in the same way
	owed     map[string]int64                        // by deposit: what its reversal left its wallet owing
	aside    map[string]int64                        // for gas, by merchant and coin
	costs    map[string]int64                        // by network and transaction: "ETH/hash"
	losses   map[string]int64                        // by landing: "ETH/hash", and "ETH/hash/1" where it landed again
}

// credit is a transfer that was booked for a merchant: to a wallet or to suspense.
type credit struct {
	part  storage.Partition
	coin  string
	units int64
	back  bool // a person has paid it back, outside
}

// Find looks up a transfer on the branch that counts now.
type Find func(network, tx string, ordinal int) (Found, bool)

// Found is a transfer with what says how final it is.
type Found struct {
	Move
	Ours  bool  // the library sent it
	Above int64 // blocks above its own
	Word  int64 // blocks above at which the network calls it final; 0 = it never does
}

// place is where a row is.
type place struct {
	table *storage.Table
	part  storage.Partition
	id    string
}

// Booked is what an account has of a coin, in the books.
type Booked struct{ Posted, Held int64 }

func newRecord() *record {
	return &record{
		changes: map[string]bool{}, posted: map[string]bool{}, versions: map[place]int64{}, lines: map[storage.Partition]map[string]Booked{},
		credits: map[string]credit{}, topups: map[string]credit{}, costs: map[string]int64{}, losses: map[string]int64{}, owed: map[string]int64{}, aside: map[string]int64{},
	}
}

// Reopened is told that a store begins: at first, or put back to an older moment, from
// which it will be told everything anew.
func (j *Judge) Reopened() { j.record = newRecord() }

// Committed is told of a Change that the store has taken. deep says that blocks which
// were final may be taken back, find looks at the chains.
func (j *Judge) Committed(c *storage.Change, deep bool, find Find) {
	key := string(c.Partition) + "\x00" + c.ID
	if j.again(c, key) {
		return
	}
	j.record.changes[key] = true
	for i := range c.Require {
		g := &c.Require[i]
		have := j.record.versions[place{g.Table, c.Partition, g.ID}]
		j.ask("I15", true, have == g.Version, "change %s relied on %s %s at version %d, it stands at %d", c.ID, g.Table.Name, g.ID, g.Version, have)
	}
	for i := range c.Drop {
		delete(j.record.versions, place{c.Drop[i].Table, c.Partition, c.Drop[i].ID})
	}
	for i := range c.Put {
		p := &c.Put[i]
		at := place{p.Table, c.Partition, p.ID}
		have := j.record.versions[at]
		j.ask("I15", true, have == p.Version, "change %s wrote %s %s on version %d, it stood at %d", c.ID, p.Table.Name, p.ID, p.Version, have)
		j.record.versions[at] = p.Version + 1
	}
	if len(c.Tell) > 0 {
		j.record.versions[place{storage.Streams.Table, c.Partition, storage.StreamID}]++
	}
	for i := range c.Post {
		j.posted(c.Partition, &c.Post[i], deep)
		j.entered(c.Partition, &c.Post[i], deep, find)
	}
	j.repaid(c)
}

// repaid is that a deposit which is back repays what its reversal left its wallet owing, as
// far as it brings so much, in the same Change.
func (j *Judge) repaid(c *storage.Change) {
	brought, paid := map[string]int64{}, map[string]int64{}
	for i := range c.Post {
		tx := &c.Post[i]
		kind, cause, _ := strings.Cut(tx.ID, "/")
		cause = string(c.Partition) + "/" + cause[:max(0, strings.LastIndexByte(cause, '/'))]
		for _, l := range tx.Legs {
			_, wallet := l.Account.WalletID()
			switch {
			case kind == "reverse" && l.Account.Owed():
				j.record.owed[cause] -= int64(l.Delta)
			case kind == "credit" && wallet:
				brought[cause] += int64(l.Delta)
			case kind == "recover" && l.Account.Owed():
				paid[cause] += int64(l.Delta)
			}
		}
	}
	for _, cause := range sorted(brought) {
		owed := j.record.owed[cause]
		j.ask("repaid", owed > 0, paid[cause] == min(owed, brought[cause]), "%s is back with %d, owed %d and repays %d", cause, brought[cause], owed, paid[cause])
		j.record.owed[cause] -= paid[cause]
	}
}

// again reports whether a Change was there already: nothing of it is news.
func (j *Judge) again(c *storage.Change, key string) bool {
	if !j.record.changes[key] {
		return false
	}
	for i := range c.Put {
		if j.record.versions[place{c.Put[i].Table, c.Partition, c.Put[i].ID}] != c.Put[i].Version {
			return true
		}
	}
	return len(c.Put) == 0 // else the id was used before, for something else
}

// Claimed is told of the rows that a claim gave: nobody else may write on what they were.
func (j *Judge) Claimed(rows []storage.Row) {
	for i := range rows {
		at := place{rows[i].Table, rows[i].Partition, rows[i].ID}
		have := j.record.versions[at]
		j.ask("I15", true, rows[i].Version == have+1, "a claim of %s %s gave version %d after %d", at.table.Name, at.id, rows[i].Version, have)
		j.record.versions[at] = rows[i].Version
	}
}

// Edited is told of a row that somebody wrote past the library, and of its version now.
func (j *Judge) Edited(row *storage.Row, version int64) {
	j.record.versions[place{row.Table, row.Partition, row.ID}] = version
}

// posted adds a Tx to the books: I1, I3, and I4 as far as the house's own money goes.
func (j *Judge) posted(part storage.Partition, tx *ledger.Tx, deep bool) {
	key := string(part) + "\x00" + tx.ID
	j.ask("I1", true, !j.record.posted[key], "posting %s of %s is there twice", tx.ID, part)
	j.record.posted[key] = true
	lines, sums := j.record.lines[part], map[string]int64{}
	if lines == nil {
		lines = map[string]Booked{}
		j.record.lines[part] = lines
	}
	for _, l := range tx.Legs {
		at := string(l.Account) + "/" + string(l.Asset)
		b := lines[at]
		b.Posted, b.Held = b.Posted+int64(l.Delta), b.Held+int64(l.Hold)
		lines[at] = b
		sums[string(l.Asset)] += int64(l.Delta)
		_, wallet := l.Account.WalletID()
		j.ask("I3", wallet || l.Account == ledger.Suspense, b.Held >= 0 && b.Posted >= b.Held,
			"%s left %s of %s at %d with %d held", tx.ID, l.Asset, l.Account, b.Posted, b.Held)
	}
	for _, asset := range sorted(sums) {
		j.ask("I1", true, sums[asset] == 0, "%s does not balance: %d of %s", tx.ID, sums[asset], asset)
		house := house(lines, asset)
		j.ask("I4-house", !deep && j.coin(asset).Native, house >= 0, "%s left the house of %s with %d of %s: gas spent merchants' coins", tx.ID, part, house, asset)
	}
}

// house is what the operator has of a coin in a merchant's books.
func house(lines map[string]Booked, asset string) (sum int64) {
	for _, a := range []ledger.Account{ledger.FeesPlatform, ledger.FeesNetwork, ledger.Float, ledger.Adjustment} {
		sum += lines[string(a)+"/"+asset].Posted
	}
	return sum
}

// stored is I2: each balance that the store has is the sum of the legs that it was told.
func (j *Judge) stored(shop *Shop) {
	want := j.record.lines[storage.Tenant(shop.ID)]
	for _, at := range sorted(want) {
		j.ask("I2", true, shop.Books[at] == want[at], "%s of %s is %v, its entries make %v", at, shop.ID, shop.Books[at], want[at])
	}
	for _, at := range sorted(shop.Books) {
		_, known := want[at]
		j.ask("I2", !known, shop.Books[at] == Booked{}, "%s of %s is %v, and nothing was posted there", at, shop.ID, shop.Books[at])
	}
}

// entered is I5 where it happens. The ledger's page names each Tx by its cause: what is
// credited is one transfer, final on the chain, in its coin and its amount.
func (j *Judge) entered(part storage.Partition, tx *ledger.Tx, deep bool, find Find) {
	kind, cause, _ := strings.Cut(tx.ID, "/")
	switch kind {
	case "undone":
		if lost, less := strings.CutPrefix(cause, "less/"); less {
			j.loses(tx, lost, true)
			return
		}
		cause = costOf(strings.TrimPrefix(cause, "cost/"))
		_, there := j.record.costs[cause]
		j.ask("cost", true, there && j.record.costs[cause] == -chainLeg(tx).units, "%s takes back what %s did not cost", tx.ID, cause)
		delete(j.record.costs, cause)
		return
	case "less":
		j.loses(tx, cause, false)
		return
	case "cost":
		cause = costOf(cause)
		_, again := j.record.costs[cause]
		j.ask("cost", true, !again, "what %s cost is booked twice", cause)
		j.record.costs[cause] = chainLeg(tx).units
		return
	case "resolve":
		id := cause[:max(0, strings.LastIndexByte(cause, '/'))]
		if in, ok := j.record.credits[id]; ok && tx.Kind == ledger.KindRefund {
			in.back = true
			j.record.credits[id] = in
		}
		return
	case "credit", "reverse", "topup", "topup-reverse":
	default:
		return
	}
	cause = cause[:max(0, strings.LastIndexByte(cause, '/'))] // without the generation
	network, at, _ := strings.Cut(cause, "/")
	hash, place, _ := strings.Cut(at, ":")
	booked := j.record.credits
	if strings.HasPrefix(kind, "topup") {
		booked = j.record.topups
	}
	_, there := booked[cause]
	if strings.HasSuffix(kind, "reverse") {
		j.ask("I5-once", true, there, "%s takes back what is not booked", tx.ID)
		delete(booked, cause)
		return
	}
	j.ask("I5-once", true, !there, "%s books what is booked", tx.ID)
	in := chainLeg(tx)
	in.units = -in.units
	in.part = part
	booked[cause] = in
	ordinal, err := strconv.Atoi(place)
	m, ok := find(network, hash, ordinal)
	coin := j.coin(in.coin)
	final := m.Above >= coin.Confirmations-1 && (!coin.WaitFinal || m.Above >= m.Word)
	j.ask("I5", !deep, err == nil && ok && final && m.Coin == in.coin && coin.units(m.Amount) == in.units,
		"%s books %s %s, and its chain has %s %s there with %d blocks above it", tx.ID, coin.whole(in.units), in.coin, m.Amount, m.Coin, m.Above)
	j.ask("I5-own", !deep, !m.Ours || kind != "topup", "%s books what we sent ourselves as the operator's", tx.ID)
}

// loses is that what a move of our own lost is booked once for a landing, and taken back as it was booked.
func (j *Judge) loses(tx *ledger.Tx, landing string, back bool) {
	was, there := j.record.losses[landing]
	units := chainLeg(tx).units
	if back {
		j.ask("loss", true, there && was == -units, "%s takes back what was not lost", tx.ID)
		delete(j.record.losses, landing)
		return
	}
	j.ask("loss", true, !there && units > 0, "%s books what is booked, or a gain", tx.ID)
	j.record.losses[landing] = units
}

// costOf is the network and the hash of a posting of what a transaction cost, without the number of
// one that lands again.
func costOf(cause string) string {
	at := strings.LastIndexByte(cause, '/')
	if _, err := strconv.Atoi(cause[at+1:]); err == nil && strings.Count(cause, "/") > 1 {
		return cause[:at]
	}
	return cause
}

// chainLeg is what a Tx moves on a chain: − what came.
func chainLeg(tx *ledger.Tx) (out credit) {
	for _, l := range tx.Legs {
		if strings.HasPrefix(string(l.Account), "chain/") {
			out.coin, out.units = string(l.Asset), out.units+int64(l.Delta)
		}
	}
	return out
}

// synced is I6 and the rest of I5: when all is quiet the books have what a fresh look at
// the chain would find, transfer by transfer, whatever reorgs there were.
func (j *Judge) synced(s *Scene, c *Chain) {
	given := map[string]bool{}
	for i := range s.Shops {
		for k := range s.Shops[i].Payments {
			p := &s.Shops[i].Payments[k]
			given[p.Address] = given[p.Address] || j.coin(p.Coin).Network == c.Network
		}
		for k := range s.Shops[i].Addresses {
			a := &s.Shops[i].Addresses[k]
			given[a.Address] = given[a.Address] || a.Network == c.Network
		}
	}
	there := map[string]bool{}
	for i := range c.Moves {
		m := &c.Moves[i]
		coin := j.coin(m.Coin)
		id := fmt.Sprintf("%s/%s:%d", c.Network, m.Tx, m.Ordinal)
		there[id] = true
		if m.Coin == "" || !given[m.To] || m.Amount.LessThan(coin.Dust) || coin.units(m.Amount) == 0 || c.inner(j, s, *m) || c.Height-m.Height < max(coin.Confirmations-1, c.Word) {
			continue
		}
		_, booked := j.record.credits[id]
		j.ask("I6", true, booked, "%s %s came for good as %s to %s, and no book has it", m.Amount, m.Coin, id, m.To)
	}
	for _, id := range sorted(j.record.credits) {
		if strings.HasPrefix(id, c.Network+"/") && !j.record.credits[id].back {
			j.ask("I6", true, there[id], "%s is booked, and the chain does not have it", id)
		}
	}
}

// costs is that each transaction of ours that landed is booked once, at what the network
// took for it.
func (j *Judge) costs(s *Scene, c *Chain) {
	booked := map[string]int64{}
	for id, units := range j.record.costs {
		if hash, here := strings.CutPrefix(id, c.Network+"/"); here {
			booked[hash] = units
		}
	}
	calm := !s.Weather.Restored && !c.Blind && c.Undone < 2 // what had failed for good may land by the second fork
	for _, t := range c.Sent {
		have, ok := booked[t.Tx]
		j.ask("cost", calm, ok && have == t.Cost, "%s cost %d on %s, and %d is booked (%t)", t.Tx, t.Cost, c.Network, have, ok)
		delete(booked, t.Tx)
	}
	for _, hash := range sorted(booked) {
		j.ask("cost", calm, false, "a cost of %d on %s is booked for %s, which is in no block", booked[hash], c.Network, hash)
	}
}

// verified is that the library, asked to prove its own books, finds nothing wrong.
func (j *Judge) verified(shop *Shop) {
	j.ask("verify", shop.Verified, len(shop.Findings) == 0, "the books of %s: %s", shop.ID, strings.Join(shop.Findings, "; "))
}

// SetAside is told what is set aside for gas of a merchant's coin, whenever that changes:
// it has to be there. excused says that who sets it aside has slept over his decision: a
// cost that was booked meanwhile is set aside still.
func (j *Judge) SetAside(shop, coin string, units int64, excused bool) {
	key := shop + "/" + coin
	before := j.record.aside[key]
	j.record.aside[key] = units
	have := house(j.record.lines[storage.Tenant(shop)], coin)
	j.ask("I4-aside", units > before && !excused, units <= have, "%s sets %d %s aside for gas, and has %d", shop, units, coin, have)
}
