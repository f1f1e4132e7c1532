"""A document as text: JSON as it is committed, YAML (1.2) that every reader takes for the same, and one HTML page.

The page is readable without JavaScript and without the network, in light and in dark. Nothing of the document reaches
it but as text: every name and description is escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from core.openapi.changes import LOWER, UPPER
from core.openapi.reading import Operation, operations
from core.values import is_array, is_object

_PLAIN: Final = re.compile(r"[A-Za-z_/$][A-Za-z0-9_/{}$.-]*").fullmatch
_ODD: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_WORDS: Final = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])
"""Words that a YAML reader, an old one at least, does not read as strings."""


def as_json(document: Mapping[str, object]) -> str:
    """The document as JSON, one value a line, so that a change is a change of few lines."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


_UNORDERED: Final = frozenset(["anyOf", "enum", "parameters", "required", "security", "tags"])


def meaning(value: object, key: str = "") -> object:
    """A document without what says nothing: the order of fields, and of lists whose order means nothing."""
    if is_object(value):
        return {name: meaning(inner, name) for name, inner in value.items()}
    if is_array(value):
        items = [meaning(inner) for inner in value]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True)) if key in _UNORDERED else items
    return value


def as_yaml(document: Mapping[str, object]) -> str:
    """The document as YAML.

    Texts are in double quotes, as JSON has them; names of fields are plain where they can be.
    """
    return "\n".join(_mapping(document, "")) + "\n"


def _mapping(value: Mapping[str, object], indent: str) -> Iterator[str]:
    for name, inner in value.items():
        head = f"{indent}{_name(name)}:"
        if is_object(inner) and inner:
            yield head
            yield from _mapping(inner, f"{indent}  ")
        elif is_array(inner) and inner:
            yield head
            for item in inner:
                lines = "\n".join(_mapping(item, f"{indent}  ")) if is_object(item) else ""
                yield f"{indent}- {lines.lstrip() or _scalar(item)}"
        else:
            yield f"{head} {_scalar(inner)}"


def _name(name: str) -> str:
    return name if _PLAIN(name) and name.lower() not in _WORDS else _scalar(name)


def _scalar(value: object) -> str:
    # Characters that JSON leaves as they are end a line in YAML, or are not allowed there at all.
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


# The page -----------------------------------------------------------------------------------------------------------

Schema = Mapping[str, Any]
_CODE: Final = re.compile("`([^`]+)`").sub
_STYLE: Final = """
:root { color-scheme: light dark; --line: #d0d7de; --soft: #59636e; --back: #f6f8fa; --link: #0550ae }
@media (prefers-color-scheme: dark) { :root { --line: #3d444d; --soft: #9198a1; --back: #151b23; --link: #79c0ff } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem 1.25rem 4rem }
h1, h2, h3 { line-height: 1.25 }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line) }
a { color: var(--link) }
code, pre { font: 0.875rem/1.5 ui-monospace, monospace }
h3 code { font-size: 1.05rem }
pre { background: var(--back); border: 1px solid var(--line); border-radius: 6px; padding: 0.75rem; overflow-x: auto }
nav ul { list-style: none; padding: 0 }
article { border: 1px solid var(--line); border-radius: 8px; padding: 0 1rem 1rem; margin: 1rem 0 }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; border-top: 1px solid var(--line); padding: 0.35rem 0.75rem 0.35rem 0 }
.method { font-weight: 700 }
.soft { color: var(--soft) }
summary { cursor: pointer; padding: 0.35rem 0 }
"""


def page(document: Mapping[str, Any]) -> str:
    """The page of a document."""
    info = document.get("info", {})
    title = escape(str(info.get("title", "API")))
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{title}</title><style>{_STYLE}</style></head>",
        "<body>",
        f'<h1>{title} <small class="soft">{escape(str(info.get("version", "")))}</small></h1>',
        *_prose(info.get("description")),
        *_contents(document),
        *_operations(document),
        *_schemes(document),
        *_schemas(document),
        "</body></html>",
    ]
    return "\n".join(lines) + "\n"


def _contents(document: Mapping[str, object]) -> Iterator[str]:
    yield "<nav><ul>"
    for each in operations(document, sockets=True):
        yield (
            f'<li><a href="#{escape(each.name, quote=True)}">{_heading(each)}</a> '
            f'<span class="soft">{escape(str(each.operation.get("summary", "")))}</span></li>'
        )
    yield "</ul></nav>"


def _operations(document: Mapping[str, Any]) -> Iterator[str]:
    tags = {tag["name"]: tag.get("description") for tag in document.get("tags", ())}
    grouped: dict[str, list[Operation]] = {}
    for each in operations(document, sockets=True):
        grouped.setdefault(next(iter(each.operation.get("tags", ())), ""), []).append(each)
    for tag, inside in grouped.items():
        yield f"<h2>{escape(tag or 'Routes')}</h2>"
        yield from _prose(tags.get(tag))
        for each in inside:
            yield from _operation(each)


def _heading(each: Operation) -> str:
    return f'<code><span class="method">{escape(each.method)}</span> {escape(each.path)}</code>'


def _operation(each: Operation) -> Iterator[str]:
    operation = each.operation
    yield f'<article id="{escape(each.name, quote=True)}">'
    yield f"<h3>{_heading(each)}</h3>"
    yield from _prose(operation.get("summary"))
    yield from _prose(operation.get("description"))
    security: Sequence[Mapping[str, object]] = operation.get("security", ())
    if security:
        ways = " or ".join(" and ".join(map(escape, way)) if way else "nothing" for way in security)
        yield f'<p class="soft">Needs {ways}.</p>'
    if parameters := operation.get("parameters"):
        yield "<table><thead><tr><th>Parameter</th><th>In</th><th>Type</th><th></th></tr></thead><tbody>"
        for parameter in parameters:
            notes = [
                "required" if parameter.get("required") else "",
                escape(str(parameter.get("description", ""))),
                f"default {escape(json.dumps(parameter['schema']['default']))}"
                if "default" in parameter.get("schema", {})
                else "",
            ]
            yield (
                f"<tr><td><code>{escape(parameter['name'])}</code></td><td>{escape(parameter['in'])}</td>"
                f"<td><code>{_type(parameter.get('schema', {}), '')}</code></td>"
                f'<td class="soft">{", ".join(filter(None, notes))}</td></tr>'
            )
        yield "</tbody></table>"
    if body := operation.get("requestBody"):
        yield from _bodies("Body", body.get("content", {}))
    for status, response in operation.get("responses", {}).items():
        content = response.get("content", {})
        headers = ", ".join(f"<code>{escape(header)}</code>" for header in response.get("headers", {}))
        opened = " open" if str(status).startswith("2") else ""
        yield f"<details{opened}><summary><b>{escape(str(status))}</b> {escape(str(response.get('description', '')))}</summary>"
        if headers:
            yield f'<p class="soft">Headers: {headers}</p>'
        yield from _bodies("", content)
        yield "</details>"
    yield "</article>"


def _bodies(label: str, content: Mapping[str, Any]) -> Iterator[str]:
    for media, each in content.items():
        schema = each.get("schema", each.get("itemSchema", {}))
        of = "each event of " if "itemSchema" in each else ""
        yield f'<p>{escape(label)} <span class="soft">{of}{escape(media)}</span></p><pre>{_type(schema, "")}</pre>'
        for name, example in each.get("examples", {}).items():
            text = json.dumps(example.get("value"), indent=2, ensure_ascii=False)
            summary = escape(str(example.get("summary", name)))
            yield f'<details><summary class="soft">Example: {summary}</summary><pre>{escape(text)}</pre></details>'


def _schemes(document: Mapping[str, Any]) -> Iterator[str]:
    schemes = document.get("components", {}).get("securitySchemes", {})
    if not schemes:
        return
    yield "<h2>Authentication</h2><ul>"
    for name, scheme in schemes.items():
        how = f"{scheme.get('scheme', '')} token or password" if scheme.get("type") == "http" else ""
        where = f"the {scheme['in']} {scheme['name']}" if "in" in scheme else ""
        yield f"<li><b>{escape(name)}</b>: {escape(how or where or str(scheme.get('type', '')))}</li>"
    yield "</ul>"


def _schemas(document: Mapping[str, Any]) -> Iterator[str]:
    schemas = document.get("components", {}).get("schemas", {})
    if not schemas:
        return
    yield "<h2>Types</h2>"
    for name, schema in schemas.items():
        yield f'<h3 id="type-{escape(name, quote=True)}">{escape(name)}</h3>'
        yield from _prose(schema.get("description"))
        yield f"<pre>{_type(schema, '')}</pre>"


def _type(schema: Schema, indent: str) -> str:
    """A schema in the short form that people know from type declarations."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return f'<a href="#type-{escape(name, quote=True)}">{escape(name)}</a>'
    if "anyOf" in schema or "oneOf" in schema:
        return " | ".join(_type(part, indent) for part in schema.get("anyOf", schema.get("oneOf", ())))
    if "allOf" in schema:
        return " &amp; ".join(_type(part, indent) for part in schema["allOf"])
    if values := [schema["const"]] if "const" in schema else schema.get("enum"):
        return " | ".join(escape(json.dumps(value, ensure_ascii=False)) for value in values)
    kind = schema.get("type")
    if kind == "array":
        if "prefixItems" in schema:
            return f"[{', '.join(_type(part, indent) for part in schema['prefixItems'])}]"
        return f"list of {_type(schema.get('items', {}), indent)}{_demands(schema)}"
    if kind == "object" or "properties" in schema:
        return _object(schema, indent)
    return f"{escape(str(schema.get('format') or kind or 'any value'))}{_demands(schema)}"


def _object(schema: Schema, indent: str) -> str:
    required = set(schema.get("required", ()))
    inner = f"{indent}  "
    lines: list[str] = []
    for name, part in schema.get("properties", {}).items():
        description = part.get("description")
        comment = f'  <span class="soft"># {escape(str(description))}</span>' if description else ""
        mark = "" if name in required else "?"
        lines.append(f"{inner}{escape(name)}{mark}: {_type(part, inner)}{comment}")
    others = schema.get("additionalProperties")
    if is_object(others):
        lines.append(f"{inner}…: {_type(others, inner)}")
    return "{\n" + "\n".join(lines) + f"\n{indent}}}" if lines else "object"


def _demands(schema: Schema) -> str:
    bounds = [f"{word} {value}" for word, value in schema.items() if word in (*LOWER, *UPPER, "pattern")]
    return f' <span class="soft">({escape(", ".join(bounds))})</span>' if bounds else ""


def _prose(text: object) -> Iterator[str]:
    for paragraph in str(text or "").split("\n\n"):
        if paragraph.strip():
            marked = _CODE(r"<code>\1</code>", escape(paragraph.strip()))
            yield f"<p>{marked}</p>"
