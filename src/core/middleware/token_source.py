"""The place of a token in a request: behind a scheme in a header, alone in a header, or in a cookie.

Decided here: that there is one token or none, and that its length is looked at before anything else. Its content is
for `jwt_auth` and `bearer_auth` to decide. RFC 6750, section 2.1, for the header.
"""

from __future__ import annotations

import re

from core.errors import OptionError
from core.http.headers import check_name
from core.middleware import options
from core.request import AnyRequest

_TOKEN = "[A-Za-z0-9._~+/-]+=*"
# Beside a scheme a token is one of RFC 6750; a key that is alone may be anything that is visible.
_is_alone = re.compile(r"[!-~]+").fullmatch


class Refusal(Exception):
    """The reason why a token is not accepted, for the log alone; `missing` where the request brings none."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.missing = missing


class TokenSource:
    """Finds the token of a request.

    Raises OptionError, in the words of the middleware `call`, for options that cannot be.
    """

    def __init__(
        self, call: str, scheme: str | None, header: str, cookie: str | None, max_length: int, *, least: int = 1
    ) -> None:
        options.integer(call, "max_length", max_length, least=least, most=65_536, unit="characters")
        if scheme is not None and not options.word(scheme):
            raise options.refuse(call, "scheme", scheme, 'must be a word such as "Token", or None for a token alone')
        self.header: str = options.header_name(call, "header", header).lower()
        self.scheme: str | None = scheme
        self.cookie: str | None = cookie
        if cookie is not None:
            try:
                check_name(cookie)
            except TypeError:
                raise options.refuse(call, "cookie", cookie, "must be the name of a cookie") from None
            if self.header != "authorization" or scheme != "Bearer":
                raise OptionError(f"{call}(cookie={cookie!r}) goes without header and scheme. Remove them")
            self.scheme = None
        elif self.header != "authorization" and scheme == "Bearer":
            self.scheme = None  # the scheme belongs to Authorization; in a header of its own a token is alone
        self._most = max_length
        self._behind = (
            None if self.scheme is None else re.compile(f"{re.escape(self.scheme)} +({_TOKEN})", re.IGNORECASE)
        )

    @property
    def challenge(self) -> str:
        """The value of `WWW-Authenticate`, which every 401 has."""
        return self.scheme or "Bearer"

    @property
    def varies(self) -> str | None:
        """The header that `Vary` has to name: caches know of `Authorization` alone (RFC 9111, section 3.5)."""
        if self.cookie is not None:
            return "Cookie"
        return None if self.header == "authorization" else self.header

    def read(self, req: AnyRequest) -> str:
        """The token. Raises Refusal where there is none, where it is too long, and where there is more than one."""
        given = req.header(self.header) if self.cookie is None else req.cookies.get(self.cookie)
        if given is None:
            raise Refusal(f"there is no {self.cookie or self.header}", missing=True)
        return self.token_in(given)

    def token_in(self, given: str) -> str:
        """The token in the value of the header or the cookie. Raises Refusal as `read` does."""
        if len(given) > self._most + len(self.scheme or "") + 10:
            raise Refusal("the token is too long")
        # Two headers come joined by a comma and a blank, which no token has.
        match = (_is_alone if self._behind is None else self._behind.fullmatch)(given)
        if match is None:
            raise Refusal(f"{self.cookie or self.header} has not one {self.scheme or ''} token".replace("  ", " "))
        token = match[match.re.groups]
        if len(token) > self._most:
            raise Refusal("the token is too long")
        return token
