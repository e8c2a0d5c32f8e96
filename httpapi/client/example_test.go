package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/cryptopay-go/cryptopay/httpapi/client"
)

// A shop asks for a payment and shows it to its customer.
func Example() {
	service := httptest.NewServer(http.HandlerFunc(stub)) // yours is at https://…
	defer service.Close()

	c, err := client.New(client.Options{BaseURL: service.URL, ClientID: "id", ClientSecret: "secret"})
	if err != nil {
		log.Fatal(err)
	}
	p, err := c.CreatePayment(context.Background(), client.CreatePayment{
		Amount: "25.00", Currency: "USDTTRC20", OrderID: "1001",
		IdempotencyKey: "order-1001", // one payment for this order, whatever happens
	})
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && refused.Code == "invalid_request":
		fmt.Println(refused.Field("amount"))
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println("send", p.AmountCrypto, p.Token, "to", p.Address)
	}
	// Output:
	// send 25.00000000 USDT to TA7LMiHkmJ8w4apx9KWKrB67GNoFu5ayZY
}

// A shop hears of its payments by webhook.
func ExampleReadEvent() {
	hook := func(w http.ResponseWriter, r *http.Request) {
		e, err := client.ReadEvent(r, time.Now(), "the webhook secret")
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		// Events may be late or doubled: look at the payment itself.
		fmt.Println(e.Event)
		w.WriteHeader(http.StatusNoContent)
	}
	unsigned := httptest.NewRecorder()
	hook(unsigned, httptest.NewRequest(http.MethodPost, "/hook", http.NoBody))
	fmt.Println(unsigned.Code)
	// Output:
	// 401
}

// stub answers as the service does.
func stub(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/o/token/" {
		fmt.Fprint(w, `{"access_token":"t","token_type":"Bearer","expires_in":3600,"scope":"read write"}`)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, `{"transaction_id":"01a1fba0-3ae7-73a3-8efc-a9e5c6651e1e","status":"waiting","amount_crypto":"25.00000000","token":"USDT","address":"TA7LMiHkmJ8w4apx9KWKrB67GNoFu5ayZY"}`)
}
