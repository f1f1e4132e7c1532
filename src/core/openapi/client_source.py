"""The source of a client: names as Python takes them, and syntax trees, which become text here alone.

So a document of somebody else's cannot leave the node that it is in.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from http import HTTPStatus
from typing import Any, Final, TypeAlias, cast
from unicodedata import normalize

from core.errors import phrase_of

Kinds: TypeAlias = tuple[ast.expr, ...]
"""An annotation: the members of a union."""
Parameter: TypeAlias = tuple[ast.arg, ast.expr | None]
"""A parameter and its default."""
_WIDTH: Final = 100


# Names --------------------------------------------------------------------------------------------------------------


def singular(name: str) -> str:
    """A plural's singular; a word that is none stays."""
    for ending, one in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):
        if name.lower().endswith(ending) and len(name) > len(ending) + 1:
            return name[: -len(ending)] + one
    return name[:-1] if re.search(r"[^siu]s$", name) else name


def inside(name: str, attribute: str) -> str:
    """The name of the class of an attribute: `LoginErrors` of `errors` in `LoginError`, whose word says it once."""
    last = re.split(r"(?=[A-Z])", name)[-1]
    stem = name.removesuffix(last) if singular(attribute) == last != attribute else name
    return f"{stem} {attribute}"


def phrase(status: str) -> str:
    """The name of an error."""
    if not status.isdigit():
        return "Client Error" if status[0] == "4" else "Server Error"
    return phrase_of(int(status)).replace("'", "") if int(status) in {*HTTPStatus} else f"Status {status}"


def sentence(text: str) -> str:
    """A text as one line, a sentence."""
    return f"{' '.join(''.join(one if one.isprintable() else ' ' for one in text).split()).rstrip('.')}."


def identifier(name: str, hidden: Collection[str] = ()) -> str:
    """A name in snake case that Python takes; one of `hidden` has an underscore behind it."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", normalize("NFKC", name))
    # Python takes names that are equal under NFKC for one, so that is what they are compared by.
    snake = normalize("NFKC", re.sub(r"[\W_]+", "_", words).strip("_").lower()) or "value"
    if not snake.isidentifier():
        snake = re.sub(r"[^0-9a-z_]", "_", f"value_{snake}")
    return f"{snake}_" if keyword.iskeyword(snake) or snake in hidden else snake


def camel(name: str) -> str:
    parts = [part for part in re.split(r"[\W_]+", normalize("NFKC", name)) if part]
    camel = normalize("NFKC", "".join(part[0].upper() + part[1:] for part in parts)) or "Value"
    return camel if camel.isidentifier() else re.sub(r"[^0-9a-zA-Z_]", "_", f"Value{camel}")


def unique(name: str, taken: Collection[str]) -> str:
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name.rstrip('_')}_{number}" if name.islower() else f"{name}{number}"
    return unique


# Trees --------------------------------------------------------------------------------------------------------------


def expression(text: str) -> ast.expr:
    """The tree of an expression that is written in this file."""
    return ast.parse(text, mode="eval").body


ANY: Final = ast.Name("Any")
UNSET: Final = ast.Name("UNSET")


def of(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Subscript(ast.Name(name), arguments[0] if len(arguments) == 1 else ast.Tuple(list(arguments)))


def union(kinds: Iterable[ast.expr]) -> ast.expr:
    return reduce(lambda left, right: ast.BinOp(left, ast.BitOr(), right), kinds)


def joined(kinds: Iterable[Kinds]) -> Kinds:
    """A union, each kind once, and None and Unset last."""
    single = {ast.unparse(part): part for kind in kinds for part in kind}
    if "Any" in single or not single:
        return (ANY,)
    last = {"None": 1, "Unset": 2}
    return tuple(single[text] for text in sorted(single, key=lambda text: last.get(text, 0)))


def is_str(kinds: Kinds) -> bool:
    return len(kinds) == 1 and isinstance(kinds[0], ast.Name) and kinds[0].id == "str"


def literal(values: Sequence[Any]) -> Kinds:
    if any(not isinstance(value, str | int | bool | None) for value in values):
        kinds = {"float" if isinstance(value, int | float) else "Any" for value in values}
        return (ast.Name(kinds.pop()),) if len(kinds) == 1 else (ANY,)
    plain = {repr(value): ast.Constant(value) for value in values if value is not None}
    none = (ast.Constant(None),) if None in values else ()
    return joined([(of("Literal", *plain.values()),) if plain else (), none])


def annotated(name: str, kinds: Kinds, value: ast.expr | None = None) -> ast.stmt:
    return ast.AnnAssign(ast.Name(name), union(kinds), value, simple=1)


def options_of(options: Mapping[str, ast.expr]) -> ast.expr:
    return ast.Call(ast.Name("field"), [], [ast.keyword(name, value) for name, value in options.items()])


def argument(name: str, kinds: Kinds, *, required: bool) -> Parameter:
    if required:
        return ast.arg(name, union(kinds)), None
    return ast.arg(name, union(joined([kinds, (ast.Name("Unset"),)]))), UNSET


def alias_of(name: ast.Name, kinds: Kinds) -> ast.stmt:
    return ast.AnnAssign(name, ast.Name("TypeAlias"), union(kinds), simple=1)


def docstring(text: str) -> ast.stmt:
    return ast.Expr(ast.Constant(text))


def class_of(name: str, description: str, body: Sequence[ast.stmt], decorator: str = "") -> ast.ClassDef:
    made: Any = ast.parse(f"{decorator}\nclass name: pass").body[0]
    made.name = name
    made.body = [*([docstring(sentence(description))] if description else []), *body]
    return cast("ast.ClassDef", made)


def only(kinds: Kinds) -> ast.expr | None:
    """The value of a constant: of an annotation that allows no other."""
    if len(kinds) == 1 and isinstance(one := kinds[0], ast.Subscript) and ast.unparse(one.value) == "Literal":
        return one.slice if isinstance(one.slice, ast.Constant | ast.UnaryOp) else None
    return None


def written(node: ast.AST, indent: str = "") -> str:
    """A node as text, each of its parts on a line of its own where one line is too long for all."""
    inner = f"{indent}    "
    match node:
        case ast.ClassDef(name=name, body=body):
            bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
            lines = [f"@{ast.unparse(one)}" for one in node.decorator_list] + [f"class {name}{bases}:"]
            for each in body or [ast.Pass()]:
                lines += [""] if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) else []
                lines.append(written(each, inner))
            return "\n".join(lines)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
            head = f"{indent}{word} {node.name}"
            returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
            parts = _arguments(node.args)
            lines = [_bracketed(head, "(", parts, f"){returns}:", indent), *(written(one, inner) for one in node.body)]
            return "\n".join(lines)
        case ast.AnnAssign(target=target, annotation=annotation, value=value):
            head = f"{indent}{ast.unparse(target)}: "
            if value is None:
                return head + _expressed(annotation, indent, len(head))
            head += f"{ast.unparse(annotation)} = "
            return head + _expressed(value, indent, len(head))
        case ast.Raise(exc=ast.expr() as raised):
            return f"{indent}raise {_expressed(raised, indent, len(indent) + 6)}"
        case _:
            # In a module of its own a text is a docstring.
            return indent + ast.unparse(ast.Module([cast("ast.stmt", node)], []))


def _arguments(given: ast.arguments) -> list[str]:
    def shown(one: ast.arg, default: ast.expr | None) -> str:
        return ast.unparse(one) if default is None else f"{ast.unparse(one)} = {ast.unparse(default)}"

    defaults = [None] * (len(given.args) - len(given.defaults)) + given.defaults
    positional = [shown(*pair) for pair in zip(given.args, defaults, strict=True)]
    named = [shown(*pair) for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return [*positional, *(["*", *named] if named else [])]


def _expressed(node: ast.expr, indent: str, before: int) -> str:
    flat = ast.unparse(node)
    if before + len(flat) <= _WIDTH:
        return flat
    inner = f"{indent}    "
    match node:
        case ast.Await(value=value):
            return f"await {_expressed(value, indent, before + 6)}"
        case ast.Call(func=func, args=args, keywords=keywords):
            parts = [_expressed(one, inner, len(inner)) for one in args]
            parts += [
                f"{one.arg}={_expressed(one.value, inner, len(inner) + len(one.arg or '') + 1)}" for one in keywords
            ]
            return _bracketed(ast.unparse(func), "(", parts, ")", indent)
        case ast.Dict(keys=keys, values=values):
            shown = [(f"{ast.unparse(key)}: ", one) for key, one in zip(keys, values, strict=True) if key]
            parts = [f"{key}{_expressed(one, inner, len(inner) + len(key) + 1)}" for key, one in shown]
            return _bracketed("", "{", parts, "}", indent)
        case ast.List(elts=elts):
            return _bracketed("", "[", [ast.unparse(one) for one in elts], "]", indent)
        case ast.BinOp(op=ast.BitOr()):
            members = [ast.unparse(one) for one in _members(node)]
            return "\n".join(["(", f"{inner}{members[0]}", *(f"{inner}| {one}" for one in members[1:]), f"{indent})"])
        case _:
            return flat


def _members(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_members(node.left), *_members(node.right)]
    return [node]


def _bracketed(head: str, opening: str, parts: Sequence[str], closing: str, indent: str) -> str:
    """Parts in brackets, on one line where they fit and one a line where they do not."""
    whole = f"{head}{opening}{', '.join(parts)}{closing}"
    if "\n" not in whole and len(whole) <= _WIDTH:
        return whole
    lines = [f"{indent}    {part}," for part in parts]
    return "\n".join([f"{head}{opening}", *lines, f"{indent}{closing}"])
