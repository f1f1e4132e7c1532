"""A whole application against a linear scan: which middleware run, which handler answers, with which parameters.

The reference walks everything that was registered, in order, and knows nothing of tables, scopes or chains.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.fetch import ask

from core import Next, Request, Response, Router, create_app

texts = st.sampled_from(["a", "b", "users", "me", "x y"])
part = st.one_of(texts, st.sampled_from([":p", ":q", ":r", ":p{[a-m]+}", ":q{[0-9]+}", "*"]))


def distinct(parts: list[str]) -> bool:
    names = [part.partition("{")[0] for part in parts if part.startswith(":")]
    return len(names) == len(set(names))


def joined(parts: list[str]) -> str:
    return "/" + "/".join(parts)


prefixes = st.lists(part, max_size=2).filter(lambda parts: distinct(parts) and parts[-1:] != ["*"]).map(joined)
paths = st.tuples(
    st.lists(part, max_size=3).filter(distinct), st.sampled_from([[], ["*"], [":last?"], [":last{7|a}?"]])
).map(lambda given: joined([*given[0], *given[1]]))
methods = st.sampled_from(["GET", "POST", "all"])
routes = st.tuples(st.just("route"), methods, paths, st.sampled_from(["handler", "passing"]))
uses = st.tuples(st.just("use"), prefixes)
mounts = st.tuples(st.just("mount"), prefixes.filter(lambda text: ":" not in text), st.lists(routes | uses, max_size=4))
applications = st.lists(routes | uses | mounts, max_size=8)
requests = st.tuples(
    st.sampled_from(["GET", "POST", "HEAD", "PUT"]),
    st.lists(st.sampled_from(["a", "b", "users", "me", "x y", "7", "é", "a/b"]), max_size=4),
)


def flat(registered: list[Any], prefix: str = "") -> list[tuple[str, str, str, str]]:
    """`(kind, method, whole path, name)` of everything, in order."""
    found: list[tuple[str, str, str, str]] = []
    for number, entry in enumerate(registered):
        name = f"{prefix}#{number}"
        if entry[0] == "mount":
            found += flat(entry[2], f"{prefix}{entry[1]}".rstrip("/"))
        elif entry[0] == "use":
            found.append(("use", "", f"{prefix}{entry[1]}", name))
        else:
            found.append((entry[3], entry[1], f"{prefix}{entry[2]}", name))
    return found


def segments_of(text: str) -> list[str]:
    found = text.split("/")[1:]
    while found and found[-1] == "":
        found.pop()
    # A prefix of "/" leaves an empty segment between two slashes that nobody wrote.
    return [segment for segment in found if segment]


def match(pattern: str, path: list[str], *, prefix: bool) -> dict[str, str] | None:
    wanted = segments_of(pattern)
    rest = bool(wanted) and wanted[-1] == "*"
    if rest:
        wanted.pop()
    if wanted and wanted[-1].endswith("?") and len(path) == len(wanted) - 1:
        wanted.pop()
    if len(path) < len(wanted) or (len(path) > len(wanted) and not (rest or prefix)):
        return None
    found: dict[str, str] = {}
    for text, segment in zip(wanted, path, strict=False):
        if text.startswith(":"):
            name, _, expression = text[1:].removesuffix("?").removesuffix("}").partition("{")
            if expression and not re.fullmatch(expression, segment):
                return None
            found[name] = segment
        elif text == "*":
            continue
        elif text != segment:
            return None
    if rest:
        found["*"] = "/".join(path[len(wanted) :])
    return found


def expected(registered: list[Any], method: str, path: list[str]) -> tuple[list[str], str | None, dict[str, str]]:
    trace: list[str] = []
    for kind, its_method, pattern, name in flat(registered):
        if kind == "use":
            if match(pattern, path, prefix=True) is not None:
                trace.append(name)
            continue
        answers = its_method in ("all", method) or (its_method == "GET" and method == "HEAD")
        params = match(pattern, path, prefix=False) if answers else None
        if params is None:
            continue
        trace.append(name)
        if kind == "handler":
            return trace, name, params
    return trace, None, {}


def build(router: Router[Any], registered: list[Any], prefix: str, trace: list[str]) -> None:
    for number, entry in enumerate(registered):
        name = f"{prefix}#{number}"
        if entry[0] == "mount":
            inner: Router[Any] = Router()
            build(inner, entry[2], f"{prefix}{entry[1]}".rstrip("/"), trace)
            router.use(entry[1], inner)
        elif entry[0] == "use" or entry[3] == "passing":
            step = passing(name, trace)
            if entry[0] == "use":
                router.use(entry[1], step)
            else:
                getattr(router, entry[1].lower())(entry[2], step)
        else:
            getattr(router, entry[1].lower())(entry[2], answering(name, trace))


def passing(name: str, trace: list[str]) -> Any:
    async def step(req: Request, res: Response, next: Next) -> None:
        trace.append(name)
        await next()

    return step


def answering(name: str, trace: list[str]) -> Any:
    async def handler(req: Request, res: Response) -> None:
        trace.append(name)
        res.header("x-by", quote(name)).header("x-params", quote(repr(dict(req.params)))).json({})

    return handler


@pytest.mark.slow
@given(applications, st.lists(requests, min_size=1, max_size=8))
@example([("use", "/a"), ("route", "GET", "/:p", "handler")], [("GET", ["a"]), ("GET", ["b"]), ("GET", ["a"])])
async def test_an_application_does_what_a_linear_scan_says(
    registered: list[Any], asked: list[tuple[str, list[str]]]
) -> None:
    trace: list[str] = []
    app = create_app()
    build(app, registered, "", trace)
    for method, path in asked:
        trace.clear()
        response = await ask(app, "/" + "/".join(quote(segment, safe="") for segment in path), method=method)
        wanted_trace, wanted_name, wanted_params = expected(registered, method, path)
        assert trace == wanted_trace
        assert unquote(response.headers.get("x-by", "")) == (wanted_name or "")
        assert response.status == (404 if wanted_name is None else 200)
        if wanted_name is not None:
            assert unquote(response.headers["x-params"]) == repr(wanted_params)
