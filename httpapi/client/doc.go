// Package client calls the REST interface from Go.
//
//	c, err := client.New(client.Options{BaseURL: "https://pay.example.com", ClientID: id, ClientSecret: secret})
//	p, err := c.CreatePayment(ctx, client.CreatePayment{Amount: "25.00", Currency: "USDTTRC20", OrderID: "1001"})
//
// It promises: a call takes effect once, however often it was sent: calls that
// create carry an Idempotency-Key, made here unless the caller gives one, and
// only they and calls that change nothing are sent again after a failure;
// waiting follows Retry-After; the access token is asked for once, renewed a
// minute early and, where it was refused, once more; no redirect is followed,
// so that credentials and bodies go nowhere else; and a secret is in no error.
//
// Amounts are decimal strings, as on the wire, and figures json.Number: nothing
// is ever a float. A Client may be used concurrently and starts nothing.
package client
