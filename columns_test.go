package cryptopay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// classes says of every column what an edit of it in the database could do. A table or a
// column that is declared anew fails TestFS02_EveryColumnHasAClass until it has a class here.
//
//   - authority: an edit could move money or grant rights, so a MAC covers the column, or it
//     is derived again or compared before it counts. The edited row pays nothing and grants
//     nothing, and Verify names it.
//   - witness: what a chain, the ledger or a person said. An edit can credit or show what is
//     not so. Holds, seals of journals, reconciliation and the signer's own limits bound it.
//   - bookkeeping: an edit may delay or show something wrong. It never pays.
var classes = map[string]struct{ authority, witness, bookkeeping string }{
	"idempotency":     {bookkeeping: "fingerprint response created_at"},
	"activity":        {authority: "kind status currency amount fee net address", bookkeeping: "tx_hash reference created_at updated_at metadata"},
	"counters":        {bookkeeping: "value"},
	"stream_events":   {bookkeeping: "kind object at data"},
	"streams":         {bookkeeping: "last"},
	"consumers":       {bookkeeping: "since created_at"},
	"consumer_places": {bookkeeping: "consumer seen tries error updated_at"},
	"dead_letters":    {bookkeeping: "consumer number object kind error at"},
	"seals":           {authority: "number sealed_at ranges marks hash mac audit audit_hash"},
	"seal_heights":    {authority: "account asset seq"},
	"sightings": {
		witness:     "network tx ordinal generation state address tenant purpose currency contract exact amount height block_hash block_time final_at internal unproven",
		bookkeeping: "from_address memo first_seen inherited_from spends forward forward_tx forward_fee",
	},
	"addresses":           {authority: "key_ref", witness: "tenant", bookkeeping: "seq key_index use_for created_at watch_until"},
	"holdings":            {witness: "amount nonce height"},
	"cursors":             {witness: "trail head final tip_read head_time halted"},
	"asset_halts":         {witness: "reason since"},
	"forks":               {bookkeeping: "height time"},
	"halts":               {witness: "halts"},
	"operations":          {authority: "kind actor reason network tenant object state_before state_after at copied number previous hash"},
	"audit_heads":         {authority: "number hash mac"},
	"withdrawal_waits":    {bookkeeping: "tenant reason since event_seq alerted"},
	"unlisted":            {bookkeeping: "contract coins"},
	"missing":             {bookkeeping: "since"},
	"intents":             {authority: "purpose tenant network currency from_address from_key to_address memo amount all_funds mandate plan", witness: "max_cost state reserved undone", bookkeeping: "confirmations reason attempts tx nonce filling reached tries endings bump_at created_at updated_at"},
	"attempts":            {witness: "intent number tenant purpose raw nonce spends outputs coins change_to fee max_cost cost fate rejected", bookkeeping: "stored_at sent_at"},
	"looks":               {witness: "watch_until base_height base_cut reading spots earlier", bookkeeping: "looked_at waits waits_since"},
	"differences":         {bookkeeping: "network tenant address currency kind amount held height since looked_at halted"},
	"look_places":         {bookkeeping: "seq final_at earlier_seq"},
	"reservations":        {witness: "intent", bookkeeping: "at"},
	"nonces":              {witness: "next_nonce holder"},
	"coins":               {witness: "tenant address key_ref amount state intent"},
	"outcomes":            {witness: "intent purpose tenant network currency state reason tx confirmations amount cost cost_tx undone", bookkeeping: "at batch"},
	"rides":               {witness: "carrier"},
	"payments":            {authority: "address", witness: "status network currency token scale price_amount price_currency amount_crypto tolerance rate usd_rate is_fixed_rate is_fee_paid_by_user fee_percent network_fee received net platform network_taken received_value live wallet expires_at closed cancelled watched_until", bookkeeping: "address_id slot payment_id payment_type tx_hash confirmations wallet_ref order_id order_description callback_url custom_id customer_email created_at updated_at confirmed_at events"},
	"deposits":            {witness: "payment role booking state proven given_up network address tx ordinal generation currency contract exact amount rate weight wallet net platform network_taken owed height block_time confirmations fact_version merged screen held_as", bookkeeping: "told screen_reason screened_at screen_next screen_told deposit_id from_address memo first_seen forward forward_tx forward_fee created_at updated_at"},
	"permanent_addresses": {authority: "address", witness: "network wallet retired_at", bookkeeping: "address_id external_id wallet_ref callback_url created_at updated_at"},
	"withdrawals":         {authority: "tenant wallet currency network address memo sent_memo requested amount status review stage mandate approval requested_by decisions", witness: "platform_fee network_fee max_cost frozen delivered counter", bookkeeping: "custom_id token amount_rank tx confirmations required_confirmations batch_id callback_url waiting waiting_since reason outcome_at event_seq created_at updated_at processed_at completed_at"},
	"payouts":             {bookkeeping: "withdrawals created_at"},
	"policies":            {authority: "number rules actor reason at seal"},
	"policy_uses":         {witness: "slots", bookkeeping: "rule at"},
	"policy_destinations": {authority: "network address memo actor reason at removed_at seal"},
	"refunds":             {authority: "payment amount currency network scale wallet claim expires_at requested_by seal", bookkeeping: "deposit withdrawal status address memo reason waiting waiting_since failure callback_url event_seq created_at updated_at"},
	"tenants":             {witness: "transaction_fee fee_paid_by_user withdrawal_percent withdrawal_flat withdrawal_flats", bookkeeping: "name created_at updated_at"},
	"wallets":             {witness: "closed", bookkeeping: "number name external_id external_key created_at updated_at"},
	"transfers":           {witness: "wallet external_id transfer_type currency amount status", bookkeeping: "error callback_url event_seq created_at updated_at completed_at"},
	"wallet_sequences":    {bookkeeping: "last_number"},

	"refill_proposals":     {authority: "proposal_id number tenant network currency from_address to_address amount fee inputs outputs payload tx seal requested_by expires_at", witness: "status raw", bookkeeping: "reason created_at updated_at"},
	"house_payments":       {authority: "payment_id tenant source network currency address memo amount requested_by mandate", witness: "status stage max_cost", bookkeeping: "all_funds waiting waiting_since waits_long reason tx outcome_at created_at updated_at completed_at"},
	"gas_floats":           {witness: "asset reserved in_flight", bookkeeping: "lacking"},
	"gas_reservations":     {witness: "asset amount open undone", bookkeeping: "since counted"},
	"topups":               {witness: "tx currency amount"},
	"sweeps":               {authority: "address", witness: "tenant network key_ref currency deposits state fundings tx", bookkeeping: "reason created_at"},
	"sweep_notes":          {bookkeeping: "tenant address currency amount waiting since next due_below tries spent sent max_cost gas gas_cost payout allowed alerted"},
	"treasury_holdings":    {witness: "tenant place holder name external_id active network currency amount read_at"},
	"events":               {bookkeeping: "type object seq url body created_at status attempts response error done_at"},
	"webhook_settings":     {authority: "generation sealed previous", witness: "url", bookkeeping: "previous_end events shown masked created_at updated_at"},
	"listings":             {authority: "network contract decimals scale"},
	"minimums":             {bookkeeping: "at samples least"},
	"fingerprints":         {authority: "sum"},
	"abilities":            {witness: "on", bookkeeping: "since"},
	"signed_attempts":      {witness: "intent payload tx slots"}, // of the signer: to be kept in a store of its own
	"signed_slots":         {witness: "intent"},
	"signed_orders":        {witness: "live"},
	"signed_charges":       {witness: "counted"},
	"signed_windows":       {witness: "steps"},
	"signed_signatures":    {bookkeeping: "signatures"},
	"applications":         {authority: "number tenant name scopes role secret_hash masked_secret secret_made created_at seal"},
	"access_tokens":        {authority: "client_id application scopes revoked created_at expires_at seal"},
	"api_keys":             {authority: "key_id tenant name scopes role masked_key created_at seal"},
	"application_sequence": {bookkeeping: "last_number"},
}

func TestFS02_EveryColumnHasAClass(t *testing.T) {
	t.Parallel()
	tables := map[string]bool{}
	for _, table := range slices.Concat(cryptopay.Tables(), keys.LimitTables(), auth.Tables()) {
		tables[table.Name] = true
		of := classes[table.Name]
		listed := strings.Fields(of.authority + " " + of.witness + " " + of.bookkeeping)
		var declared []string
		for _, c := range table.Columns {
			declared = append(declared, c.Name)
		}
		slices.Sort(listed)
		slices.Sort(declared)
		require.Equal(t, declared, listed, "table %s: give every column one class in classes", table.Name)
	}
	for name := range classes {
		require.True(t, tables[name], "table %s is not declared", name)
	}
}

// insiders are those of a database that others can write to.
func insiders(t *testing.T, f func(t *testing.T, i *insider)) {
	insidersOf(t, "USDTERC20", f)
}

// insidersOf are insiders whose merchant has a currency.
func insidersOf(t *testing.T, currency string, f func(t *testing.T, i *insider)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, newInsider(t, currency))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		skipServer(t)
		dsn := onPostgres(t)
		store, err := postgres.Open(dsn, postgres.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		i := newInsiderOn(t, currency, store, "pgx", dsn)
		i.slow = true
		f(t, i)
	})
}

// change edits one column of one row, and returns what puts it back; ok is false where the
// database itself refuses.
func (i *insider) change(table *storage.Table, id, column string) (undo func(), ok bool) {
	i.t.Helper()
	c, found := table.Column(column)
	require.True(i.t, found)
	name := `cryptopay_` + table.Name
	var was any
	require.NoError(i.t, i.db.Get(&was, i.db.Rebind(`SELECT "`+column+`" FROM `+name+` WHERE id = ?`), id))
	if b, bytes := was.([]byte); was == nil || bytes && len(b) == 0 { // as a driver reads bytes that are empty
		was = []byte{}
	}
	now := was
	switch v := was.(type) {
	case int64:
		now = v + 1
		if c.Kind == storage.Bool {
			now = 1 - v
		}
	case bool:
		now = !v
	case []byte:
		now = append([]byte("x"), v...)
	case string:
		now = v + "x"
		if strings.HasSuffix(column, "address") {
			now = string(i.thief)
		}
	}
	if c.Kind == storage.JSON {
		was, now = fmt.Sprintf("%s", was), "null"
		if was == "null" {
			now = "[]"
		}
	}
	set := `UPDATE ` + name + ` SET "` + column + `" = ? WHERE id = ?`
	if !i.edit(set, now, id) {
		return nil, false
	}
	return func() { i.t.Helper(); i.edit(set, was, id) }, true
}

// copies writes a row again under another id, and returns what takes it away; ok is false where
// the database itself refuses.
func (i *insider) copies(table *storage.Table, id, as string) (undo func(), ok bool) {
	i.t.Helper()
	columns := []string{"part", "version", "change_id", "due", "lease", "claims"}
	for _, c := range table.Columns {
		columns = append(columns, `"`+c.Name+`"`)
	}
	name, list := "cryptopay_"+table.Name, strings.Join(columns, ", ")
	_, err := i.db.Exec(i.db.Rebind("INSERT INTO "+name+" (id, "+list+") SELECT ?, "+list+" FROM "+name+" WHERE id = ?"), as, id)
	return func() { i.t.Helper(); i.drops(table.Name, as) }, err == nil
}

// finds reports whether Verify names an object, or cannot read its row.
func (i *insider) finds(id string) bool {
	i.t.Helper()
	r, err := i.app.VerifyTenant(i.t.Context(), i.tenant)
	return err != nil && strings.Contains(err.Error(), id) || strings.Contains(fmt.Sprint(r.Contradictions, r.Unexplained), id)
}

// Every column of a withdrawal, of its line of the history and of its order is edited, before
// anything is reserved. Nobody but the recipient gets anything, and he gets what was ordered
// at most. An edited authority is named by Verify for as long as it keeps the payout back, and the
// host hears of it: at once, or as of what waits for long.
func TestFS02_EveryColumnOfAnOrderIsEdited(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		world := i.chains["ETH"]
		usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
		require.NoError(t, err)
		kept := map[string]bool{}
		var silent []string
		n := 0
		for _, at := range []struct {
			table  *storage.Table
			handed bool
		}{{withdrawal.Withdrawals.Table, false}, {storage.Activities.Table, false}, {outgoing.Intents.Table, true}} {
			of := classes[at.table.Name]
			for _, column := range strings.Fields(of.authority + " " + of.witness + " " + of.bookkeeping) {
				n++
				name := at.table.Name + "." + column
				to := world.Customer(fmt.Sprint("supplier ", n))
				w := i.withdraw("USDTERC20", "10", to)
				if at.handed {
					_, err := i.app.Withdrawals.Step(t.Context())
					require.NoError(t, err)
				}
				undo, ok := i.change(at.table, w.ID, column)
				i.work(3)
				got := world.Balance(to, "USDTERC20")
				require.Zero(t, world.Balance(i.thief, "USDTERC20").Sign(), name)
				require.True(t, got.IsZero() || got.Equal(usdt.Decimal(w.Amount)), "%s: %s", name, got)
				if got.IsZero() && ok && slices.Contains(strings.Fields(of.authority), column) {
					kept[name] = true
					require.True(t, i.finds(w.ID), "%s: Verify names it", name)
					heard := func() bool { return i.told[w.ID] || strings.Contains(i.log.heard(), w.ID) }
					if !heard() { // at once, or as what waits for long
						i.clock.Advance(16 * time.Minute)
						i.work(2)
					}
					if !heard() {
						silent = append(silent, name)
					}
				}
				if !ok {
					continue
				}
				if got.IsZero() {
					undo()
				}
			}
		}
		for _, name := range []string{
			"withdrawals.tenant", "withdrawals.wallet", "withdrawals.currency", "withdrawals.network", "withdrawals.address", "withdrawals.sent_memo",
			"withdrawals.status", "withdrawals.mandate", "activity.kind", "activity.status", "activity.currency", "activity.amount", "activity.fee", "activity.net", "activity.address",
			"intents.purpose", "intents.tenant", "intents.currency", "intents.from_address", "intents.from_key", "intents.to_address", "intents.memo", "intents.amount", "intents.all_funds", "intents.mandate",
		} {
			require.True(t, kept[name], "%s keeps the payout back: %v", name, kept)
		}
		require.Greater(t, n, 70)
		require.Empty(t, silent, "the host hears of each")
	})
}

// A row that is deleted is paid nothing by, and one that is copied under another id neither.
func TestFS02_RowsOfAnOrderAreDeletedAndCopied(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		world := i.chains["ETH"]
		for n, table := range []*storage.Table{withdrawal.Withdrawals.Table, storage.Activities.Table, outgoing.Intents.Table} {
			to := world.Customer(fmt.Sprint("supplier ", n))
			w := i.withdraw("USDTERC20", "10", to)
			if table == outgoing.Intents.Table {
				_, err := i.app.Withdrawals.Step(t.Context())
				require.NoError(t, err)
			}
			i.edit("DELETE FROM cryptopay_"+table.Name+" WHERE id = ?", w.ID)
			i.work(5)
			require.Zero(t, world.Balance(to, "USDTERC20").Sign(), table.Name)
			r, err := i.app.VerifyTenant(t.Context(), i.tenant)
			require.NoError(t, err)
			require.False(t, r.Sound(), table.Name)
			if table == outgoing.Intents.Table { // then it waits for its outcome: who looks at what is open finds it
				i.clock.Advance(time.Hour)
				i.work(2)
				require.True(t, i.told[w.ID], "the host is told")
				require.Contains(t, i.log.heard(), "msg=order_altered")
			}
		}
		to := world.Customer("copied")
		w := i.withdraw("USDTERC20", "10", to)
		for _, table := range []*storage.Table{withdrawal.Withdrawals.Table, storage.Activities.Table} {
			_, ok := i.copies(table, w.ID, "copy")
			require.True(t, ok, table.Name)
		}
		i.work(40)
		usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
		require.NoError(t, err)
		require.Equal(t, usdt.Decimal(w.Amount).String(), world.Balance(to, "USDTERC20").String(), "once")
		i.named("copy")
	})
}

// everything makes rows of every table that has an authority, and seals the journal.
func (i *insider) everything() {
	t, world, ctx := i.t, i.chains["ETH"], i.t.Context()
	t.Helper()
	for range 2 { // with a secret of before
		_, _, err := i.app.Webhooks.Setup(ctx, i.tenant, "https://shop.example/hook", webhook.By{})
		require.NoError(t, err)
		_, err = i.app.Webhooks.Edit(ctx, i.tenant, webhook.Patch{Secret: ptr("a-secret-of-the-merchants-own")})
		require.NoError(t, err)
	}
	page, _, _, err := i.app.Payments.List(ctx, i.tenant, payment.Filter{Limit: 1})
	require.NoError(t, err)
	_, err = i.app.Refunds.Create(ctx, i.tenant, refund.CreateInput{Payment: page[0].ID, Amount: ptr(dec("5"))})
	require.NoError(t, err)
	_, _, err = i.app.Payments.PermanentAddress(ctx, i.tenant, payment.AddressInput{ExternalID: "ann", Currency: "USDTERC20"})
	require.NoError(t, err)
	keeper := i.beside(func(c *cryptopay.Config) { // another process of the host's pays out; it waits here as not_listed
		i.configure(c)
		c.HouseAddresses = []house.Address{{Network: "ETH", Address: world.Customer("house")}}
	})
	_, _, err = keeper.Operate.WithdrawOperatorFunds(ctx, house.Take{Tenant: i.tenant, Currency: "ETH", Amount: 1, Address: string(world.Customer("house")), Key: "k"}, because("x"))
	require.NoError(t, err)
	i.ruled(policy.Rule{Name: "large", Of: policy.KindAmount, Over: dec("1000")})
	_, _, err = i.app.Operate.AllowDestination(ctx, i.tenant, "ETH", string(world.Customer("supplier")), "", because("x"))
	require.NoError(t, err)
	i.clock.Advance(2 * time.Hour)
	i.work(2)
}

// unnamed are the tables of which Verify does not name every row that is deleted, or copied under
// another id. docs/storage.md says under "Deleted rows" what becomes of each. A copy is never read.
var unnamed = map[string][]string{
	"deleted": {
		"addresses", // the last one
		"policies",  // the first version, where a later one is in force
		"policy_destinations", "permanent_addresses", "webhook_settings", "listings", "fingerprints",
		"sweeps", // one that is done
	},
	"copied": {"audit_heads", "seal_heights", "sweeps", "webhook_settings", "listings", "fingerprints"},
}

// The authority of all other tables is edited: of addresses, payments, forwardings, secrets,
// seals, listings and fingerprints, those of orders and of credentials having tests of their
// own. Nobody but a recipient gets anything, and Verify finds it, or the next Open does. Then each
// row is deleted, and copied. On Postgres a payout is ordered for one row of each table, and one
// address of each kind is deleted.
func TestFS02_EveryOtherAuthorityIsEdited(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		world, ctx := i.chains["ETH"], t.Context()
		usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
		require.NoError(t, err)
		i.everything()
		opens := map[string]bool{"listings": true, "fingerprints": true} // what Open refuses
		rows := map[string]string{
			"addresses": "tenant <> '' AND use_for <> 'change'", "sweeps": "state <> 'done'", "listings": "id IN ('ETH', 'USDTERC20')",
		}
		others := []*storage.Table{withdrawal.Withdrawals.Table, storage.Activities.Table, outgoing.Intents.Table, refill.Proposals.Table} // each has a test of its own
		n := map[string]int{}
		for _, table := range slices.Concat(cryptopay.Tables(), keys.Tables()) {
			authority := strings.Fields(classes[table.Name].authority)
			if len(authority) == 0 || slices.Contains(others, table) {
				continue
			}
			where := "1 = 1"
			if rows[table.Name] != "" {
				where = rows[table.Name]
			}
			if table == treasury.Sweeps.Table { // one waits for lower fees
				level := world.FeeLevel()
				world.SetFeeLevel(1000 * level)
				i.pays()
				i.work(30)
				world.SetFeeLevel(level)
			}
			var ids []string
			require.NoError(t, i.db.Select(&ids, "SELECT id FROM cryptopay_"+table.Name+" WHERE "+where+" ORDER BY id LIMIT 2"))
			require.NotEmpty(t, ids, table.Name)
			for _, column := range authority {
				for at, id := range ids {
					name := fmt.Sprintf("%s.%s of %s", table.Name, column, id)
					to := world.Customer(name)
					undo, ok := i.change(table, id, column)
					require.True(t, ok, name)
					if at == 0 || !i.slow {
						w := i.withdraw("USDTERC20", "5", to)
						i.work(1)
						i.blocks(3)
						require.Zero(t, world.Balance(i.thief, "USDTERC20").Sign(), name)
						got := world.Balance(to, "USDTERC20")
						require.True(t, got.IsZero() || got.Equal(usdt.Decimal(w.Amount)), "%s: %s", name, got)
					}
					if opens[table.Name] {
						require.Error(t, i.compose(i.configure).Open(ctx, keys.Tables()...), name)
					} else {
						r, err := i.app.VerifyTenant(ctx, i.tenant)
						require.NoError(t, err)
						require.False(t, r.Sound(), name)
					}
					undo()
					n[table.Name]++
				}
			}
		}
		require.Len(t, n, 15, "%v", n)
		i.work(60)
		r, err := i.app.VerifyTenant(ctx, i.tenant)
		require.NoError(t, err)
		require.Empty(t, r.Contradictions)
		require.True(t, r.Sound(), "%+v", r)

		var silent []string
		sound := func() bool {
			all, err := i.app.Verify(ctx)
			require.NoError(t, err)
			return !slices.ContainsFunc(all, func(r cryptopay.Report) bool { return !r.Sound() })
		}
		try := func(what, table, id string, do func() (undo func(), ok bool)) {
			t.Helper()
			undo, ok := do()
			if !ok {
				return
			}
			to := world.Customer(what + table + id)
			w := i.withdraw("USDTERC20", "5", to)
			i.work(1)
			i.blocks(3)
			got := world.Balance(to, "USDTERC20")
			require.True(t, got.IsZero() || got.Equal(usdt.Decimal(w.Amount)), "%s", got)
			require.Zero(t, world.Balance(i.thief, "USDTERC20").Sign())
			if sound() {
				silent = append(silent, what+" "+table+" "+id)
			}
			undo()
		}
		for _, table := range slices.Concat(cryptopay.Tables(), keys.Tables()) {
			if n[table.Name] == 0 {
				continue
			}
			name := table.Name
			var ids []string
			require.NoError(t, i.db.Select(&ids, "SELECT id FROM cryptopay_"+name+" ORDER BY id"))
			if i.slow && table == incoming.Addresses.Table { // most are like each other
				ids = nil
				require.NoError(t, i.db.Select(&ids, "SELECT min(id) FROM cryptopay_addresses GROUP BY use_for, tenant"))
			}
			for _, id := range ids {
				try("deleted", name, id, func() (func(), bool) {
					back := i.deletes(name, "id = ?", id)
					return func() { i.drops(name, id); back() }, true
				})
				try("copied", name, id, func() (func(), bool) { return i.copies(table, id, id+"-copy") })
			}
		}
		for _, s := range silent {
			what := strings.Fields(s)
			require.Contains(t, unnamed[what[0]], what[1], s)
		}
	})
}
