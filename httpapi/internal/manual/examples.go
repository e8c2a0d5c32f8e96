package manual

// Who sends an example.
const (
	public   = "public"   // anybody
	approver = "approver" // a person who decides about withdrawals
	operator = "operator" // of the service
)

// examples are sent in this order, by each language to a service of its own.
var examples = []Example{
	{Operation: "getStatus", As: public},
	{Operation: "getMaintenance", As: public},
	{Operation: "getOpenAPI", As: public},
	{Operation: "getDocs", As: public},
	{Operation: "getDocsPage", As: public, Path: []string{"search"}, Query: `{"q": "refund"}`},

	{Operation: "createToken", As: public, Other: map[Language]string{
		Curl: `
curl -sS --fail-with-body "$BASE/o/token/" \
  -u "$CLIENT_ID:$CLIENT_SECRET" \
  -d grant_type=client_credentials`,
		Go: `
c, err := client.New(client.Options{BaseURL: base, ClientID: clientID, ClientSecret: clientSecret})
if err == nil {
	_, err = c.Me(ctx) // the first call asks for a token, which is renewed in time
}`,
		TypeScript: `
const answer = await fetch(base + "/o/token/", {
  method: "POST",
  headers: { Authorization: "Basic " + btoa(clientID + ":" + clientSecret) },
  body: new URLSearchParams({ grant_type: "client_credentials" }),
});
const data: components["schemas"]["Token"] = await answer.json();
const api = createClient<paths>({ baseUrl: base, headers: { Authorization: "Bearer " + data.access_token } });`,
	}},
	{Operation: "revokeToken", As: public, Other: map[Language]string{
		Curl: `
curl -sS --fail-with-body "$BASE/o/revoke_token/" \
  -u "$CLIENT_ID:$CLIENT_SECRET" \
  -d token=<old_token>`,
		Go: `
form := url.Values{"token": {"<old_token>"}}
request, err := http.NewRequestWithContext(ctx, "POST", base+"/o/revoke_token/", strings.NewReader(form.Encode()))
if err == nil {
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(clientID, clientSecret)
	var answer *http.Response
	if answer, err = httpClient.Do(request); err == nil {
		err = answer.Body.Close()
	}
}`,
		TypeScript: `
const answer = await fetch(base + "/o/revoke_token/", {
  method: "POST",
  headers: { Authorization: "Basic " + btoa(clientID + ":" + clientSecret) },
  body: new URLSearchParams({ token: "<old_token>" }),
});`,
	}},
	{Operation: "listApps"},
	{Operation: "createApp", Body: `{"name": "Warehouse"}`},
	{Operation: "deleteApp", Path: []string{"<app>"}},

	{
		Operation: "createPayment", Body: `{"amount": "25.00", "currency": "USDTERC20", "order_id": "1001", "callback_url": "https://shop.example.com/hook"}`, Key: "order-1001",
		Go: `
payment, err := c.CreatePayment(ctx, client.CreatePayment{
	Amount: "25.00", Currency: "USDTERC20", OrderID: "1001",
	CallbackURL:    "https://shop.example.com/hook",
	IdempotencyKey: "order-1001", // one payment for this order, whatever happens
})`,
	},
	{
		Operation: "listPayments", Query: `{"status": "waiting", "limit": 2}`,
		Go: `page, err := c.Payments(ctx, client.PaymentFilter{Status: "waiting", Limit: 2})`,
	},
	{Operation: "getPayment", Body: `{"transaction_id": "<payment>"}`, Go: `payment, err := c.Payment(ctx, "<payment>")`},
	{Operation: "getPaymentLimits", Query: `{"currency": "USDTERC20"}`},
	{
		Operation: "estimatePayment", Body: `{"amount": "25.00", "currency": "BTC"}`,
		Go: `quote, err := c.EstimatePayment(ctx, client.CreatePayment{Amount: "25.00", Currency: "BTC"})`,
	},
	{
		Operation: "updatePayment", Path: []string{"<payment>"}, Body: `{"order_description": "Two tickets"}`,
		Go: `payment, err := c.UpdatePayment(ctx, "<payment>", client.UpdatePayment{OrderDescription: new("Two tickets")})`,
	},
	{Operation: "cancelPayment", Path: []string{"<payment>"}, Go: `payment, err := c.CancelPayment(ctx, "<payment>")`},
	{Operation: "listDeposits", Path: []string{"<paid>"}},

	{
		Operation: "createAddress", Body: `{"external_id": "customer-17", "currency": "USDTERC20"}`,
		Go: `address, err := c.CreateAddress(ctx, client.CreateAddress{ExternalID: "customer-17", Currency: "USDTERC20"})`,
	},
	{
		Operation: "listAddresses", Query: `{"external_id": "customer-17"}`,
		Go: `page, err := c.Addresses(ctx, "customer-17", 0, 0)`,
	},
	{Operation: "retireAddress", Path: []string{"<address>"}, Go: `address, err := c.RetireAddress(ctx, "<address>")`},

	{Operation: "listSuspense", Query: `{"status": "open"}`},
	{Operation: "resolveSuspense", Path: []string{"<suspense>"}, Body: `{"action": "credit", "reason": "The customer paid late; the order was delivered."}`},

	{
		Operation: "createRefund", Path: []string{"<paid>"}, Body: `{"amount": "10", "address": "<customer>", "reason": "One of two returned"}`, Key: "return-77",
		Go: `
refund, err := c.CreateRefund(ctx, "<paid>", client.CreateRefund{
	Amount: "10", Address: "<customer>", Reason: "One of two returned",
	IdempotencyKey: "return-77",
})`,
	},
	{
		Operation: "listRefunds", Query: `{"transaction_id": "<paid>"}`,
		Go: `refunds, total, err := c.Refunds(ctx, client.RefundFilter{TransactionID: "<paid>"})`,
	},
	{Operation: "getRefund", Path: []string{"<refund>"}, Go: `refund, err := c.Refund(ctx, "<refund>")`},
	{Operation: "cancelRefund", Path: []string{"<refund>"}, Go: `refund, err := c.CancelRefund(ctx, "<refund>")`},
	{Operation: "getClaim", As: public, Path: []string{"<claim>"}, Go: `claim, err := c.Claim(ctx, "<claim>")`},
	{
		Operation: "useClaim", As: public, Path: []string{"<claim>"}, Body: `{"address": "<customer>"}`,
		Go: `claim, err := c.UseClaim(ctx, "<claim>", "<customer>", "")`,
	},

	{
		Operation: "createWithdrawal", Body: `{"amount": "20", "currency": "USDTERC20", "address": "<customer>", "custom_id": "invoice-9"}`, Key: "invoice-9",
		Go: `
withdrawal, err := c.CreateWithdrawal(ctx, client.CreateWithdrawal{
	WithdrawalTerms: client.WithdrawalTerms{Amount: "20", Currency: "USDTERC20", Address: "<customer>"},
	CustomID:        "invoice-9",
	IdempotencyKey:  "invoice-9", // paid once, whatever happens
})`,
	},
	{
		Operation: "createPayout", Key: "wages-march",
		Body: `{"withdrawals": [{"amount": "3", "currency": "USDTERC20", "address": "<customer>", "custom_id": "wages-ann"}, {"amount": "2", "currency": "USDTERC20", "address": "<customer>", "custom_id": "wages-bob"}]}`,
		Go: `
payout, err := c.CreatePayout(ctx, "wages-march", []client.CreateWithdrawal{ // all or none, and once
	{WithdrawalTerms: client.WithdrawalTerms{Amount: "3", Currency: "USDTERC20", Address: "<customer>"}, CustomID: "wages-ann"},
	{WithdrawalTerms: client.WithdrawalTerms{Amount: "2", Currency: "USDTERC20", Address: "<customer>"}, CustomID: "wages-bob"},
})`,
	},
	{Operation: "getPayout", Path: []string{"<payout>"}, Go: `payout, err := c.Payout(ctx, "<payout>")`},
	{
		Operation: "listWithdrawals", Query: `{"status": "completed", "limit": 2}`,
		Go: `page, err := c.Withdrawals(ctx, client.WithdrawalFilter{Status: "completed", Limit: 2})`,
	},
	{Operation: "getWithdrawal", Path: []string{"<withdrawal>"}, Go: `withdrawal, err := c.Withdrawal(ctx, "<withdrawal>")`},
	{Operation: "getWithdrawalStatus", Body: `{"withdrawal_id": "<withdrawal>"}`},
	{Operation: "cancelWithdrawal", Path: []string{"<pending>"}, Go: `withdrawal, err := c.CancelWithdrawal(ctx, "<pending>")`},
	{
		Operation: "approveWithdrawal", As: approver, Path: []string{"<asked>"}, Body: `{"reason": "Invoice 9 is in order"}`,
		Go: `withdrawal, err := c.ApproveWithdrawal(ctx, "<asked>", "Invoice 9 is in order")`,
	},
	{
		Operation: "refuseWithdrawal", As: approver, Path: []string{"<asked_too>"}, Body: `{"reason": "Nobody knows this invoice"}`,
		Go: `withdrawal, err := c.RefuseWithdrawal(ctx, "<asked_too>", "Nobody knows this invoice")`,
	},
	{
		Operation: "validateAddress", Body: `{"address": "<customer>", "currency": "USDTERC20"}`,
		Go: `check, err := c.ValidateAddress(ctx, "<customer>", "USDTERC20", "")`,
	},
	{
		Operation: "estimateWithdrawal", Body: `{"amount": "20", "currency": "USDTERC20"}`,
		Go: `estimate, err := c.EstimateWithdrawal(ctx, client.WithdrawalTerms{Amount: "20", Currency: "USDTERC20"})`,
	},
	{Operation: "estimateWithdrawalFee", Body: `{"amount": "20", "blockchain": "ETH", "token": "USDT"}`},
	{Operation: "getWithdrawalMinimum", Body: `{"currency": "USDTERC20"}`, Go: `minimum, err := c.WithdrawalMinimum(ctx, "USDTERC20")`},
	{Operation: "listAvailableCurrencies"},
	{Operation: "getWithdrawalLimits", Query: `{"currency": "USDTERC20"}`},

	{Operation: "listCurrencies", Go: `codes, err := c.Currencies(ctx)`},
	{
		Operation: "getRate", Query: `{"amount": "100", "currency_from": "USD", "currency_to": "BTC"}`,
		Go: `rate, err := c.Rate(ctx, client.RateQuery{Amount: "100", From: "USD", To: "BTC"})`,
	},
	{Operation: "getCurrencyRates", Path: []string{"BTC"}},
	{Operation: "calculateRate", Body: `{"amount": "0.5", "currency_from": "ETH", "currency_to": "USDTERC20", "full": true}`},

	{Operation: "getBalances", Go: `balances, err := c.Balances(ctx)`},
	{
		Operation: "getBalanceHistory", Query: `{"currency": "USDTERC20", "limit": 2}`,
		Go: `page, err := c.BalanceHistory(ctx, client.BalanceHistoryFilter{Currency: "USDTERC20", Limit: 2})`,
	},
	{
		Operation: "listTransactions", Query: `{"type": "payment", "status": "completed", "page_size": 2}`,
		Go: `page, err := c.Transactions(ctx, client.TransactionFilter{Type: "payment", Status: "completed", PageSize: 2})`,
	},
	{Operation: "getTransactionStats", Query: `{"currency": "USDTERC20"}`},
	{Operation: "exportTransactions", Body: `{"type": "payment", "status": "completed"}`},

	{Operation: "createWallet", Body: `{"name": "Branch Lisbon", "external_id": "lisbon"}`, Key: "wallet-lisbon", Go: `
wallet, err := c.CreateWallet(ctx, client.CreateWallet{
	Name: "Branch Lisbon", ExternalID: "lisbon", IdempotencyKey: "wallet-lisbon",
})`},
	{Operation: "listWallets", Go: `wallets, err := c.Wallets(ctx)`},
	{Operation: "getWallet", Path: []string{"<wallet>"}, Go: `wallet, err := c.Wallet(ctx, "<wallet>")`},
	{Operation: "updateWallet", Path: []string{"<wallet>"}, Body: `{"name": "Branch Porto, river"}`, Go: `wallet, err := c.RenameWallet(ctx, "<wallet>", "Branch Porto, river")`},
	{Operation: "lookUpBalances", Body: `{"external_id": "porto"}`, Go: `balances, err := c.WalletBalances(ctx, "", "porto")`},
	{Operation: "getWalletBalances", Path: []string{"<wallet>"}},
	{
		Operation: "getWalletProof", Path: []string{"<wallet>"}, Query: `{"currency": "USDTERC20"}`,
		Go: `proof, err := c.WalletProof(ctx, "<wallet>", "USDTERC20")`,
	},
	{
		Operation: "transferToWallet", Body: `{"wallet_id": "<wallet>", "currency": "USDTERC20", "amount": "5"}`, Key: "float-1",
		Go: `
transfer, err := c.TransferToWallet(ctx, client.CreateTransfer{
	WalletID: "<wallet>", Currency: "USDTERC20", Amount: "5", IdempotencyKey: "float-1",
})`,
	},
	{
		Operation: "transferToMaster", Body: `{"external_id": "porto", "currency": "USDTERC20", "amount": "5"}`, Key: "back-1",
		Go: `
transfer, err := c.TransferToMaster(ctx, client.CreateTransfer{
	ExternalID: "porto", Currency: "USDTERC20", Amount: "5", IdempotencyKey: "back-1",
})`,
	},
	{
		Operation: "listTransfers", Body: `{"transfer_type": "to_sub", "limit": 2}`,
		Go: `page, err := c.Transfers(ctx, client.TransferFilter{TransferType: "to_sub", Limit: 2})`,
	},
	{Operation: "deleteWallet", Path: []string{"<empty>"}, Go: `err := c.DeleteWallet(ctx, "<empty>")`},

	{Operation: "getAccount", Go: `account, err := c.Me(ctx)`},
	{
		Operation: "setUpWebhooks", Body: `{"callback_url": "https://shop.example.com/hook"}`,
		Go: `webhooks, err := c.SetUpWebhooks(ctx, "https://shop.example.com/hook")`,
	},
	{Operation: "getWebhooks", Go: `webhooks, err := c.Webhooks(ctx)`},
	{
		Operation: "updateWebhooks", Body: `{"enabled_events": ["payment_status_update", "withdrawal_status_update"]}`,
		Go: `webhooks, err := c.EditWebhooks(ctx, client.UpdateWebhooks{EnabledEvents: &[]string{"payment_status_update", "withdrawal_status_update"}})`,
	},
	{Operation: "testWebhooks", Body: `{"event_type": "payment_status_update"}`, Go: `test, err := c.TestWebhook(ctx, "payment_status_update")`},
	{Operation: "listDeliveries", Query: `{"object_id": "<paid>", "limit": 2}`},
	{Operation: "resendDelivery", Path: []string{"<delivery>"}},
	{Operation: "getFees"},

	{Operation: "getHoldings", Path: []string{"ETH"}},
	{Operation: "syncHoldings"},
	{Operation: "listHoldings", Query: `{"include_custody": false}`},

	{Operation: "setHalt", As: operator, Body: `{"action": "halt", "blockchain": "BTC", "reason": "The node is being replaced"}`},
	{Operation: "listHalts", As: operator},
	{Operation: "listAudit", As: operator, Query: `{"blockchain": "BTC", "limit": 1}`},
	{Operation: "speedUpTransaction", As: operator, Path: []string{"<stuck>"}, Body: `{"blockchain": "ARB", "max_cost": "0.1", "reason": "The merchant waits"}`},
	{Operation: "cancelTransaction", As: operator, Path: []string{"<stuck>"}, Body: `{"blockchain": "ARB", "reason": "Sent to the wrong shop"}`},
	{Operation: "fillNonce", As: operator, Body: `{"blockchain": "BASE", "address": "<hot>", "nonce": 0, "reason": "A transaction was lost with the old node"}`},
	{Operation: "adoptNonces", As: operator, Body: `{"blockchain": "ETH", "reason": "The address was used elsewhere"}`},
	{Operation: "retrySweep", As: operator, Path: []string{"<sweep>"}, Body: `{"blockchain": "OPTIMISM", "reason": "The new node is there"}`},
	{Operation: "recoverDeposits", As: operator, Body: `{"blockchain": "BASE", "address": "<hot>", "from_height": 1, "reason": "A customer says that he paid"}`},
	{Operation: "proposeRefill", As: operator, Body: `{"for_tenant": "<tenant>", "currency": "ETHBASE", "amount": "0.1", "reason": "Payouts wait for coins"}`},
	{Operation: "listRefills", As: operator, Query: `{"for_tenant": "<tenant>", "limit": 2}`},
	{Operation: "getRefill", As: operator, Path: []string{"refill-ETHBASE-1"}, Query: `{"for_tenant": "<tenant>"}`},
	{Operation: "takeRefill", As: operator, Path: []string{"refill-ETHBASE-1"}, Body: `{"for_tenant": "<tenant>", "signed": "<signed>", "reason": "Ann signed it on the machine in the vault"}`},
	{Operation: "cancelRefill", As: operator, Path: []string{"refill-ETHOPTIMISM-1"}, Body: `{"for_tenant": "<tenant>", "reason": "Deposits have come"}`},
	{Operation: "resumeNetwork", As: operator, Body: `{"blockchain": "ETH", "height": 20, "reason": "The fork was looked at", "dry_run": true}`},
}
