import base64
import hashlib
import hmac
import re
import time


def verify(headers, body, secret, now=None):
    """Report whether a delivery is the service's own.

    Its signature fits, and it is not replayed later. headers has a get() that does not
    mind capitals, as Flask and Django have it; body is bytes: the request's body as it
    came, before any JSON is read.
    """
    msg_id = headers.get("Webhook-Id") or ""
    timestamp = headers.get("Webhook-Timestamp") or ""
    now = time.time() if now is None else now
    if not re.fullmatch("[0-9]{1,12}", timestamp) or abs(now - int(timestamp)) > 300:
        return False
    signed = f"{msg_id}.{timestamp}.".encode() + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    want = b"v1," + base64.b64encode(digest)
    signatures = (headers.get("Webhook-Signature") or "").split(" ")
    return any(hmac.compare_digest(s.encode(), want) for s in signatures)
