package httpapi

import (
	"net/http"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

// Policies that routes share.
var (
	both   = []auth.Scope{auth.Read, auth.Write}
	read   = []auth.Scope{auth.Read}
	write  = []auth.Scope{auth.Write}
	admins = []auth.Role{auth.TenantAdmin, auth.GlobalAdmin}

	open     = Policy{Access: Public, Limit: LimitNone, Style: Standard}
	claims   = Policy{Access: Public, Limit: LimitClaim, Style: Standard}
	merchant = Policy{Access: Bearer, Scopes: both, Limit: LimitAPI, Style: Standard}
	payouts  = Policy{Access: Bearer, Scopes: both, Limit: LimitPayout, Style: Standard}
	reports  = Policy{Access: Bearer, Scopes: both, Limit: LimitReport, Style: Standard}
	reader   = Policy{Access: Bearer, Scopes: read, Limit: LimitAPI, Style: Standard}
	wallets  = Policy{Access: BearerOrKey, Scopes: both, Limit: LimitAPI, Style: Standard}
	manage   = Policy{Access: Bearer, Scopes: both, Roles: admins, Limit: LimitAPI, Style: Detail}
	approver = Policy{Access: Bearer, Scopes: both, Roles: []auth.Role{auth.Approver}, Limit: LimitAPI, Style: Standard}
	operate  = Policy{Access: Bearer, Scopes: both, Roles: []auth.Role{auth.GlobalAdmin}, Limit: LimitAPI, Style: Standard}
)

// Failures that several routes document.
var (
	invalidRequest      = Failure{http.StatusBadRequest, "invalid_request"}
	invalidCurrency     = Failure{http.StatusBadRequest, "invalid_currency"}
	notFound            = Failure{http.StatusNotFound, "not_found"}
	invalidURL          = Failure{http.StatusBadRequest, "invalid_url"}
	invalidState        = Failure{http.StatusConflict, "invalid_state"}
	insufficientBalance = Failure{http.StatusBadRequest, "insufficient_balance"}
	invalidAddress      = Failure{http.StatusBadRequest, "invalid_address"}
	noFee               = Failure{http.StatusInternalServerError, "service_unavailable"}
	mismatch            = Failure{http.StatusUnprocessableEntity, "idempotency_mismatch"}
	invalidClient       = Failure{http.StatusUnauthorized, "invalid_client"}
	wrongClient         = Failure{http.StatusUnauthorized, "invalid_grant"}
	inProgress          = Failure{http.StatusConflict, "idempotency_in_progress"}
	insufficient        = Failure{http.StatusBadRequest, "insufficient_balance"}
)

// table is the whole interface: one line per operation.
func (h *Handler) table() []Route {
	return append([]Route{
		{
			Method: http.MethodGet, Path: "/status/", Name: "getStatus", Group: "Service", About: "Says that the service is up.",
			Policy: open, Status: http.StatusOK, do: endpoint(h.getStatus),
		},
		{
			Method: http.MethodGet, Path: "/maintenance/", Name: "getMaintenance", Group: "Service", About: "Says whether writes are closed.",
			Policy: open, Status: http.StatusOK, do: endpoint(h.getMaintenance),
		},
		{
			Method: http.MethodGet, Path: "/openapi.json", Name: "getOpenAPI", Group: "Service", About: "The OpenAPI document of this interface.",
			Policy: open, Status: http.StatusOK, Media: []string{"application/json"}, do: endpoint(h.getOpenAPI),
		},
		{
			Method: http.MethodGet, Path: "/docs/", Name: "getDocs", Group: "Service", About: "The same for people: operations with examples, guides, and a search.",
			Policy: open, Status: http.StatusOK, Media: []string{"text/html"}, do: endpoint(h.getDocs),
		},
		{
			Method: http.MethodGet, Path: "/docs/{page}/", Name: "getDocsPage", Group: "Service", About: "A page of it.",
			Policy: open, Status: http.StatusOK, Media: []string{"text/html", "text/css", "text/javascript", "image/svg+xml"}, Errors: []Failure{notFound}, do: endpoint(h.getDocsPage),
		},

		// Authentication: oauth.go
		{
			Method: http.MethodPost, Path: "/o/token/", Name: "createToken", Group: "Authentication", About: "Issues an access token for client credentials (RFC 6749 §4.4).",
			Policy: Policy{Access: Client, Limit: LimitToken, Style: OAuth}, Status: http.StatusOK,
			Errors: []Failure{invalidClient, wrongClient, {http.StatusBadRequest, "unsupported_grant_type"}, {http.StatusBadRequest, "invalid_scope"}}, do: endpoint(h.createToken),
		},
		{
			Method: http.MethodPost, Path: "/o/revoke_token/", Name: "revokeToken", Group: "Authentication", About: "Revokes an access token (RFC 7009).",
			Policy: Policy{Access: Client, Limit: LimitToken, Style: OAuth}, Status: http.StatusOK,
			Errors: []Failure{invalidClient, wrongClient}, do: endpoint(h.revokeToken),
		},
		{
			Method: http.MethodGet, Path: "/o/apps/", Name: "listApps", Group: "Authentication", About: "Lists the tenant's applications; secrets are masked.",
			Policy: merchant, Status: http.StatusOK, do: endpoint(h.listApps),
		},
		{
			Method: http.MethodPost, Path: "/o/apps/", Name: "createApp", Group: "Authentication", About: "Creates an application with the scopes read and write. The secret is shown this once.",
			// An approver would ask for a withdrawal by one and approve it by the other.
			Policy: Policy{Access: Bearer, Scopes: both, Except: []auth.Role{auth.Approver}, Limit: LimitAPI, Style: Standard}, Status: http.StatusCreated, Writes: true, Errors: []Failure{invalidRequest}, do: endpoint(h.createApp),
		},
		{
			Method: http.MethodDelete, Path: "/o/apps/{id}/", Name: "deleteApp", Group: "Authentication", About: "Deletes an application; its tokens are invalid at once. One with a scope or a role that the caller lacks is 403.",
			Policy: merchant, Status: http.StatusNoContent, Writes: true, Errors: []Failure{notFound}, do: endpoint(h.deleteApp),
		},

		// Payments: payments.go
		{
			Method: http.MethodPost, Path: "/payments/", Name: "createPayment", Group: "Payments", About: "Creates a payment with an address of its own.",
			Policy: Policy{Access: Bearer, Scopes: both, Limit: LimitPayment, Style: Standard}, Status: http.StatusCreated, Writes: true, Once: true,
			Errors: []Failure{invalidRequest, notFound, {http.StatusUnprocessableEntity, "invalid_currency"}},
			do:     checked(h.createPayment, h.checkPayment),
		},
		{
			Method: http.MethodGet, Path: "/payments/", Name: "listPayments", Group: "Payments", About: "Lists payments, newest first.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest}, do: checked(h.listPayments, h.checkPaymentFilter),
		},
		{
			Method: http.MethodPost, Path: "/payments/status/", Name: "getPayment", Group: "Payments", About: "Returns one payment.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest, notFound}, do: endpoint(h.getPayment),
		},
		{
			Method: http.MethodGet, Path: "/payments/min-amount/", Name: "getPaymentLimits", Group: "Payments", About: "Says the least and the most that a payment may ask for.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest, invalidCurrency}, do: endpoint(h.paymentLimits),
		},
		{
			Method: http.MethodPost, Path: "/payments/estimate/", Name: "estimatePayment", Group: "Payments", About: "Prices a payment and creates nothing.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest, {http.StatusUnprocessableEntity, "invalid_currency"}}, do: checked(h.estimatePayment, h.checkPricing),
		},
		{
			Method: http.MethodPatch, Path: "/payments/{transaction_id}/", Name: "updatePayment", Group: "Payments", About: "Changes what a waiting payment says.",
			Policy: merchant, Status: http.StatusOK, Writes: true, Errors: []Failure{invalidRequest, notFound, invalidState}, do: endpoint(h.updatePayment),
		},
		{
			Method: http.MethodPost, Path: "/payments/{transaction_id}/cancel/", Name: "cancelPayment", Group: "Payments", About: "Ends a payment for which nothing has come.",
			Policy: merchant, Status: http.StatusOK, Writes: true, Errors: []Failure{notFound, invalidState}, do: endpoint(h.cancelPayment),
		},

		{
			Method: http.MethodGet, Path: "/payments/{transaction_id}/deposits/", Name: "listDeposits", Group: "Payments", About: "Lists what came to a payment's address, whether it counts or not, oldest first.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest, notFound}, do: endpoint(h.listDeposits),
		},

		// Permanent addresses: permanent.go
		{
			Method: http.MethodPost, Path: "/addresses/", Name: "createAddress", Group: "Addresses", About: "Returns the permanent address of an external_id on a network, and makes it where there is none. Each deposit is a payment.",
			Policy: merchant, Status: http.StatusCreated, Also: http.StatusOK, Writes: true,
			Errors: []Failure{invalidRequest, notFound, {http.StatusUnprocessableEntity, "invalid_currency"}}, do: checked(h.createAddress, h.checkPermanent),
		},
		{
			Method: http.MethodGet, Path: "/addresses/", Name: "listAddresses", Group: "Addresses", About: "Lists permanent addresses, newest first.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest}, do: endpoint(h.listAddresses),
		},
		{
			Method: http.MethodPost, Path: "/addresses/{address_id}/retire/", Name: "retireAddress", Group: "Addresses", About: "Ends the use of a permanent address: what comes later goes to suspense. createAddress takes it back into use.",
			Policy: merchant, Status: http.StatusOK, Writes: true, Errors: []Failure{notFound}, do: endpoint(h.retireAddress),
		},

		// What came otherwise: suspense.go
		{
			Method: http.MethodGet, Path: "/suspense/", Name: "listSuspense", Group: "Suspense", About: "Lists money that came late, in another asset or for no payment, newest first.",
			Policy: Policy{Access: Bearer, Scopes: both, Roles: admins, Limit: LimitAPI, Style: Standard}, Status: http.StatusOK, Errors: []Failure{invalidRequest}, do: endpoint(h.listSuspense),
		},
		{
			Method: http.MethodPost, Path: "/suspense/{suspense_id}/resolve/", Name: "resolveSuspense", Group: "Suspense", About: "Decides about such money: credit gives it to a wallet, refund sends it to an address of the customer's, ignore leaves it where it is.",
			Policy: Policy{Access: Bearer, Scopes: []auth.Scope{auth.Admin}, Limit: LimitAPI, Style: Standard}, Status: http.StatusOK, Writes: true,
			Errors: []Failure{invalidRequest, invalidAddress, notFound, invalidState, noFee}, do: checked(h.resolveSuspense, h.checkResolve),
		},

		// Refunds: refunds.go
		{
			Method: http.MethodPost, Path: "/payments/{transaction_id}/refunds/", Name: "createRefund", Group: "Refunds", About: "Gives back what a payment received, or a part of it, by a withdrawal to the customer's address; without an address by a link where he names it.",
			Policy: merchant, Status: http.StatusCreated, Writes: true, Once: true,
			Errors: []Failure{invalidRequest, invalidAddress, insufficientBalance, notFound, invalidState, noFee},
			do:     checked(h.createRefund, h.checkRefund),
		},
		{
			Method: http.MethodGet, Path: "/refunds/", Name: "listRefunds", Group: "Refunds", About: "Lists refunds, newest first.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest}, do: checked(h.listRefunds, h.checkRefundFilter),
		},
		{
			Method: http.MethodGet, Path: "/refunds/{refund_id}/", Name: "getRefund", Group: "Refunds", About: "Returns one refund.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{notFound}, do: endpoint(h.getRefund),
		},
		{
			Method: http.MethodPost, Path: "/refunds/{refund_id}/cancel/", Name: "cancelRefund", Group: "Refunds", About: "Cancels a refund that waits for its address, or is pending.",
			Policy: merchant, Status: http.StatusOK, Writes: true, Errors: []Failure{notFound, invalidState}, do: endpoint(h.cancelRefund),
		},
		{
			Method: http.MethodGet, Path: "/claim/{token}/", Name: "getClaim", Group: "Refunds", About: "Says what a claim link gives. For the customer, without a token.",
			Policy: claims, Status: http.StatusOK, Errors: []Failure{notFound}, do: endpoint(h.getClaim),
		},
		{
			Method: http.MethodPost, Path: "/claim/{token}/", Name: "useClaim", Group: "Refunds", About: "Has the refund of a claim link sent to an address, once. For the customer, without a token.",
			Policy: claims, Status: http.StatusOK, Writes: true, Errors: []Failure{invalidRequest, invalidAddress, notFound, invalidState}, do: endpoint(h.useClaim),
		},

		// Withdrawals: withdrawals.go, addresses.go
		{
			Method: http.MethodPost, Path: "/withdrawal/", Name: "createWithdrawal", Group: "Withdrawals", About: "Pays out to an external address; the whole cost is held at once.",
			Policy: merchant, Status: http.StatusCreated, Writes: true, Once: true,
			Errors: []Failure{invalidRequest, invalidAddress, insufficientBalance, invalidCurrency, notFound, noFee},
			do:     checked(h.createWithdrawal, h.checkWithdrawal),
		},
		{
			Method: http.MethodPost, Path: "/payouts/", Name: "createPayout", Group: "Withdrawals", About: "Pays out to up to 1,000 external addresses: all withdrawals are made and held at once, or none is. Takes JSON, or a CSV with a withdrawal in each line.",
			Policy: payouts, Status: http.StatusCreated, Writes: true, Once: true, csv: true,
			Errors: []Failure{invalidRequest, insufficientBalance, noFee},
			do:     checked(h.createPayout, h.checkPayout),
		},
		{
			Method: http.MethodGet, Path: "/payouts/{payout_id}/", Name: "getPayout", Group: "Withdrawals", About: "Returns a payout with its withdrawals as they are now.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{notFound}, do: endpoint(h.getPayout),
		},
		{
			Method: http.MethodGet, Path: "/withdrawal/", Name: "listWithdrawals", Group: "Withdrawals", About: "Lists withdrawals.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest}, do: checked(h.listWithdrawals, h.checkWithdrawalFilter),
		},
		{
			Method: http.MethodGet, Path: "/withdrawal/{withdrawal_id}/", Name: "getWithdrawal", Group: "Withdrawals", About: "Returns one withdrawal.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{notFound}, do: endpoint(h.getWithdrawal),
		},
		{
			Method: http.MethodPost, Path: "/withdrawal/status/", Name: "getWithdrawalStatus", Group: "Withdrawals", About: "Returns one withdrawal, named in the body.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest, notFound}, do: endpoint(h.withdrawalStatus),
		},
		{
			Method: http.MethodPost, Path: "/withdrawal/{withdrawal_id}/cancel/", Name: "cancelWithdrawal", Group: "Withdrawals", About: "Cancels a pending withdrawal and gives its hold back.",
			Policy: merchant, Status: http.StatusOK, Writes: true, Errors: []Failure{notFound, invalidState}, do: endpoint(h.cancelWithdrawal),
		},
		{
			Method: http.MethodPost, Path: "/withdrawal/{withdrawal_id}/approve/", Name: "approveWithdrawal", Group: "Withdrawals", About: "Approves a withdrawal that waits for it. Who asked for it may not.",
			Policy: approver, Status: http.StatusOK, Writes: true, Errors: []Failure{invalidRequest, notFound, invalidState}, do: endpoint(h.approveWithdrawal),
		},
		{
			Method: http.MethodPost, Path: "/withdrawal/{withdrawal_id}/refuse/", Name: "refuseWithdrawal", Group: "Withdrawals", About: "Refuses a withdrawal that waits for approval: it fails, and its hold is given back. Who asked for it may not.",
			Policy: approver, Status: http.StatusOK, Writes: true, Errors: []Failure{invalidRequest, notFound, invalidState}, do: endpoint(h.refuseWithdrawal),
		},
		{
			Method: http.MethodPost, Path: "/withdrawal/validate-address/", Name: "validateAddress", Group: "Withdrawals", About: "Says whether an address can be paid out to.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest, invalidCurrency}, do: checked(h.validateAddress, h.checkAddress),
		},
		{
			Method: http.MethodPost, Path: "/withdrawal/estimate/", Name: "estimateWithdrawal", Group: "Withdrawals", About: "Prices a withdrawal and creates nothing.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest, invalidCurrency, invalidAddress, noFee}, do: checked(h.estimateWithdrawal, h.checkEstimate),
		},
		{
			Method: http.MethodPost, Path: "/withdrawal/fee-estimate/", Name: "estimateWithdrawalFee", Group: "Withdrawals", About: "Says what a withdrawal would cost in fees.",
			Policy: Policy{Access: BearerOrKey, Scopes: both, Limit: LimitAPI, Style: Classic}, Status: http.StatusOK,
			Errors: []Failure{invalidRequest, invalidCurrency, invalidAddress, {http.StatusUnprocessableEntity, "invalid_amount"}, noFee},
			do:     checked(h.estimateFee, h.checkFeeNetwork),
		},
		{
			Method: http.MethodPost, Path: "/withdrawal/min-amount/", Name: "getWithdrawalMinimum", Group: "Withdrawals", About: "Says the least that a recipient may get.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest}, do: endpoint(h.withdrawalMinimum),
		},
		{
			Method: http.MethodGet, Path: "/withdrawal/available-currencies/", Name: "listAvailableCurrencies", Group: "Withdrawals", About: "Lists what the master account has to pay out.",
			Policy: merchant, Status: http.StatusOK, do: endpoint(h.availableCurrencies),
		},
		{
			Method: http.MethodGet, Path: "/withdrawal/limits/", Name: "getWithdrawalLimits", Group: "Withdrawals", About: "Lists the limits of withdrawals and what is left of them today.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidCurrency}, do: endpoint(h.withdrawalLimits),
		},

		// Currencies and rates: currencies.go, rates.go
		{
			Method: http.MethodGet, Path: "/currencies/", Name: "listCurrencies", Group: "Currencies and rates", About: "Lists currencies: codes, or entries with full or min_max.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest}, do: endpoint(h.listCurrencies),
		},
		{
			Method: http.MethodGet, Path: "/rates/", Name: "getRate", Group: "Currencies and rates", About: "Converts an amount at the present rate.",
			Policy: reader, Status: http.StatusOK, Errors: []Failure{invalidRequest, invalidCurrency}, do: checked(h.getRate, h.checkRate),
		},
		{
			Method: http.MethodGet, Path: "/rates/{currency}/", Name: "getCurrencyRates", Group: "Currencies and rates", About: "Lists a coin's prices by fiat currency.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidCurrency}, do: endpoint(h.currencyRates),
		},
		{
			Method: http.MethodPost, Path: "/rates/calculate/", Name: "calculateRate", Group: "Currencies and rates", About: "Converts an amount at the present rate; the query of GET /rates/ as a body.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest, invalidCurrency}, do: checked(h.calculateRate, h.checkCalculation),
		},

		// Balances and history: balances.go, transactions.go
		{
			Method: http.MethodGet, Path: "/user/balances/", Name: "getBalances", Group: "Balances", About: "Says what the master account and all wallets together have.",
			Policy: merchant, Status: http.StatusOK, do: endpoint(h.overview),
		},
		{
			Method: http.MethodGet, Path: "/user/balances/history/", Name: "getBalanceHistory", Group: "Balances", About: "Lists the movements of the master account, or of a wallet, newest first.",
			Policy: reader, Status: http.StatusOK, Errors: []Failure{invalidRequest, notFound}, do: checked(h.balanceHistory, h.checkHistory),
		},
		{
			Method: http.MethodGet, Path: "/transactions/transactions/", Name: "listTransactions", Group: "Transactions", About: "Lists payments and withdrawals together, newest first.",
			Policy: Policy{Access: Bearer, Scopes: read, Limit: LimitHistory, Style: Standard}, Status: http.StatusOK,
			Errors: []Failure{invalidRequest}, do: checked(h.listTransactions, h.checkTransactions),
		},
		{
			Method: http.MethodGet, Path: "/transactions/stats/", Name: "getTransactionStats", Group: "Transactions", About: "Counts and values the payments and withdrawals of a period.",
			Policy: reports, Status: http.StatusOK, Errors: []Failure{invalidRequest}, do: checked(h.transactionStats, h.checkStats),
		},
		{
			Method: http.MethodPost, Path: "/transactions/export/", Name: "exportTransactions", Group: "Transactions", About: "Streams the whole history that the filters select as a file, newest first.",
			Policy: reports, Status: http.StatusOK, Media: []string{"text/csv", "application/json"}, Errors: []Failure{invalidRequest}, do: checked(h.exportTransactions, h.checkExport),
		},

		// Wallets: wallets.go
		{
			Method: http.MethodGet, Path: "/wallets/", Name: "listWallets", Group: "Wallets", About: "Lists wallets with their balances.",
			Policy: wallets, Status: http.StatusOK, do: endpoint(h.listWallets),
		},
		{
			Method: http.MethodPost, Path: "/wallets/", Name: "createWallet", Group: "Wallets", About: "Creates a wallet.",
			Policy: wallets, Status: http.StatusCreated, Writes: true, Once: true,
			Errors: []Failure{invalidRequest, {http.StatusBadRequest, "duplicate_external_id"}}, do: checked(h.createWallet, h.checkWallet),
		},
		{
			Method: http.MethodPost, Path: "/wallets/balances/", Name: "lookUpBalances", Group: "Wallets", About: "Returns the balances of a wallet by wallet_id or external_id.",
			Policy: Policy{Access: BearerOrKey, Scopes: both, Limit: LimitAPI, Style: Classic}, Status: http.StatusOK,
			Errors: []Failure{invalidRequest, notFound}, do: endpoint(h.walletBalances),
		},
		{
			Method: http.MethodPost, Path: "/wallets/transfer-to-user/", Name: "transferToWallet", Group: "Wallets", About: "Moves money from the master account to a wallet.",
			Policy: wallets, Status: http.StatusAccepted, Writes: true, Once: true,
			Errors: []Failure{invalidRequest, invalidCurrency, insufficient, notFound}, do: checked(h.transferToUser, h.checkTransfer),
		},
		{
			Method: http.MethodPost, Path: "/wallets/withdraw-to-master/", Name: "transferToMaster", Group: "Wallets", About: "Moves money from a wallet to the master account.",
			Policy: wallets, Status: http.StatusAccepted, Writes: true, Once: true,
			Errors: []Failure{invalidRequest, invalidCurrency, insufficient, notFound}, do: checked(h.withdrawToMaster, h.checkTransfer),
		},
		{
			Method: http.MethodPost, Path: "/wallets/transfer-history/", Name: "listTransfers", Group: "Wallets", About: "Lists transfers between the master account and wallets, newest first.",
			Policy: wallets, Status: http.StatusOK, Errors: []Failure{invalidRequest, notFound}, do: checked(h.transferHistory, h.checkTransfers),
		},
		{
			Method: http.MethodGet, Path: "/wallets/{id}/", Name: "getWallet", Group: "Wallets", About: "Returns a wallet with its balances.",
			Policy: wallets, Status: http.StatusOK, Errors: []Failure{notFound}, do: endpoint(h.getWallet),
		},
		{
			Method: http.MethodPatch, Path: "/wallets/{id}/", Name: "updateWallet", Group: "Wallets", About: "Renames a wallet.",
			Policy: wallets, Status: http.StatusOK, Writes: true, Errors: []Failure{invalidRequest, notFound}, do: checked(h.updateWallet, h.checkUpdateWallet),
		},
		{
			Method: http.MethodDelete, Path: "/wallets/{id}/", Name: "deleteWallet", Group: "Wallets", About: "Closes an empty wallet; its history stays.",
			Policy: wallets, Status: http.StatusNoContent, Writes: true, Errors: []Failure{notFound, {http.StatusConflict, "wallet_not_empty"}}, do: endpoint(h.deleteWallet),
		},
		{
			Method: http.MethodGet, Path: "/wallets/{id}/balance/", Name: "getWalletBalances", Group: "Wallets", About: "Returns the balances of a wallet by its id.",
			Policy: Policy{Access: BearerOrKey, Scopes: both, Limit: LimitAPI, Style: Classic}, Status: http.StatusOK, Errors: []Failure{notFound}, do: endpoint(h.walletBalance),
		},
		{
			Method: http.MethodGet, Path: "/wallets/{id}/proof/", Name: "getWalletProof", Group: "Wallets", About: "Proves that a wallet's balance stands in a seal of the account's journal.",
			Policy: wallets, Status: http.StatusOK, Errors: []Failure{invalidRequest, notFound}, do: endpoint(h.walletProof),
		},

		// Account: account.go
		{
			Method: http.MethodGet, Path: "/user/me/", Name: "getAccount", Group: "Account", About: "Returns the account's settings.",
			Policy: merchant, Status: http.StatusOK, do: endpoint(h.getMe),
		},
		{
			Method: http.MethodPost, Path: "/user/webhooks/", Name: "setUpWebhooks", Group: "Account", About: "Sets the URL for webhooks. The first answer shows the signing secret, this once.",
			Policy: Policy{Access: Bearer, Scopes: write, Limit: LimitAPI, Style: Standard}, Status: http.StatusOK, Writes: true,
			Errors: []Failure{invalidRequest, invalidURL}, do: endpoint(h.setupWebhooks),
		},
		{
			Method: http.MethodGet, Path: "/user/webhooks/", Name: "getWebhooks", Group: "Account", About: "Returns the webhook configuration.",
			Policy: merchant, Status: http.StatusOK, do: endpoint(h.getWebhooks),
		},
		{
			Method: http.MethodPatch, Path: "/user/webhooks/", Name: "updateWebhooks", Group: "Account", About: "Changes the URL, the events or the signing secret of webhooks.",
			Policy: merchant, Status: http.StatusOK, Writes: true, Errors: []Failure{invalidRequest, invalidURL}, do: checked(h.editWebhooks, h.checkWebhooks),
		},
		{
			Method: http.MethodPost, Path: "/user/webhooks/test/", Name: "testWebhooks", Group: "Account", About: "Sends a sample event to the webhook URL at once.",
			Policy: Policy{Access: Bearer, Scopes: both, Limit: LimitTest, Style: Standard}, Status: http.StatusOK,
			Errors: []Failure{invalidRequest, invalidURL}, do: endpoint(h.testWebhooks),
		},
		{
			Method: http.MethodGet, Path: "/webhooks/deliveries/", Name: "listDeliveries", Group: "Account", About: "Lists webhooks with how far their delivery is, newest first.",
			Policy: merchant, Status: http.StatusOK, Errors: []Failure{invalidRequest}, do: endpoint(h.listDeliveries),
		},
		{
			Method: http.MethodPost, Path: "/webhooks/deliveries/{delivery_id}/resend/", Name: "resendDelivery", Group: "Account", About: "Delivers a webhook again, under the same id.",
			Policy: Policy{Access: Bearer, Scopes: both, Limit: LimitResend, Style: Standard}, Status: http.StatusAccepted, Writes: true,
			Errors: []Failure{notFound}, do: endpoint(h.resendDelivery),
		},
		{
			Method: http.MethodGet, Path: "/user/fees/", Name: "getFees", Group: "Account", About: "Lists the platform fees earned, by currency.",
			Policy: Policy{Access: Bearer, Scopes: []auth.Scope{auth.Admin}, Limit: LimitAPI, Style: Standard}, Status: http.StatusOK, do: endpoint(h.getFees),
		},

		// Administration: manage.go
		{
			Method: http.MethodGet, Path: "/manage/users/balances/{blockchain}/", Name: "getHoldings", Group: "Administration", About: "Says what is held of a token, by where it is held.",
			Policy: manage, Status: http.StatusOK, Errors: []Failure{invalidRequest}, do: endpoint(h.heldOf),
		},
		{
			Method: http.MethodPost, Path: "/manage/users/balances/sync/", Name: "syncHoldings", Group: "Administration", About: "Reads hot, cold and custody balances anew; about once an hour is enough.",
			Policy: manage, Status: http.StatusOK, Writes: true, do: endpoint(h.syncHoldings),
		},
		{
			Method: http.MethodGet, Path: "/manage/users/balances/", Name: "listHoldings", Group: "Administration", About: "Lists what is held, with the wallets and accounts that hold it.",
			Policy: manage, Status: http.StatusOK, Errors: []Failure{invalidRequest}, do: endpoint(h.listHoldings),
		},
	}, h.operationRoutes()...)
}
