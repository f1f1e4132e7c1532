"""Header fields, as the Fetch standard keeps them.

Decided here: which names and values are allowed, how repeated ones are joined, and that `Set-Cookie`
never is. https://fetch.spec.whatwg.org/#headers-class
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, cast, overload

__all__ = ["Headers", "HeadersInit", "HeadersView", "check_name", "check_value", "is_token", "plain_values"]

if TYPE_CHECKING:
    from collections.abc import ItemsView, KeysView, ValuesView

    from typing_extensions import TypeForm

    _D = TypeVar("_D")
    _T = TypeVar("_T")


_IN_TOKENS = frozenset("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


def is_token(text: str) -> bool:
    """Return True if a string is a token of RFC 9110, which names of fields, cookies and methods have to be."""
    return text != "" and _IN_TOKENS.issuperset(text)


# Every name that passed the check, under the spelling it was given in. Applications use a few dozen; the bound is
# against one that takes names from its clients.
_NAMES: dict[str, str] = {}
_NAMES_MOST = 1024


def check_name(name: str, method: str = "set") -> str:
    """Return `name` in lower case.

    Raises TypeError when it is not a token of RFC 9110. (The runtime lets the empty name and names beyond ASCII pass,
    the standard does not: those get the standard's words, with `method` in them.)
    """
    known = _NAMES.get(name)
    if known is not None:
        return known
    if not isinstance(name, str):
        raise TypeError(f"Invalid header name. It must be a str, not {type(name).__name__}.")
    if not is_token(name):
        if not name or not name.isascii():
            raise TypeError(f'Headers.{method}: "{name}" is an invalid header name.')
        raise TypeError("Invalid header name.")
    lowered = name.lower()
    if len(_NAMES) >= _NAMES_MOST:
        _NAMES.clear()
    _NAMES[name] = lowered
    return lowered


def check_value(value: str) -> str:
    """Return `value` without the blanks and newlines at its ends.

    Raises TypeError for CR, LF and NUL inside (they would end the field and begin another), and for characters beyond
    latin-1, which a header cannot carry: percent-encode those, or send them in the body.
    """
    if not isinstance(value, str):
        raise TypeError(f"Invalid header value. It must be a str, not {type(value).__name__}: write str(value).")
    if value.isascii() and value.isprintable():
        return value.strip(" ")
    value = value.strip(" \t\r\n")
    if "\r" in value or "\n" in value or "\0" in value:
        raise TypeError("Invalid header value.")
    try:
        value.encode("latin-1")
    except UnicodeEncodeError as error:
        # In UTF-16 units and in the standard's words, as everywhere else here.
        unit = int.from_bytes(value[error.start].encode("utf-16-be", "surrogatepass")[:2], "big")
        at = len(value[: error.start].encode("utf-16-be", "surrogatepass")) // 2
        raise TypeError(
            "Cannot convert argument to a ByteString because the character at "
            f"index {at} has a value of {unit} which is greater than 255."
        ) from None
    return value


def plain_values(init: Any) -> dict[str, str] | None:
    """The headers of a dict by lower-case name, checked.

    None where one comes twice, where a cookie is among them, and for whatever is not a dict. Raises TypeError as
    `Headers` does.
    """
    given: dict[str, str] = init  # before the check, which would narrow it to a dict of unknown types
    if type(init) is not dict:
        return None
    values: dict[str, str] = {}
    for name, value in given.items():
        # As `check_name` and `check_value` have it for nearly every header, without the calls.
        lowered = _NAMES.get(name) or check_name(name, "append")
        if type(value) is str and value.isascii() and value.isprintable():
            values[lowered] = value.strip(" ")
        else:
            values[lowered] = check_value(value)
    return values if len(values) == len(given) and "set-cookie" not in values else None


class Entries(Mapping[str, str]):
    """A mapping whose views give every entry, also where several have one name, as the standards' iterators do."""

    __slots__ = ()

    def _entries(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def keys(self) -> KeysView[str]:
        """The name of every entry, in order."""
        from core.http.views import Keys

        return Keys(self)

    def values(self) -> ValuesView[str]:
        """The value of every entry, in the order of `keys()`."""
        from core.http.views import Values

        return Values(self)

    def items(self) -> ItemsView[str, str]:
        """Every entry, in the order of `keys()`."""
        from core.http.views import Items

        return Items(self)


class HeadersView(Entries):
    """The headers of a request that is being answered: a case-insensitive mapping of names to values, to be read.

    Iteration gives the distinct names in lower case, sorted; `keys()`, `values()` and `items()` give the entries of the
    Fetch standard, where each `Set-Cookie` is one of its own. `copy()` gives headers that can be changed.
    """

    __slots__ = ("_cookies", "_parts", "_values")

    _values: dict[str, str]  # by lower-case name, joined; never set-cookie
    _cookies: list[str]
    _parts: dict[str, list[str]] | None  # the values that were joined, for get_all

    @classmethod
    def trusted(cls, values: dict[str, str], set_cookies: list[str]) -> Self:
        """Headers of names and values that were checked before.

        Both are kept, not copied; names are lower case, none `set-cookie`.
        """
        self = cls.__new__(cls)
        self._values = values
        self._cookies = set_cookies
        self._parts = None
        return self

    @staticmethod
    def of(headers: HeadersView) -> HeadersView:
        """A view of `headers`, which shows changes made there."""
        view = HeadersView.trusted(headers._values, headers._cookies)
        view._parts = headers._parts
        return view

    def raw(self) -> list[tuple[str, str]]:
        """The entries in no order, cookies apart: the form that a host writes."""
        if self._cookies:
            return [*self._values.items(), *[("set-cookie", cookie) for cookie in self._cookies]]
        return list(self._values.items())

    def _entries(self) -> list[tuple[str, str]]:
        # Sorting by the name alone keeps the cookies in their own order.
        return sorted(self.raw(), key=lambda entry: entry[0])

    # ---- reading

    def __getitem__(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    @overload
    def get(self, name: str, default: None = None, /) -> str | None: ...
    @overload
    def get(self, name: str, default: str | _D, /) -> str | _D: ...
    def get(self, name: str, default: object = None, /) -> object:
        """The value of `name`, joined if there are several (cookies too), or `default`."""
        value = self._values.get(name)
        if value is not None:
            return value
        lowered = check_name(name, "get")
        if lowered == "set-cookie":
            return ", ".join(self._cookies) if self._cookies else default
        return self._values.get(lowered, default)

    def parse(self, type_: TypeForm[_T], /) -> _T:
        """The headers as a `T`, an attrs class or TypedDict: texts become the annotated scalars.

        The field `if_match` is the header `If-Match`. A field annotated as a list takes the values between the commas.
        Other headers are ignored.

            @attrs.frozen
            class Conditions:
                if_match: str | None = None
                x_retry_count: int = 0

            conditions = req.headers.parse(Conditions)

        Raises ValidationError, which is answered with 422, with every mistake and the header's name as its path.
        """
        from core.validation.structure import structure_headers

        return structure_headers(self._values, type_)

    def get_set_cookie(self) -> list[str]:
        """Every `Set-Cookie`, in the order of setting."""
        return self._cookies.copy()

    def get_all(self, name: str) -> list[str]:
        """The values of `name` one by one, as they were appended."""
        lowered = check_name(name, "get")
        if lowered == "set-cookie":
            return self._cookies.copy()
        if self._parts is not None and lowered in self._parts:
            return self._parts[lowered].copy()
        return [self._values[lowered]] if lowered in self._values else []

    def __contains__(self, name: object) -> bool:
        if name in self._values:
            return True
        if not isinstance(name, str):
            return False
        lowered = check_name(name, "has")
        return bool(self._cookies) if lowered == "set-cookie" else lowered in self._values

    def has(self, name: str) -> bool:
        """Return True if there is a value under `name`: the Fetch standard's spelling of `in`."""
        return name in self

    def __iter__(self) -> Iterator[str]:
        names = list(self._values)
        if self._cookies:
            names.append("set-cookie")
        names.sort()
        return iter(names)

    def __len__(self) -> int:
        return len(self._values) + bool(self._cookies)

    def copy(self) -> Headers:
        """Headers of their own with the same entries."""
        return Headers(self)

    __copy__ = copy

    # ---- as a value

    def __eq__(self, other: object) -> bool:
        if isinstance(other, HeadersView):
            return self._values == other._values and self._cookies == other._cookies
        if isinstance(other, Mapping):
            return {name: self[name] for name in self} == {
                str(name).lower(): value for name, value in cast("Mapping[object, object]", other).items()
            }
        return NotImplemented

    def __repr__(self) -> str:
        # Without credentials: representations end in logs.
        entries = [(name, "…" if is_secret(name) else value) for name, value in self._entries()]
        return f"{type(self).__name__}({entries!r})"

    if not TYPE_CHECKING:  # which knows no such methods here

        def _closed(self, *_: object, **__: object) -> NoReturn:
            raise TypeError(
                "the headers of a request cannot be changed. Keep what you add in req.state, and take req.headers.copy() "
                "for the headers of another request"
            )

        __setitem__ = __delitem__ = set = append = delete = _closed
        clear = pop = popitem = setdefault = update = _closed


class Headers(MutableMapping[str, str], HeadersView):
    """A case-insensitive mapping of names to values that keeps repeated `Set-Cookie` apart.

    Setting replaces, `append` adds: values of one name are joined by `, ` (`cookie` by `; `, as HTTP has it), except
    `set-cookie`. Iteration gives the distinct names in lower case, sorted; `keys()`, `values()` and `items()` give the
    entries of the Fetch standard, where each cookie is one of its own.

    Raises TypeError for names and values that no header can have.
    """

    __slots__ = ()

    def __init__(self, init: HeadersInit | None = None) -> None:
        self._values = {}
        self._cookies = []
        self._parts = None
        if init is None:
            return
        given: Any = init  # not narrowed by what follows
        values = plain_values(init)
        if values is not None:
            self._values = values
        elif type(init) is not list and isinstance(init, HeadersView):
            self._values = init._values.copy()
            self._cookies = init._cookies.copy()
            if init._parts:
                self._parts = {name: parts.copy() for name, parts in init._parts.items()}
        else:
            for name, value in given.items() if isinstance(init, Mapping) else given:
                self.append(name, value)

    # ---- changing

    def __setitem__(self, name: str, value: str) -> None:
        lowered = check_name(name)
        value = check_value(value)
        if lowered == "set-cookie":
            self._cookies[:] = [value]  # in place: a response shares the list
        else:
            self._values[lowered] = value
            if self._parts is not None:
                self._parts.pop(lowered, None)

    def set(self, name: str, value: str) -> None:
        """Replace the value under `name`: the Fetch standard's spelling of `headers[name] = value`."""
        self[name] = value

    def append(self, name: str, value: str) -> None:
        """Add a value to those that `name` has."""
        lowered = check_name(name, "append")
        value = check_value(value)
        if lowered == "set-cookie":
            self._cookies.append(value)
            return
        old = self._values.get(lowered)
        if old is None:
            self._values[lowered] = value
            return
        if self._parts is None:
            self._parts = {}
        self._parts.setdefault(lowered, [old]).append(value)
        # A comma would change the cookies (RFC 9113, 8.2.3).
        self._values[lowered] = f"{old}{'; ' if lowered == 'cookie' else ', '}{value}"

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self.delete(name)

    def delete(self, name: str) -> None:
        """Take away the value under `name`, if there is one: unlike `del`, a missing name is not an error."""
        lowered = check_name(name, "delete")
        if lowered == "set-cookie":
            self._cookies.clear()
        elif self._values.pop(lowered, None) is not None and self._parts is not None:
            self._parts.pop(lowered, None)

    def clear(self) -> None:
        """Take everything away."""
        self._values.clear()
        self._cookies.clear()
        self._parts = None


HeadersInit = Mapping[str, str] | Iterable[tuple[str, str]] | HeadersView
"""The types that headers can be made of: a mapping, pairs, or other headers (which are copied)."""


_SECRETS = (
    "authorization", "cookie", "token", "secret", "password", "passwd", "passphrase", "credential", "api-key", "api_key",
    "apikey", "signature", "session", "jwt",
)  # fmt: skip


def is_secret(name: str) -> bool:
    """Return True if a value of this name, in lower case, carries credentials: tokens, cookies, keys, signatures."""
    return any(word in name for word in _SECRETS)
