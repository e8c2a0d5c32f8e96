import { createHmac, timingSafeEqual } from "node:crypto";

// verify reports whether a delivery is the service's own: its signature fits, and it is not
// replayed later. headers are in small letters, as Node has them; body is a Buffer of the
// request's body as it came, before any JSON is read; now is in seconds.
export function verify(headers, body, secret, now = Date.now() / 1000) {
  const id = headers["webhook-id"] ?? "";
  const timestamp = headers["webhook-timestamp"] ?? "";
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now - Number(timestamp)) > 300) return false;
  const want = Buffer.from("v1," + createHmac("sha256", secret).update(`${id}.${timestamp}.`).update(body).digest("base64"));
  return (headers["webhook-signature"] ?? "").split(" ").some((text) => {
    const got = Buffer.from(text);
    return got.length === want.length && timingSafeEqual(got, want);
  });
}
