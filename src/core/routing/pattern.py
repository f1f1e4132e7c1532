"""The meaning of a registered path: `/users/:id`, `/users/:id{[0-9]+}`, `/users/:id?`, `/files/*`.

A pattern is a list of segments, each a string, a parameter, any segment (`*`) or, last, the rest (`*`). A parameter may
be held to a regular expression that `core.routing.expressions` accepts, and the last one may be optional. A pattern is
written decoded (`/café`, `/a b`), since a request's path is matched after its segments were percent-decoded. Whatever
could never match is refused here, with how to fix it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from core.errors import PathError


class Pattern:
    """A parsed path.

    `parts` holds one text per segment; that of a parameter and of any segment is None, and the rest is not among them.
    `names` holds `(name, index of its part)` in order of appearance, `rest` whether a `*` follows. `checks` holds
    `(index of the part, regular expression)` of the parameters that have one. `optional`: the last part may be missing.
    """

    # By hand: a NamedTuple takes ten times as long to be defined, and every worker pays for that as it starts.
    __slots__ = ("checks", "names", "optional", "parts", "rest", "text")

    def __init__(
        self,
        text: str,
        parts: tuple[str | None, ...],
        names: tuple[tuple[str, int], ...],
        rest: bool,
        checks: tuple[tuple[int, str], ...] = (),
        optional: bool = False,
    ) -> None:
        self.text: str = text
        self.parts: tuple[str | None, ...] = parts
        self.names: tuple[tuple[str, int], ...] = names
        self.rest: bool = rest
        self.checks: tuple[tuple[int, str], ...] = checks
        self.optional: bool = optional

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    @property
    def static(self) -> bool:
        """True if one path alone matches."""
        return not self.names and not self.rest and None not in self.parts

    @property
    def variants(self) -> tuple[Pattern, ...]:
        """The patterns that the table of routes is made of: itself, or with the last segment and without it."""
        if not self.optional:
            return (self,)
        last = len(self.parts) - 1
        checks = tuple(check for check in self.checks if check[0] != last)
        return (
            Pattern(self.text, self.parts, self.names, False, self.checks),
            Pattern(self.text, self.parts[:last], self.names[:-1], False, checks),
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in `req.params` on this path, `"*"` included."""
        names = tuple(name for name, _ in self.names)
        return (*names, "*") if self.rest else names

    def covers(self, other: Pattern) -> bool:
        """Return True if every path of `other` lies at or below this prefix."""
        if len(self.parts) > len(other.parts) - other.optional:
            return False
        if not all(part is None or part == its for part, its in zip(self.parts, other.parts, strict=False)):
            return False
        return all(self.admits(index, source, other) for index, source in self.checks)

    def meets(self, other: Pattern) -> bool:
        """Return True if some paths of `other`, which has no optional part, may lie at or below this prefix."""
        if len(self.parts) > len(other.parts) and not other.rest:
            return False
        for part, its in zip(self.parts, other.parts, strict=False):
            if part != its and part is not None and its is not None:
                return False
        return True

    @staticmethod
    def admits(index: int, source: str, other: Pattern) -> bool:
        """Return True if the regular expression `source` certainly fits the part of `other` at the index."""
        text = other.parts[index]
        return (index, source) in other.checks if text is None else re.fullmatch(source, text) is not None

    def below(self, prefix: Pattern) -> Pattern:
        """This pattern mounted at `prefix`.

        Raises PathError where both have a parameter of one name, or where the prefix ends in `*`.
        """
        if not prefix.parts and not prefix.rest:
            return self
        require_prefix(prefix)
        text = prefix.text.rstrip("/") + ("" if self.text == "/" else self.text)
        names = prefix.names
        if self.names:
            taken = {name for name, _ in names}
            shift = len(prefix.parts)
            for name, index in self.names:
                if name in taken:
                    raise PathError(
                        f'"{self.text}" mounted at "{prefix.text}" has two parameters named :{name}. Rename one of them'
                    )
                names = (*names, (name, index + shift))
        checks = (*prefix.checks, *((index + len(prefix.parts), source) for index, source in self.checks))
        return Pattern(text, prefix.parts + self.parts, names, self.rest, checks, self.optional)


ROOT = Pattern("/", (), (), False)


def has_nameless(pattern: Pattern) -> bool:
    """Return True for a path with a `*` before its end, which nothing can fill."""
    return pattern.parts.count(None) > len(pattern.names)


def unfit(pattern: Pattern, values: Mapping[str, str | None]) -> str | None:
    """The name of a value that the path would not match again; a value of None is not known."""
    checks = dict(pattern.checks)
    for name, index in pattern.names:
        value, source = values[name], checks.get(index)
        if value is not None and (
            value in ("", ".", "..") or (source is not None and re.fullmatch(source, value) is None)
        ):
            return name
    rest = values["*"] if pattern.rest else None
    return "*" if rest is not None and not {".", ".."}.isdisjoint(rest.split("/")) else None


def require_prefix(pattern: Pattern) -> None:
    """Refuse a prefix that ends in `*` or in an optional segment. Raises PathError."""
    if pattern.rest:
        raise PathError(f'the prefix "{pattern.text}" ends in *. Leave the * out: a prefix covers all below it')
    if pattern.optional:
        raise PathError(
            f'the prefix "{pattern.text}" ends in an optional segment. Leave the segment out: a prefix covers all below it'
        )


def parse(text: str) -> Pattern:
    """Read a path as it is registered. A trailing slash is ignored.

    Raises PathError, naming the path and how to fix it.
    """
    if not isinstance(text, str):
        raise PathError(f'a path is a str, not {type(text).__name__}. Write it first: @app.get("/users")')
    if text == "/":
        return ROOT
    if not text.startswith("/"):
        way = 'Write "/*" in a route, and no path in use(…)' if text == "*" else f'Write "/{text}"'
        raise PathError(f'the path "{text}" must begin with "/". {way}')
    segments = text[1:].split("/")
    if segments[-1] == "":
        segments.pop()
    if "{" in text:
        _require_whole_patterns(text, segments)
    if ":" not in text and "*" not in text:
        for segment in segments:
            _check_text(text, segment)
        return Pattern(text, tuple(segments), (), False)
    parts: list[str | None] = []
    names: list[tuple[str, int]] = []
    checks: list[tuple[int, str]] = []
    rest = optional = False
    last = len(segments) - 1
    for index, segment in enumerate(segments):
        if segment == "*":
            if index == last:
                rest = True
            else:
                parts.append(None)
        elif segment.startswith(":"):
            name, source, optional = _parameter(text, segment[1:], names)
            if optional and index != last:
                raise PathError(
                    f'"{text}": only the last segment may be optional. Register "{"/".join(["", *segments[:index]]) or "/"}" '
                    "as a path of its own"
                )
            names.append((name, index))
            if source:
                checks.append((index, source))
            parts.append(None)
        else:
            _check_text(text, segment)
            parts.append(segment)
    return Pattern(text, tuple(parts), tuple(names), rest, tuple(checks), optional)


def _require_whole_patterns(text: str, segments: Sequence[str]) -> None:
    for segment in segments:
        if segment.startswith(":") and "{" in segment and not segment.removesuffix("?").endswith("}"):
            if "/" in text.partition("{")[2].rpartition("}")[0]:
                raise PathError(
                    f'"{text}": a pattern in braces is held against one segment, so one with a "/" never matches. Write a '
                    "parameter for each segment, or /* for the rest of the path"
                )
            raise PathError(f'"{text}": a pattern ends the segment: write :id{{[0-9]+}} or :id{{[0-9]+}}?')


def _parameter(text: str, segment: str, earlier: list[tuple[str, int]]) -> tuple[str, str, bool]:
    """The name of a parameter, its regular expression or an empty text, and whether it is optional."""
    optional = segment.endswith("?")
    name, brace, source = segment.removesuffix("?").partition("{")
    source = source.removesuffix("}")
    if not name:
        raise PathError(f'"{text}": a parameter needs a name after the colon, for example :id')
    if name[-1] in "+*?" or "(" in name:
        raise PathError(
            f'"{text}": :{name} is more than a name. Parameters are whole segments: :id, :id? where the last may be '
            "missing, :id{[0-9]+} with a regular expression"
        )
    if brace:
        if not source:
            raise PathError(f'"{text}": the pattern in braces is empty. Leave the braces out: :{name}')
        from core.routing.expressions import objection  # few applications have any

        wrong = objection(source)
        if wrong is not None:
            raise PathError(f'"{text}": {{{source}}} {wrong}')
    if not name.replace("-", "_").replace(".", "_").isidentifier():
        raise PathError(f'"{text}": ":{name}" is not a name. Use letters, digits and _, for example :user_id')
    if any(name == other for other, _ in earlier):
        raise PathError(f'"{text}" has two parameters named :{name}. Rename one of them')
    return name, source, optional


def _check_text(text: str, segment: str) -> None:
    if segment.isalnum() or segment == "":
        return
    if segment in (".", ".."):
        raise PathError(f'"{text}": a "{segment}" segment is resolved before routing and never matches. Leave it out')
    if segment[0] in "{<" and segment[-1] in "}>":
        name = segment[1:-1].rpartition(":")[2] if segment[0] == "<" else segment[1:-1].partition(":")[0]
        raise PathError(f'"{text}": a parameter begins with a colon. Write :{name}')
    if "*" in segment:
        raise PathError(f'"{text}": * matches whole segments: write it alone between slashes')
    for char in segment:
        if char in "?#":
            raise PathError(f'"{text}": a path ends before "{char}". Read the query with req.query.get(name)')
        if char == "\\":
            raise PathError(f'"{text}": a backslash is a slash in URLs. Write "/"')
        if char < " " or char == "\x7f":
            raise PathError(f"{text!r}: control characters cannot stand in a path. Leave them out")
    if "%" in segment and (escape := re.search("%[0-9A-Fa-f]{2}", segment)) is not None:
        raise PathError(f'"{text}": write the path decoded, without "{escape[0]}"')
