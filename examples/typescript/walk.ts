// A merchant's program in TypeScript: its types are generated from the service's own
// document, so what does not fit the interface does not compile. It creates a payment, lists
// it, reads what came for it, and has a webhook delivered again.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const base = process.env.BASE ?? "http://127.0.0.1:8080";
const id = process.env.CRYPTOPAY_CLIENT_ID ?? "";
const secret = process.env.CRYPTOPAY_CLIENT_SECRET ?? "";

// A token, by OAuth 2.0 client credentials.
async function token(): Promise<string> {
  const answer = await fetch(`${base}/o/token/`, {
    method: "POST",
    headers: { Authorization: `Basic ${btoa(`${id}:${secret}`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", scope: "read write admin" }),
  });
  assert.equal(answer.status, 200);
  const body: components["schemas"]["Token"] = await answer.json();
  return body.access_token;
}

// What a customer and a chain do: the gateway simulates both.
async function simulate(path: string, body: object): Promise<void> {
  const answer = await fetch(base + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  assert.equal(answer.status, 200, path);
}

const api = createClient<paths>({ baseUrl: base, headers: { Authorization: `Bearer ${await token()}` } });

// Fields that have a default may be left out.
const made = await api.POST("/payments/", {
  body: { amount: "25.00", currency: "USDTTRC20", order_id: "typescript-1" },
  headers: { "Idempotency-Key": "typescript-1" },
});
assert.ok(made.data, JSON.stringify(made.error));
const payment = made.data;
assert.equal(payment.status, "waiting");
assert.equal(payment.memo, null);

const found = await api.GET("/payments/", { params: { query: { order_id: "typescript-1" } } });
assert.equal(found.data?.count, 1);
assert.equal(found.data?.results[0]?.transaction_id, payment.transaction_id);

await simulate("/dev/pay", { address: payment.address, currency: payment.currency, amount: payment.amount_crypto });
await simulate("/dev/mine", { blockchain: "TRX", blocks: 25 });

const path = { transaction_id: payment.transaction_id };
const came = await api.GET("/payments/{transaction_id}/deposits/", { params: { path } });
const deposit = came.data?.deposits[0];
assert.ok(deposit, JSON.stringify(came.error));
assert.equal(deposit.status, "final");
assert.equal(deposit.role, "counted");
assert.equal(deposit.amount, payment.amount_crypto);

const log = await api.GET("/webhooks/deliveries/", { params: { query: { object_id: payment.transaction_id, event: "payment_status_update" } } });
const delivery = log.data?.deliveries[0];
assert.ok(delivery, JSON.stringify(log.error));
const again = await api.POST("/webhooks/deliveries/{delivery_id}/resend/", { params: { path: { delivery_id: delivery.delivery_id } } });
assert.equal(again.response.status, 202);
assert.equal(again.data?.delivery_id, delivery.delivery_id);

// Errors have a type, too.
const refused = await api.POST("/suspense/{suspense_id}/resolve/", {
  params: { path: { suspense_id: "TRX~none:0" } },
  body: { action: "credit", reason: "there is no such entry" },
});
assert.equal(refused.response.status, 404);
assert.equal(refused.error?.error.code, "not_found");

console.log(`walk.ts: payment ${payment.transaction_id} came by ${deposit.transaction_hash}`);
