"""The ways to authenticate for a route: by the framework's authenticators, or by what one of its own reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.openapi.facts import Raise, Read, RouteFacts, Security, StepFacts
from core.openapi.functions import Reader

_CHALLENGE: Final = "www-authenticate"


class SecuritySchemes:
    """The security schemes of one document, by their names."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.schemes: dict[str, Mapping[str, object]] = {}

    def of(self, route: RouteFacts) -> list[dict[str, list[str]]]:
        """The ways to authenticate for a route; none where it needs no credentials."""
        demanded: dict[str, list[str]] = {}
        optional: dict[str, list[str]] = {}
        unknown = False
        for step in (*route.steps, StepFacts(route.handler)):
            security, is_optional = self._recognised(step)
            if security is None:
                unknown = unknown or step.authenticates
                continue
            name = security.name
            asked = [self.schemes[known].get("scheme") for known in (*demanded, *optional)]
            if step.security is None and security.scheme.get("scheme") in asked:
                continue  # whose token one before it has verified
            if self.schemes.get(name, security.scheme) != security.scheme:
                name = f"{name}_{step.function.name.rpartition('.')[2] if step.function is not None else 'other'}"
            self.schemes[name] = security.scheme
            (optional if is_optional or self._may_be_nobody(step) else demanded)[name] = []
        if unknown and not demanded:
            demanded, optional = optional, {}  # an authenticator that looks into the session
        if not demanded and not optional:
            return []
        return [demanded, {**demanded, **optional}] if optional else [demanded]

    def _may_be_nobody(self, step: StepFacts) -> bool:
        """True for an authenticator of the application's own that may return None:
        nobody in particular is let in too.
        """
        if step.function is None or not step.authenticates:
            return False
        returned = self.reader.returned(step.function)
        return {"type": "null"} in returned.get("anyOf", (returned,))

    def _recognised(self, step: StepFacts) -> tuple[Security | None, bool]:
        """Return the security scheme of a step, and whether it is optional: its own, or that of an authenticator of the
        framework that it calls, or by the part of a request that it reads, or by its challenge.
        """
        if step.security is not None or step.function is None:
            return step.security, step.optional
        found = self.reader.alone(step.function)
        reads = [each for each in found if isinstance(each, Read) and each.name is not None]
        for each in reads:
            if each.part == "security":
                called = self.reader.application.authenticators[each.name or ""]
                if called.security is not None:
                    return called.security, not each.required
        read = [(each.part.partition("-")[0], each.name or "") for each in reads]
        named = [(where, name) for where, name in read if where in ("header", "cookie", "query")]
        own = [(where, name) for where, name in named if name.lower() != "authorization"]
        if step.authenticates and own and len(own) == len(named):
            where, name = own[0]
            return _key_in(where, name), step.optional
        for raised in found:
            if isinstance(raised, Raise) and 401 in raised.status:
                for name, value in raised.headers.items():
                    scheme = str(value.get("const", "")).partition(" ")[0].lower()
                    if name.lower() == _CHALLENGE and scheme:
                        return Security(scheme, {"type": "http", "scheme": scheme}), step.optional
        if step.authenticates and named:
            where, name = named[0]
            return _key_in(where, name), step.optional
        return None, step.optional


def _key_in(where: str, name: str) -> Security:
    return Security(name.lower(), {"type": "apiKey", "in": where, "name": name})
