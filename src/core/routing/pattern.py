"""The meaning of a registered path: `/users/:id`, `/files/*`.

A pattern is a list of segments, each a text, a parameter or, last, the rest. It is
written decoded (`/café`, `/a b`), since a request's path is matched after its segments
were percent-decoded. Whatever could never match is refused here, with how to fix it.
"""

from __future__ import annotations

from core.errors import PathError

__all__ = ["Pattern", "parse"]

_HEX = frozenset("0123456789abcdefABCDEF")


class Pattern:
    """A parsed path.

    `parts` holds one text per segment; a parameter's is None, and the rest segment is not among them.
    `names` holds `(name, index of its part)` in order of appearance, `rest` whether a `*` follows.
    """

    # By hand: a NamedTuple takes ten times as long to be defined, and every worker pays for that as it starts.
    __slots__ = ("names", "parts", "rest", "text")

    def __init__(
        self, text: str, parts: tuple[str | None, ...], names: tuple[tuple[str, int], ...], rest: bool
    ) -> None:
        self.text: str = text
        self.parts: tuple[str | None, ...] = parts
        self.names: tuple[tuple[str, int], ...] = names
        self.rest: bool = rest

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    @property
    def static(self) -> bool:
        """True if one path alone matches."""
        return not self.names and not self.rest

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in `req.params` on this path, `"*"` included."""
        names = tuple(name for name, _ in self.names)
        return (*names, "*") if self.rest else names

    def covers(self, other: Pattern) -> bool:
        """Return True if every path of `other` lies at or below this prefix."""
        if len(self.parts) > len(other.parts):
            return False
        return all(part is None or part == its for part, its in zip(self.parts, other.parts, strict=False))

    def below(self, prefix: Pattern) -> Pattern:
        """This pattern mounted at `prefix`.

        Raises PathError where both have a parameter of one name, or where the prefix ends in `*`.
        """
        if not prefix.parts and not prefix.rest:
            return self
        if prefix.rest:
            raise PathError(f'the prefix "{prefix.text}" ends in *. Leave the * out: a prefix covers all below it')
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
        return Pattern(text, prefix.parts + self.parts, names, self.rest)


ROOT = Pattern("/", (), (), False)


def parse(text: str) -> Pattern:
    """Read a path as it is registered. A trailing slash is ignored.

    Raises PathError, naming the path and how to fix it.
    """
    if not isinstance(text, str):
        raise PathError(f'a path is a str, not {type(text).__name__}. Write it first: @app.get("/users")')
    if text == "/":
        return ROOT
    if not text.startswith("/"):
        raise PathError(f'the path "{text}" must begin with "/". Write "/{text}"')
    segments = text[1:].split("/")
    if segments[-1] == "":
        segments.pop()
    if ":" not in text and "*" not in text:
        for segment in segments:
            _check_text(text, segment)
        return Pattern(text, tuple(segments), (), False)
    parts: list[str | None] = []
    names: list[tuple[str, int]] = []
    rest = False
    for index, segment in enumerate(segments):
        if segment == "*":
            if index != len(segments) - 1:
                raise PathError(f'"{text}": * takes all that is left, so it must be the last segment')
            rest = True
        elif segment.startswith(":"):
            names.append((_parameter(text, segment[1:], names), index))
            parts.append(None)
        else:
            _check_text(text, segment)
            parts.append(segment)
    return Pattern(text, tuple(parts), tuple(names), rest)


def _parameter(text: str, name: str, earlier: list[tuple[str, int]]) -> str:
    if not name:
        raise PathError(f'"{text}": a parameter needs a name after the colon, for example :id')
    if name[-1] in "?+*" or "(" in name or "{" in name:
        raise PathError(
            f'"{text}": :{name} is more than a name. Parameters are whole segments; for an optional one register '
            "two paths, and check a value's form in the handler"
        )
    if not name.replace("-", "_").replace(".", "_").isidentifier():
        raise PathError(f'"{text}": ":{name}" is not a name. Use letters, digits and _, for example :user_id')
    if any(name == other for other, _ in earlier):
        raise PathError(f'"{text}" has two parameters named :{name}. Rename one of them')
    return name


def _check_text(text: str, segment: str) -> None:
    if segment.isalnum() or segment == "":
        return
    if segment in (".", ".."):
        raise PathError(f'"{text}": a "{segment}" segment is resolved before routing and never matches. Leave it out')
    if segment[0] in "{<" and segment[-1] in "}>":
        name = segment[1:-1].rpartition(":")[2] if segment[0] == "<" else segment[1:-1].partition(":")[0]
        raise PathError(f'"{text}": a parameter begins with a colon. Write :{name}')
    if "*" in segment:
        raise PathError(f'"{text}": * stands for whole segments: write it alone, as the last segment')
    for char in segment:
        if char in "?#":
            raise PathError(f'"{text}": a path ends before "{char}". Read the query with req.query.get(name)')
        if char == "\\":
            raise PathError(f'"{text}": a backslash is a slash in URLs. Write "/"')
        if char < " " or char == "\x7f":
            raise PathError(f"{text!r}: control characters cannot stand in a path. Leave them out")
    at = segment.find("%")
    while at >= 0:
        if len(segment) > at + 2 and segment[at + 1] in _HEX and segment[at + 2] in _HEX:
            raise PathError(f'"{text}": write the path decoded, without "{segment[at : at + 3]}"')
        at = segment.find("%", at + 1)
