package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/cryptopay-go/cryptopay/httpapi/client"
)

// A shop asks for a payment, and hears of it by webhook.
func Example() {
	ctx := context.Background()
	c, err := client.New(client.Options{BaseURL: "https://pay.example.com", ClientID: "id", ClientSecret: "secret"})
	if err != nil {
		log.Fatal(err)
	}
	p, err := c.CreatePayment(ctx, client.CreatePayment{
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
		fmt.Println("send", p.AmountCrypto, p.Token, "to", p.Address, "before", p.ExpiryTime)
	}

	http.HandleFunc("/hook", func(w http.ResponseWriter, r *http.Request) {
		e, err := client.ReadEvent(r, time.Now(), "the webhook secret")
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if e.Event == "payment_status_update" {
			// Events may be late or doubled: look at the payment itself.
			var data struct {
				TransactionID string `json:"transaction_id"`
			}
			if e.Decode(&data) == nil {
				p, err := c.Payment(r.Context(), data.TransactionID)
				fmt.Println(p.Status, err)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	})
}
