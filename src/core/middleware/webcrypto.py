"""Signatures of public keys, proven by the runtime's WebCrypto: PyJWT's own cryptography is native code, which no
worker can load.

Decided here: the WebCrypto name of each algorithm of JSON Web Tokens, and that a key is taken for its own algorithm
alone. It takes the place of PyJWT's algorithms, but for `verify`, which is awaited. https://www.w3.org/TR/WebCryptoAPI/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from core.middleware.key_strength import require_bits

_MEMBERS = {"RSA": ("kty", "n", "e"), "EC": ("kty", "crv", "x", "y"), "OKP": ("kty", "crv", "x")}


@attrs.define(eq=False)
class SubtleKey:
    """A public key, handed to the runtime when the first signature is to be proven with it."""

    form: str
    """`jwk` or `spki`."""
    data: Mapping[str, str] | bytes
    imported: object = None


@attrs.frozen(eq=False)
class SubtleAlgorithm:
    """One algorithm: the kind of key it needs, and WebCrypto's names of key and signature."""

    kty: str
    _key: Mapping[str, str]
    _signature: Mapping[str, str | int]

    def prepare_key(self, pem: bytes) -> SubtleKey:
        """A key that is given as PEM ("BEGIN PUBLIC KEY"). Raises ValueError for anything else."""
        from base64 import b64decode

        lines = pem.decode("ascii").strip().splitlines()
        if len(lines) < 3 or lines[0] != "-----BEGIN PUBLIC KEY-----" or lines[-1] != "-----END PUBLIC KEY-----":
            raise ValueError("in a worker it must be PEM that begins with -----BEGIN PUBLIC KEY-----")
        return SubtleKey("spki", b64decode("".join(lines[1:-1]), validate=True))

    def from_jwk(self, jwk: Mapping[str, object]) -> SubtleKey:
        """A key of a set (RFC 7517). Raises ValueError for one of another kind. Its content is read when it is used."""
        if jwk.get("kty") != self.kty:
            raise ValueError(f"its kty is not {self.kty}")
        # A private key in a public set is not ours to use, and its other members were checked before.
        return SubtleKey("jwk", {name: str(jwk[name]) for name in _MEMBERS[self.kty] if name in jwk})

    async def verify(self, signed: bytes, key: SubtleKey, signature: bytes) -> bool:
        """Return True if `signature` is this key's of `signed`.

        Raises the runtime's own error for a key that is not one, and WeakKeyError for one of RSA that is too short.
        """
        import js
        from pyodide import ffi

        runtime: Any = js
        to_js: Any = ffi.to_js
        subtle = runtime.crypto.subtle

        def across(value: Mapping[str, object]) -> object:
            return to_js(dict(value), dict_converter=runtime.Object.fromEntries)

        imported = key.imported
        if imported is None:
            data = to_js(key.data) if isinstance(key.data, bytes) else across(key.data)
            imported = await subtle.importKey(key.form, data, across(self._key), False, to_js(["verify"]))
            if self.kty == "RSA":
                require_bits(int(imported.algorithm.modulusLength))
            key.imported = imported
        valid = await subtle.verify(across(self._signature), imported, to_js(signature), to_js(signed))
        return valid is True


def algorithms() -> dict[str, SubtleAlgorithm]:
    """Every algorithm of RFC 7518 and RFC 8037 that WebCrypto has, by its name in a token."""
    known = {"EdDSA": SubtleAlgorithm("OKP", {"name": "Ed25519"}, {"name": "Ed25519"})}
    for bits, curve in ((256, "P-256"), (384, "P-384"), (512, "P-521")):
        digest = f"SHA-{bits}"
        known[f"RS{bits}"] = SubtleAlgorithm(
            "RSA", {"name": "RSASSA-PKCS1-v1_5", "hash": digest}, {"name": "RSASSA-PKCS1-v1_5"}
        )
        known[f"PS{bits}"] = SubtleAlgorithm(
            "RSA", {"name": "RSA-PSS", "hash": digest}, {"name": "RSA-PSS", "saltLength": bits // 8}
        )
        known[f"ES{bits}"] = SubtleAlgorithm(
            "EC", {"name": "ECDSA", "namedCurve": curve}, {"name": "ECDSA", "hash": digest}
        )
    return known
