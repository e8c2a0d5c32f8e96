package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// greet says where the service is and how to make the first payment.
func (g *gateway) greet(w io.Writer, base string) {
	var names []string
	for _, c := range g.world.clients {
		names = append(names, string(c.Network()))
	}
	kind := "real"
	if len(g.world.sims) > 0 {
		kind = "simulated"
	}
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	p("cryptopay is at %s, documented at %s/docs/", base, base)
	p("store %s; %s %s: %s", g.describeStore(), kind, plural(len(names), "network"), strings.Join(names, " "))
	if g.shown.fresh {
		p("")
		p("A first application was made. Its secret is shown this once; keep it.")
		p("CRYPTOPAY_CLIENT_ID=%s", g.shown.id)
		p("CRYPTOPAY_CLIENT_SECRET=%s", g.shown.secret)
	}
	if len(g.world.sims) == 0 {
		return
	}
	currency := "USDTTRC20"
	if _, err := g.world.on("TRX"); err != nil {
		gas, err := g.world.registry.Gas(g.world.sims[0].Network())
		if err != nil {
			return
		}
		currency = gas.Code
	}
	p("")
	p("The first payment, with curl and jq, where CRYPTOPAY_CLIENT_SECRET is the secret:")
	p("")
	p(`BASE=%s`, base)
	p(`TOKEN=$(curl -s -u "%s:$CRYPTOPAY_CLIENT_SECRET" -d grant_type=client_credentials $BASE/o/token/ | jq -r .access_token)`, g.shown.id)
	p(`PAYMENT=$(curl -s -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"amount":"25.00","currency":"%s","order_id":"first"}' $BASE/payments/)`, currency)
	p(`echo "$PAYMENT" | jq`)
	if g.pages.Load() != nil {
		p(`echo "$PAYMENT" | jq -r .checkout_url # the page that the customer pays on: open it in a browser`)
	}
	if !g.s.dev {
		return
	}
	p(`# you are the customer, too: pay, and let the chain grow`)
	p(`echo "$PAYMENT" | jq '{address, currency, amount: .amount_crypto}' | curl -s -H 'Content-Type: application/json' -d @- $BASE/dev/pay`)
	p(`echo "$PAYMENT" | jq '{blockchain, blocks: 30}' | curl -s -H 'Content-Type: application/json' -d @- $BASE/dev/mine`)
	p(`echo "$PAYMENT" | jq '{transaction_id}' | curl -s -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d @- $BASE/payments/status/ | jq .status`)
	p("")
}

// hotLine begins the line that says where a hot address is.
const hotLine = "hot address "

// hotEvery is how often a node is asked again that did not answer.
const hotEvery = 10 * time.Second

// tellHot says of each tenant on each real network, once, where the operator's own coins go. A
// node that does not answer is asked again, and its error logged.
func (g *gateway) tellHot(ctx context.Context) (int, error) {
	var all error
	err := g.everyTenant(ctx, func(id string) error {
		for _, c := range g.world.clients {
			of := hotOf{c.Network(), id}
			if g.told[of] {
				continue
			}
			hot, err := g.app.Hot(ctx, of.network, id)
			if err != nil {
				all = errors.Join(all, err)
				continue
			}
			g.told[of] = true
			whose := ""
			if id != tenantID {
				whose = " of " + id
			}
			_, _ = fmt.Fprintf(os.Stdout, "%s%s %s%s: it pays the network, and needs coins of yours\n", hotLine, of.network, hot, whose)
		}
		return nil
	})
	return 0, errors.Join(all, err)
}

// describeStore names the store without what may be secret in its DSN.
func (g *gateway) describeStore() string {
	kind, rest, _ := strings.Cut(g.s.store, ":")
	if kind == "sqlite" {
		return rest
	}
	return kind
}
