package xrptest

import (
	"cmp"
	"fmt"
)

// Pay is a transaction of the outside customer's that brings XRP or an issued
// currency to an account.
type Pay struct {
	To    string // classic address
	Tag   *uint32
	Drops int64
	// Delivers is what arrives where it is less: a partial payment of Drops.
	Delivers int64
	// Issued delivers an issued currency of that name in the place of XRP.
	Issued string
	// Kind is a transaction of another type that brings Drops: "EscrowFinish",
	// "PaymentChannelClaim", "CheckCash", "AccountDelete" of an account with Drops, or
	// the name of a type that nobody knows yet.
	Kind string
	// Also are accounts that get Drops as well, of a transaction of another type.
	Also []string
	// Unsaid leaves out what was delivered, also of the metadata.
	Unsaid bool
	// Fails makes it end so: "tecPATH_DRY".
	Fails string
}

// flagPartial is tfPartialPayment.
const flagPartial = 0x00020000

// Send puts a transaction into the pool and returns its hash in lower case.
func (n *Node) Send(p Pay) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counter++
	from, arrives := n.Payer, p.Drops
	if p.Delivers > 0 {
		arrives = p.Delivers
	}
	if p.Kind == "AccountDelete" { // an account of its own, which is gone afterwards
		from = Address(fmt.Sprint("leaver/", n.counter))
		n.mine(1)
		n.head().after[from] = Account{Drops: p.Drops + deleteFee, Sequence: 1}
	}
	j := p.fields(from)
	t := &tx{hash: sum("outside", n.counter, n.ledgers[0].hash), account: from, fee: BaseFee, json: j}
	if p.Kind == "AccountDelete" {
		t.fee = deleteFee
	}
	t.nodes = func(at int64) []any { return p.nodes(from, t.hash, at) }
	t.run = func(s map[string]Account, at int64) (string, delivery) {
		sender := s[from] // its sequences are of no interest: it has no key
		j["Sequence"] = sender.Sequence - 1
		if p.Fails != "" {
			return p.Fails, delivery{}
		}
		if p.Issued != "" {
			return "tesSUCCESS", p.delivery(issued(p.Issued, arrives))
		}
		sender.Drops -= arrives * int64(1+len(p.Also))
		s[from] = sender
		if p.Kind == "AccountDelete" {
			delete(s, from)
		}
		for _, who := range append([]string{p.To}, p.Also...) {
			to, there := s[who]
			if !there {
				to.Sequence = uint32(at)
			}
			to.Drops += arrives
			s[who] = to
		}
		return "tesSUCCESS", p.delivery(fmt.Sprint(arrives))
	}
	n.pool = append(n.pool, t)
	return lower(t.hash)
}

// deleteFee is what deleting an account costs: one owner reserve.
const deleteFee = OwnerReserve

// fields are those of the transaction's type, as rippled's TxFormats list them: an
// EscrowFinish or a claim of a channel does not name the recipient.
func (p *Pay) fields(from string) object {
	j := object{
		"Account": from, "Fee": fmt.Sprint(BaseFee), "Flags": 0, "SigningPubKey": "02" + sum("key"),
		"TransactionType": cmp.Or(p.Kind, "Payment"), "TxnSignature": "3044" + sum("signature"),
	}
	switch p.Kind {
	case "":
		j["Destination"], j["Amount"] = p.To, fmt.Sprint(p.Drops)
		if p.Issued != "" {
			j["Amount"] = issued(p.Issued, p.Drops)
		}
		j["DeliverMax"] = j["Amount"] // added by the server, beside Amount in API version 1
		if p.Delivers > 0 {           // XRP for an issued currency: from XRP to XRP none is partial
			j["Flags"], j["SendMax"] = flagPartial, issued("EUR", p.Drops)
		}
	case "AccountDelete":
		j["Destination"], j["Fee"] = p.To, fmt.Sprint(deleteFee)
	case "EscrowFinish":
		j["Owner"], j["OfferSequence"] = from, 5
	case "PaymentChannelClaim":
		j["Channel"], j["Balance"] = sum("channel"), fmt.Sprint(p.Drops)
	case "CheckCash":
		j["CheckID"], j["Amount"] = sum("check"), fmt.Sprint(p.Drops)
	}
	if p.Tag != nil {
		j["DestinationTag"] = *p.Tag
	}
	return j
}

// nodes are the entries of the ledger that such a transaction changes beside accounts:
// one without an account, some whose Balance is no number of drops, and an account of
// which the metadata says only that it was touched.
func (p *Pay) nodes(from, hash string, at int64) []any {
	entry := func(change, kind string, final object) object {
		x := object{
			"LedgerEntryType": kind, "LedgerIndex": sum(kind, hash), "PreviousTxnID": sum("before", hash), "PreviousTxnLgrSeq": at - 1,
		}
		if final != nil {
			x["FinalFields"] = final
		}
		return object{change: x}
	}
	directory := entry("ModifiedNode", "DirectoryNode", object{"Flags": 0, "Owner": from, "RootIndex": sum("root", from)})
	switch {
	case p.Issued != "":
		value := issued(p.Issued, p.Drops)
		value["issuer"] = "rrrrrrrrrrrrrrrrrrrrBZbvji"
		line := object{
			"Balance": value, "Flags": 65536, "HighLimit": issued(p.Issued, 0), "HighNode": "0",
			"LowLimit": object{"currency": p.Issued, "issuer": p.To, "value": "1000000"}, "LowNode": "0",
		}
		return []any{entry("ModifiedNode", "RippleState", line), entry("ModifiedNode", "AccountRoot", nil)}
	case p.Kind == "EscrowFinish":
		final := object{"Account": from, "Amount": fmt.Sprint(p.Drops), "Destination": p.To, "FinishAfter": 813_000_000, "Flags": 0, "OwnerNode": "0"}
		return []any{entry("DeletedNode", "Escrow", final), directory}
	case p.Kind == "PaymentChannelClaim":
		final := object{"Account": from, "Amount": fmt.Sprint(2 * p.Drops), "Balance": fmt.Sprint(p.Drops), "Destination": p.To, "Flags": 0}
		return []any{entry("ModifiedNode", "PayChannel", final)}
	case p.Kind == "CheckCash":
		final := object{"Account": from, "Destination": p.To, "Flags": 0, "SendMax": fmt.Sprint(p.Drops), "Sequence": 4}
		return []any{entry("DeletedNode", "Check", final), directory}
	}
	return nil
}

// delivery says what the server's two notions of what was delivered are: the field
// of the metadata, which a payment has only where it differs from its Amount and an
// AccountDelete always (Payment.cpp, DeleteAccount.cpp), and the one that the API
// computes of both.
func (p *Pay) delivery(amount any) delivery {
	switch {
	case p.Unsaid:
		return delivery{}
	case p.Kind == "AccountDelete", p.Kind == "" && p.Delivers > 0:
		return delivery{inMeta: amount, told: amount}
	case p.Kind == "", p.Kind == "CheckCash":
		return delivery{told: amount}
	}
	return delivery{}
}

func issued(currency string, value int64) object {
	return object{"currency": currency, "issuer": Address("issuer"), "value": fmt.Sprint(value)}
}
