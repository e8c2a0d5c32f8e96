package xrptest

import "fmt"

// Pay is a payment of the outside customer's.
type Pay struct {
	To    string // classic address
	Tag   *uint32
	Drops int64
	// Delivers is what arrives where it is less: a partial payment of Drops.
	Delivers int64
	// Issued delivers an issued currency of that name in the place of XRP.
	Issued string
	// Kind is a transaction of another type that brings Drops: "EscrowFinish",
	// "PaymentChannelClaim", "AccountDelete".
	Kind string
	// Unsaid leaves delivered_amount out.
	Unsaid bool
	// Fails makes it end so: "tecPATH_DRY".
	Fails string
}

// flagPartial is tfPartialPayment.
const flagPartial = 0x00020000

// Send puts a payment into the pool and returns its hash in lower case.
func (n *Node) Send(p Pay) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counter++
	arrives := p.Drops
	j := object{
		"Account": n.Payer, "Destination": p.To, "Fee": fmt.Sprint(BaseFee), "Flags": 0, "Amount": fmt.Sprint(p.Drops),
		"SigningPubKey": "02" + sum("key"), "TransactionType": "Payment", "TxnSignature": "3044" + sum("signature"),
	}
	if p.Tag != nil {
		j["DestinationTag"] = *p.Tag
	}
	if p.Delivers > 0 {
		j["Flags"], arrives = flagPartial, p.Delivers
	}
	if p.Kind != "" {
		j["TransactionType"] = p.Kind
		delete(j, "Amount")
	}
	if p.Issued != "" {
		j["Amount"] = issued(p.Issued, p.Drops)
	}
	t := &tx{hash: sum("outside", n.counter, n.ledgers[0].hash), account: n.Payer, fee: BaseFee, json: j}
	t.run = func(s map[string]Account, at int64) (string, any) {
		payer := s[n.Payer] // its sequences are of no interest: it has no key
		j["Sequence"] = payer.Sequence
		payer.Sequence++
		s[n.Payer] = payer
		if p.Fails != "" {
			return p.Fails, nil
		}
		var said any = fmt.Sprint(arrives)
		switch {
		case p.Issued != "":
			return "tesSUCCESS", issued(p.Issued, arrives)
		case p.Unsaid || p.Kind != "" && p.Kind != "AccountDelete":
			said = nil
		}
		payer.Drops -= arrives
		s[n.Payer] = payer
		to, there := s[p.To]
		if !there {
			to.Sequence = uint32(at)
		}
		to.Drops += arrives
		s[p.To] = to
		return "tesSUCCESS", said
	}
	n.pool = append(n.pool, t)
	return lower(t.hash)
}

func issued(currency string, value int64) object {
	return object{"currency": currency, "issuer": Address("issuer"), "value": fmt.Sprint(value)}
}
