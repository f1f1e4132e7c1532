"""The credentials that an operation demands: those of the framework's authenticators, and what functions of the
application's own read on each way on which they let a request go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Final, TypeAlias

from core.openapi.components import Components
from core.openapi.facts import Answer, Effect, MiddlewareFacts, Passed, Raise, Read, RouteFacts, Security, Way
from core.openapi.functions import Reader

_WAY_PAST: Final = (
    "this condition lets requests in without the credentials that others need, so the document demands none. Put the "
    "guard before the routes that need it"
)
_TOGETHER: Final = (
    "whether {} are needed together is not known, so the document takes each alone. Compare each of them with None "
    "before they are used"
)
_OTHER_CHALLENGE: Final = (
    "the challenge is {0}, and what is read is {1}: clients send what the challenge names. "
    "Write AuthenticationError({2!r})"
)
_ABOUT_OTHERS: Final = re.compile(
    "accept|cf-|content-|forwarded|host|if-|origin|range|referer|sec-|user-agent|x-forwarded-", re.IGNORECASE
)
"""The beginnings of headers that say something else than who sends a request."""
_Credential: TypeAlias = tuple[str, str]
"""A part of a request and a name in it, such as `("header", "X-Key")`: a header, a cookie, a part of the query; what an
authenticator of the framework reads; the session, or the user, that a middleware before found.
"""
_Credentials: TypeAlias = frozenset[_Credential]
_PARTS: Final = frozenset(["header", "cookie", "query", "security", "session", "user"])
_Alternatives: TypeAlias = Sequence[Sequence[Security]]
_Requirement: TypeAlias = dict[str, list[str]]
"""The scopes of each scheme that is needed together, by its name: a Security Requirement Object of OpenAPI."""


class SecuritySchemes:
    """The security schemes of one document, by their names."""

    def __init__(self, reader: Reader, components: Components) -> None:
        self.reader = reader
        self.components = components
        self.schemes: dict[str, Mapping[str, object]] = {}

    def of(self, route: RouteFacts) -> list[_Requirement]:
        """The ways to authenticate for a route; none where it needs no credentials."""
        demanded: list[_Requirement] = [{}]
        optional: list[_Requirement] = [{}]
        for middleware in (*route.middleware, MiddlewareFacts(route.handler)):
            session = [[Security(name, self.schemes[name]) for name in way] for way in optional if way]
            found, is_optional = self._of_middleware(middleware, session, goes_on=middleware in route.middleware)
            if not found and middleware.authenticates and demanded == [{}]:
                found = session  # it looks into the session
            if not found:
                continue
            asked = {self.schemes[name].get("scheme") for way in (*demanded, *optional) for name in way} - {None}
            if middleware.security is None and asked & {each.scheme.get("scheme") for one in found for each in one}:
                continue  # whose token one before it has verified
            alternatives: list[_Requirement] = [{self._name(each, middleware): [] for each in one} for one in found]
            names = {name for each in alternatives for name in each}
            own = middleware.function if middleware.authenticates and found != session else None
            if own is not None and self.reader.may_return_none(own):
                is_optional = True  # nobody in particular is let in too
            if is_optional:
                optional = [{**way, **each} for way in optional for each in alternatives]
            else:
                demanded = [{**way, **each} for way in demanded for each in alternatives]
                optional = [{name: [] for name in way if name not in names} for way in optional]
        ways = [*demanded, *({**way, **more} for way in demanded for more in optional if more)]
        return ways if ways != [{}] else []

    def _name(self, security: Security, middleware: MiddlewareFacts) -> str:
        """The name of a scheme, which another one may have already."""
        name = security.name
        if self.schemes.get(name, security.scheme) != security.scheme:
            name = (
                f"{name}_{middleware.function.name.rpartition('.')[2] if middleware.function is not None else 'other'}"
            )
        self.schemes[name] = security.scheme
        return name

    def _of_middleware(
        self, middleware: MiddlewareFacts, session: _Alternatives, *, goes_on: bool
    ) -> tuple[_Alternatives, bool]:
        """Return the alternatives of a middleware, and whether it lets requests in without any. `session` is what one
        before it has for `req.session`; `goes_on` is False for a handler.
        """
        if middleware.security is not None or middleware.function is None:
            return [[middleware.security]] if middleware.security is not None else [], middleware.optional
        found = self.reader.alone(middleware.function)
        reads: dict[_Credential, Read] = {}
        for each in found:
            if isinstance(each, Read) and each.name is not None:
                reads.setdefault((each.part, each.name), each)
        refuses = any(isinstance(each, Raise | Answer) and 401 in each.status for each in found)
        is_guard = middleware.authenticates or (refuses and goes_on)
        passed = [each for each in found if isinstance(each, Passed)]
        needed, is_optional = self._needed(middleware, passed, reads) if is_guard else ({}, False)
        if not needed:  # what it reads may be sent
            whole = Way((*each, "") for each in reads)
            called = [each for each in reads if each[0] == "security"]
            read = called or [each for each in _credentials(whole, "") if middleware.authenticates or _is_token(each)]
            needed = {frozenset([each]): _words(whole) for each in read}
            is_optional |= not (all(reads[each].required for each in called) if called else refuses)
        order = [*reads]
        challenges = _challenges(found)
        own = [*map(_http, challenges)] or ([_key_in("header", "Authorization")] if is_guard else [])
        alternatives: list[Sequence[Security]] = []
        compared = list[str]()
        for group in sorted(needed, key=lambda each: sorted(map(order.index, each))):
            words = [name for part, name in order if part == "scheme" and name in needed[group]]
            compared += words if any(map(_is_token, group)) else []
            credentials = sorted(group, key=lambda each: (_is_certain(each), order.index(each)))
            alternatives += self._together(credentials, [*map(_http, words)] or own[:1], session)
        if is_guard and compared and "security" not in dict(order):
            self._tell_of_others(challenges, compared)
        known = [each for at, each in enumerate(alternatives) if each and each not in alternatives[:at]]
        return known, is_optional or middleware.optional or [] in alternatives

    def _tell_of_others(self, challenges: Mapping[str, Sequence[Raise]], compared: Sequence[str]) -> None:
        """A client sends the credentials that the challenge names, which are others than those that are read."""
        words = [*dict.fromkeys(word.capitalize() for word in compared)]
        example = f'{words[0]} realm="…"' if words[0] == "Basic" else words[0]
        for word in challenges.keys() - compared:
            message = _OTHER_CHALLENGE.format(word.capitalize(), " or ".join(words), example)
            for raised in challenges[word]:
                self.components.problem(raised, message)

    def _needed(
        self, middleware: MiddlewareFacts, passed: Sequence[Passed], reads: Mapping[_Credential, Read]
    ) -> tuple[dict[_Credentials, set[str]], bool]:
        """What a request needs to be let in, with the words for an `Authorization`, and whether some need nothing: on
        each way what is seen to be there, else what is read that shorter ways do without.
        """
        ways = {way for each in passed for way in each.ways} or {Way((*each, "") for each in reads)}
        there = {way: _credentials(way, "+").intersection(reads) for way in ways}
        missing = {way: _credentials(way, "-") for way in ways}
        read = {way: there[way] | _credentials(way, "") - missing[way] for way in ways}
        compared = frozenset(chain(*there.values()))
        needed: dict[_Credentials, set[str]] = {}
        past = set[Way]()
        goes_without = False
        for way in ways:
            own = read[way] - compared.union(*(other for other in read.values() if other < read[way]))
            if not middleware.authenticates:  # it may read a header for another reason, unless nothing is compared
                own = frozenset(each for each in own if _is_certain(each) or not (compared or each[0] == "query"))
            if not there[way] and len(own) > 1:
                names = " and ".join(sorted(name for _, name in own))
                self.components.problem(next(reads[each] for each in reads if each in own), _TOGETHER.format(names))
            for group in [there[way]] if there[way] else [frozenset([each]) for each in own]:
                needed.setdefault(group, set()).update(_words(way))
            goes_without |= bool(missing[way]) and not there[way] and not own
            if not (there[way] or missing[way] or own or (read[way] and middleware.authenticates)):
                past.add(way)
        for each in passed if needed else ():
            if each.ways & past:
                path, line = middleware.function.place if middleware.function is not None else ("", 0)
                self.components.problem(each if each.path else Effect(path=path, line=line), _WAY_PAST)
                goes_without = True
        return {each: needed[each] for each in needed if not any(other < each for other in needed)}, goes_without

    def _together(
        self, credentials: Sequence[_Credential], tokens: Sequence[Security], session: _Alternatives
    ) -> Iterator[Sequence[Security]]:
        """The schemes of credentials that are needed together, in each of the forms that they may have."""
        forms: list[_Alternatives] = []
        for part, name in credentials:
            if part == "security":  # which reads the token, where there is one
                security = self.reader.application.authenticators[name].security
                forms.append([[security]] if security is not None else [])
            elif part in ("session", "user"):
                forms.append(session)
            elif _is_token((part, name)):
                forms.append([[each] for each in tokens] if "security" not in dict(credentials) else [])
            else:
                forms.append([[_key_in(part, name)]])
        for one in product(*(each or [[]] for each in forms)):
            yield [*chain(*one)]


def _credentials(way: Way, *signs: str) -> _Credentials:
    """What has been read on a way to know who sends the request, as far as it has one of the signs."""
    return frozenset(
        (part, name)
        for part, name, sign in way
        if sign in signs and part in _PARTS and not (part == "header" and _ABOUT_OTHERS.match(name))
    )


def _is_token(credential: _Credential) -> bool:
    part, name = credential
    return part == "header" and name.lower() == "authorization"


def _is_certain(credential: _Credential) -> bool:
    """True for what is about credentials, whatever is done with it."""
    return credential[0] == "security" or _is_token(credential)


def _words(way: Way) -> set[str]:
    """The words that an `Authorization` is seen to begin with on a way, else those that it may begin with."""
    words = {sign: {name for part, name, how in way if part == "scheme" and how == sign} for sign in ("+", "-", "")}
    return words["+"] or words[""] - words["-"]


def _challenges(found: Sequence[Effect]) -> dict[str, list[Raise]]:
    """The errors that ask for credentials, by the scheme that their challenge begins with."""
    challenges: dict[str, list[Raise]] = {}
    for raised in found:
        if isinstance(raised, Raise) and 401 in raised.status:
            for name, value in raised.headers.items():
                if name.lower() == "www-authenticate" and (word := str(value.get("const", "")).partition(" ")[0]):
                    challenges.setdefault(word.lower(), []).append(raised)
    return challenges


def _http(word: str) -> Security:
    return Security(word, {"type": "http", "scheme": word})


def _key_in(where: str, name: str) -> Security:
    return Security(name.lower(), {"type": "apiKey", "in": where, "name": name})
