package manual

// common are the meanings of fields that stand in many requests and answers and mean the same
// everywhere. A field that says more of itself has its own.
var common = map[string]string{
	"account_id":             "The account's wallet_id.",
	"address":                "Address on the blockchain.",
	"amount":                 "In whole coins.",
	"blockchain":             "Code of the network, such as ETH, TRX or BTC.",
	"callback_url":           "Where events about it go; https. Defaults to the account's URL for webhooks.",
	"confirmations":          "Blocks that have it, its own counted.",
	"count":                  "How many there are.",
	"created_at":             "When it was made.",
	"currency":               "Combined code of token and network, such as USDTERC20.",
	"currency_from":          "What is converted: a combined code or a fiat currency.",
	"currency_to":            "Into what: a combined code or a fiat currency.",
	"custom_id":              "Your own name for it.",
	"customer_email":         "Kept with the payment. Nothing is sent to it.",
	"dry_run":                "Check everything and do nothing. Defaults to false.",
	"expiry_minutes":         "How long the customer has. Defaults to 60.",
	"expiry_time":            "Until when the customer may pay.",
	"external_id":            "Your own name for it.",
	"fee_amount":             "What it costs, in the currency.",
	"full":                   "With all fields.",
	"is_fee_paid_by_user":    "Whether the fee is added to what the customer pays.",
	"is_fixed_rate":          "Whether the rate of the creation values what comes.",
	"limit":                  "How many of a page.",
	"max_amount":             "The most that is accepted, in the currency.",
	"min_amount":             "The least that is accepted, in the currency.",
	"name":                   "For people.",
	"offset":                 "How many are left out before.",
	"order_description":      "What the customer pays for; the page to pay on shows it.",
	"order_id":               "Your own number of the order.",
	"payout_id":              "The payout's id.",
	"price_amount":           "The price in the price currency, 2 places.",
	"price_currency":         "Fiat currency of the price, such as USD.",
	"rate":                   "Price of one coin.",
	"reason":                 "Why; it is kept.",
	"required_confirmations": "Confirmations that it needs to be final.",
	"requested_by":           "The client that asked for it.",
	"requested_amount":       "What leaves the account, fees included, 8 places.",
	"status":                 "How far it is.",
	"timestamp":              "When it happened.",
	"token":                  "Symbol, such as USDT; with blockchain it makes the currency.",
	"total":                  "How many there are.",
	"transaction_hash":       "Of the transaction on the blockchain; null before there is one.",
	"transaction_id":         "The payment's id.",
	"type":                   "Of which kind.",
	"updated_at":             "When it last changed.",
	"wallet_id":              "The wallet's id.",
	"withdrawal_id":          "The withdrawal's id.",
}

// explain fills in what fields do not say of themselves.
func explain(fields []Field) {
	for i := range fields {
		if fields[i].About == "" {
			fields[i].About = common[fields[i].Name]
		}
	}
}
