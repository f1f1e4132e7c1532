"""The checks of options of middleware, and the messages about bad ones.

Every check runs when the middleware is built and raises OptionError, which shows the call as it was
written (`timeout(duration=0)`), the fault, and the value to write.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, get_origin

from typing_extensions import TypeIs

from core.errors import EnvError, OptionError, plain_status
from core.http import headers
from core.values import is_object

UNNAMED: Any = None
"""The default of a factory's first argument, where no Env is named. It is Any: a None would be taken for the type of
`req.env`.
"""


def named_env(call: str, env: object) -> None:
    """Refuse a first argument that is not a class: it names `req.env` for type checkers, and options go by name."""
    if env is not None and not isinstance(get_origin(env) or env, type):
        raise OptionError(
            f"{call}(…): only the class of req.env may stand first, so that type checkers know it: {call}(Env, …). "
            "Write every option with its name"
        )


def refuse(call: str, option: str, value: object, why: str) -> OptionError:
    """The error for an option: `timeout(duration=0) must be …`."""
    return OptionError(f"{call}({option}={'…' if callable(value) else repr(value)}) {why}")


def function_of_request(call: str, option: str, given: object, binding: str) -> None:
    """Refuse what is no function that gives a secret. A string is a key in the source, or the name of a binding."""
    if given is not None and not callable(given):
        raise OptionError(
            f"{call}({option}=…) must be a function of the request. Write {option}=lambda req: req.env.{binding}"
        )


def integer(call: str, option: str, value: object, *, least: int, most: int | None = None, unit: str = "") -> int:
    """An int from `least` to `most`; True and 5.0 are none."""
    if type(value) is not int or value < least or (most is not None and value > most):
        bounds = f"of {least} or more" if most is None else f"from {least} to {most}"
        raise refuse(call, option, value, f"must be an int {bounds}{', in ' + unit if unit else ''}")
    return value


def number(call: str, option: str, value: object, *, unit: str) -> float:
    """A finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise refuse(call, option, value, f"must be a finite number above 0, in {unit}")
    return value


def status(call: str, value: object) -> int:
    """The status of an error."""
    plain = plain_status(value)
    return integer(call, "status", value if plain is None else plain, least=400, most=599)


def text(call: str, option: str, value: object, *, empty: bool = False) -> str:
    """A str, and not an empty one unless that is allowed."""
    if not isinstance(value, str) or not (value or empty):
        raise refuse(call, option, value, "must be a str" if empty else "must be a str that is not empty")
    return value


def one_of(call: str, option: str, value: object, choices: tuple[str, ...]) -> None:
    """One of a few words."""
    if value not in choices:
        raise refuse(call, option, value, f"must be one of {', '.join(repr(choice) for choice in choices)}")


def header_name(call: str, option: str, value: object) -> str:
    """A header's name, as it was given. Raises for anything but a token, a line break in it above all."""
    name = text(call, option, value)
    if not word(name):
        raise refuse(
            call, option, value, 'is not a header name. Use letters, digits and hyphens, for example "X-Request-Id"'
        )
    return name


def header_value(call: str, option: str, value: object) -> str:
    """A header's value. Raises for CR, LF, NUL and characters beyond latin-1."""
    given = text(call, option, value)
    # The check below takes line breaks off the ends, as HTTP parsers do; in an option they are a mistake.
    if any((ord(char) < 32 and char != "\t") or char == "\x7f" for char in given):
        raise refuse(call, option, value, "has a control character, which no header can carry. Write it on one line")
    try:
        return headers.check_value(given)
    except TypeError:
        raise refuse(
            call, option, value, "has a character that no header can carry. Percent-encode what is not latin-1"
        ) from None


def word(value: Any) -> bool:
    """Return True if a value is a token of RFC 9110: the form of methods, header names and cookie names."""
    try:
        headers.check_name(value)
    except TypeError:
        return False
    return True


def is_awaitable(value: object) -> TypeIs[Awaitable[Any]]:
    """Return True if a function of an option turned out to be async."""
    return isinstance(value, Awaitable)


async def awaited(value: object) -> Any:
    """The result of an option's function, which may be sync or async."""
    return await value if is_awaitable(value) else value


def digest(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal: a key that is short and tells nothing of the text."""
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def resolve(call: str, binding: str | Callable[[Any], object], req: Any) -> Any:
    """The binding that an option names: by a function of the request, or by its name on `req.env`.

    Raises EnvError where `Env` has nothing of that name.
    """
    if not isinstance(binding, str):
        return binding(req)
    env: Any = req.env
    found: Any = getattr(env, binding, None)
    if found is None and is_object(env):
        found = env.get(binding)
    if found is None:
        problem = f'{call}: req.env has no binding "{binding}". Add it to Env and its table to the configuration file'
        raise EnvError([problem])
    return found
