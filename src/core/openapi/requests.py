"""The input of an operation: its parameters, its body and its credentials, by all that is read of a request on the way.

Ways to authenticate are those of the framework's authenticators, or what one of the application's own reads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from core.http.json import JsonObject
from core.openapi.components import Components
from core.openapi.facts import BODIES, Answer, Effect, Passed, Raise, Read, RouteFacts, Security, StepFacts, Way
from core.openapi.failures import UNAUTHORIZED
from core.openapi.functions import Reader
from core.validation.schema import Schema, any_of, without_null

_SILENT_HEADERS: Final = frozenset(["accept", "authorization", "content-type", "cookie"])
"""Header parameters that OpenAPI says to leave out: other parts of a document say them."""
_BODILESS: Final = frozenset(["get", "head", "delete", "options", "trace"])
_WORDS: Final = {"query": "query", "header": "headers", "cookie": "cookies"}
_WAY_PAST: Final = (
    "this condition lets requests in without the credentials that others need, so the document demands none. Put the "
    "guard before the routes that need it"
)
_CHALLENGE: Final = "www-authenticate"
_WHO: Final = ("header", "cookie", "query", "security", "session", "user")
"""What a request is asked to know who sends it."""
_SENT: Final = frozenset(["header", "cookie", "security", "session"])
_ABOUT_OTHERS: Final = re.compile(
    "accept|cf-|content-|forwarded|host|if-|origin|range|referer|sec-|user-agent|x-forwarded-", re.IGNORECASE
)
"""The beginnings of headers that say something else than who sends a request."""
_TOGETHER: Final = (
    "whether {} are needed together is not known, so the document takes each alone. Compare each of them with None "
    "before they are used"
)
_Part: TypeAlias = tuple[str, str]
_Alternatives: TypeAlias = Sequence[Sequence[Security]]
_Requirement: TypeAlias = dict[str, list[str]]
"""The scopes of each scheme that is needed together, by its name: a Security Requirement Object of OpenAPI."""


def parameters(
    components: Components, path: str, found: Sequence[Effect], patterns: Mapping[str, str]
) -> list[JsonObject]:
    """Everything that is read of the path, the query, the headers and the cookies.

    `patterns` are those that the route demands of parameters of the path.
    """
    result: dict[tuple[str, str], JsonObject] = {}
    asked = set[tuple[str, str]]()
    """What the program asks for before it reads it."""
    for name in re.findall(r"\{([^}]+)\}", path):
        text: Schema = {"type": "string"}
        if name in patterns:
            text["pattern"] = f"^(?:{patterns[name]})$"
        result["path", name] = {"name": name, "in": "path", "required": True, "schema": text}
        if name == "path" and path.endswith("{path}"):
            result["path", name]["description"] = "The rest of the path, slashes included."
    for read in found:
        if not isinstance(read, Read) or read.part not in ("query", "path", "header", "cookie"):
            continue
        place = read.part
        if read.name is not None:
            if place == "header" and read.name.lower() in _SILENT_HEADERS:
                continue
            key = (place, read.name.lower() if place == "header" else read.name)
            schema = read.schema or {"type": "string"}
            if key not in result:
                result[key] = {"name": read.name, "in": place, "schema": schema}
            elif schema.get("type") == "array" and result[key]["schema"] == {"type": "string"}:
                result[key]["schema"] = schema
            if read.schema is None:
                asked.add(key)
                result[key].pop("required", None)
            elif read.required and key not in asked:
                result[key]["required"] = True
        elif read.schema is None:
            components.problem(
                read,
                f"the name of what is read of the {_WORDS[place]} is not known. Give a constant, or a Literal type",
            )
        elif place != "cookie":
            for field in _fields(components, read.schema, place, read):
                key = (place, field["name"])
                if place == "path" and key in result and field["schema"].get("type") == "string":
                    field["schema"] = {**result[key]["schema"], **field["schema"]}
                if place != "path" or key in result:
                    result[key] = {**result.get(key, {}), **field}
    return list(result.values())


def _fields(components: Components, schema: Schema, place: str, each: Read) -> Iterator[JsonObject]:
    """Each field of a class that a query string is read into."""
    facts = components.classes.get(schema.get("$class", ""))
    if facts is None:
        components.problem(each, f"the {place} is read into a type without fields. Read it into an attrs class")
        return
    for field in facts.fields:
        if not field.is_read:
            continue
        name = field.name.replace("_", "-") if place == "header" else field.name
        parameter: JsonObject = {"name": name, "in": place}
        # A text that is sent is never null: who means None leaves it out.
        whole = without_null(field.schema, field.schema)
        if field.default and field.default != (None,):
            whole = {**whole, "default": field.default[0]}
        if "description" in whole:
            parameter["description"] = whole.pop("description")
        if place == "path" or field.default is None:
            parameter["required"] = True
        parameter["schema"] = components.final(whole, each, reading=True)
        yield parameter


def body(components: Components, found: Sequence[Effect], method: str) -> JsonObject | None:
    """Everything that is read of the body, by media type; None where nothing is.

    What reads the bytes of every request, to prove a signature for example, demands none of those that have no body
    (RFC 9110, section 9.3).
    """
    content: JsonObject = {}
    fields: dict[str, Schema] = {}
    for read in found:
        if not isinstance(read, Read) or read.part not in BODIES:
            continue
        if method in _BODILESS and read.part not in ("json", "form"):
            continue
        schema = components.final(read.schema, read, reading=True) if read.schema is not None else {}
        match read.part:
            case "json":
                if read.schema is None:
                    components.problem(read, "the body is read as JSON of any type. Say which: await req.json(T)")
                add_body(content, "application/json", schema)
            case "form":
                for media in ("multipart/form-data", "application/x-www-form-urlencoded"):
                    content.setdefault(media, {"schema": {"type": "object"}})
                    if read.name is None and schema:
                        content[media] = {"schema": schema}
                if read.name is not None:
                    fields.setdefault(read.name, schema)
            case "text":
                add_body(content, "text/plain", {"type": "string"})
            case _:
                add_body(
                    content,
                    "application/octet-stream",
                    {"type": "string", "contentMediaType": "application/octet-stream"},
                )
    for media in content:
        if fields and media in ("application/x-www-form-urlencoded", "multipart/form-data"):
            texts = {name: text for name, field in fields.items() if (text := _as_text(field)) is not None}
            own = {"type": "object", "properties": fields if media == "multipart/form-data" else texts}
            read_into = content[media]["schema"]
            parts = [
                each for each in (read_into, own) if each.keys() - {"type", "properties"} or each.get("properties")
            ]
            content[media] = {"schema": {"allOf": parts} if len(parts) > 1 else parts[0] if parts else own}
    return {"required": True, "content": content} if content else None


def _as_text(field: Schema) -> Schema | None:
    """A field of a form that has no files; None for one that is always a file."""
    if "items" in field:
        items = _as_text(field["items"])
        return {**field, "items": items} if items is not None else None
    parts = [part for part in field.get("anyOf", [field]) if "contentMediaType" not in part]
    return any_of(parts) if parts else None


def add_body(content: JsonObject, media_type: str, schema: Schema) -> None:
    """Another body of a media type: the alternatives stand side by side."""
    before = content.get(media_type, {}).get("schema")
    content[media_type] = {"schema": schema if before is None else any_of([before, schema])}


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
        for step in (*route.steps, StepFacts(route.handler)):
            visited = [[Security(name, self.schemes[name]) for name in way] for way in optional if way]
            found, is_optional = self._recognised(step, visited, step in route.steps)
            if not found and step.authenticates and demanded == [{}]:
                found = visited  # it looks into the session
            if not found:
                continue
            asked = {self.schemes[name].get("scheme") for way in (*demanded, *optional) for name in way} - {None}
            if step.security is None and asked & {each.scheme.get("scheme") for one in found for each in one}:
                continue  # whose token one before it has verified
            alternatives: list[_Requirement] = [{self._name(each, step): [] for each in one} for one in found]
            names = {name for each in alternatives for name in each}
            own = step.function if step.authenticates and found != visited else None
            if own is not None and self.reader.may_return_none(own):
                is_optional = True  # nobody in particular is let in too
            if is_optional:
                optional = [{**way, **each} for way in optional for each in alternatives]
            else:
                demanded = [{**way, **each} for way in demanded for each in alternatives]
                optional = [{name: [] for name in way if name not in names} for way in optional]
        ways = [*demanded, *({**way, **more} for way in demanded for more in optional if more)]
        return ways if ways != [{}] else []

    def _name(self, security: Security, step: StepFacts) -> str:
        """The name of a scheme, which another one may have already."""
        name = security.name
        if self.schemes.get(name, security.scheme) != security.scheme:
            name = f"{name}_{step.function.name.rpartition('.')[2] if step.function is not None else 'other'}"
        self.schemes[name] = security.scheme
        return name

    def _recognised(self, step: StepFacts, visited: _Alternatives, is_before: bool) -> tuple[_Alternatives, bool]:
        """Return the security schemes of a step, those of one alternative of which a request needs, and whether it
        needs none: its own, or what each of the ways through it reads that others do not. `visited` is the session
        before it.
        """
        if step.security is not None or step.function is None:
            return [[step.security]] if step.security is not None else [], step.optional
        found = self.reader.alone(step.function)
        reads: dict[_Part, Read] = {}
        for each in found:
            if isinstance(each, Read) and each.name is not None:
                reads.setdefault((each.part, each.name), each)
        passed = [each for each in found if isinstance(each, Passed)]
        ways = {way for each in passed for way in each.ways}
        refuses = any(isinstance(each, Raise | Answer) and 401 in each.status for each in found)
        needed = self._needed(ways, reads, step.authenticates) if step.authenticates or (refuses and is_before) else []
        groups = [each for each in needed if each] or [[each for each in reads if _tells_who(*each)]]
        known = [one for parts in groups for one in self._known_by(parts, step, needed != [], found, visited) if one]
        alternatives = [each for at, each in enumerate(known) if each not in known[:at]]
        goes_without = step.authenticates and [] in needed and frozenset() not in ways
        called = next((each for each in reads.values() if each.part == "security" and self._called(each.name)), None)
        is_optional = step.optional or goes_without or not (step.authenticates or refuses)
        if called is not None and len(alternatives) <= 1:
            is_optional = not called.required
        who = [called.part] if called is not None and not step.authenticates else _WHO
        looked = {way for way in ways if any(part in who and _tells_who(part, name) for part, name, _ in way)}
        for each in passed if alternatives and looked else ():
            if each.ways - looked:
                path, line = step.function.place
                self.components.problem(each if each.path else Effect(path=path, line=line), _WAY_PAST)
                is_optional = True
        return alternatives, is_optional

    def _needed(self, ways: Collection[Way], reads: Mapping[_Part, Read], is_sure: bool) -> list[Sequence[_Part]]:
        """What a request needs on each way: what is seen to be there, else what is read that other ways do without."""
        known: dict[tuple[frozenset[_Part], frozenset[_Part]], bool] = {}
        for way in ways:
            there, missing = (frozenset((part, name) for part, name, how in way if how == sign) for sign in "+-")
            read = frozenset((part, name) for part, name, _ in way if _tells_who(part, name)) - missing
            known[there & read, read] = bool(missing)
        if not is_sure and not all({part for part, _ in there} & _SENT for there, _ in known):
            return []
        found: dict[frozenset[_Part], frozenset[_Part]] = {}
        asked_for = frozenset(each for there, _ in known for each in there)
        for there, read in known:
            words = frozenset(each for each in read if each[0] == "scheme")
            left = read - words - asked_for
            own = frozenset(each for each in left if not any(each in other for _, other in known if other < read))
            asked = there - words or own
            if not there and len(asked) > 1:
                names = " and ".join(sorted(name for _, name in asked))
                self.components.problem(next(reads[each] for each in reads if each in asked), _TOGETHER.format(names))
            whole = [asked] if asked or known[there, read] else []
            for group in whole if there or not left else [frozenset([each]) for each in asked]:
                found[group] = found.get(group, frozenset()) | (words & there or words)
        least = [each for each in found if not any(other and other < each for other in found)]
        order = [*reads]
        least.sort(key=lambda each: sorted(map(order.index, each)))
        return [[each for each in order if each in group or each in found[group]] for group in least]

    def _called(self, name: str | None) -> Security | None:
        return self.reader.application.authenticators[name or ""].security

    def _known_by(
        self, parts: Sequence[_Part], step: StepFacts, is_needed: bool, found: Sequence[Effect], visited: _Alternatives
    ) -> _Alternatives:
        """The schemes of what is read together: those of an authenticator of the framework that is called, of the parts
        of a request that are read, of the session, or of what the code or the challenge calls an `Authorization`.
        """
        named = [(part, name) for part, name in parts if part in ("header", "cookie", "query")]
        own = [_key_in(part, name) for part, name in named if name.lower() != "authorization"]
        for part, name in parts:
            if part == "security" and (security := self._called(name)) is not None:
                return [[*own, security] if is_needed else [security]]
        reads = [each for each in found if isinstance(each, Read) and each.part in _WHO]
        reads_token = any((each.name or "").lower() == "authorization" for each in reads)
        is_guard = step.authenticates or is_needed
        challenges = {
            word: is_own
            for raised in found
            if isinstance(raised, Raise) and 401 in raised.status and reads
            for name, value in raised.headers.items()
            if name.lower() == _CHALLENGE and (word := str(value.get("const", "")).partition(" ")[0].lower())
            # That of `AuthenticationError` is there whatever is read.
            if (is_own := word != "bearer" or UNAUTHORIZED.classes[0] not in raised.classes) or reads_token or is_guard
        }
        if own and len(own) == len(named):
            if step.authenticates or (is_needed and (reads_token or not any(challenges.values()))):
                return [own]
            words = [*challenges][:1]
        elif visited and is_guard and not named:
            return visited if parts else []
        else:
            words = [name for part, name in parts if part == "scheme" and named] or [*challenges][:1]
        if words:
            also = own if is_needed and len(own) < len(named) else []
            return [[*also, Security(word, {"type": "http", "scheme": word})] for word in words]
        return [own or [_key_in(*named[0])]] if is_guard and named else []


def _tells_who(part: str, name: str) -> bool:
    return part in (*_WHO, "scheme") and not (part == "header" and _ABOUT_OTHERS.match(name))


def _key_in(where: str, name: str) -> Security:
    return Security(name.lower(), {"type": "apiKey", "in": where, "name": name})
