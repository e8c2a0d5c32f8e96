<?php

// verify reports whether a delivery is the service's own: its signature fits, and it is not
// replayed later. $headers are as $_SERVER has them; $body is the request's body as it came:
// file_get_contents("php://input").
function verify(array $headers, string $body, string $secret, ?int $now = null): bool
{
    $id = $headers["HTTP_WEBHOOK_ID"] ?? "";
    $timestamp = $headers["HTTP_WEBHOOK_TIMESTAMP"] ?? "";
    if (!preg_match('/^[0-9]{1,12}$/D', $timestamp) || abs(($now ?? time()) - (int) $timestamp) > 300) {
        return false;
    }
    $want = "v1," . base64_encode(hash_hmac("sha256", "$id.$timestamp.$body", $secret, true));
    foreach (explode(" ", $headers["HTTP_WEBHOOK_SIGNATURE"] ?? "") as $got) {
        if (hash_equals($want, $got)) {
            return true;
        }
    }
    return false;
}
