"""The page of a failure that `core dev` answers a browser with: the record, and the request that it came up in.

Nothing of it ever leaves a development host, and secrets in a request are left out even there.
"""

from __future__ import annotations

from html import escape
from typing import Final

from core.dev.exchange import Exchange
from core.explain.failure import Failure
from core.explain.frames import Frame
from core.http.headers import is_secret


def to_html(found: Failure, exchange: Exchange | None = None, *, in_explorer: bool = False) -> str:
    """One page that needs nothing else. `in_explorer` says that the explorer keeps the exchange."""
    parts = [f"<h1><span>{escape(found.kind)}</span> {escape(found.message)}</h1>"]
    if found.problems:
        items = "".join(f"<li>{escape(problem)}</li>" for problem in found.problems)
        parts.append(f"<ol class=problems>{items}</ol>")
    shown = f"<p>{escape(found.fix)}</p>" if found.fix else ""
    shown += f"<p>Page: <code>{escape(found.page)}</code></p>" if found.page else ""
    if shown:
        parts.append(f"<section class=fix><h2>How to fix</h2>{shown}</section>")
    if found.causes:
        items = "".join(f"<li>{escape(cause)}</li>" for cause in found.causes)
        parts.append(f"<section><h2>Caused by</h2><ul>{items}</ul></section>")
    others = [frame for frame in found.frames if not frame.own]
    if found.own:
        steps = [_frame_html(frame, is_open=index < 3) for index, frame in enumerate(found.own)]
        parts += ["<section><h2>Your code, the last step first</h2>", *steps, "</section>"]
    if others:
        count = f"{len(others)} more step{'' if len(others) == 1 else 's'}"
        steps = [_frame_html(frame, is_open=False) for frame in others]
        parts += [f"<details><summary>{count}, inside libraries</summary>", *steps, "</details>"]
    if exchange is not None:
        facts = [("method", exchange.method), ("url", exchange.path)]
        for name, value in exchange.request.headers:
            facts.append((name, "(left out)" if is_secret(name.lower()) else value))
        rows = "".join(f"<tr><th scope=row>{escape(name)}<td>{escape(value)}" for name, value in facts)
        parts.append(f"<section><h2>The request</h2><table>{rows}</table></section>")
        if in_explorer:
            parts.append(f'<p><a class=button href="/_core#requests/{escape(exchange.key)}">Write a test of it</a></p>')
    body = "\n".join(parts)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(found.kind)}</title>"
        f'<meta name=viewport content="width=device-width"><style>{_STYLE}</style><main>{body}'
        "<footer>This page is shown by <code>core dev</code> only. It goes away when the code is saved and the page "
        "is loaded again.</footer></main>"
    )


def _frame_html(frame: Frame, *, is_open: bool) -> str:
    lines = "".join(
        f'<span class="{"at" if number == frame.line else "by"}"><b>{number}</b>{escape(text)}\n</span>'
        for number, text in frame.source
    )
    return (
        f"<details{' open' if is_open else ''}><summary><code>{escape(frame.file)}:{frame.line}</code> "
        f"{escape(frame.function)}</summary><pre tabindex=0>{lines}</pre></details>"
    )


_STYLE: Final = """
:root{color-scheme:light dark;--line:light-dark(#d8d4cc,#3a3d42);--soft:light-dark(#f4f1ea,#1d2024);
--red:light-dark(#a3162b,#ff8d9b);--green:light-dark(#0b5d34,#7fdca6);--dim:light-dark(#5c5a55,#a9adb3)}
body{margin:0;font:16px/1.5 system-ui,sans-serif;background:light-dark(#fffdf8,#131518);color:light-dark(#1c1b19,#e9e7e2)}
main{max-width:62rem;margin:0 auto;padding:2rem 1.25rem}
h1{font-size:1.35rem;white-space:pre-wrap;overflow-wrap:anywhere}h1 span{color:var(--red)}
h2{font-size:1rem;margin:1.5rem 0 .4rem}
.fix{border-left:4px solid var(--green);padding:.1rem 1rem;background:var(--soft)}.fix h2{margin-top:.6rem}
.problems li{margin:.4rem 0;overflow-wrap:anywhere}
details{border:1px solid var(--line);border-radius:6px;margin:.5rem 0;padding:.3rem .8rem}
summary{cursor:pointer;overflow-wrap:anywhere}
pre{overflow:auto;margin:.5rem 0;font:14px/1.45 ui-monospace,monospace}
pre b{display:inline-block;width:3.5em;color:var(--dim);font-weight:400}
.at{display:block;background:light-dark(#ffe3e3,#4a1f25)}.by{display:block}
table{border-collapse:collapse;width:100%}th{text-align:left;font-weight:500;vertical-align:top;padding-right:1.5rem}
td{overflow-wrap:anywhere}th,td{border-bottom:1px solid var(--line);padding:.25rem .5rem .25rem 0}
.button{display:inline-block;padding:.3rem .9rem;border:1px solid;border-radius:6px;color:inherit;text-decoration:none}
footer{margin-top:2rem;color:var(--dim);font-size:.9rem}code{font-family:ui-monospace,monospace}
"""
