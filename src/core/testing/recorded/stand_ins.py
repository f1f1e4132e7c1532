"""What a recorded test has in place of secrets: of a header, a cookie, a field of a form or of JSON, a row.

What one of the local secrets has signed is signed again by that of the test. Any other secret text becomes one that
everybody may know, and the records that have it, or its SHA-256, get the other one, too.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote_plus, unquote_plus

import attrs

from core import passwords
from core.errors import DeveloperError
from core.http.headers import is_secret
from core.signing import unsign
from core.testing.recorded.values import Jwt, Revealed, Sent, Signed, StandIn, State, mapped

_FIELD: Final = re.compile(r"([^=&]+)=([^&]+)")
_SCHEMES: Final = frozenset({"", "apikey", "basic", "bearer", "jwt", "token"})
_SHORTEST: Final = 8


@attrs.define
class StandIns:
    """The secrets of one exchange. `secrets` are the local ones by name, `now` the time of the exchange."""

    secrets: Mapping[str, str]
    declared: frozenset[str]
    """The names of the values that are secrets, and not variables with another value on this machine."""
    now: float
    _texts_too: bool = attrs.field(init=False, default=False)
    texts: dict[str, str] = attrs.field(init=False, factory=dict[str, str])
    """The text in place of each secret text."""

    def request(self, sent: Sent, *, texts_too: bool) -> Sent:
        """The request without what the local secrets have signed, and then without secret texts: in its headers,
        cookies, query and body.
        """
        self._texts_too = texts_too
        cookies = {name: self._other(value, f"cookie {name}") for name, value in sent.cookies.items()}
        body = self._fields(sent.body) if isinstance(sent.body, str) else sent.body
        url, mark, query = sent.url.partition("?")
        headers, json = mapped(sent.headers, self._other), mapped(sent.json, self._other)
        return Sent(sent.method, url + mark + self._fields(query), headers, cookies, json, body)

    def _fields(self, text: str) -> str:
        def other(found: re.Match[str]) -> str:
            value = unquote_plus(found[2])
            instead = self._text(value, found[1]) if is_secret(found[1].lower()) else value
            return found[0] if instead == value else f"{found[1]}={quote_plus(instead)}"

        return _FIELD.sub(other, text)

    def _other(self, value: object, name: str) -> object:
        return self._value(value, name) if value and isinstance(value, str) and is_secret(name.lower()) else value

    def _value(self, value: str, name: str) -> str | StandIn:
        scheme, _, text = value.rpartition(" ")
        if scheme.lower() not in _SCHEMES:
            scheme, text = "", value
        made = Jwt.read(text, self.secrets, scheme, self.now)
        if made is not None:
            return made
        for secret, key in self.secrets.items():
            if text == key:
                return Revealed(secret, scheme)
            signed = unsign(name, text, [key.encode()])
            if signed is not None and not scheme:
                return Signed(secret, name, signed)
        return f"{scheme} {self._text(text, name)}".lstrip()

    def _text(self, text: str, name: str) -> str:
        if not self._texts_too:
            return text
        # As long as the text, with small and large letters, a digit and a mark: an application may insist on them.
        word = re.sub(r"\W+", "-", name.lower())
        instead = f"Aa{len(self.texts) + 1}-{word}-of-a-test-"
        return self.texts.setdefault(text, (instead * len(text))[: len(text)])

    async def records(self, state: State) -> State:
        """Records with the other texts in place of the secret ones of the request, and of those in columns that are
        named as secrets.

        A hash of a password of the request becomes one of the text in its place, any other one of another password.
        It takes a third of a second for each.
        """
        texts = dict(self.texts)
        for text, instead in self.texts.items():
            texts[hashlib.sha256(text.encode()).hexdigest()] = hashlib.sha256(instead.encode()).hexdigest()
        # A short text is in many that have nothing to do with it.
        long = sorted((text for text in texts if len(text) >= _SHORTEST), key=len, reverse=True)
        any_of = re.compile("|".join(map(re.escape, long)) or r"\Z.")
        hashes: set[str] = set()
        mapped(
            state, lambda part, _: hashes.add(part) if isinstance(part, str) and part.startswith("$scrypt$") else None
        )
        for value in hashes:
            known = [instead for text, instead in self.texts.items() if await passwords.verify(text, value)]
            texts[value] = await passwords.hash(known[0] if known else "The password of somebody else")

        def other(value: object, name: str) -> object:
            if not isinstance(value, str):
                return value
            if value and value not in texts and is_secret(name.lower()) and not value.isdigit():
                return self._text(value, name)
            return texts.get(value) or any_of.sub(lambda found: texts[found[0]], value)

        return {place: mapped(records, other) for place, records in state.items()}

    def refuse_secrets(self, text: str) -> None:
        """Raise DeveloperError for a test with the value of a secret of `.dev.vars`, or with that of another entry of 8
        characters or more.
        """
        constants = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
        values = [each if isinstance(each, bytes) else str(each).encode("utf-8", "replace") for each in constants]
        for name, secret in self.secrets.items():
            counts = secret and (name in self.declared or len(secret) >= _SHORTEST)
            if counts and any(secret.encode() in value for value in values):
                raise DeveloperError(f"it has the value of {name} of .dev.vars, which no test may have. Send another")
