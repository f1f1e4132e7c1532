"""The classes and annotations that a client has for a document's schemas.

Schemas of equal shape are one class. A class is named by one node in all annotations, so that it can be renamed.
"""

# A document is JSON of somebody else's: its values are checked before use, and have no type before.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from core.openapi.client_source import (
    ANY,
    UNSET,
    Kinds,
    alias_of,
    annotated,
    camel,
    class_of,
    docstring,
    expression,
    identifier,
    inside,
    joined,
    literal,
    of,
    only,
    options_of,
    sentence,
    singular,
    union,
    unique,
)
from core.openapi.reading import merged, section, target

Schema: TypeAlias = Mapping[str, Any]
_SCALARS: Final[Mapping[str, str]] = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None",
}  # fmt: skip
_FORMATS: Final[Mapping[str, str]] = {
    "date-time": "dt.datetime", "date": "dt.date", "time": "dt.time", "time-local": "dt.time", "uuid": "UUID",
    "binary": "bytes",
}  # fmt: skip
FIELDS: Final = frozenset(["bool", "bytes", "dict", "dt", "field", "float", "int", "list", "str"])
"""The names in a class's annotations: a field or method of that name would hide it from those after it."""
_ANNOTATIONS: Final = frozenset(
    ["default", "deprecated", "description", "example", "examples", "externalDocs", "readOnly", "title", "writeOnly", "xml"]
)  # fmt: skip


class Classes:
    """The classes and aliases of one client. No name of them is one of `taken`."""

    def __init__(self, document: Mapping[str, object], taken: set[str]) -> None:
        self._document = document
        self.taken = taken
        self.reserved: Final = {camel(name) for name in section(document, "schemas")}
        """Names of the document: no class that it has no name for takes one of them."""
        self.made: list[ast.ClassDef] = []
        self.aliases: list[ast.stmt] = []
        self._nodes: dict[str, ast.Name] = {}
        """The node by which annotations name a class, by the name that it was made with."""
        self._by_fields: dict[str, list[str]] = {}
        """The names that classes with the same fields were made with, by these fields as they are written."""
        self._known: dict[str, Kinds] = {}
        """The annotation of a reference: a class or an alias."""
        self._given: set[str] = set()
        """The names of classes that the document itself gives them."""

    def finish(self) -> None:
        """Name the classes that several schemas share; names of schemas are kept as aliases."""
        alike = {names[0]: names for names in self._by_fields.values()}
        wanted = {name: [each for each in names if each in self._given] or names for name, names in alike.items()}
        chosen = self._chosen(alike, wanted)
        for made in self.made:
            name = made.name
            if name in chosen:
                made.body = [one for one in made.body if one is not made.body[0] or isinstance(one, ast.AnnAssign)]
                made.name = chosen[name]
            self.aliases += [
                alias_of(ast.Name(each), (ast.Name(made.name),))
                for each in wanted[name]
                if each in self._given and each != made.name
            ]
            for each in alike[name]:
                self._nodes[each].id = made.name

    def _chosen(self, alike: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]) -> dict[str, str]:
        chosen: dict[str, str] = {}
        first: dict[str, Collection[str]] = {}
        # Where several share the same words, the one with the fewest fields has these words alone.
        for made in sorted(self.made, key=lambda made: len(_fields_of(made))):
            if len(alike[made.name]) == 1:
                continue
            fields, common = _fields_of(made), _common(wanted[made.name], made, {one.name for one in self.made})
            more = [name for name in fields if name not in first.setdefault(common, fields.keys())]
            if 0 < len(more) < 3:
                common = f"{common}With{camel('_and_'.join(more))}"
            chosen[made.name] = unique(common, (self.taken | self.reserved) - {*alike[made.name]})
            self.taken.add(chosen[made.name])
        return chosen

    def class_name(self, *wanted: str, reserved: bool = False) -> str:
        """A name that is free. Only the schema of that name may have a `reserved` one."""
        name = unique(camel(" ".join(wanted)), self.taken if reserved else self.taken | self.reserved)
        self.taken.add(name)
        return name

    def _item_name(self, name: str) -> str:
        """The name of an item of the array `name`: `ErrorIssue` of `ErrorIssues`."""
        one = camel(singular(name))
        return f"{name}Item" if one == camel(name) or one in self.taken | self.reserved else one

    # -- types

    def reference(self, reference: str, *, files: bool = False) -> Kinds:
        """The annotation of a schema that has a name."""
        key = f"{reference} with files" if files else reference
        if key in self._known:
            return self._known[key]
        schema = target(self._document, {"$ref": reference})
        wanted = camel(unquote(reference.rpartition("/")[2]))
        wanted += "Form" if files else "Model" if wanted in self.taken else ""
        whole = merged(self._document, schema)
        if _is_object(whole) and not alternatives(whole):
            node = ast.Name(self.class_name(wanted, reserved=not files))
            self._known[key] = (node,)
            if not files:
                self._given.add(node.id)
            self._object(node, whole, files=files)
            return self._known[key]
        self._known[key] = (ANY,)  # within itself, since type checkers do not all follow such an alias
        annotation = self.type_of(schema, wanted, files=files)
        if any(isinstance(kind, ast.Subscript) for kind in annotation) or len(annotation) != 1:
            alias = ast.Name(self.class_name(wanted, reserved=not files))
            self.aliases.append(alias_of(alias, annotation))
            annotation = (alias,)
        self._known[key] = annotation
        return annotation

    def type_of(self, given: object, name: str, *, files: bool = False) -> Kinds:
        """The annotation of a schema."""
        if not isinstance(given, dict):  # `true` is a schema too
            return (ANY,)
        schema: Schema = given
        if schema.get("nullable") is True:
            rest = {key: value for key, value in schema.items() if key != "nullable"}
            if isinstance(rest.get("enum"), list):
                rest["enum"] = [value for value in rest["enum"] if value is not None]
            return joined([self.type_of(rest, name, files=files), (ast.Constant(None),)])
        if "$ref" in schema:
            return self.reference(str(schema["$ref"]), files=files)
        laid = [part for part in schema.get("allOf") or () if isinstance(part, dict) and part.keys() - _ANNOTATIONS]
        if len(laid) == 1 and not schema.keys() - _ANNOTATIONS - {"allOf"}:
            return self.type_of(laid[0], name, files=files)
        schema = merged(self._document, schema)
        kinds_of_value = alternatives(schema)
        if kinds_of_value:
            base = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "discriminator")}
            whole = bool(base.keys() - _ANNOTATIONS - {"type"})
            parts = [{"allOf": [base, part]} if whole and not _is_null(part) else part for part in kinds_of_value]
            is_one = sum(isinstance(part, dict) and "properties" in part for part in kinds_of_value) == 1
            names = [name if is_one else f"{name}{number}" for number in range(1, len(parts) + 1)]
            return joined(self.type_of(part, inner, files=files) for part, inner in zip(parts, names, strict=True))
        if "const" in schema:
            return literal([schema["const"]])
        if isinstance(schema.get("enum"), list):
            return literal(schema["enum"])
        kinds_given = schema.get("type")
        if isinstance(kinds_given, list):
            return joined([self.type_of({**schema, "type": kind}, name, files=files) for kind in kinds_given])
        if kinds_given == "array" or (kinds_given is None and "items" in schema):
            item = self.type_of(schema.get("items") or {}, self._item_name(name), files=files)
            return (of("list", union(item)),)
        if kinds_given == "string":
            kind = _FORMATS.get(str(schema.get("format")), "str")
            if files and (kind == "bytes" or ("contentMediaType" in schema and "contentEncoding" not in schema)):
                return (ast.Name("File"), ast.Name("bytes"))
            return (expression(kind),)
        if kinds_given in _SCALARS:
            return (expression(_SCALARS[str(kinds_given)]),)
        if _is_object(schema):
            node = ast.Name(self.class_name(name))
            self._object(node, schema, files=files)
            return (node,)
        if kinds_given == "object":
            extra = schema.get("additionalProperties")
            inner = self.type_of(extra if isinstance(extra, dict) else {}, f"{name}Value", files=files)
            return (of("dict", ast.Name("str"), union(inner)),)
        return (ANY,)

    def _object(self, node: ast.Name, schema: Schema, *, files: bool) -> None:
        """Make a class, which `node` names in every annotation; of the same fields there is one class."""
        name = node.id
        self._nodes[name] = node
        made = class_of(name, str(schema.get("description") or ""), [], "@dataclass(frozen=True, kw_only=True)")
        self.made.append(made)  # before the classes inside it
        required = set(schema.get("required") or ())
        taken = set(FIELDS)
        for json_name, inner in (schema.get("properties") or {}).items():
            python = unique(identifier(json_name, FIELDS), taken)
            taken.add(python)
            kinds = self.type_of(inner, inside(name, camel(json_name)), files=files)
            options: dict[str, ast.expr] = {}
            if json_name not in required:
                kinds, options["default"] = joined([kinds, (ast.Name("Unset"),)]), UNSET
            elif (constant := only(kinds)) is not None:
                options["default"] = constant
            if python != json_name:
                options["metadata"] = ast.Dict([ast.Constant("json")], [ast.Constant(json_name)])
            value = options_of(options) if "metadata" in options else options.get("default")
            made.body.append(annotated(python, kinds, value))
            if isinstance(inner, dict) and (description := inner.get("description")):
                made.body.append(docstring(sentence(str(description))))
        extra = schema.get("additionalProperties")
        if extra is True or (isinstance(extra, dict) and extra):
            kind = of("dict", ast.Name("str"), union(self.type_of(extra, f"{name}Value", files=files)))
            options = {"default_factory": kind, "metadata": ast.Dict([ast.Constant("rest")], [ast.Constant(True)])}
            made.body.append(annotated(unique("additional_properties", taken), (kind,), options_of(options)))
        fields = "\n".join(ast.unparse(one) for one in made.body if isinstance(one, ast.AnnAssign))
        names = self._by_fields.setdefault(fields, [])
        names.append(name)
        if names[0] != name:
            self.made.remove(made)
            node.id = names[0]


def _common(names: Sequence[str], made: ast.ClassDef, classes: Collection[str]) -> str:
    """The words that all names end in. Where they say nothing, the fields are named, those that have other classes
    alone if there are any; or the first name is taken.
    """
    words = [re.findall(r"[A-Z][^A-Z]*|[^A-Z]+", name.rstrip("0123456789")) for name in names]
    count = 0
    while all(len(one) > count and one[-1 - count] == words[0][-1 - count] for one in words):
        count += 1
    common = "".join(words[0][len(words[0]) - count :])
    if common in ("Answer", "Body", "Item", "Value"):
        fields = _fields_of(made)
        telling = [
            name
            for name, kind in fields.items()
            if any(isinstance(one, ast.Name) and one.id in classes for one in ast.walk(kind))
        ]
        fitting = telling or [*fields]
        return camel("_".join([*fitting, common])) if len(fitting) < 3 else names[0]
    return common if len(common) > 3 and common.isidentifier() else names[0]


def _fields_of(made: ast.ClassDef) -> dict[str, ast.expr]:
    return {ast.unparse(one.target): one.annotation for one in made.body if isinstance(one, ast.AnnAssign)}


def alternatives(schema: Schema) -> Sequence[object]:
    """The kinds of value that a schema allows, where they differ in more than in the required ones of the same
    fields.
    """
    found: Sequence[object] = schema.get("anyOf") or schema.get("oneOf") or ()
    if schema.get("properties") and not any(
        isinstance(one, dict) and one.keys() & {"$ref", "properties", "allOf", "type"} for one in found
    ):
        return ()
    return found


def _is_object(schema: Schema) -> bool:
    return bool(schema.get("properties")) and schema.get("type", "object") == "object"


def _is_null(schema: object) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def is_text(schema: Schema) -> bool:
    """Return True for a schema of texts, or of anything."""
    return schema.get("type") == "string" or not schema
