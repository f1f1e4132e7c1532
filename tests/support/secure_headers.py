"""The defaults of `secure_headers`, by option."""

from __future__ import annotations

DEFAULTS = {
    "content_security_policy": "default-src 'self'",
    "strict_transport_security": "max-age=31536000; includeSubDomains",
    "x_frame_options": "DENY",
    "x_content_type_options": "nosniff",
    "referrer_policy": "strict-origin-when-cross-origin",
    "x_xss_protection": "0",
    "permissions_policy": "geolocation=(), camera=(), microphone=()",
}
